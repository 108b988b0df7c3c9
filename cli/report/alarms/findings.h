// File: findings.h
//
// What the checks of invariants.cc can find. A finding is a struct: the kind of its alarm, which `rfinject explain`
// prints, the numbers, and the sentence that is made of them. An alarm may have several findings, which share its
// kind.
//
//   alarms.Add(time_ns, ClockDrift{1.07}, where);
//
// A new alarm is a struct here, a name in kAlarmKinds at the end, and its check in invariants.cc.
#ifndef RFINJECT_CLI_REPORT_ALARMS_FINDINGS_H_
#define RFINJECT_CLI_REPORT_ALARMS_FINDINGS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "cli/report/alarms/alarm.h"
#include "cli/text/units.h"

namespace rfinject::cli {

// What is said of one finding.
struct FindingText {
  std::string text;
  std::string_view causes;  // lives as long as the program
};

// The least time that the roofs allow is longer than the time taken.
struct AboveRoof {
  static constexpr AlarmKind kKind = {
      "R001",
      "A kernel is above its effective roof",
      "The least time that the roofs allow for a kernel's FLOP and DRAM bytes, each FLOP held against the peak of the "
      "precision and path that it ran in, is more than 3 % longer than the time that it took.",
      "FLOP held against the wrong precision's roof; time and counters of different work; a clock above the data "
      "sheet's; another GPU named than it ran on.",
      "Kernels within 3 %: time and bytes come from different launches of a key, and clocks run some percent over "
      "boost.",
      "Look at the kernel with --by kernel; compare --roofs clock with the data sheet's; see whether R003 or R002 name "
      "the part that is wrong."};

  double flop = 0, bytes = 0, taken_ns = 0, least_ns = 0;

  FindingText Say() const {
    return {absl::StrFormat("%.3g times faster than its roof allows (%s FLOP and %s took %s; at least %s are needed)",
                            least_ns / taken_ns, WithPrefix(flop, ""), WithPrefix(bytes, "B"),
                            WithPrefix(taken_ns * 1e-9, "s"), WithPrefix(least_ns * 1e-9, "s")),
            "FLOP held against the wrong precision's roof; time without the work; clocks above the datasheet's"};
  }
};

// Faster than the memory of `machine`.
struct AboveBandwidth {
  static constexpr AlarmKind kKind = {
      "R002",
      "More traffic than the memory can move",
      "DRAM bytes over time are more than 3 % above the memory's bandwidth.",
      "Bytes of one run over times of another; bytes of several passes added up; wrong GPU named; a unit lost in a "
      "conversion.",
      "",
      "Measure time and bytes in one run; check the units of an import."};

  double bytes_per_s = 0, limit_bytes_per_s = 0;
  std::string machine;

  FindingText Say() const {
    return {absl::StrFormat("%s to and from DRAM, %.0f %% of the %s that %s has", WithPrefix(bytes_per_s, "B/s"),
                            100 * (bytes_per_s / limit_bytes_per_s), WithPrefix(limit_bytes_per_s, "B/s"), machine),
            "bytes of one run over times of another; bytes of several passes added up; wrong GPU named"};
  }
};

// FLOP of a precision for which `machine` has no unit.
struct MissingUnit {
  static constexpr AlarmKind kKind = {
      "R003",
      "A unit above its peak, or one that the GPU lacks",
      "FLOP counted in a precision over time are more than 3 % above its peak, over all paths or over one of them "
      "(mma, wgmma); or FLOP were counted in a precision for which the GPU has no unit.",
      "FLOP counted twice; time of another run or clock; 2:4 sparsity; a metric of another chip; wrong GPU named.",
      "",
      "Check the metric's name against the chip (gpus/chips.csv, gpus/chip_counters.csv), and the GPU that the file "
      "names."};

  Precision precision{};
  double flop = 0;
  std::string machine;

  FindingText Say() const {
    return {absl::StrFormat("%.3g FLOP counted as %s, which %s does not have", flop,
                            kPrecisionTitles[static_cast<size_t>(precision)], machine),
            "another GPU than the file says; a metric of another chip"};
  }
};

// Faster than a unit's peak, or than one of its paths.
struct AbovePeak {
  static constexpr AlarmKind kKind = MissingUnit::kKind;

  Precision precision{};
  double flop_per_s = 0, peak_flop_per_s = 0;
  std::string path;  // "mma"; empty: the unit's own peak

  FindingText Say() const {
    const std::string_view title = kPrecisionTitles[static_cast<size_t>(precision)];
    const std::string rate = WithPrefix(flop_per_s, "FLOP/s"), peak = WithPrefix(peak_flop_per_s, "FLOP/s");
    const double percent = 100 * (flop_per_s / peak_flop_per_s);
    if (path.empty()) {
      return {absl::StrFormat("%s at %s, %.0f %% of its peak %s", title, rate, percent, peak),
              "time of another run or clock; FLOP counted twice; 2:4 sparsity; wrong GPU named"};
    }
    return {absl::StrFormat("%s over the %s path at %s, %.0f %% of that path's peak %s", title, path, rate, percent,
                            peak),
            "time of another run or clock; FLOP counted twice; wrong GPU named"};
  }
};

// A kernel named for tensor cores without tensor FLOP.
struct NoTensorFlop {
  static constexpr AlarmKind kKind = {
      "R004",
      "A tensor-core kernel without tensor FLOP",
      "A kernel whose name says tensor cores (hmma, s1688, tensorop and the like) was counted, and no tensor FLOP were.",
      "Only the counters of CUDA cores (smsp__sass_...) were asked for; the counter of another source type is missing "
      "(TF32, FP16 and BF16 have one each).",
      "Kernels of estimates, which have no such names; kernels that were not counted at all, and runs that ended before "
      "all counters had been read once; what stands around a product: preparing, adding up parts, turning layouts.",
      "Add sm__ops_path_tensor_src_... to the metrics; docs/method/CASE_STUDIES.md shows what a roofline looks like "
      "without."};

  bool counted = false;  // a tensor counter was collected, and it is 0

  FindingText Say() const {
    if (counted) {
      return {"named as a tensor-core kernel, but its tensor counters are 0",
              "the counter of another source type is missing (TF32, FP16, BF16 have one each)"};
    }
    return {"named as a tensor-core kernel, but no tensor counter was collected",
            "only CUDA-core counters (smsp__sass_...) were asked for; add sm__ops_path_tensor_src_..."};
  }
};

// Model FLOP of the backward over those of the forward, of a layer or of the whole run.
struct OddBackward {
  static constexpr AlarmKind kKind = {
      "R005",
      "Backward FLOP that the layers do not explain",
      "Of an estimate, layer by layer, the products of matrices and convolutions: the backward of a layer may need up "
      "to twice the model FLOP of its forward (2.6 times where it is attention, which is computed again), and operators "
      "of the forward do not run in it. What goes beyond, and what is in no layer although layers lack it, may be one "
      "in twenty of the whole backward's FLOP. Where model FLOP come from --theory, the whole backward is held against "
      "the whole forward: 1.8 to 2.05.",
      "Forwards that were not attributed; recomputation counted as backward; products counted twice; backward without "
      "a layer.",
      "A first layer, which needs no gradient of its input; frozen layers; a teacher; validation, which is a run of "
      "its own; a generator under no_grad; recomputation, which has a phase of its own; a gradient penalty, whose "
      "second derivatives are known by their nodes; functions and losses outside of modules, with their backward; "
      "several backwards of one forward (retain_graph), in which other derivatives ran several times, too; a recording "
      "that knows no layers, of which its profiler may have lost launches.",
      "report --by layer shows the FLOP of each phase; backward without a layer: --by stack, and the attribution tier "
      "in the head of the report."};

  double ratio = 0;
  bool low = false;
  double most = 0;  // that such a layer may need; 0: the whole run's

  FindingText Say() const {
    if (most > 0) {
      return {absl::StrFormat("backward model FLOP are %.3g times the forward's; a layer of this kind needs at most "
                              "%.3g times",
                              ratio, most),
              "forward not attributed; products counted twice; recomputation counted as backward"};
    }
    return {absl::StrFormat(
                "backward model FLOP are %.3f times the forward's; a whole training step gives 1.8 to 2.05", ratio),
            low ? "frozen layers; forwards without a backward (validation, a second network); backward not attributed"
                : "forward not attributed; several backwards a forward; recomputation counted as backward"};
  }
};

// What share of the backward's model FLOP is in no layer.
struct BackwardWithoutLayer {
  static constexpr AlarmKind kKind = OddBackward::kKind;

  double share = 0;

  FindingText Say() const {
    return {absl::StrFormat("%.0f %% of the backward's model FLOP are in no layer", 100 * share),
            "backward not attributed"};
  }
};

// The sum of the rows, and the whole run's.
struct RowsDoNotAddUp {
  static constexpr AlarmKind kKind = {
      "R006",
      "Rows do not add up to the total",
      "Any quantity summed over the rows differs from that of the whole run by more than rounding.",
      "A mistake in rfinject.",
      "",
      "Please report it, with the trace."};

  std::string what;  // a column
  double rows = 0, total = 0;

  FindingText Say() const {
    return {absl::StrFormat("%s of the rows is %.17g, of the whole run %.17g", what, rows, total),
            "a mistake in rfinject; please report it"};
  }
};

// A count that differs between the launches of one key.
struct VaryingCount {
  static constexpr AlarmKind kKind = {
      "R007",
      "FLOP that differ between launches of one key",
      "A FLOP counter is not the same in all launches with one kernel, grid, layer, phase and operator.",
      "The key is too coarse: shapes or algorithms differ within it; data-dependent work.",
      "Bytes and times, which may differ; counters that were shared between the launches of a layer; keys of a file that "
      "says neither grids nor shapes, as a recording of counters.",
      "Means of such a key are means of different work: look at its operator's shapes."};

  std::string metric;
  uint64_t least = 0, most = 0;

  FindingText Say() const {
    return {absl::StrFormat("%s is between %d and %d for launches of one key", metric, least, most),
            "the key is too coarse: shapes or algorithms differ within it; data-dependent work"};
  }
};

// GPU time and wall time of a step.
struct LongerThanTheStep {
  static constexpr AlarmKind kKind = {
      "R008",
      "More kernel time than wall time",
      "The kernels of a step take more than 3 % longer than the step, for each device of the run.",
      "Kernels that overlap on several streams; times taken while profiling slowed them; steps miscounted.",
      "Steps in which counters ran, whose wall time does not count.",
      "Compare with --step-by optimizer; where streams overlap, shares of GPU time are not shares of the step."};

  double gpu_ns = 0, wall_ns = 0;

  FindingText Say() const {
    return {absl::StrFormat("kernels take %s a step, the step takes %s", WithPrefix(gpu_ns * 1e-9, "s"),
                            WithPrefix(wall_ns * 1e-9, "s")),
            "kernels that overlap on several streams; times taken while profiling slowed them; steps miscounted"};
  }
};

// Executed FLOP over the model's.
struct OddFlop {
  static constexpr AlarmKind kKind = {
      "R009",
      "Executed FLOP far from the model's",
      "Executed over model FLOP is below 0.24 (Winograd's F(4x4, 3x3) does a quarter; nothing known does less) or "
      "above 2.",
      "Low: FLOP on a path that was not counted (tensor cores), rows lost in a conversion, fewer images than said. "
      "High: recomputation, more than one step or batch in the counts, padding of tiny layers.",
      "",
      "report --theory with --columns theory shows the ratio row by row."};

  double ratio = 0;
  bool low = false;

  FindingText Say() const {
    if (low) {
      return {
          absl::StrFormat("executed FLOP are %.3f of the model's; no known algorithm needs so few", ratio),
          "FLOP on a path that was not counted (tensor cores); rows lost in a conversion; fewer images than said"};
    }
    return {absl::StrFormat("executed FLOP are %.3f times the model's", ratio),
            "recomputation; more than one step or batch in the counts; padding to tiles of tiny layers"};
  }
};

// The fastest SM clock over the slowest.
struct ClockDrift {
  static constexpr AlarmKind kKind = {
      "R010",
      "Clocks that drifted between samples",
      "The fastest mean SM clock of a key's samples is more than 5 % over the slowest.",
      "Power or thermal limits; clocks locked in one run and not in the other.",
      "",
      "Lock the clocks, or read times with the spread that they have."};

  double ratio = 0;

  FindingText Say() const {
    return {absl::StrFormat("SM clock varied by %.0f %% between samples", 100 * (ratio - 1)),
            "power or thermal limits; clocks locked in one run and not in the other"};
  }
};

// A counter of sparse FLOP is not 0.
struct SparseFlop {
  static constexpr AlarmKind kKind = {"R011",
                                      "Sparse tensor FLOP",
                                      "A counter of 2:4 sparse tensor operations is not 0.",
                                      "The program uses structured sparsity.",
                                      "",
                                      "Dense peaks do not bound such kernels: read their shares so."};

  std::string metric;

  FindingText Say() const { return {metric + " is not 0", "2:4 sparse tensor work: dense peaks do not bound it"}; }
};

// A value that no counter reaches.
struct HugeValue {
  static constexpr AlarmKind kKind = {
      "R012",
      "No bytes, or impossible counts",
      "A kernel of more than a millisecond a launch moved no DRAM bytes, or a value is above 2^62.",
      "DRAM counters that did not run; values lost in a conversion of units; a counter that went backwards.",
      "Short kernels that live in the L2 cache.",
      "Check which counter groups ran; R012 names the kernel."};

  std::string metric;
  double value = 0;

  FindingText Say() const {
    return {absl::StrFormat("%s has a value of %.3g", metric, value),
            "a counter that went backwards (negative difference), or an overflow"};
  }
};

// A long kernel that moved nothing.
struct NoBytes {
  static constexpr AlarmKind kKind = HugeValue::kKind;

  double launch_ns = 0;

  FindingText Say() const {
    return {"no DRAM bytes in " + WithPrefix(launch_ns * 1e-9, "s") + " a launch",
            "the DRAM counters did not run; values lost in a conversion of units"};
  }
};

// By id.
inline constexpr auto kAlarmKinds = std::to_array<AlarmKind>(
    {AboveRoof::kKind, AboveBandwidth::kKind, MissingUnit::kKind, NoTensorFlop::kKind, OddBackward::kKind,
     RowsDoNotAddUp::kKind, VaryingCount::kKind, LongerThanTheStep::kKind, OddFlop::kKind, ClockDrift::kKind,
     SparseFlop::kKind, HugeValue::kKind});

constexpr bool IsAlarm(std::string_view id) {
  return std::any_of(kAlarmKinds.begin(), kAlarmKinds.end(), [&](const AlarmKind& kind) { return kind.id == id; });
}

template <typename Finding>
Alarm AlarmOf(const Finding& finding, std::optional<AlarmPlace> where = {}) {
  static_assert(IsAlarm(Finding::kKind.id), "a kind is missing in kAlarmKinds");
  FindingText said = finding.Say();
  return {std::string(Finding::kKind.id), std::move(said.text), said.causes, std::move(where)};
}

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_ALARMS_FINDINGS_H_
