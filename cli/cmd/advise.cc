#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/cmd/advise_try.h"
#include "cli/cmd/commands.h"
#include "cli/cmd/load.h"
#include "cli/cmd/options.h"
#include "cli/cmd/shared_options.h"
#include "cli/cmd/streams.h"
#include "cli/cmd/text_output.h"
#include "cli/cmd/user_calibration.h"
#include "cli/report/fold.h"
#include "cli/report/machine.h"
#include "cli/view/advice_view.h"
#include "cli/words/opening.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kAdviseUsage =
    "rfinject advise [TRACE|FOLDER...]\n\n"
    "What to change in the program, and what each change would win, in ms a step, from the run's own numbers. "
    "Without a\n"
    "name it is the latest run in rfinject-out/. Each rule was held against a pair of programs, one with the fault "
    "and\n"
    "one without (docs/reference/ADVICE.md). Gains of several rules do not add up: they may win the same time.";

}  // namespace

VerbHelp AdviseHelp() {
  return {
      kAdviseUsage,
      {FormatOption(/*pictures=*/false),
       kOutputOption,
       kForceOption,
       kRawOption,
       kWidthOption,
       {"all", 0, "", "with rules that no pair of programs has shown to be right, and those that are silent"},
       {"try", 0, "", "make the changes that are advised in the program, and measure what they win (rfinject try)"},
       {"yes", 0, "", "with --try: do not ask before the program is run"},
       {"host-us", 0, "N", "of estimates: the host takes N us to launch a kernel (eager PyTorch: 5 to 60)"},
       kCalibrationOption},
      kFiles};
}

int AdviseMain(const ParsedOptions& parsed) {
  OptionReader reader(parsed);
  const Format* const format = reader.FormatOption(/*pictures=*/false);
  const WriteOptions writing = reader.Writing(format);
  const double host_ns = reader.MicrosecondsAsNs("host-us", 0);
  const Calibration calibration = reader.CalibrationOption();
  if (parsed.Has("yes") && !parsed.Has("try")) reader.Refuse("--yes is for --try");
  if (!reader.ok()) return Refused("advise", reader.status());
  const std::vector<std::string> paths = PathsOrNewestRun("advise", parsed);
  if (paths.empty()) return 2;
  TextOutput destination;
  if (!parsed.Has("try") && !Succeeded(destination.Open(parsed.Value("output"), ReplaceOf(parsed, paths)))) return 1;
  const LoadedRuns loaded = LoadRuns(paths, FolderMeans::kNewestRun);
  std::vector<Report> reports;
  for (const LoadedRun& run : loaded.runs) {
    for (Report& report :
         FoldProfile(run.profile, MachineFor, {.host_ns_per_launch = host_ns, .calibration = &calibration})) {
      reports.push_back(std::move(report));
    }
  }
  if (reports.empty()) {
    if (!loaded.damaged && !loaded.empty) Complain("there is nothing to advise on");
    return 1;
  }
  if (parsed.Has("try")) return TryAdvice(reports, parsed);
  const std::string nothing = NothingText(reports);
  if (!nothing.empty()) {
    if (!loaded.damaged) Complain(nothing);
    if (format->name == kDefaultFormat) return 1;
  }
  const absl::Status written =
      destination.Write(AdviceDocument(std::move(reports), parsed.Has("all")), *format, writing);
  if (!written.ok()) return Refused("advise", written);
  return loaded.damaged || !nothing.empty() ? 1 : 0;
}

}  // namespace rfinject::cli
