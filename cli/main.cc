// The `rfinject` command: a verb, or a program to run.
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "cli/cmd/commands.h"
#include "cli/cmd/streams.h"

namespace rfinject::cli {
namespace {

// Verbs that the design names and this version does not have. Without this list they would be taken for programs, and
// some of them may be programs.
constexpr std::string_view kLaterVerbs[] = {"export"};

int Main(int argc, char** argv) {
  const Arguments all(argv + 1, static_cast<size_t>(argc > 0 ? argc - 1 : 0));
  if (all.empty()) {
    PrintError(HelpText());
    return 2;
  }
  const std::string_view first = all[0];
  if (first == "-h" || first == "--help") return HelpMain({});
  if (first == "--version") return VersionMain({});
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
  int code = 1;
  try {
    code = rfinject::cli::Main(argc, argv);
  } catch (const std::bad_alloc&) {
    rfinject::cli::Complain("out of memory");
  } catch (const std::exception& error) {
    rfinject::cli::Complain(error.what());
  }
  return rfinject::cli::FinishOutput(code);
}
