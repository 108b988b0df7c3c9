#include <unistd.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "cli/cmd/commands.h"
#include "cli/cmd/load.h"
#include "cli/cmd/options.h"
#include "cli/cmd/output_file.h"
#include "cli/cmd/print_report.h"
#include "cli/cmd/user_calibration.h"
#include "cli/emit/alarm_texts.h"
#include "cli/emit/formats.h"
#include "cli/report/column.h"
#include "cli/report/fold.h"
#include "cli/report/machine.h"
#include "cli/report/sweep.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kUsage =
    "rfinject report [options] [TRACE|FOLDER...]\n\n"
    "How far each layer is from what the GPU could do. Without a name it is the latest run in rfinject-out/; a "
    "folder "
    "is\n"
    "its newest run (--by run: all of them). The ranks and restarts of one run are added up, and nothing else is: "
    "traces\n"
    "that are named are reported one after the other, `rfinject merge` adds them. A damaged trace is used up to the\n"
    "damage, and the exit code is then 1.";

// The words of --by, in the order of By; after them those that are not a By.
constexpr std::array<std::string_view, 12> kBys = {"model", "phase", "layer", "op",     "kernel", "source",
                                                   "class", "run",   "stack", "memory", "wait",   "rank"};
constexpr size_t kByRun = 7;
constexpr size_t kByStack = 8;
constexpr size_t kByMemory = 9;
constexpr size_t kByWait = 10;
constexpr size_t kByRank = 11;
constexpr std::array<std::string_view, 3> kStepBys = {"iteration", "optimizer", "forward"};  // of StepBy
constexpr std::array<std::string_view, 2> kColumns = {"roofline", "theory"};                 // of TableColumns

std::vector<Option> Options() {
  static const auto* const kFormatHelp =
      new std::string(FormatNames(" or ") + "; default: by the ending of -o, else table");
  return {
      {"by", 0, "WHAT",
       "run (a row each), model, phase, layer (default; of imports without\n"
       "layers kernel), class (layers that are alike as one), op,\n"
       "kernel, source (lines of the program), stack (what is in no layer), memory (what lay there\n"
       "at the peak), wait (what a step waits for, by the clock) or rank (the same of each rank)",
       ChoicesOf(kBys)},
      {"format", 0, "FORMAT", *kFormatHelp, ChoicesOf(FormatsOf("report"))},
      {"output", 'o', "FILE", "write there, not to standard output; created 0600", kFiles},
      kForceOption,
      kLimitOption,
      kRawOption,
      {"rows", 0, "N", "rows of a table, those with most time; 0: all. Default 40"},
      {"sort", 0, "COLUMN", "rows by this column, the largest first: a head of the table, or a column of the CSV"},
      {"depth", 0, "N", "layers folded to the first N parts of their names: 2 makes h.0 of h.0.attn.proj"},
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
       "the longer of GPU and host"},
      kCalibrationOption,
      {"launch-floor", 0, "US",
       "microseconds that a launch takes whatever its kernel does (default 3); launches with\n"
       "less work are bound by launching"},
      {"strict", 0, "[=R001,R004]", "exit with 3 when an alarm is raised, or one of these (rfinject explain R005)"},
  };
}

// Whether it was imported from files that name no layers: all that they tell apart is kernels.
bool OfOtherTools(const LoadedRun& one) {
  return std::all_of(one.profile.runs.begin(), one.profile.runs.end(), [](const auto& keyed) {
    const Run& run = keyed.second;
    return run.key.source == SourceKind::kImported &&
           std::all_of(run.launches.begin(), run.launches.end(),
                       [](const auto& launch) { return launch.first.layer.path.empty(); });
  });
}

}  // namespace

VerbHelp ReportHelp() { return {kUsage, Options(), kFiles}; }

int ReportMain(Arguments arguments) {
  ParsedOptions parsed;
  if (const auto code = ParseOptions("report", ReportHelp(), arguments, WordPolicy::kAnywhere, &parsed)) return *code;
  int code = 0;
  size_t by = 0;
  if (!ChooseWord("report", "by", parsed.Value("by", "layer"), kBys, &by, &code)) return code;
  const std::string output = parsed.Value("output");
  const Format* const format = ChooseFormat("report", parsed, &code);
  if (format == nullptr) return code;
  CsvTexts csv_texts{};
  if (!ChooseCsvTexts("report", parsed, *format, &csv_texts, &code)) return code;
  if (!ApplyLimits("report", parsed, nullptr, &code)) return code;
  uint64_t rows = TableOptions{}.max_rows;
  if (parsed.Has("rows") && !ParseNumber(parsed.Value("rows"), &rows)) {
    return UsageError("report", "--rows wants a number, not '" + parsed.Value("rows") + "'");
  }
  uint64_t depth = 0;
  if (parsed.Has("depth") && (!ParseNumber(parsed.Value("depth"), &depth) || depth == 0)) {
    return UsageError("report", "--depth wants a number from 1 on, not '" + parsed.Value("depth") + "'");
  }
  if (parsed.Has("depth") && by != static_cast<size_t>(By::kLayer) && by != static_cast<size_t>(By::kKernel) &&
      by != static_cast<size_t>(By::kClass)) {
    return UsageError("report", "--depth folds layers; it goes with --by layer, class or kernel");
  }
  const ReportColumn* sort = nullptr;
  if (parsed.Has("sort")) {
    if (by >= kByRun)
      return UsageError("report", "--sort goes with rows of one run, not with --by " + std::string(kBys[by]));
    sort = FindColumn(parsed.Value("sort"));
    if (sort == nullptr) {
      return UsageError("report", "--sort " + parsed.Value("sort") +
                                      ": no column has that name; `rfinject explain columns` lists them");
    }
  }
  TableOptions options;
  if (!ChooseTableWidth("report", parsed, &options, &code)) return code;
  options.max_rows = rows;
  options.csv_texts = csv_texts;
  options.sorted = sort != nullptr;
  size_t columns = 0;
  if (!ChooseWord("report", "columns", parsed.Value("columns", parsed.Has("theory") ? "theory" : "roofline"),
                  kColumns, &columns, &code)) {
    return code;
  }
  size_t step_by = 0;
  if (!ChooseWord("report", "step-by", parsed.Value("step-by", "iteration"), kStepBys, &step_by, &code)) return code;
  RoofOptions roofs;
  if (parsed.Has("roofs")) {
    if (const absl::Status status = ParseRoofKinds(parsed.Value("roofs"), &roofs); !status.ok()) {
      return UsageError("report", "--roofs " + std::string(status.message()));
    }
  }
  if (parsed.Has("roof")) {
    if (const absl::Status status = ParseUserRoofs(parsed.Value("roof"), &roofs); !status.ok()) {
      return UsageError("report", "--roof " + std::string(status.message()));
    }
  }
  Calibration calibration;
  if (!ChooseCalibration(parsed, &calibration, &code)) return code;
  double host_us = 0, launch_floor_us = kLaunchFloorNs / 1000;
  if (!ChooseMicroseconds("report", "host-us", parsed, &host_us, &code)) return code;
  if (!ChooseMicroseconds("report", "launch-floor", parsed, &launch_floor_us, &code)) return code;
  std::vector<std::string> strict;
  if (parsed.Has("strict") && !ParseAlarmIds(parsed.Value("strict"), &strict)) {
    return UsageError("report", "--strict=" + parsed.Value("strict") + ": there are R001 to R012, commas between");
  }
  const bool by_run = by == kByRun;
  std::vector<std::string> paths = PathsOf(parsed.words);
  if (paths.empty()) {
    paths = {by_run ? std::string(kRunsFolder) + "/" : NewestRunHere("report")};
    if (paths.front().empty()) return 2;
  }
  std::vector<std::string> inputs = paths;
  if (parsed.Has("theory")) inputs.push_back(parsed.Value("theory"));
  const Replace replace = ReplaceOf(parsed, inputs);
  TextOutput destination;
  if (!destination.Open(output, replace)) return 1;
  LoadedRuns loaded = LoadRuns(paths, by_run ? FolderMeans::kEveryRun : FolderMeans::kNewestRun);
  if (loaded.runs.empty()) {
    if (!loaded.damaged && !loaded.empty) Complain("there is nothing to report");
    return 1;
  }
  for (LoadedRun& one : loaded.runs) ApplyLimits("report", parsed, &one.profile, &code);
  Loaded theory;
  if (parsed.Has("theory")) {
    const std::string path = parsed.Value("theory");
    theory = LoadTraces({path});
    if (theory.profile.runs.empty()) {
      if (!theory.damaged) Complain(path + ": there is no run in it");
      return 1;
    }
  }
  if (by == kByStack) {
    if (format->stacks == nullptr) {
      return UsageError("report", "--by stack is written as table, json or csv, not as " + std::string(format->name));
    }
    std::vector<StackTable> tables;
    for (const LoadedRun& one : loaded.runs) {
      for (const auto& [key, run] : one.profile.runs) {
        tables.push_back({key.gpu.empty() ? "a GPU without a name" : key.gpu, run.steps.steps, FoldStacks(run)});
      }
    }
    std::ostringstream text;
    format->stacks(tables, options, text);
    if (!destination.Write(std::move(text).str(), ColorsOf(*format))) return 1;
    return loaded.damaged ? 1 : 0;
  }
  if (by == kByMemory) {
    if (format->memory == nullptr) {
      return UsageError("report",
                        "--by memory is written as table, json or csv, not as " + std::string(format->name));
    }
    std::vector<MemoryTable> tables;
    for (const LoadedRun& one : loaded.runs) {
      for (const auto& [key, run] : one.profile.runs) tables.push_back(FoldMemory(run));
    }
    std::ostringstream text;
    format->memory(tables, options, text);
    if (!destination.Write(std::move(text).str(), ColorsOf(*format))) return 1;
    return loaded.damaged ? 1 : 0;
  }
  if (by == kByWait || by == kByRank) {
    if (format->waits == nullptr) {
      return UsageError("report", "--by " + std::string(kBys[by]) + " is written as table, json or csv, not as " +
                                      std::string(format->name));
    }
    std::vector<WaitTable> tables;
    for (const LoadedRun& one : loaded.runs) {
      for (const auto& [key, run] : one.profile.runs) tables.push_back(FoldWaits(run));
    }
    std::ostringstream text;
    format->waits(tables, by == kByRank ? WaitRows::kRanks : WaitRows::kParts, options, text);
    if (!destination.Write(std::move(text).str(), ColorsOf(*format))) return 1;
    return loaded.damaged ? 1 : 0;
  }
  const bool chosen = parsed.Has("by") || parsed.Has("depth") || parsed.Has("theory");
  if (!chosen && std::all_of(loaded.runs.begin(), loaded.runs.end(), OfOtherTools))
    by = static_cast<size_t>(By::kKernel);
  std::vector<Report> reports;
  for (const LoadedRun& one : loaded.runs) {
    for (Report& report : FoldProfile(one.profile, MachineFor,
                                      {.by = by_run ? By::kModel : static_cast<By>(by),
                                      .depth = depth,
                                      .step_by = static_cast<StepBy>(step_by),
                                      .theory = parsed.Has("theory") ? &theory.profile : nullptr,
                                      .roofs = roofs,
                                      .host_ns_per_launch = 1000 * host_us,
                                      .launch_floor_ns = 1000 * launch_floor_us,
                                      .calibration = &calibration})) {
      if (sort != nullptr) SortRows(*sort, &report);
      reports.push_back(std::move(report));
    }
  }
  if (host_us > 0 && std::none_of(reports.begin(), reports.end(), [](const Report& r) { return r.step_ns > 0; })) {
    Complain("--host-us: no run here is an estimate with steps, so nothing takes it");
  }
  for (const Report& report : reports) {
    const auto has_line = [](const Row& row) { return !row.line.empty(); };
    if (report.by == By::kSource && !report.rows.empty() &&
        std::none_of(report.rows.begin(), report.rows.end(), has_line)) {
      Complain(
          "--by source: the trace names no line of the program: an older rfinject wrote it, the program is not in "
          "Python, or another tool measured it");
    }
    const std::string name = report.device_name.empty() ? "a GPU without a name" : report.device_name;
    if (roofs.clock && report.sm_hz <= 0) {
      Complain("--roofs clock: the trace of " + name + " holds no SM clock (cycles and times of counter passes)");
    }
    const auto is_empirical = [](const RoofLine& roof) { return roof.kind == RoofKind::kEmpirical; };
    if (roofs.empirical && std::none_of(report.roofs.begin(), report.roofs.end(), is_empirical)) {
      Complain("--roofs empirical: none are known for " + name + "; --roof says what you measured");
    }
  }

  std::ostringstream text;
  options.columns = static_cast<TableColumns>(columns);
  if (by_run) {
    format->sweep(MakeSweep(reports), reports, options, text);
  } else {
    format->reports(reports, options, text);
  }
  if (!destination.Write(std::move(text).str(), ColorsOf(*format))) return 1;
  if (loaded.damaged) return 1;
  if (parsed.Has("strict")) {
    for (const Report& report : reports) {
      for (const Alarm& alarm : report.alarms) {
        if (strict.empty() || std::find(strict.begin(), strict.end(), alarm.id) != strict.end()) return 3;
      }
    }
  }
  return 0;
}

}  // namespace rfinject::cli
