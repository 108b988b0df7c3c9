#include "cli/cmd/commands.h"
#include "cli/cmd/load.h"
#include "cli/cmd/options.h"
#include "cli/cmd/output_file.h"
#include "cli/trace/encode.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kMergeUsage =
    "rfinject merge [TRACE|FOLDER...] -o FILE\n\n"
    "Adds up the traces of ranks, restarts and repeated runs into one: all that is named, and all in a folder; "
    "without\n"
    "a name the latest run in rfinject-out/. In any order and any grouping the result is the same to the last bit. "
    "What\n"
    "was started by different commands or ran different operators is added, and a line says so.\n"
    "What must not be added (another GPU, precision policy or batch size, estimates and\n"
    "measurements) is kept apart in the same file. A trace that is named twice, or is in a merged one too, counts\n"
    "once.";

}  // namespace

VerbHelp MergeHelp() {
  return {kMergeUsage, {{"output", 'o', "FILE", "the merged trace; created 0600", kFiles}, kForceOption}, kFiles};
}

int MergeMain(const ParsedOptions& parsed) {
  const std::string output = parsed.Value("output");
  if (output.empty()) return UsageError("merge", "-o FILE is missing");
  const std::vector<std::string> paths = PathsOrNewestRun("merge", parsed);
  if (paths.empty()) return 2;
  Replace replace = ReplaceOf(parsed, paths);
  replace.merged_inputs = true;
  OutputFile file;
  if (!Succeeded(file.Open(output, replace))) return 1;
  const Loaded loaded = LoadTraces(paths);
  if (loaded.profile.runs.empty()) {
    if (!loaded.damaged && !loaded.empty) Complain("there is nothing to merge");
    return 1;
  }
  if (file.is_input() && loaded.damaged) {
    Complain(output + ": not replaced, because it is an input and not all inputs could be used; -o another file");
    return 1;
  }
  const absl::Status made =
      WriteTrace(loaded.profile, [&](const void* data, size_t size) { return file.Write(data, size); });
  if (!Succeeded(file.Commit(made))) return 1;
  return loaded.damaged ? 1 : 0;
}

}  // namespace rfinject::cli
