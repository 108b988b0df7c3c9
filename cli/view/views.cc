#include "cli/view/views.h"

#include <algorithm>
#include <utility>

#include "cli/report/compare/diff.h"
#include "cli/report/facts/memory.h"
#include "cli/report/facts/schemas.h"
#include "cli/report/facts/waits.h"
#include "cli/report/rows/column.h"
#include "cli/report/run_list.h"
#include "cli/report/sweep.h"
#include "cli/view/compare_views.h"
#include "cli/view/page.h"
#include "cli/view/run_views.h"
#include "cli/view/screen_view.h"

namespace rfinject::cli {

namespace {

std::vector<Report> Fold(const ViewInput& input, By by) {
  FoldOptions options = input.fold;
  options.by = by;
  std::vector<Report> reports;
  for (const Profile* profile : input.profiles) {
    for (Report& report : FoldProfile(*profile, input.machine_for, options)) reports.push_back(std::move(report));
  }
  return reports;
}

std::vector<const Run*> RunsIn(const ViewInput& input) {
  std::vector<const Run*> runs;
  for (const Profile* profile : input.profiles) {
    for (const auto& [key, run] : profile->runs) runs.push_back(&run);
  }
  return runs;
}

// What the options asked for and the runs do not have.
std::vector<std::string> WarningsOf(const FoldOptions& fold, std::span<const Report> reports) {
  std::vector<std::string> warnings;
  if (fold.host_ns_per_launch > 0 && std::none_of(reports.begin(), reports.end(), [](const Report& report) {
        return report.queue.host_of == HostTime::kGiven;
      })) {
    warnings.emplace_back("--host-us: no run here is an estimate with steps, so nothing takes it");
  }
  for (const Report& report : reports) {
    const auto has_line = [](const Row& row) { return !row.line.empty(); };
    if (report.by == By::kSource && !report.rows.empty() &&
        std::none_of(report.rows.begin(), report.rows.end(), has_line)) {
      warnings.emplace_back(
          "--by source: the trace names no line of the program: an older rfinject wrote it, the program is not in "
          "Python, or another tool measured it");
    }
    const std::string name = report.device.name.empty() ? "a GPU without a name" : report.device.name;
    if (fold.roofs.clock && report.device.sm_hz <= 0) {
      warnings.push_back("--roofs clock: the trace of " + name +
                         " holds no SM clock (cycles and times of counter passes)");
    }
    const auto is_empirical = [](const RoofLine& roof) { return roof.kind == RoofKind::kEmpirical; };
    if (fold.roofs.empirical && std::none_of(report.roofs.begin(), report.roofs.end(), is_empirical)) {
      warnings.push_back("--roofs empirical: none are known for " + name + "; --roof says what you measured");
    }
  }
  return warnings;
}

template <By kBy>
Document MakeRows(const ViewInput& input) {
  std::vector<Report> reports = Fold(input, kBy);
  std::vector<std::string> warnings = WarningsOf(input.fold, reports);
  Document document = input.whole_run ? PageDocument(std::move(reports), input.look, RunsIn(input))
                      : input.screen  ? ScreenDocument(std::move(reports))
                                      : ReportDocument(std::move(reports), input.look);
  // One line says that there is nothing; no other is of use then.
  if (document.nothing.empty()) document.warnings = std::move(warnings);
  return document;
}

Document MakeSideBySide(const ViewInput& input) {
  std::vector<Report> reports = Fold(input, By::kModel);
  std::vector<std::string> warnings = WarningsOf(input.fold, reports);
  Document document = SweepDocument(std::move(reports));
  document.warnings = std::move(warnings);
  return document;
}

Document MakePrecisions(const ViewInput& input) { return PrecisionDocument(Fold(input, By::kModel)); }

// The document that `kMake` makes of what `kFold` makes of each run. Programs read the runs in the order of the
// trace; people first of those that train.
template <auto kFold, auto kMake>
Document MakeOfRuns(const ViewInput& input) {
  const auto make = [](const std::vector<const Run*>& runs) {
    std::vector<decltype(kFold(Run()))> folded;
    for (const Run* run : runs) folded.push_back(kFold(*run));
    return kMake(std::move(folded));
  };
  const std::vector<const Run*> runs = RunsIn(input);
  std::vector<const Run*> training_first = runs;
  std::stable_partition(training_first.begin(), training_first.end(),
                        [](const Run* run) { return run->key.training; });
  Document document = make(runs);
  if (training_first != runs) {
    Document for_people = make(training_first);
    document.sections = std::move(for_people.sections);
    document.owner = std::make_shared<std::pair<decltype(document.owner), decltype(document.owner)>>(
        std::move(document.owner), std::move(for_people.owner));
  }
  return document;
}

StackTable StacksOfRun(const Run& run) {
  return {run.key.gpu.empty() ? "a GPU without a name" : run.key.gpu, run.steps.steps, FoldStacks(run)};
}

// In the order in which help lists them.
std::vector<View> MakeViews() {
  return {
      {.name = "run", .help = "runs side by side", .make = MakeSideBySide, .every_run = true},
      {.name = "model", .help = "models", .make = MakeRows<By::kModel>, .sorts = true},
      {.name = "phase", .help = "phases of a step", .make = MakeRows<By::kPhase>, .sorts = true},
      {.name = "layer", .help = "layers", .make = MakeRows<By::kLayer>, .folds_layers = true, .sorts = true},
      {.name = "class",
       .help = "layers that are alike as one",
       .make = MakeRows<By::kClass>,
       .folds_layers = true,
       .sorts = true},
      {.name = "op", .help = "operators", .make = MakeRows<By::kOp>, .sorts = true},
      {.name = "kernel", .help = "kernels", .make = MakeRows<By::kKernel>, .folds_layers = true, .sorts = true},
      {.name = "precision", .help = "FLOP in FP32, TF32, BF16 and so on", .make = MakePrecisions},
      {.name = "source", .help = "lines of the program", .make = MakeRows<By::kSource>, .sorts = true},
      {.name = "stack",
       .help = "what is in no layer, by native stack",
       .make = MakeOfRuns<StacksOfRun, StackDocument>},
      {.name = "memory", .help = "what lay in memory at the peak", .make = MakeOfRuns<FoldMemory, MemoryDocument>},
      {.name = "timeline",
       .help = "a step as the GPU saw it, kernel by kernel",
       .make = MakeOfRuns<TimelineOf, TimelineDocument>},
      {.name = "wait", .help = "what a step waits for, by the clock", .make = MakeOfRuns<FoldWaits, WaitDocument>},
      {.name = "rank", .help = "the same of each rank", .make = MakeOfRuns<FoldWaits, RankDocument>, .adds_up = true},
  };
}

// `columns` have a ColumnInfo each.
template <typename Columns>
std::vector<ColumnInfo> InfosOf(const Columns& columns) {
  std::vector<ColumnInfo> infos;
  for (const auto& column : columns) {
    if (column.info.data) infos.push_back(column.info);
  }
  return infos;
}

// The facts as the summary of JSON calls them.
std::vector<ColumnInfo> FactInfos() {
  std::vector<ColumnInfo> infos;
  for (const ListedFact& listed : FactsIn(Schema::kSummary)) {
    if (listed.fact != nullptr) infos.push_back(listed.info());
  }
  return infos;
}

// Those that `keeps` accepts, by their own names.
std::vector<ColumnInfo> FactInfos(bool (*keeps)(std::string_view name)) {
  std::vector<ColumnInfo> infos;
  for (const RunFact& fact : AllRunFacts()) {
    if (keeps(fact.info.name)) infos.push_back(fact.info);
  }
  return infos;
}

}  // namespace

std::span<const View> AllViews() {
  static const auto* const kViews = new std::vector<View>(MakeViews());
  return *kViews;
}

const View* FindView(std::string_view name) {
  const std::span<const View> all = AllViews();
  const auto found = std::find_if(all.begin(), all.end(), [&](const View& view) { return view.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::vector<ColumnTable> AllColumnTables() {
  return {
      {"Reports", "rfinject report",
       "Sums run over all measured steps; `steps` says how many. `--by` decides which columns say what a row is. In "
       "CSV each line begins with `record` (row, layer_phase, group_phase or roof: add up one kind only), `source`, "
       "`run`, `device`, `roofs_of`, `batch_size`, `steps` and `samples`, and lines of roofs have columns of their "
       "own, behind the others.",
       InfosOf(ReportColumns())},
      {"Runs side by side", "rfinject report --by run",
       "A row a run; numbers are a step's where their names say so. In CSV `record` is run or correlation; lines of "
       "the latter have `column_a`, `column_b`, `spearman_rho` and `correlated_runs`.",
       InfosOf(RunsOf(Sweep{}, {}).columns)},
      {"Facts of a whole run", "rfinject report --format json", "Members of `summary`, before the sums of all rows.",
       FactInfos()},
      {"PM sampling", "rfinject report --format json", "Members of the object before the point, in `summary`.",
       FactInfos([](std::string_view name) { return name.find('.') != name.npos; })},
      {"Quantities of advice", "rfinject advise --format json",
       "Members of `facts`, over which the rules are written; amounts are those of a step.",
       FactInfos([](std::string_view name) { return FactNamed(name).has_value(); })},
      {"Comparisons", "rfinject diff",
       "A is before, B is after. In CSV each line begins with `record` (row or total), `pair`, `before`, `after` and "
       "`per_step`.",
       InfosOf(RowsOf(std::span<const DiffRow>()).columns)},
      {"What a step waits for", "rfinject report --by wait, rfinject report --by rank",
       "In CSV each line begins with `run`, `device` and `source`.", InfosOf(RowsOf(WaitTable{}).columns)},
      {"A step as the GPU saw it", "rfinject report --by timeline",
       "A row a kernel, in the order in which they began; JSON has the bandwidth and the work of tensor pipes of equal parts "
       "of the step as well.",
       InfosOf(KernelsOf({}).columns)},
      {"Memory", "rfinject report --by memory", "What was allocated when most was.",
       InfosOf(MemoryOf(std::span<const MemoryRow>()).columns)},
      {"Precisions", "rfinject report --by precision",
       "In CSV each line begins with `run`, `device`, `source` and `steps`.", InfosOf(PrecisionColumns().columns)},
      {"Native stacks", "rfinject report --by stack", "In CSV each line begins with `run`, `device` and `steps`.",
       InfosOf(StacksOf({}).columns)},
      {"Runs", "rfinject runs", "A row a run.", InfosOf(RunRows({}).columns)},
  };
}

}  // namespace rfinject::cli
