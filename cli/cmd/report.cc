#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/cmd/commands.h"
#include "cli/cmd/load.h"
#include "cli/cmd/options.h"
#include "cli/cmd/output_file.h"
#include "cli/cmd/shared_options.h"
#include "cli/cmd/text_output.h"
#include "cli/cmd/user_calibration.h"
#include "cli/import/et/estimate.h"
#include "cli/report/alarms/alarm.h"
#include "cli/report/machine.h"
#include "cli/view/views.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kReportUsage =
    "rfinject report [options] [TRACE|FOLDER...]\n\n"
    "How far each layer is from what the GPU could do. Without a name it is the latest run in rfinject-out/; a "
    "folder is\n"
    "its newest run (--by run: all of them). The ranks and restarts of one run are added up, and nothing else is: "
    "traces\n"
    "that are named are reported one after the other, `rfinject merge` adds them. A damaged trace is used up to the\n"
    "damage, and the exit code is then 1, as it is where nothing was measured.\n\n"
    "On a terminal it prints one screen: where a step goes, the eight rows with most to win, what to change first. An\n"
    "option that says what to show, or --full, prints all, as a file or a pipe gets it.";

constexpr std::array<std::string_view, 3> kStepBys = {"iteration", "optimizer", "forward"};  // of StepBy
constexpr std::array<std::string_view, 2> kColumns = {"roofline", "theory"};                 // of TableColumns
constexpr std::string_view kDefaultView = "layer";

std::vector<std::string_view> ViewNames() {
  std::vector<std::string_view> names;
  for (const View& view : AllViews()) names.push_back(view.name);
  return names;
}

// What --by says of itself: each view with what its rows are.
std::string ViewsHelp() {
  std::string text, line;
  for (const View& view : AllViews()) {
    const std::string one =
        std::string(view.name) + (view.name == kDefaultView ? " (default): " : ": ") + std::string(view.help);
    constexpr size_t kMostLine = 90;
    if (!line.empty() && line.size() + one.size() > kMostLine) {
      text += line + ";\n";
      line = one;
    } else {
      line += (line.empty() ? "" : "; ") + one;
    }
  }
  return text + line;
}

struct ReportArguments {
  const View* view = nullptr;
  const Format* format = nullptr;
  WriteOptions writing;
  ViewInput input;  // but for the profiles
  Calibration calibration;
  Limits limits;
  bool strict = false;
  std::vector<std::string> strict_alarms;  // none: all
  std::string theory;
};

// Which rows are meant, and how they are folded.
void ReadRows(const ParsedOptions& parsed, OptionReader* reader, ReportArguments* given) {
  const std::vector<std::string_view> names = ViewNames();
  given->view = &AllViews()[reader->Word("by", names, kDefaultView)];
  const View& view = *given->view;
  FoldOptions& fold = given->input.fold;
  fold.depth = reader->Number("depth", 0, /*least=*/1);
  if (fold.depth > 0 && !view.folds_layers) {
    reader->Refuse("--depth folds layers; it goes with --by layer, class or kernel");
  }
  if (parsed.Has("sort")) {
    const std::string column = parsed.Value("sort");
    given->input.look.sort = FindColumnOrHead(column);
    if (!view.sorts) {
      reader->Refuse("--sort goes with rows of one run, not with --by " + std::string(view.name));
    } else if (given->input.look.sort == nullptr) {
      reader->Refuse("--sort " + column + ": no column has that name; `rfinject explain columns` lists them");
    }
  }
  given->input.look.validation = parsed.Has("validation");
  if (given->input.look.validation && !view.sorts) {
    reader->Refuse("--validation goes with rows of one run, not with --by " + std::string(view.name));
  }
  const std::string_view columns = parsed.Has("theory") ? "theory" : "roofline";
  given->input.look.columns = static_cast<TableColumns>(reader->Word("columns", kColumns, columns));
  fold.step_by = static_cast<StepBy>(reader->Word("step-by", kStepBys, kStepBys.front()));
}

// Whether a person at a terminal asked for a report, and not for a part of one.
bool IsForOneScreen(const ParsedOptions& parsed, const Format& format) {
  constexpr std::string_view kParts[] = {"by",     "full",  "rows",  "sort",       "depth",   "wide",
                                         "theory", "width", "limit", "validation", "columns", "output"};
  return format.name == kDefaultFormat && ::isatty(STDOUT_FILENO) == 1 &&
         std::none_of(std::begin(kParts), std::end(kParts), [&](std::string_view name) { return parsed.Has(name); });
}

absl::StatusOr<ReportArguments> ReadReport(const ParsedOptions& parsed) {
  OptionReader reader(parsed);
  ReportArguments given;
  given.theory = parsed.Value("theory");
  ReadRows(parsed, &reader, &given);
  given.format = reader.FormatOption();
  given.writing = reader.Writing(given.format);
  given.limits = reader.Limit();
  FoldOptions& fold = given.input.fold;
  if (parsed.Has("roofs")) {
    if (const absl::Status status = ParseRoofKinds(parsed.Value("roofs"), &fold.roofs); !status.ok()) {
      reader.Refuse("--roofs " + std::string(status.message()));
    }
  }
  if (parsed.Has("roof")) {
    if (const absl::Status status = ParseUserRoofs(parsed.Value("roof"), &fold.roofs); !status.ok()) {
      reader.Refuse("--roof " + std::string(status.message()));
    }
  }
  fold.host_ns_per_launch = reader.MicrosecondsAsNs("host-us", 0);
  fold.launch_floor_ns = reader.MicrosecondsAsNs("launch-floor", kLaunchIntervalNs);
  if (parsed.Has("on")) {
    fold.on = FindBoard(parsed.Value("on"));
    if (fold.on == nullptr || !HasEstimates(*fold.on)) {
      reader.Refuse("--on " + parsed.Value("on") + ": no GPU of that name is estimated for (rfinject gpus)");
    }
  }
  given.strict = parsed.Has("strict");
  if (given.strict && !ParseAlarmIds(parsed.Value("strict"), &given.strict_alarms)) {
    reader.Refuse("--strict=" + parsed.Value("strict") + ": there are " + AlarmRange() + ", commas between");
  }
  given.calibration = reader.CalibrationOption();
  given.input.machine_for = [](const Run& run) { return MachineFor(run); };
  given.input.whole_run = given.format->whole_run;
  given.input.screen = IsForOneScreen(parsed, *given.format);
  if (!reader.ok()) return reader.status();
  return given;
}

// Whether it was imported, and no launch has what `has` asks for.
template <typename Has>
bool IsImportWithout(const LoadedRun& one, const Has& has) {
  return std::all_of(one.profile.runs.begin(), one.profile.runs.end(), [&](const auto& keyed) {
    const Run& run = keyed.second;
    const bool imported = run.key.source == SourceKind::kImported || run.key.collector == kExecutionTraceCollector;
    return imported && std::none_of(run.launches.begin(), run.launches.end(),
                                    [&](const auto& launch) { return has(launch.first); });
  });
}

// The view of imports that name no layers: by operator, or where none is named either, by kernel. Null for all else.
const View* ViewOfImports(const std::vector<LoadedRun>& runs) {
  const auto all_without = [&runs](const auto& has) {
    return std::all_of(runs.begin(), runs.end(), [&](const LoadedRun& one) { return IsImportWithout(one, has); });
  };
  if (!all_without([](const LaunchKey& key) { return !key.layer.path.empty(); })) return nullptr;
  const bool operators = !all_without([](const LaunchKey& key) { return !key.op.empty(); });
  return FindView(operators ? "op" : "kernel");
}

// What was loaded, as a document. Without layers to tell apart, the rows are operators or kernels, unless the user
// chose others.
Document MakeDocument(const ReportArguments& given, const ParsedOptions& parsed, const LoadedRuns& loaded,
                      const Profile* theory) {
  ViewInput input = given.input;
  Profile sum;
  for (const LoadedRun& one : loaded.runs) {
    if (!given.view->adds_up || !sum.Merge(one.profile).ok()) input.profiles.push_back(&one.profile);
  }
  if (!sum.runs.empty()) input.profiles.push_back(&sum);
  input.fold.theory = theory;
  input.fold.calibration = &given.calibration;
  const bool chosen = parsed.Has("by") || parsed.Has("depth") || parsed.Has("theory");
  const View* of_imports = chosen ? nullptr : ViewOfImports(loaded.runs);
  return (of_imports != nullptr ? *of_imports : *given.view).make(input);
}

// Whether --strict has a reason to fail.
bool IsAlarming(const ReportArguments& given, const Document& document) {
  const auto counts = [&](const Check& check) {
    const std::vector<std::string>& ids = given.strict_alarms;
    return check.outcome == Check::Outcome::kFails &&
           (ids.empty() || std::find(ids.begin(), ids.end(), check.name) != ids.end());
  };
  return given.strict && std::any_of(document.checks.begin(), document.checks.end(), counts);
}

}  // namespace

VerbHelp ReportHelp() {
  static const auto* const kViewsHelp = new std::string(ViewsHelp());
  return {
      kReportUsage,
      {{"by", 0, "WHAT", *kViewsHelp, ChoicesOf(ViewNames())},
       FormatOption(),
       kOutputOption,
       kForceOption,
       kLimitOption,
       kRawOption,
       kRowsOption,
       {"full", 0, "", "on a terminal, too, all that is known, and not one screen of it"},
       {"sort", 0, "COLUMN", "rows by this column, the largest first: a head of the table, or a column of the CSV"},
       {"depth", 0, "N", "layers folded to the first N parts of their names: 2 makes h.0 of h.0.attn.proj"},
       {"validation", 0, "", "validations alone, which otherwise are a line of the training's report"},
       kWidthOption,
       kWideOption,
       {"theory", 0, "TRACE", "estimates of the same networks: their model FLOP beside what was measured", kFiles},
       {"columns", 0, "WHAT", "of the table: roofline, or theory (default with --theory)", ChoicesOf(kColumns)},
       {"roofs", 0, "KINDS", "roofs to draw: datasheet (default), clock, empirical, or all; commas between",
        "datasheet clock empirical all"},
       {"roof", 0, "NAME=RATE", "empirical roofs that you measured, like bf16_tc=271T,dram=1.36TB/s"},
       {"step-by", 0, "WHAT",
        "what a step is: iteration (default), what the training loop repeats; optimizer, each\n"
        "step of one; or forward, each call of a model",
        ChoicesOf(kStepBys)},
       {"host-us", 0, "N",
        "of estimates: the host takes N us to launch a kernel (eager PyTorch: 5 to 60), and a step\n"
        "by the clock the longer of GPU and host"},
       {"on", 0, "GPU",
        "hold what was measured or recorded against another GPU: what its operators should take\n"
        "there, longer than usual by as much as here"},
       kCalibrationOption,
       {"launch-floor", 0, "US",
        "of estimates without --host-us: the host launches a kernel every US microseconds\n"
        "(default 10); what the GPU waits for is bound by launching"},
       {"strict", 0, "[=R001,R004]", "exit with 3 when an alarm is raised, or one of these (rfinject explain R005)"}},
      kFiles};
}

int ReportMain(const ParsedOptions& parsed) {
  const absl::StatusOr<ReportArguments> given = ReadReport(parsed);
  if (!given.ok()) return Refused("report", given.status());
  const bool every_run = given->view->every_run;
  const bool of_all = every_run && parsed.words.empty();
  const std::vector<std::string> paths =
      of_all ? std::vector<std::string>{std::string(kRunsFolder) + "/"} : PathsOrNewestRun("report", parsed);
  if (paths.empty()) return 2;
  std::vector<std::string> inputs = paths;
  if (!given->theory.empty()) {
    if (::access(given->theory.c_str(), F_OK) != 0 && errno == ENOENT) {
      Complain("--theory " + given->theory + ": there is no such file or folder; `rfinject --estimate GPU -o " +
               given->theory + " PROGRAM` makes it, with an estimate of the same program");
      return 1;
    }
    inputs.push_back(given->theory);
  }
  TextOutput destination;
  if (!Succeeded(destination.Open(parsed.Value("output"), ReplaceOf(parsed, inputs)))) return 1;
  LoadedRuns loaded = LoadRuns(paths, every_run ? FolderMeans::kEveryRun : FolderMeans::kNewestRun);
  if (loaded.runs.empty()) {
    if (!loaded.damaged && !loaded.empty) Complain("there is nothing to report");
    return 1;
  }
  for (LoadedRun& one : loaded.runs) ApplyLimits(given->limits, &one.profile);
  Loaded theory;
  if (!given->theory.empty()) {
    theory = LoadTraces({given->theory});
    if (theory.profile.runs.empty()) {
      if (!theory.damaged) Complain(given->theory + ": there is no run in it");
      return 1;
    }
  }
  const Document document = MakeDocument(*given, parsed, loaded, given->theory.empty() ? nullptr : &theory.profile);
  // A table of nothing has nothing to say; what programs read stays what it is.
  if (!document.nothing.empty()) {
    if (!loaded.damaged) Complain(document.nothing);  // damage is said already, and explains it
    if (given->format->name == kDefaultFormat) return 1;
  }
  if (const absl::Status status = destination.Write(document, *given->format, given->writing); !status.ok()) {
    return Refused("report", status);
  }
  if (loaded.damaged || !document.nothing.empty()) return 1;
  constexpr int kAlarm = 3;
  return IsAlarming(*given, document) ? kAlarm : 0;
}

}  // namespace rfinject::cli
