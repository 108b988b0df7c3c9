#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/cmd/commands.h"
#include "cli/cmd/load.h"
#include "cli/cmd/options.h"
#include "cli/cmd/shared_options.h"
#include "cli/cmd/text_output.h"
#include "cli/cmd/user_calibration.h"
#include "cli/report/fold.h"
#include "cli/report/machine.h"
#include "cli/view/compare_views.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kRunsUsage =
    "rfinject runs [TRACE|FOLDER...]\n\n"
    "The runs, oldest first: when, on what, how many ranks and steps, how long a step took, the command, and where "
    "the\n"
    "traces are. Without a name those in rfinject-out/. Ranks and restarts of one job are one run.";

// For each folder above a trace how many runs have traces in it, in whatever depth.
std::map<std::string, size_t> RunsAbove(const std::vector<LoadedRun>& runs) {
  std::map<std::string, size_t> counts;
  for (const LoadedRun& run : runs) {
    std::map<std::string, bool> seen;
    for (const std::string& file : run.of.files) {
      for (std::filesystem::path folder = std::filesystem::path(file).parent_path(); !folder.empty();
           folder = folder.parent_path()) {
        seen[folder.string()] = true;
        if (folder == folder.root_path()) break;
      }
    }
    for (const auto& [folder, yes] : seen) ++counts[folder];
  }
  return counts;
}

// What one would give to `report`: the folder, where it holds nothing but this run.
std::string PathOf(const RunFiles& run, const std::map<std::string, size_t>& runs_above) {
  const std::string& first = run.files.front();
  const std::string folder = std::filesystem::path(first).parent_path().string();
  const auto alone = runs_above.find(folder);
  const bool all_there = std::all_of(run.files.begin(), run.files.end(), [&](const std::string& file) {
    return std::filesystem::path(file).parent_path().string() == folder;
  });
  if (!folder.empty() && alone != runs_above.end() && alone->second == 1 && all_there) return folder + "/";
  return run.files.size() == 1 ? first : first + " and " + std::to_string(run.files.size() - 1) + " more";
}

// A line a run and kind of run, oldest first.
std::vector<RunLine> LinesOf(const LoadedRuns& loaded, const Calibration& calibration) {
  std::vector<RunLine> lines;
  const std::map<std::string, size_t> runs_above = RunsAbove(loaded.runs);
  for (const LoadedRun& run : loaded.runs) {
    for (const auto& [key, part] : run.profile.runs) {
      lines.push_back(
          {.path = PathOf(run.of, runs_above),
           .start_unix_ns = run.of.start_unix_ns,
           .argv = run.of.argv,
           .ranks = std::max<uint64_t>(part.ranks.size(), 1),
           .report = FoldRun(run.profile, part, MachineFor(part), {.by = By::kModel, .calibration = &calibration})});
    }
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const RunLine& a, const RunLine& b) { return a.start_unix_ns < b.start_unix_ns; });
  return lines;
}

}  // namespace

VerbHelp RunsHelp() {
  return {kRunsUsage,
          {FormatOption(/*pictures=*/false), kOutputOption, kForceOption, kRawOption, kWidthOption, kWideOption,
           kCalibrationOption},
          kFiles};
}

int RunsMain(const ParsedOptions& parsed) {
  OptionReader reader(parsed);
  const Format* const format = reader.FormatOption(/*pictures=*/false);
  WriteOptions writing = reader.Writing(format);
  writing.most_rows = 0;
  const Calibration calibration = reader.CalibrationOption();
  if (!reader.ok()) return Refused("runs", reader.status());
  std::vector<std::string> paths = parsed.words;
  if (paths.empty()) paths = {std::string(kRunsFolder)};
  TextOutput destination;
  if (!Succeeded(destination.Open(parsed.Value("output"), ReplaceOf(parsed, paths)))) return 1;
  const LoadedRuns loaded = LoadRuns(paths, FolderMeans::kEveryRun);
  std::vector<RunLine> lines = LinesOf(loaded, calibration);
  if (lines.empty()) return 1;
  const absl::Status written = destination.Write(RunListDocument(std::move(lines)), *format, writing);
  if (!written.ok()) return Refused("runs", written);
  return loaded.damaged ? 1 : 0;
}

}  // namespace rfinject::cli
