#include "cli/report/diff.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include "cli/model/statistics.h"
#include "cli/report/fold.h"
#include "cli/report/key_quantities.h"
#include "cli/report/run_name.h"
#include "cli/report/units.h"

namespace rfinject::cli {
namespace {

// The sums of two runs add the same numbers in different orders.
constexpr double kRounding = 1e-9;

struct Key {
  std::string model, layer, phase, op;
  friend auto operator<=>(const Key&, const Key&) = default;
};

Key KeyFor(By by, const LaunchKey& launch, const std::string& model) {
  const std::string phase(kPhaseNames[static_cast<size_t>(launch.phase)]);
  switch (by) {
    case By::kModel:
      return {model, "", model.empty() ? phase : "", ""};
    case By::kPhase:
      return {model, "", phase, ""};
    case By::kLayer:
      return {model, launch.layer.path, phase, ""};
    case By::kOp:
      return {model, "", phase, launch.op};
    case By::kKernel:
      break;
  }
  return {model, launch.layer.path, phase, launch.op};
}

struct Side {
  Sums sums;
  Uncertainty time, flop, bytes;
  bool there = false;

  void Add(const KeyQuantities& quantities, bool exact) {
    there = true;
    sums.Add(quantities.sums);
    if (exact) return;
    time.Add(quantities.time_uncertainty);
    flop.Add(quantities.flop_uncertainty);
    bytes.Add(quantities.bytes_uncertainty);
  }
  // Of one step.
  void Divide(double steps) {
    sums = sums.OfOneStep(steps);
    for (Uncertainty* one : {&time, &flop, &bytes}) *one = one->Times(1 / steps);
  }
};

struct Estimate {
  double value = 0;
  Uncertainty uncertainty;
};

// Of a product of powers to first order: the relative variances add up.
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
  Estimate estimate{share, side.time.Times(share / sums.time_ns())};
  // What the least time follows from is as uncertain as the traffic, or as the arithmetic.
  if (sums.least_memory_ns() >= sums.least_compute_ns()) {
    if (sums.dram_bytes() > 0) estimate.uncertainty.Add(side.bytes.Times(share / sums.dram_bytes()));
  } else if (sums.total_flop() > 0) {
    estimate.uncertainty.Add(side.flop.Times(share / sums.total_flop()));
  }
  return estimate;
}

Change Compare(const Estimate& before, const Estimate& after, bool both) {
  Change change{.before = before.value, .after = after.value};
  if (before.value > 0 && after.value > 0) change.ratio = after.value / before.value;
  if (!both) {
    change.verdict = Verdict::kOneSide;
    return change;
  }
  Uncertainty uncertainty = before.uncertainty;
  uncertainty.Add(after.uncertainty);
  change.half_width = HalfWidth95(uncertainty);
  const double difference = std::fabs(change.difference());
  if (difference <= kRounding * std::max(std::fabs(change.before), std::fabs(change.after))) {
    change.verdict = Verdict::kSame;
  } else if (std::isinf(change.half_width)) {
    change.verdict = Verdict::kUnknown;
  } else {
    change.verdict = difference > change.half_width ? Verdict::kReal : Verdict::kNoise;
  }
  return change;
}

void CompareAll(const Side& before, const Side& after, DiffRow& row) {
  row.in_before = before.there;
  row.in_after = after.there;
  row.before = before.sums;
  row.after = after.sums;
  const bool both = before.there && after.there;
  row.changes = {
      Compare({before.sums.time_ns(), before.time}, {after.sums.time_ns(), after.time}, both),
      Compare({before.sums.total_flop(), before.flop}, {after.sums.total_flop(), after.flop}, both),
      Compare({before.sums.dram_bytes(), before.bytes}, {after.sums.dram_bytes(), after.bytes}, both),
      Compare(OiOf(before), OiOf(after), both),
      Compare(ShareOf(before), ShareOf(after), both),
  };
}

std::string RunTitle(const Run& run) {
  std::string title = ModelName(run.key, run.process_list) + " on " + GpuTitle(run.key);
  if (run.key.batch_size > 0) title += ", batch " + Grouped(run.key.batch_size);
  if (!run.key.training && run.key.source != SourceKind::kImported) title += ", inference";
  if (!run.key.policy.autocast_dtype.empty()) title += ", autocast " + run.key.policy.autocast_dtype;
  return title + ", " + std::string(SourceName(run.key.source));
}

std::vector<std::string> Caveats(const Run& before, const Run& after) {
  std::vector<std::string> caveats;
  const RunKey &a = before.key, &b = after.key;
  if (!SameNetwork(a, before.process_list, b, after.process_list)) caveats.push_back("these are different networks");
  // An import does not know its batch, its mode and its policy.
  const bool imported = a.source == SourceKind::kImported || b.source == SourceKind::kImported;
  if (a.source != b.source) {
    caveats.push_back("one side is " + std::string(SourceName(a.source)) + ", the other " +
                      std::string(SourceName(b.source)) + ": part of every change is " +
                      (a.source == SourceKind::kEstimated || b.source == SourceKind::kEstimated
                           ? "the cost model's error"
                           : "how the tools count"));
  }
  if (a.batch_size != b.batch_size && a.batch_size > 0 && b.batch_size > 0) {
    caveats.push_back("batch " + Grouped(a.batch_size) + " against " + Grouped(b.batch_size));
  }
  if (a.training != b.training && !imported) {
    caveats.push_back(std::string(a.training ? "training" : "inference") + " against " +
                      (b.training ? "training" : "inference"));
  }
  const auto tristate = [&](const char* name, uint32_t was, uint32_t is) {
    static constexpr const char* kWords[] = {"unknown", "off", "on"};
    if (was != is && was != 0 && is != 0)
      caveats.push_back(std::string(name) + " " + kWords[std::min(was, 2U)] + " against " + kWords[std::min(is, 2U)]);
  };
  tristate("TF32 in convolutions", a.policy.cudnn_tf32, b.policy.cudnn_tf32);
  tristate("TF32 in matrix products", a.policy.matmul_tf32, b.policy.matmul_tf32);
  tristate("cudnn.benchmark", a.policy.cudnn_benchmark, b.policy.cudnn_benchmark);
  tristate("cudnn.deterministic", a.policy.cudnn_deterministic, b.policy.cudnn_deterministic);
  if (a.policy.autocast_dtype != b.policy.autocast_dtype && !imported) {
    const auto name = [](const std::string& dtype) { return dtype.empty() ? std::string("none") : dtype; };
    caveats.push_back("autocast " + name(a.policy.autocast_dtype) + " against " + name(b.policy.autocast_dtype));
  }
  const auto version = [](const Run& run) {
    return run.process_list.empty() ? std::string() : run.process_list.front().torch_version;
  };
  if (version(before) != version(after) && !version(before).empty() && !version(after).empty())
    caveats.push_back("torch " + version(before) + " against " + version(after));
  return caveats;
}

void AddRun(const Profile& profile, const Run& run, const Machine& machine, By by, const std::string& model,
            bool per_step, std::map<Key, Side>& sides, Side& total) {
  const KeyReader reader(profile.metrics, ChipOf(run));
  const bool exact = run.key.source == SourceKind::kEstimated;
  for (const auto& [launch, stats] : run.launches) {
    KeyQuantities quantities = reader.Read(stats);
    AddLeastTimes(machine, quantities.sums);
    const std::string& own = launch.layer.model;
    const bool root = !model.empty() && run.key.models.size() == 1 && own == run.key.models.front();
    sides[KeyFor(by, launch, root ? model : own)].Add(quantities, exact);
    total.Add(quantities, exact);
  }
  if (!per_step) return;
  const auto steps = static_cast<double>(StepCount(run.steps, StepBy::kIteration));
  for (auto& [key, side] : sides) side.Divide(steps);
  total.Divide(steps);
}

RunDiff DiffRuns(const Profile& before_profile, const Run& before, const Profile& after_profile, const Run& after,
                 const std::function<Machine(const Run&)>& machine_for, By by) {
  RunDiff diff;
  diff.before_title = RunTitle(before);
  diff.after_title = RunTitle(after);
  const Machine before_machine = machine_for(before), after_machine = machine_for(after);
  diff.before = FoldRun(before_profile, before, before_machine, {.by = By::kLayer});
  diff.after = FoldRun(after_profile, after, after_machine, {.by = By::kLayer});
  diff.exact = before.key.source == SourceKind::kEstimated && after.key.source == SourceKind::kEstimated;
  diff.per_step = before.steps.steps > 0 && after.steps.steps > 0;
  diff.caveats = Caveats(before, after);

  // A network may have another class name on the other side: an import knows the name of a file.
  const std::string model =
      before.key.models.size() == 1 && after.key.models.size() == 1 ? after.key.models.front() : std::string();
  std::map<Key, Side> before_sides, after_sides;
  Side before_total, after_total;
  AddRun(before_profile, before, before_machine, by, model, diff.per_step, before_sides, before_total);
  AddRun(after_profile, after, after_machine, by, model, diff.per_step, after_sides, after_total);
  std::map<Key, std::pair<Side, Side>> both;
  for (auto& [key, side] : before_sides) both[key].first = side;
  for (auto& [key, side] : after_sides) both[key].second = side;
  for (const auto& [key, sides] : both) {
    DiffRow row{.model = key.model, .layer = key.layer, .phase = key.phase, .op = key.op};
    const auto layer = after.layers.find({key.model, key.layer});
    if (layer != after.layers.end()) row.order = layer->second.order;
    CompareAll(sides.first, sides.second, row);
    diff.rows.push_back(std::move(row));
  }
  std::stable_sort(diff.rows.begin(), diff.rows.end(), [](const DiffRow& a, const DiffRow& b) {
    return std::fabs(a[Compared::kTime].difference()) > std::fabs(b[Compared::kTime].difference());
  });
  CompareAll(before_total, after_total, diff.total);
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

// Of a quantity that is compared, by its place in DiffRow::changes.
template <size_t kQuantity>
Cell Before(const DiffRow& row) {
  return row.in_before ? Cell{row.changes[kQuantity].before} : Cell{};
}
template <size_t kQuantity>
Cell After(const DiffRow& row) {
  return row.in_after ? Cell{row.changes[kQuantity].after} : Cell{};
}
template <size_t kQuantity>
Cell HalfWidth(const DiffRow& row) {
  return row.changes[kQuantity].half_width;
}
template <size_t kQuantity>
Cell VerdictOf(const DiffRow& row) {
  return std::string(VerdictName(row.changes[kQuantity].verdict));
}

// With the unit that the values have: "time_before_ns".
constexpr auto kColumns = std::to_array<ColumnOf<DiffRow>>({
    {{.name = "model", .kind = Kind::kText}, [](const DiffRow& row) { return TextCell(row.model); }},
    {{.name = "layer", .kind = Kind::kText},
     [](const DiffRow& row) { return row.model.empty() ? TextCell(row.layer) : Cell{row.layer}; }},
    {{.name = "phase", .kind = Kind::kText}, [](const DiffRow& row) { return TextCell(row.phase); }},
    {{.name = "op", .kind = Kind::kText}, [](const DiffRow& row) { return TextCell(row.op); }},
    {{.name = "time_before_ns", .kind = Kind::kUnit, .unit = "ns"}, Before<0>},
    {{.name = "time_after_ns", .kind = Kind::kUnit, .unit = "ns"}, After<0>},
    {{.name = "time_ci95_ns", .kind = Kind::kUnit, .unit = "ns"}, HalfWidth<0>},
    {{.name = "time_change", .kind = Kind::kText}, VerdictOf<0>},
    {{.name = "flop_before", .kind = Kind::kUnit, .unit = "FLOP"}, Before<1>},
    {{.name = "flop_after", .kind = Kind::kUnit, .unit = "FLOP"}, After<1>},
    {{.name = "flop_ci95", .kind = Kind::kUnit, .unit = "FLOP"}, HalfWidth<1>},
    {{.name = "flop_change", .kind = Kind::kText}, VerdictOf<1>},
    {{.name = "dram_bytes_before", .kind = Kind::kUnit, .unit = "B"}, Before<2>},
    {{.name = "dram_bytes_after", .kind = Kind::kUnit, .unit = "B"}, After<2>},
    {{.name = "dram_bytes_ci95", .kind = Kind::kUnit, .unit = "B"}, HalfWidth<2>},
    {{.name = "dram_bytes_change", .kind = Kind::kText}, VerdictOf<2>},
    {{.name = "oi_before_flop_per_byte", .unit = "FLOP/B"}, Before<3>},
    {{.name = "oi_after_flop_per_byte", .unit = "FLOP/B"}, After<3>},
    {{.name = "oi_ci95_flop_per_byte", .unit = "FLOP/B"}, HalfWidth<3>},
    {{.name = "oi_change", .kind = Kind::kText}, VerdictOf<3>},
    {{.name = "attainable_share_before", .kind = Kind::kShare}, Before<4>},
    {{.name = "attainable_share_after", .kind = Kind::kShare}, After<4>},
    {{.name = "attainable_share_ci95", .kind = Kind::kShare}, HalfWidth<4>},
    {{.name = "attainable_share_change", .kind = Kind::kText}, VerdictOf<4>},
});

}  // namespace

RowSet RowsOf(std::span<const DiffRow> rows) {
  RowSet set;
  set.size = rows.size();
  Append(
      std::span<const ColumnOf<DiffRow>>(kColumns), [rows](size_t i) -> const DiffRow& { return rows[i]; }, &set);
  return set;
}

DiffExcerpt ExcerptOf(const RunDiff& diff, size_t most) {
  DiffExcerpt excerpt;
  for (const DiffRow& row : diff.rows) {
    if (!row.Changed()) {
      ++excerpt.same;
    } else if (most > 0 && excerpt.rows.size() >= most) {
      ++excerpt.left_out;
      excerpt.rest_time.before += row.before.time_ns();
      excerpt.rest_time.after += row.after.time_ns();
    } else {
      excerpt.rows.push_back(&row);
    }
  }
  return excerpt;
}

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kSame:
      return "same";
    case Verdict::kReal:
      return "real";
    case Verdict::kNoise:
      return "noise";
    case Verdict::kUnknown:
      return "unknown";
    case Verdict::kOneSide:
      break;
  }
  return "one side only";
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
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& x, const Candidate& y) { return x.likeness > y.likeness; });
  std::vector<bool> a_used(a.size()), b_used(b.size());
  for (const Candidate& candidate : candidates) {
    if (a_used[candidate.a] || b_used[candidate.b]) continue;
    a_used[candidate.a] = b_used[candidate.b] = true;
    diff.pairs.push_back(DiffRuns(before, *a[candidate.a], after, *b[candidate.b], machine_for, options.by));
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (!a_used[i]) diff.only_before.push_back(RunTitle(*a[i]));
  }
  for (size_t k = 0; k < b.size(); ++k) {
    if (!b_used[k]) diff.only_after.push_back(RunTitle(*b[k]));
  }
  return diff;
}

}  // namespace rfinject::cli
