#include <unistd.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "cli/cmd/commands.h"
#include "cli/cmd/load.h"
#include "cli/cmd/options.h"
#include "cli/cmd/print_report.h"
#include "cli/cmd/streams.h"
#include "cli/emit/advice.h"
#include "cli/report/fold.h"
#include "cli/report/machine.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kUsage =
    "rfinject advise [TRACE|FOLDER...]\n\n"
    "What to change in the program, and what each change would win, in ms a step, from the run's own numbers. "
    "Without a\n"
    "name it is the latest run in rfinject-out/. Each rule was held against a pair of programs, one with the fault "
    "and\n"
    "one without (docs/ADVICE.md). Gains of several rules do not add up: they may win the same time.";

constexpr Option kOptions[] = {
    {"format", 0, "FORMAT", "text (default), markdown or json"},
    {"all", 0, "", "with rules that no pair of programs has shown to be right, and those that are silent"},
    {"host-us", 0, "N", "of estimates: the host takes N us to launch a kernel (eager PyTorch: 5 to 60)"},
};

}  // namespace

int AdviseMain(Arguments arguments) {
  ParsedOptions parsed;
  if (const auto code = ParseOptions("advise", kUsage, kOptions, arguments, WordPolicy::kAnywhere, &parsed)) {
    return *code;
  }
  const std::string format = parsed.Value("format", "text");
  if (format != "text" && format != "markdown" && format != "json") {
    return UsageError("advise", "--format " + format + ": there are text, markdown and json");
  }
  double host_us = 0;
  constexpr double kMostHostUs = 1e6;  // a second: nobody's launch takes as long
  if (parsed.Has("host-us") &&
      (!absl::SimpleAtod(parsed.Value("host-us"), &host_us) || !(host_us > 0) || host_us > kMostHostUs)) {
    return UsageError(
        "advise", "--host-us wants microseconds above 0 and up to 1000000, not '" + parsed.Value("host-us") + "'");
  }
  std::vector<std::string> paths = PathsOf(parsed.words);
  if (paths.empty()) {
    paths = {NewestRunHere("advise")};
    if (paths.front().empty()) return 2;
  }
  const LoadedRuns loaded = LoadRuns(paths, FolderMeans::kNewestRun);
  std::vector<Report> reports;
  for (const LoadedRun& run : loaded.runs) {
    for (Report& report : FoldProfile(run.profile, MachineFor, {.host_ns_per_launch = 1000 * host_us})) {
      reports.push_back(std::move(report));
    }
  }
  if (reports.empty()) {
    if (!loaded.damaged && !loaded.empty) Complain("there is nothing to advise on");
    return 1;
  }
  std::ostringstream text;
  const AdviceOptions options = {.width = TableOptionsFor(STDOUT_FILENO).width, .all = parsed.Has("all")};
  if (format == "json") {
    EmitAdviceJson(reports, text);
  } else if (format == "markdown") {
    EmitAdviceMarkdown(reports, options, text);
  } else {
    EmitAdviceText(reports, options, text);
  }
  Print(std::move(text).str());
  return loaded.damaged ? 1 : 0;
}

}  // namespace rfinject::cli
