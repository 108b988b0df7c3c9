// The `rfinject` command: a verb, or a program to run.
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string_view>

#include "cli/cmd/commands.h"
#include "cli/cmd/options.h"
#include "proto/wire/framing.h"

namespace rfinject::cli {
namespace {

// Verbs that the design names and this version does not have. Without this list they would be taken for programs, and
// some of them may be programs.
constexpr std::string_view kLaterVerbs[] = {"export"};

void PrintHelp(std::FILE* out) {
  std::fputs(
      "How far is each layer of a PyTorch training job from what the GPU could do, and why?\n\n"
      "  rfinject [options] PROGRAM [ARGS...]      run an unmodified program and write traces\n"
      "  rfinject report                           see the latest run's\n\n"
      "Verbs (rfinject VERB -h tells more):\n",
      out);
  for (const Command& command : AllCommands()) {
    std::fprintf(out, "  %-8s %s\n", std::string(command.name).c_str(), std::string(command.help).c_str());
  }
  std::fputs("\n  -h, --help     this text\n      --version  the version\n", out);
}

int Main(int argc, char** argv) {
  const Arguments all(argv + 1, static_cast<size_t>(argc > 0 ? argc - 1 : 0));
  if (all.empty()) {
    PrintHelp(stderr);
    return 2;
  }
  const std::string_view first = all[0];
  if (first == "-h" || first == "--help") {
    PrintHelp(stdout);
    return 0;
  }
  if (first == "--version") {
    std::printf("rfinject %s, trace format %u.%u\n", RFINJECT_VERSION, unsigned{wire::kFormatMajor},
                unsigned{wire::kFormatMinor});
    return 0;
  }
  for (const Command& command : AllCommands()) {
    if (first == command.name) return command.run(all.subspan(1));
  }
  for (const std::string_view verb : kLaterVerbs) {
    if (first == verb) {
      Complain("'" + std::string(verb) +
               "' is a verb that this version does not have; to run a program of that name: " + "rfinject run " +
               std::string(verb));
      return 2;
    }
  }
  return RunProgram(all);
}

}  // namespace
}  // namespace rfinject::cli

int main(int argc, char** argv) {
  try {
    return rfinject::cli::Main(argc, argv);
  } catch (const std::bad_alloc&) {
    rfinject::cli::Complain("out of memory");
  } catch (const std::exception& error) {
    rfinject::cli::Complain(error.what());
  }
  return 1;
}
