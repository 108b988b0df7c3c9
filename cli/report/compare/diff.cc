#include "cli/report/compare/diff.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include "cli/model/statistics.h"
#include "cli/report/compare/in_order.h"
#include "cli/report/compare/within_steps.h"
#include "cli/report/facts/run_name.h"
#include "cli/report/fold.h"
#include "cli/report/keys/bounds.h"
#include "cli/report/keys/expect.h"
#include "cli/report/keys/key_quantities.h"
#include "cli/report/keys/sampled_run.h"
#include "cli/text/units.h"

namespace rfinject::cli {
namespace {

// The sums of two runs add the same numbers in different orders.
constexpr double kRounding = 1e-9;

struct Key {
  std::string model, layer;
  std::optional<Phase> phase;
  std::string op;

  // By the phase's name, as a reader would sort: rows that changed equally stand in this order.
  friend auto operator<=>(const Key& a, const Key& b) { return a.Texts() <=> b.Texts(); }

 private:
  std::tuple<std::string_view, std::string_view, std::string_view, std::string_view> Texts() const {
    return {model, layer, PhaseName(phase), op};
  }
};

Key KeyFor(By by, const LaunchKey& launch, const std::string& model) {
  switch (by) {
    case By::kModel:
      return {model, "", model.empty() ? std::optional(launch.phase) : std::nullopt, ""};
    case By::kPhase:
      return {model, "", launch.phase, ""};
    case By::kLayer:
      return {model, launch.layer.path, launch.phase, ""};
    case By::kOp:
      return {model, "", launch.phase, launch.op};
    case By::kKernel:
    case By::kSource:
    case By::kClass:
      break;
  }
  return {model, launch.layer.path, launch.phase, launch.op};
}

// What is known of `launches` launches that ran in `steps` steps, from what would be known if they were independent;
// 0: it is. At worst all launches of a step err together.
Uncertainty InSteps(Uncertainty uncertainty, double launches, double steps) {
  if (!(steps > 0) || launches <= steps || !(uncertainty.variance > 0)) return uncertainty;
  const double variance = uncertainty.variance * launches / steps;
  return {.variance = variance, .satterthwaite = variance * variance / (steps - 1), .known = uncertainty.known};
}

// How many steps a recording has that says nothing of them, which most are longer than. Its launches are not known to
// be of more: a kernel that was launched a thousand times may be launched 250 times a step, with one clock each time.
double StepsOfARecording(const SampledRun& sampled, const Run& run) {
  constexpr double kFewSteps = 4;
  return run.key.source == SourceKind::kImported && !sampled.has(Sampled::kTime) ? kFewSteps : 0;
}

struct Side {
  Sums sums;
  Uncertainty time, flop, bytes;           // by launch, until Finish() has those by step
  Uncertainty least_time{.known = false};  // StepInterval::least
  bool there = false;
  SampledRun::Series series;
  Trust time_trust = Trust::kByLaunch, bytes_trust = Trust::kByLaunch;

  // `steps`: in how many the launches ran, where the file says nothing of them; 0: they are independent.
  void Add(const KeyQuantities& quantities, const LaunchStats& stats, const SampledRun& sampled, bool exact,
           double steps) {
    there = true;
    sums.Add(quantities.sums);
    if (exact) return;
    // Kernels of one step have its clock in common, and so have a kernel's launches. Where no step is known, the
    // bound for that is taken.
    const auto launches = static_cast<double>(stats.launches);
    time.AddDependent(InSteps(quantities.time_uncertainty, launches, sampled.has(Sampled::kTime) ? 0 : steps));
    Uncertainty of_flop = quantities.flop_uncertainty;
    // What a kernel executes does not vary between its launches (collector/arming/wanted_counts.h), and is counted
    // once.
    if (sampled.has(Sampled::kBytes)) of_flop.known = true;
    flop.Add(of_flop);
    bytes.AddDependent(InSteps(quantities.bytes_uncertainty, launches, sampled.has(Sampled::kBytes) ? 0 : steps));
    sampled.Add(stats, &series);
  }
  // Intervals from steps, where the trace has them.
  void Finish(const SampledRun& sampled) {
    const auto from_steps = [&](Sampled what, double value, Uncertainty* uncertainty, Trust* trust) {
      if (!sampled.has(what) || !(value > 0)) return;
      const StepInterval interval = sampled.IntervalOf(what, series);
      *trust = interval.trust;
      if (what == Sampled::kTime && interval.mean > 0) least_time = interval.least.Times(value / interval.mean);
      *uncertainty =
          interval.mean > 0 ? interval.uncertainty.Times(value / interval.mean) : Uncertainty{.known = false};
    };
    from_steps(Sampled::kTime, sums.time_ns(), &time, &time_trust);
    from_steps(Sampled::kBytes, sums.dram_bytes(), &bytes, &bytes_trust);
  }
  // Divides the sums, so that they are one step's.
  void Divide(double steps) {
    sums = sums.OfOneStep(steps);
    for (Uncertainty* one : {&time, &flop, &bytes, &least_time}) *one = one->Times(1 / steps);
  }
};

struct Estimate {
  double value = 0;
  Uncertainty uncertainty;
  Uncertainty least{.known = false};  // StepInterval::least
};

// The relative variances of a product of powers add up, to first order.
Estimate OiOf(const Side& side) {
  const double flop = side.sums.total_flop(), bytes = side.sums.dram_bytes();
  if (!(flop > 0) || !(bytes > 0)) return {};
  Estimate oi{flop / bytes, side.flop.Times(1 / bytes)};
  oi.uncertainty.Add(side.bytes.Times(flop / (bytes * bytes)));
  return oi;
}

Estimate ShareOf(const Side& side) {
  const Sums& sums = side.sums;
  if (!(sums.time_ns() > 0) || !(sums.least_ns() > 0)) return {};
  const double share = sums.least_ns() / sums.time_ns();
  const double scale = share / sums.time_ns();
  Estimate estimate{share, side.time.Times(scale), side.least_time.Times(scale)};
  // The least time is as uncertain as what it follows from: the traffic, or the arithmetic.
  if (sums.least_memory_ns() >= sums.least_compute_ns()) {
    if (sums.dram_bytes() > 0) estimate.uncertainty.Add(side.bytes.Times(share / sums.dram_bytes()));
  } else if (sums.total_flop() > 0) {
    estimate.uncertainty.Add(side.flop.Times(share / sums.total_flop()));
  }
  return estimate;
}

// `paired`: what is known of the difference itself, or null.
Change Compare(const Estimate& before, const Estimate& after, bool both, Trust trust = Trust::kNone,
               const Uncertainty* paired = nullptr) {
  Change change{.before = before.value, .after = after.value};
  if (before.value > 0 && after.value > 0) change.ratio = after.value / before.value;
  if (!both) {
    change.verdict = Verdict::kOneSide;
    return change;
  }
  Uncertainty uncertainty = before.uncertainty;
  uncertainty.Add(after.uncertainty);
  if (paired != nullptr && uncertainty.known) uncertainty = *paired;
  change.half_width = HalfWidth95(uncertainty);
  change.trust = trust;
  const double difference = std::fabs(change.difference());
  if (difference <= kRounding * std::max(std::fabs(change.before), std::fabs(change.after))) {
    change.verdict = Verdict::kSame;
  } else if (std::isinf(change.half_width)) {
    Uncertainty least = before.least;
    least.Add(after.least);
    constexpr double kChance = 0.05;
    const bool allowed = least.known && least.variance > 0 &&
                         StudentTail(difference / std::sqrt(least.variance), DegreesOf(least)) > kChance;
    change.verdict = allowed ? Verdict::kNoise : Verdict::kUnknown;
    // Steps so close together say nothing of the steps of another run.
    if (change.trust == Trust::kByStep) change.trust = Trust::kFewSteps;
  } else if (!(uncertainty.variance > 0)) {
    change.verdict = Verdict::kReal;
  } else {
    change.standard = std::sqrt(uncertainty.variance);
    change.degrees = DegreesOf(uncertainty);
    change.p = StudentTail(difference / change.standard, change.degrees);
    change.verdict = Verdict::kNoise;  // until Correct() has seen the others
  }
  return change;
}

Trust WorseOf(Trust a, Trust b) { return std::max(a, b); }

// What is known of the difference of two rows from the steps that both runs sampled; false where they did not.
bool PairedUncertainty(const SampledRun& before_run, const Side& before, const SampledRun& after_run,
                       const Side& after, Uncertainty* uncertainty) {
  const auto time = static_cast<size_t>(Sampled::kTime);
  const std::span<const uint64_t> a = before_run.steps(Sampled::kTime), b = after_run.steps(Sampled::kTime);
  const std::vector<double>&x = before.series.values[time], &y = after.series.values[time];
  if (x.empty() || y.empty()) return false;
  const auto mean = [](const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
  };
  const double mean_x = mean(x), mean_y = mean(y);
  if (!(mean_x > 0) || !(mean_y > 0)) return false;
  std::vector<uint64_t> steps;
  std::vector<double> differences;
  for (size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    if (a[i] == b[k]) {
      steps.push_back(a[i]);
      differences.push_back(y[k] / mean_y * after.sums.time_ns() - x[i] / mean_x * before.sums.time_ns());
    }
    const bool next_a = a[i] <= b[k], next_b = b[k] <= a[i];
    i += next_a;
    k += next_b;
  }
  // All but a few, which one side did not reach or set aside.
  if (10 * steps.size() < 9 * std::max(a.size(), b.size())) return false;
  const StepInterval interval = IntervalOf(steps, differences, 0);
  *uncertainty = interval.uncertainty;
  return interval.trust == Trust::kByStep;
}

// What both runs know: FLOP and bytes of a run that has times alone are not 0, and no change.
struct BothKnow {
  bool flop = true, bytes = true;
};
BothKnow WhatBothKnow(const Side& before, const Side& after) {
  return {.flop = (before.sums.total_flop() > 0) == (after.sums.total_flop() > 0),
          .bytes = (before.sums.dram_bytes() > 0) == (after.sums.dram_bytes() > 0)};
}

void CompareAll(const Side& before, const Side& after, const SampledRun* before_run, const SampledRun* after_run,
                const BothKnow& know, DiffRow& row) {
  row.in_before = before.there;
  row.in_after = after.there;
  row.before = before.sums;
  row.after = after.sums;
  const bool both = before.there && after.there;
  Uncertainty difference;
  const bool paired =
      both && before_run != nullptr && PairedUncertainty(*before_run, before, *after_run, after, &difference);
  const Trust time = WorseOf(before.time_trust, after.time_trust),
              bytes = WorseOf(before.bytes_trust, after.bytes_trust);
  row.changes = {
      Compare({before.sums.time_ns(), before.time, before.least_time},
              {after.sums.time_ns(), after.time, after.least_time}, both, time, paired ? &difference : nullptr),
      Compare({before.sums.total_flop(), before.flop}, {after.sums.total_flop(), after.flop}, both && know.flop),
      Compare({before.sums.dram_bytes(), before.bytes}, {after.sums.dram_bytes(), after.bytes}, both && know.bytes,
              bytes),
      Compare(OiOf(before), OiOf(after), both && know.flop && know.bytes, bytes),
      Compare(ShareOf(before), ShareOf(after), both && know.flop && know.bytes, WorseOf(time, bytes)),
  };
}

// Compares each row's time with those of the other rows in the same steps, where both runs have such steps.
void CompareWithinSteps(const Side& before_total, const Side& after_total,
                        const std::map<Key, std::pair<Side, Side>>& sides, RunDiff* diff) {
  const auto values = [](const Side& side) -> const std::vector<double>& {
    return side.series.values[static_cast<size_t>(Sampled::kTime)];
  };
  std::vector<RowInSteps> rows;
  for (DiffRow& row : diff->rows) {
    const Change& time = row[Compared::kTime];
    if (!(time.ratio > 0) || time.verdict == Verdict::kReal) continue;
    const auto found = sides.find({.model = row.model, .layer = row.layer, .phase = row.phase, .op = row.op});
    if (found == sides.end()) continue;
    const auto& [before, after] = found->second;
    if (!HasInterval(before.time_trust) && before.time_trust != Trust::kFewSteps) continue;
    rows.push_back({&row, values(before), values(after)});
  }
  diff->within_steps = CompareWithinSteps(values(before_total), values(after_total), rows);
}

// Decides which changes are real among so many tests. All changes of a pair of runs are one family, since a reader of
// the list reads all of it.
void Correct(RunDiff* diff) {
  std::vector<Change*> tested;
  const auto collect = [&](DiffRow& row) {
    for (Change& change : row.changes) {
      if (change.standard > 0) tested.push_back(&change);
    }
  };
  for (DiffRow& row : diff->rows) collect(row);
  collect(diff->total);
  diff->comparisons = tested.size();
  std::vector<double> p;
  for (const Change* change : tested) p.push_back(change->p);
  const double threshold = Threshold(diff->correction, std::move(p));
  constexpr double kMissedOnceIn5 = 0.4;  // both tails of a power of 80 %
  for (Change* change : tested) {
    change->verdict = change->p <= threshold ? Verdict::kReal : Verdict::kNoise;
    change->visible = change->standard * (StudentQuantile(threshold, change->degrees) +
                                          StudentQuantile(kMissedOnceIn5, change->degrees));
  }
}

std::string RunTitle(const Run& run) {
  std::string title = ModelName(run.key, run.process_list) + " on " + GpuTitle(run.key);
  if (run.key.batch_size > 0) title += ", batch " + Grouped(run.key.batch_size);
  if (!run.key.training && run.key.source != SourceKind::kImported) title += ", inference";
  if (!run.key.policy.autocast_dtype.empty()) title += ", autocast " + run.key.policy.autocast_dtype;
  return title + ", " + std::string(SourceName(run.key.source));
}

// What stands for the model of a run's layers: the only one of either run is the same on both sides.
const std::string& ModelOfLayers(const Run& run, const std::string& own, const std::string& model) {
  return !model.empty() && run.key.models.size() == 1 && own == run.key.models.front() ? model : own;
}

void AddRun(const Profile& profile, const Run& run, const SampledRun& sampled, const Machine& machine,
            const std::optional<ExpectedTimes>& expected, By by, const std::string& model, bool per_step,
            std::map<Key, Side>& sides, Side& total) {
  const KeyReader reader(profile.metrics, ChipOf(run), run);
  const bool exact = run.key.source == SourceKind::kEstimated;
  const double unsaid_steps = StepsOfARecording(sampled, run);
  for (const auto& [launch, stats] : run.launches) {
    KeyQuantities quantities = ReadSampled(reader, sampled, launch, stats);
    if (expected) ApplyExpected(launch, *expected, quantities);
    if (run.key.source != SourceKind::kMeasured || quantities.has_bytes) AddLeastTimes(machine, quantities.sums);
    const Key key = KeyFor(by, launch, ModelOfLayers(run, launch.layer.model, model));
    sides[key].Add(quantities, stats, sampled, exact, unsaid_steps);
    total.Add(quantities, stats, sampled, exact, unsaid_steps);
  }
  const double steps = static_cast<double>(StepCount(run.steps, StepBy::kIteration));
  const auto finish = [&](Side& side) {
    if (per_step) side.Divide(steps);
    if (!exact) side.Finish(sampled);
  };
  for (auto& [key, side] : sides) finish(side);
  finish(total);
}

// Compares the launches of two recordings in order, where both have the same ones, and their rows among themselves.
void CompareInOrder(const Run& before, const Run& after, By by, const std::string& model, RunDiff* diff) {
  const std::string order(kMetricTimeOrder);
  const double steps = static_cast<double>(StepCount(before.steps, StepBy::kIteration));
  if (!before.sampled_steps.contains(order) || !after.sampled_steps.contains(order)) return;
  if (diff->per_step && steps != static_cast<double>(StepCount(after.steps, StepBy::kIteration))) return;
  std::map<LaunchKey, std::array<const LaunchStats*, 2>> keys;
  for (const Run* run : {&before, &after}) {
    // The first GPU of one run is the first of the other, whatever its number on its host.
    std::set<uint32_t> devices;
    for (const auto& [launch, stats] : run->launches) devices.insert(launch.device);
    for (const auto& [launch, stats] : run->launches) {
      LaunchKey key = launch;
      key.device = static_cast<uint32_t>(std::distance(devices.begin(), devices.find(launch.device)));
      key.layer.model = ModelOfLayers(*run, launch.layer.model, model);
      keys[std::move(key)][run == &after ? 1 : 0] = &stats;
    }
  }
  std::map<Key, ChangesInOrder> changes;
  const LaunchStats none;
  for (const auto& [launch, stats] : keys) {
    changes[KeyFor(by, launch, launch.layer.model)].Add(stats[0] != nullptr ? *stats[0] : none,
                                                        stats[1] != nullptr ? *stats[1] : none);
  }
  std::vector<RowInOrder> rows;
  for (DiffRow& row : diff->rows) {
    const auto found = changes.find({.model = row.model, .layer = row.layer, .phase = row.phase, .op = row.op});
    if (found == changes.end() || !(row[Compared::kTime].ratio > 0)) continue;
    const Uncertainty change = found->second.change();
    if (change.known) rows.push_back({&row, change.Times(diff->per_step ? 1 / steps : 1)});
  }
  diff->in_order = CompareInOrder(rows);
}

RunDiff DiffRuns(const Profile& before_profile, const Run& before, const Profile& after_profile, const Run& after,
                 const std::function<Machine(const Run&)>& machine_for, const DiffOptions& options) {
  RunDiff diff;
  diff.correction = options.correction;
  diff.before_title = RunTitle(before);
  diff.after_title = RunTitle(after);
  const Machine before_machine = machine_for(before), after_machine = machine_for(after);
  diff.before =
      FoldRun(before_profile, before, before_machine, {.by = By::kLayer, .calibration = options.calibration});
  diff.after = FoldRun(after_profile, after, after_machine, {.by = By::kLayer, .calibration = options.calibration});
  diff.exact = before.key.source == SourceKind::kEstimated && after.key.source == SourceKind::kEstimated;
  diff.per_step = before.steps.steps > 0 && after.steps.steps > 0;
  diff.caveats = CaveatsOf(before, before_machine.name, after, after_machine.name);

  // A network may have another class name on the other side: an import knows the name of a file.
  const std::string model =
      before.key.models.size() == 1 && after.key.models.size() == 1 ? after.key.models.front() : std::string();
  std::map<Key, Side> before_sides, after_sides;
  Side before_total, after_total;
  const SampledRun before_sampled(before_profile, before), after_sampled(after_profile, after);
  const By by = options.by;
  const Calibration& calibration = options.calibration != nullptr ? *options.calibration : Calibration::Shipped();
  std::optional<ExpectedTimes> before_expected = ModelOf(before, calibration),
                               after_expected = ModelOf(after, calibration);
  if (diff.exact && (!before_expected || !after_expected)) {
    before_expected.reset();
    after_expected.reset();
  }
  diff.expected = before_expected || after_expected;
  AddRun(before_profile, before, before_sampled, before_machine, before_expected, by, model, diff.per_step,
         before_sides, before_total);
  AddRun(after_profile, after, after_sampled, after_machine, after_expected, by, model, diff.per_step, after_sides,
         after_total);
  const bool steps_known = diff.per_step && before_sampled.has(Sampled::kTime) && after_sampled.has(Sampled::kTime);
  const BothKnow know = WhatBothKnow(before_total, after_total);
  std::map<Key, std::pair<Side, Side>> both;
  for (auto& [key, side] : before_sides) both[key].first = side;
  for (auto& [key, side] : after_sides) both[key].second = side;
  for (const auto& [key, sides] : both) {
    DiffRow row{.model = key.model, .layer = key.layer, .op = key.op, .phase = key.phase};
    const auto layer = after.layers.find({key.model, key.layer});
    if (layer != after.layers.end()) row.order = layer->second.order;
    CompareAll(sides.first, sides.second, steps_known ? &before_sampled : nullptr, &after_sampled, know, row);
    diff.rows.push_back(std::move(row));
  }
  std::stable_sort(diff.rows.begin(), diff.rows.end(), [](const DiffRow& a, const DiffRow& b) {
    return std::fabs(a[Compared::kTime].difference()) > std::fabs(b[Compared::kTime].difference());
  });
  CompareAll(before_total, after_total, steps_known ? &before_sampled : nullptr, &after_sampled, know, diff.total);
  CompareInOrder(before, after, by, model, &diff);
  if (steps_known && !diff.in_order) CompareWithinSteps(before_total, after_total, both, &diff);
  Uncertainty unused;
  diff.paired = steps_known && PairedUncertainty(before_sampled, before_total, after_sampled, after_total, &unused);
  Correct(&diff);
  return diff;
}

int Likeness(const Run& a, const Run& b) {
  if (!SameNetwork(a.key, a.process_list, b.key, b.process_list)) return -1;
  // An import does not know what was run.
  const bool imported = a.key.source == SourceKind::kImported || b.key.source == SourceKind::kImported;
  if (a.key.training != b.key.training && !imported) return -1;
  return (a.key.batch_size == b.key.batch_size ? 8 : 0) + (a.key.gpu == b.key.gpu ? 4 : 0) +
         (a.key.policy == b.key.policy ? 2 : 0) + (a.key.source == b.key.source ? 1 : 0);
}

}  // namespace

std::string_view VerdictName(Verdict verdict) {
  constexpr std::array<std::string_view, 5> kNames = {"same", "real", "noise", "unknown", "one side only"};
  return kNames[static_cast<size_t>(verdict)];
}

bool DiffRow::Changed() const {
  return std::any_of(changes.begin(), changes.end(), [](const Change& c) { return c.verdict != Verdict::kSame; });
}

Diff MakeDiff(const Profile& before, const Profile& after, const std::function<Machine(const Run&)>& machine_for,
              const DiffOptions& options) {
  Diff diff;
  diff.by = options.by;
  std::vector<const Run*> a, b;
  for (const auto& [key, run] : before.runs) a.push_back(&run);
  for (const auto& [key, run] : after.runs) b.push_back(&run);
  struct Candidate {
    int likeness;
    size_t a, b;
  };
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t k = 0; k < b.size(); ++k) {
      const int likeness = a.size() == 1 && b.size() == 1 ? 0 : Likeness(*a[i], *b[k]);
      if (likeness >= 0) candidates.push_back({likeness, i, k});
    }
  }
  std::ranges::stable_sort(candidates, std::ranges::greater{}, &Candidate::likeness);
  std::vector<bool> a_used(a.size()), b_used(b.size());
  for (const Candidate& candidate : candidates) {
    if (a_used[candidate.a] || b_used[candidate.b]) continue;
    a_used[candidate.a] = b_used[candidate.b] = true;
    diff.pairs.push_back(DiffRuns(before, *a[candidate.a], after, *b[candidate.b], machine_for, options));
  }
  diff.gates = options.gates;
  for (Gate& gate : diff.gates) Judge(diff.pairs, &gate);
  for (size_t i = 0; i < a.size(); ++i) {
    if (!a_used[i]) diff.only_before.push_back(RunTitle(*a[i]));
  }
  for (size_t k = 0; k < b.size(); ++k) {
    if (!b_used[k]) diff.only_after.push_back(RunTitle(*b[k]));
  }
  return diff;
}

}  // namespace rfinject::cli
