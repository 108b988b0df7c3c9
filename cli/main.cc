// The `rfinject` command: a verb, or a program to run.
#include <malloc.h>

#include <exception>
#include <new>
#include <string_view>

#include "cli/cmd/commands.h"
#include "cli/cmd/streams.h"

namespace rfinject::cli {
namespace {

int Main(int argc, char** argv) {
  const Arguments all(argv + 1, static_cast<size_t>(argc > 0 ? argc - 1 : 0));
  if (all.empty()) {
    PrintError(HelpText());
    return 2;
  }
  const std::string_view first = all[0];
  if (first == "-h" || first == "--help") return RunVerb("help", {});
  if (first == "--version") return RunVerb("version", {});
  return FindCommand(first) != nullptr ? RunVerb(first, all.subspan(1)) : RunVerb("run", all);
}

}  // namespace
}  // namespace rfinject::cli

int main(int argc, char** argv) {
#if defined(__GLIBC__)
  // The next trace needs as much memory as the last one; giving it back in between takes a tenth of the time of
  // reading many traces.
  ::mallopt(M_TRIM_THRESHOLD, 64 << 20);
#endif
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
