#include "cli/report/alarms/invariants.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "cli/report/alarms/backward_flop.h"
#include "cli/report/alarms/findings.h"
#include "cli/report/keys/key_quantities.h"
#include "cli/report/report.h"
#include "gpus/chips.h"
#include "gpus/kernel_names.h"

namespace rfinject::cli {
namespace {

AlarmPlace PlaceOf(const LaunchKey& key) { return {key.layer.model, key.layer.path, key.phase, key.kernel}; }

// One launch key, and what is known of it.
struct KeyToCheck {
  const LaunchKey& key;
  const LaunchStats& stats;
  const KeyQuantities& quantities;
  SourceKind source;
  std::string_view chip;
  bool counted_once;  // the run went on until all counters had been read once

  double time_ns() const { return quantities.sums.time_ns(); }
  bool measured() const { return source == SourceKind::kMeasured || source == SourceKind::kImported; }
  // Another tool's times stand beside work that follows from shapes: Winograd multiplies less, and what lies in a
  // cache is not moved.
  bool of_shapes() const { return source == SourceKind::kImported && quantities.sums.compulsory_bytes() > 0; }
  // Whether counters of the hardware were read. A recording has them where its program asked for them: then they have
  // the names that CUPTI gives them.
  bool has_counters() const {
    if (source != SourceKind::kImported) return source == SourceKind::kMeasured;
    return std::ranges::any_of(
        stats.metrics, [](const auto& metric) { return !metric.first.starts_with("rf.") && metric.second.n > 0; });
  }
  // Whether the key says what makes the work of two launches of one kernel differ. A file may know neither.
  bool tells_work_apart() const { return key.grid != decltype(key.grid){} || !key.signature.empty(); }
};

// Holds each precision's FLOP against the machine's peak. FLOP without a unit are taken out of `work`.
void CheckPeaks(const Machine& machine, const KeyToCheck& it, Work* work, AlarmList& alarms) {
  const double seconds = it.time_ns() * 1e-9;
  for (size_t i = 0; i < kPrecisionCount; ++i) {
    if (work->flop[i] <= 0) continue;
    const auto precision = static_cast<Precision>(i);
    const double rate = work->flop[i] / seconds;
    const double legacy = work->legacy_flop[i] / seconds, legacy_peak = machine.peak[i] * machine.legacy_share;
    if (machine.peak[i] <= 0) {
      alarms.Add(it.time_ns(), MissingUnit{precision, work->flop[i], machine.name}, PlaceOf(it.key));
      work->flop[i] = 0;
    } else if (rate > machine.peak[i] * kRoofTolerance) {
      alarms.Add(it.time_ns(), AbovePeak{precision, rate, machine.peak[i], {}}, PlaceOf(it.key));
    } else if (legacy > legacy_peak * kRoofTolerance) {
      alarms.Add(it.time_ns(),
                 AbovePeak{precision, legacy, legacy_peak, std::string(TensorPathNames(machine.chip).legacy)},
                 PlaceOf(it.key));
    }
  }
}

void CheckRoofs(const Machine& machine, const KeyToCheck& it, AlarmList& alarms) {
  const Sums& sums = it.quantities.sums;
  // Where quantities are shares of a layer's sum, a comparison with one kernel's time would prove nothing.
  if (machine.name.empty() || it.time_ns() <= 0 || it.quantities.shared || it.of_shapes()) return;
  Work work{.flop = sums.flop(), .dram_bytes = sums.dram_bytes(), .legacy_flop = sums.legacy_flop()};
  CheckPeaks(machine, it, &work, alarms);
  const double bandwidth = sums.dram_bytes() / (it.time_ns() * 1e-9);
  if (machine.dram_bytes_per_s > 0 && bandwidth > machine.dram_bytes_per_s * kRoofTolerance) {
    alarms.Add(it.time_ns(), AboveBandwidth{bandwidth, machine.dram_bytes_per_s, machine.name}, PlaceOf(it.key));
  }
  const double least_ns = LeastTime(machine, work).total_s() * 1e9;
  if (least_ns > it.time_ns() * kRoofTolerance) {
    alarms.Add(it.time_ns(), AboveRoof{TotalFlop(work), sums.dram_bytes(), it.time_ns(), least_ns}, PlaceOf(it.key));
  }
}

void CheckTensorKernel(const KeyToCheck& it, AlarmList& alarms) {
  if (!it.has_counters() || !it.counted_once || !NamesTensorCores(it.key.kernel)) return;
  const KeyQuantities& quantities = it.quantities;
  double tensor_flop = 0;
  for (size_t i = static_cast<size_t>(Precision::kTf32Tensor); i < kPrecisionCount; ++i) {
    tensor_flop += quantities.sums.flop()[i];
  }
  const bool counted_something = quantities.has_scalar_flop || quantities.has_tensor_flop;
  if (!it.of_shapes() && counted_something && tensor_flop <= 0) {
    alarms.Add(it.time_ns(), NoTensorFlop{quantities.has_tensor_flop}, PlaceOf(it.key));
  }
}

void CheckCounters(const KeyToCheck& it, AlarmList& alarms) {
  const auto& metrics = it.stats.metrics;
  if (it.measured()) {
    for (const FlopTerm& term : FlopFormula(it.chip)) {
      const auto found = metrics.find(std::string(term.metric));
      if (found == metrics.end() || found->second.n == 0) continue;
      const Stat& stat = found->second;
      if (term.sparse && stat.sum > 0) {
        alarms.Add(it.time_ns(), SparseFlop{std::string(term.metric)}, PlaceOf(it.key));
      }
      if (!term.sparse && stat.min != stat.max && stat.shared_sums == 0 && it.tells_work_apart()) {
        alarms.Add(it.time_ns(), VaryingCount{std::string(term.metric), stat.min, stat.max}, PlaceOf(it.key));
      }
    }
    const auto clock = metrics.find(std::string(kSmClockMetric));
    if (clock != metrics.end() && clock->second.n > 1 && clock->second.min > 0) {
      const double drift = static_cast<double>(clock->second.max) / static_cast<double>(clock->second.min);
      if (drift > kClockDrift) alarms.Add(it.time_ns(), ClockDrift{drift}, PlaceOf(it.key));
    }
  }
  for (const auto& [name, stat] : metrics) {
    if (stat.n > 0 && stat.max >= uint64_t{1} << 62) {
      alarms.Add(it.time_ns(), HugeValue{name, static_cast<double>(stat.max)}, PlaceOf(it.key));
    }
  }
}

void CheckBytes(const KeyToCheck& it, AlarmList& alarms) {
  // A kernel that lives in L2 can move nothing at all; one that takes a millisecond cannot.
  constexpr double kLongEnoughNs = 1e6;
  if (!it.has_counters() || !it.quantities.has_bytes || it.quantities.sums.dram_bytes() > 0 || it.stats.launches == 0)
    return;
  const double launch_ns = it.time_ns() / static_cast<double>(it.stats.launches);
  if (launch_ns > kLongEnoughNs) alarms.Add(it.time_ns(), NoBytes{launch_ns}, PlaceOf(it.key));
}

void CheckRowsAddUp(const std::vector<Row>& rows, const Sums& total, AlarmList& alarms) {
  Sums sum;
  for (const Row& row : rows) sum.Add(row.sums);
  // The two sums add the same doubles in different orders, hence the tolerance of some roundings a row.
  const auto check = [&](std::string_view what, double a, double b) {
    if (std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b))) return;
    alarms.Add(0, RowsDoNotAddUp{std::string(what), a, b});
  };
  check("launches", static_cast<double>(sum.launches), static_cast<double>(total.launches));
  for (const QuantityInfo& quantity : AllQuantities()) {
    check(quantity.name.empty() ? "FLOP over the legacy path" : quantity.title, sum[quantity.id], total[quantity.id]);
  }
}

void CheckForwardAndBackward(const Run& run, const Report& report, AlarmList& alarms) {
  // Where each layer's own model FLOP are known (an estimate) they say what its backward may need.
  if (BackwardFlop layers = CheckBackwardFlop(run); layers.known) {
    for (auto& [flop, alarm] : layers.findings) {
      alarms.Keep(flop, std::move(alarm));
    }
    return;
  }
  double forward = 0, backward = 0;
  for (const Row& row : report.phases) {
    if (row.phase == Phase::kForward) forward += row.sums.model_flop();
    if (row.phase == Phase::kBackward) backward += row.sums.model_flop();
  }
  if (forward <= 0 || backward <= 0) return;  // inference, or no model FLOP known
  // A run that ended inside its first step has part of a backward. (An import's one step is said by the importer.)
  if (report.steps.count == 0) return;
  const double ratio = backward / forward;
  if (ratio >= kBackwardOverForwardLow && ratio <= kBackwardOverForwardHigh) return;
  alarms.Add(0, OddBackward{ratio, ratio < kBackwardOverForwardLow});
}

void CheckModelFlop(const Report& report, AlarmList& alarms) {
  const double model = report.total.sums.model_flop(), executed = report.total.sums.total_flop();
  if (model <= 0 || executed <= 0) return;
  const double ratio = executed / model;
  if (ratio < kExecutedOverModelLow || ratio > kExecutedOverModelHigh) {
    alarms.Add(report.total.sums.time_ns(), OddFlop{ratio, ratio < kExecutedOverModelLow});
  }
}

void CheckWallTime(const Run& run, const Report& report, AlarmList& alarms) {
  // A step's wall time bounds its kernels' time on one stream; several devices and streams overlap.
  const Clock& clock = report.clock;
  const double wall = clock.measured_wall_ns() * static_cast<double>(std::max<size_t>(1, run.devices.size()));
  if (wall <= 0 || clock.gpu_ns <= wall * kRoofTolerance) return;
  alarms.Add(report.total.sums.time_ns(), LongerThanTheStep{clock.gpu_ns, clock.wall_ns});
}

}  // namespace

AlarmList CheckKeys(const Profile& profile, const Run& run, const Machine& machine, std::string_view chip) {
  AlarmList alarms;
  const KeyReader reader(profile.metrics, chip, run);
  // A short run of ours may have met no more than one of the counters of tensor cores.
  const bool counted_once =
      std::ranges::none_of(run.kept.diagnostic, [](const DiagnosticInfo& one) { return one.id == "too-few-steps"; });
  for (const auto& [key, stats] : run.launches) {
    const KeyQuantities quantities = reader.Read(key, stats);
    const KeyToCheck it{key, stats, quantities, run.key.source, chip, counted_once};
    CheckRoofs(machine, it, alarms);
    CheckTensorKernel(it, alarms);
    CheckCounters(it, alarms);
    CheckBytes(it, alarms);
  }
  return alarms;
}

std::vector<Alarm> CheckReport(AlarmList alarms, const Run& run, const Report& report) {
  CheckForwardAndBackward(run, report, alarms);
  CheckRowsAddUp(report.rows, report.total.sums, alarms);
  CheckRowsAddUp(report.phases, report.total.sums, alarms);
  CheckWallTime(run, report, alarms);
  CheckModelFlop(report, alarms);
  return alarms.Take();
}

}  // namespace rfinject::cli
