#include <unistd.h>

#include <array>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/cmd/commands.h"
#include "cli/cmd/load.h"
#include "cli/cmd/options.h"
#include "cli/cmd/print_report.h"
#include "cli/cmd/streams.h"
#include "cli/cmd/user_calibration.h"
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
    "one without (docs/reference/ADVICE.md). Gains of several rules do not add up: they may win the same time.";

constexpr std::array<std::string_view, 3> kFormats = {"text", "markdown", "json"};

}  // namespace

VerbHelp AdviseHelp() {
  return {kUsage,
          {{"format", 0, "FORMAT", "text (default), markdown or json", ChoicesOf(kFormats)},
           {"all", 0, "", "with rules that no pair of programs has shown to be right, and those that are silent"},
           {"host-us", 0, "N", "of estimates: the host takes N us to launch a kernel (eager PyTorch: 5 to 60)"},
           kCalibrationOption},
          kFiles};
}

int AdviseMain(Arguments arguments) {
  ParsedOptions parsed;
  if (const auto code = ParseOptions("advise", AdviseHelp(), arguments, WordPolicy::kAnywhere, &parsed)) return *code;
  int code = 0;
  size_t format = 0;
  if (!ChooseWord("advise", "format", parsed.Value("format", "text"), kFormats, &format, &code)) return code;
  double host_us = 0;
  if (!ChooseMicroseconds("advise", "host-us", parsed, &host_us, &code)) return code;
  Calibration calibration;
  if (!ChooseCalibration(parsed, &calibration, &code)) return code;
  std::vector<std::string> paths = PathsOf(parsed.words);
  if (paths.empty()) {
    paths = {NewestRunHere("advise")};
    if (paths.front().empty()) return 2;
  }
  const LoadedRuns loaded = LoadRuns(paths, FolderMeans::kNewestRun);
  std::vector<Report> reports;
  for (const LoadedRun& run : loaded.runs) {
    for (Report& report :
         FoldProfile(run.profile, MachineFor, {.host_ns_per_launch = 1000 * host_us, .calibration = &calibration})) {
      reports.push_back(std::move(report));
    }
  }
  if (reports.empty()) {
    if (!loaded.damaged && !loaded.empty) Complain("there is nothing to advise on");
    return 1;
  }
  std::ostringstream text;
  const AdviceOptions options = {.width = TableOptionsFor(STDOUT_FILENO).width, .all = parsed.Has("all")};
  if (kFormats[format] == "json") {
    EmitAdviceJson(reports, text);
  } else if (kFormats[format] == "markdown") {
    EmitAdviceMarkdown(reports, options, text);
  } else {
    EmitAdviceText(reports, options, text);
  }
  Print(std::move(text).str());
  return loaded.damaged ? 1 : 0;
}

}  // namespace rfinject::cli
