#include "cli/report/facts/theory.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "cli/report/alarms/invariants.h"
#include "cli/report/facts/run_name.h"
#include "cli/report/report.h"

namespace rfinject::cli {
namespace {

constexpr double kAsTheModel = 0.03;

struct TheoryKey {
  std::string model, phase, layer, op;
  friend auto operator<=>(const TheoryKey&, const TheoryKey&) = default;
};

constexpr const char* kOnlyNetwork = "the network";

// A network has another class name in an import, which knows a file's name only; with one network there is nothing to
// confuse.
TheoryKey KeyOf(const Row& row, const RunKey& run) {
  const bool only = run.models.size() == 1 && row.model == run.models.front();
  return {only ? kOnlyNetwork : row.model, std::string(PhaseName(row.phase)), row.layers > 0 ? row.group : row.layer,
          row.op};
}

void SetModelFlop(const Sums& theory, double scale, Sums* sums) {
  for (const Quantity flop : {Quantity::kModelFlop, Quantity::kProductFlop, Quantity::kHiddenFlop})
    (*sums)[flop] = theory[flop] * scale;
}

void Fill(const std::vector<Row>& theory_rows, const RunKey& theory_run, const RunKey& run, double scale, bool bytes,
          std::vector<Row>& rows) {
  struct Rows {
    Sums sums;
    const Row* first;
  };
  std::map<TheoryKey, Rows> theory;
  for (const Row& row : theory_rows)
    theory.try_emplace(KeyOf(row, theory_run), Rows{{}, &row}).first->second.sums.Add(row.sums);
  // Kernels of one operator share its work; which of them does which part is not known. It stands at the longest.
  std::map<TheoryKey, Row*> longest;
  for (Row& row : rows) {
    Row*& best = longest[KeyOf(row, run)];
    if (best == nullptr || row.sums.time_ns() > best->sums.time_ns()) best = &row;
  }
  for (auto& [key, row] : longest) {
    const auto found = theory.find(key);
    if (found == theory.end()) continue;
    const auto& [sums, first] = found->second;
    SetModelFlop(sums, scale, &row->sums);
    if (bytes) row->sums[Quantity::kCompulsoryBytes] = sums.compulsory_bytes() * scale;
    if (row->class_name.empty()) row->class_name = first->class_name;
    if (row->parameters == 0) row->parameters = first->parameters;
    if (row->parameter_bytes == 0) row->parameter_bytes = first->parameter_bytes;
    if (row->input_shape.empty()) row->input_shape = first->input_shape;
    if (row->output_shape.empty()) row->output_shape = first->output_shape;
    row->derived = Derive(row->sums);
  }
  for (const auto& [key, of_key] : theory) {
    if (longest.contains(key)) continue;
    const Sums& sums = of_key.sums;
    const double compulsory = bytes ? sums.compulsory_bytes() * scale : 0;
    if (sums.model_flop() <= 0 && compulsory <= 0) continue;
    Row& row = rows.emplace_back(*of_key.first);
    if (key.model == kOnlyNetwork && run.models.size() == 1) row.model = run.models.front();
    row.kernel.clear();
    row.signature.clear();
    row.sums = {};
    SetModelFlop(sums, scale, &row.sums);
    row.sums[Quantity::kCompulsoryBytes] = compulsory;
    row.derived = Derive(row.sums);
    row.time_share = 0;
    row.time = row.bytes = {};
  }
}

}  // namespace

std::string_view ReasonOf(const Row& row) {
  const double model = row.sums.model_flop(), executed = row.sums.total_flop();
  if (model <= 0) return "";
  if (executed <= 0) return "not counted";
  const double ratio = executed / model;
  if (ratio < kExecutedOverModelLow) return "not counted";
  if (ratio < 1 - kAsTheModel) {
    return row.class_name.starts_with("Conv") || row.op.find("conv") != std::string::npos ? "Winograd, FFT" : "fewer";
  }
  if (ratio <= 1 + kAsTheModel) return "as the model";
  if (row.phase == Phase::kRecompute) return "recomputation";
  if (std::fabs(ratio - 2) <= 2 * kAsTheModel) return "recomputation";
  return ratio <= kExecutedOverModelHigh ? "padding" : "unexplained";
}

const Run* FindTheory(const Profile& theory, const Report& report, const std::vector<ProcessInfo>& processes) {
  const Run* best = nullptr;
  double best_distance = 0;
  for (const auto& [key, run] : theory.runs) {
    if (key.source != SourceKind::kEstimated) continue;
    const bool same = SameNetwork(key, run.process_list, report.run, processes);
    // With one run there is nothing to choose: the user has named it, and knows what it is compared with.
    if (!same && theory.runs.size() > 1) continue;
    if (report.run.source != SourceKind::kImported && report.run.training != key.training) continue;
    const double distance =
        key.batch_size > 0 && report.run.batch_size > 0
            ? std::fabs(std::log(static_cast<double>(key.batch_size) / static_cast<double>(report.run.batch_size)))
            : (key.training ? 0 : 1);
    if (best == nullptr || distance < best_distance) {
      best = &run;
      best_distance = distance;
    }
  }
  return best;
}

void FindDifferingLayers(const Run& theory, const Run& run, TheoryUse* use) {
  constexpr double kTolerated = 0.1;  // a head that was replaced, a layer that torch fuses
  const auto layers = [](const Run& of) {
    std::set<std::string> paths;
    for (const auto& [key, stats] : of.launches) {
      if (!key.layer.path.empty()) paths.insert(key.layer.path);
    }
    return paths;
  };
  const std::set<std::string> ours = layers(run), theirs = layers(theory);
  size_t missing = 0;
  std::string example;
  for (const std::string& path : ours) {
    if (theirs.contains(path)) continue;
    if (missing++ == 0) example = path;
  }
  if (ours.empty() || static_cast<double>(missing) <= kTolerated * static_cast<double>(ours.size())) return;
  use->missing_layers = missing;
  use->layers = ours.size();
  use->missing_layer = example;
}

TheoryUse ApplyTheory(const Report& theory, Report& report) {
  if (report.total.sums.model_flop() > 0) return {};  // it has its own
  const double theory_steps = theory.steps.divisor();
  const double theory_samples = static_cast<double>(theory.steps.samples);
  double scale = 1 / theory_steps;
  TheoryUse use{.state = TheoryUse::State::kApplied,
                .model = ModelName(theory.run, theory.process.list),
                .batch_size = theory.run.batch_size};
  if (report.steps.samples > 0 && theory.steps.samples > 0) {
    scale = static_cast<double>(report.steps.samples) / theory_samples;
    use.samples = report.steps.samples;
  } else if (report.steps.count > 0) {
    scale = static_cast<double>(report.steps.count) / theory_steps;
    use.steps = report.steps.count;
  }
  const bool own_bytes = report.total.sums.compulsory_bytes() > 0;
  const bool same_batch = report.run.batch_size == 0 || report.run.batch_size == theory.run.batch_size;
  const bool bytes = same_batch && !own_bytes;
  Fill(theory.rows, theory.run, report.run, scale, bytes, report.rows);
  Fill(theory.phases, theory.run, report.run, scale, bytes, report.phases);
  if (!report.layer_phases.empty()) {
    Fill(theory.layer_phases, theory.run, report.run, scale, bytes, report.layer_phases);
  }
  if (!report.group_phases.empty()) {
    Fill(theory.group_phases, theory.run, report.run, scale, bytes, report.group_phases);
  }
  SetModelFlop(theory.total.sums, scale, &report.total.sums);
  if (bytes) report.total.sums[Quantity::kCompulsoryBytes] = theory.total.sums.compulsory_bytes() * scale;
  report.total.derived = Derive(report.total.sums);
  use.bytes = bytes || own_bytes;
  return use;
}

}  // namespace rfinject::cli
