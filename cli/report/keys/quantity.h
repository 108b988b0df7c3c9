// File: quantity.h
//
// The quantities that a report sums up: one table of them, and Sums, which holds one number of each. What treats all
// quantities alike (addition, one step's part, the columns of outputs) walks the table, so a new quantity is an
// enumerator and a line, both in this file. All add up, over launches, layers, phases and runs; what does not (a
// rate, a share, an intensity) follows from them and is a column (column.h).
#ifndef RFINJECT_CLI_REPORT_KEYS_QUANTITY_H_
#define RFINJECT_CLI_REPORT_KEYS_QUANTITY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "cli/model/operator.h"
#include "cli/model/roofline.h"
#include "gpus/counters.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::cli {

enum class Quantity : uint8_t {
  kTime,
  kFlop,                                  // the first of kPrecisionCount: FlopIn(precision)
  kLegacyFlop = kFlop + kPrecisionCount,  // the first of as many: LegacyFlopIn(precision)
  kModelFlop = kLegacyFlop + kPrecisionCount,
  kProductFlop,  // of kModelFlop: products of matrices and filters
  kHiddenFlop,   // of kProductFlop: what a mask hides
  kDramBytes,
  kCompulsoryBytes,
  kL2Bytes,
  kL1Bytes,
  kPcieBytes,    // of copies between the host and the GPU, and of collectives where GPUs have no NVLink
  kNvlinkBytes,  // of collectives, in one direction
  kIdleBefore,   // nothing ran on the GPU before the launches began
  kGpuCycles,    // of the graphics clock, whose ticks per second change with load and heat
  kLeastCompute,
  kLeastMemory,
  kLeastLink,  // over PCIe or NVLink
  kLeast,
  kTimeWithCounters,
  // The parts of kTime by what keeps each launch key from being faster (report.h, Bound).
  kLaunchBoundTime,
  kMemoryBoundTime,
  kComputeBoundTime,
  kPcieBoundTime,
  kNvlinkBoundTime,
  // Times of estimated runs, whose kTime is the expected one (expect.h); 0 where no expected time is known.
  kIdealTime,  // what the datasheet's roofline allows
  kTimeLow,    // the ends of the 80 % interval of kTime
  kTimeHigh,
  kWinogradTime,  // of kTime, convolutions that execute fewer FLOP than are counted
  kForeignTime,   // of kTime, operators whose parameters come from other GPUs
  kCopyTime,      // of kTime, launches whose bytes over PCIe are known
  // Of what was measured or recorded, where operators and their shapes are known (expect.h).
  kUsualTime,  // what such operators usually take on that GPU
  kUsualLow,   // the ends of its 80 % interval
  kUsualHigh,
  kTimeWithUsual,  // the part of kTime for which that is known
  // What the same operators are expected to take on the GPU of --on (other_gpu.h).
  kOtherTime,
  kOtherLow,  // the ends of its 80 % interval
  kOtherHigh,
  kEnd,
};
inline constexpr size_t kQuantityCount = static_cast<size_t>(Quantity::kEnd);

// Executed FLOP of one precision (measured), or what is taken as executed (estimated).
constexpr Quantity FlopIn(Precision precision) {
  return static_cast<Quantity>(static_cast<size_t>(Quantity::kFlop) + static_cast<size_t>(precision));
}
// Those of them that ran over the legacy tensor path (GH100's mma.sync beside wgmma).
constexpr Quantity LegacyFlopIn(Precision precision) {
  return static_cast<Quantity>(static_cast<size_t>(Quantity::kLegacyFlop) + static_cast<size_t>(precision));
}

// A metric of a trace that counts towards a quantity: quantity += value of the metric.
struct QuantityMetric {
  Quantity quantity{};
  std::string_view name;
  // Pairs of metrics that are a better count of the same thing. When both of a pair were sampled, this one does not
  // count.
  std::array<std::array<std::string_view, 2>, 2> better = {};
};

// What the number 0 means.
enum class Zero : uint8_t {
  kValue,         // it is a value like any other
  kUnknown,       // nothing was measured
  kUnknownRoofs,  // no value where the GPU's roofs are not known; a value elsewhere
};

struct QuantityInfo {
  Quantity id{};
  std::string_view name;   // of the column in CSV and JSON, with its unit; empty: no column of its own
  std::string_view title;  // of the column on the page
  std::string_view help;   // what it is: ColumnInfo::help
  std::string_view unit;   // "ns", "FLOP", "B"
  Zero zero = Zero::kValue;
};

// All such metrics but those of executed FLOP: kMetricFlop has a trace's own, FlopFormula(chip) the counters.
inline constexpr auto kQuantityMetrics = std::to_array<QuantityMetric>({
    // Our own time was taken while no counters ran; the counters' passes are slower.
    {Quantity::kTime, kMetricTime},
    {Quantity::kTime, kGpuTimeMetric, {{{kMetricTime, kMetricTime}}}},
    {Quantity::kModelFlop, kMetricModelFlop},
    {Quantity::kProductFlop, kMetricProductFlop},
    {Quantity::kHiddenFlop, kMetricHiddenFlop},
    {Quantity::kDramBytes, kMetricDramBytes},
    {Quantity::kDramBytes, kDramReadMetric},
    {Quantity::kDramBytes, kDramWriteMetric},
    // GB202 and its relatives say "op_read".
    {Quantity::kDramBytes, kDramOpReadMetric},
    {Quantity::kDramBytes, kDramOpWriteMetric},
    {Quantity::kDramBytes,
     kDramTotalMetric,
     {{{kDramReadMetric, kDramWriteMetric}, {kDramOpReadMetric, kDramOpWriteMetric}}}},
    {Quantity::kCompulsoryBytes, kMetricCompulsoryBytes},
    {Quantity::kL2Bytes, kL2BytesMetric},
    {Quantity::kL1Bytes, kL1BytesMetric},
    {Quantity::kPcieBytes, kMetricPcieBytes},
    {Quantity::kNvlinkBytes, kMetricNvlinkBytes},
    {Quantity::kIdleBefore, kMetricIdleBefore},
    {Quantity::kGpuCycles, kGpuCyclesMetric},
});

namespace quantity_table {

struct FlopColumn {
  std::string_view name, title;
};
// Operations on integers have no column of their own: they are in `flop`, and in the view by precision.
inline constexpr auto kFlopColumns = std::to_array<FlopColumn>({{"flop_fp64", "FLOP in FP64"},
                                                                {"flop_fp32", "FLOP in FP32"},
                                                                {"flop_fp16", "FLOP in FP16"},
                                                                {"flop_tf32_tc", "FLOP in TF32 tensor"},
                                                                {"flop_fp16_tc", "FLOP in FP16 tensor"},
                                                                {"flop_bf16_tc", "FLOP in BF16 tensor"},
                                                                {"flop_fp8_tc", "FLOP in FP8 tensor"},
                                                                {"flop_fp64_tc", "FLOP in FP64 tensor"},
                                                                {"", ""}});
static_assert(kFlopColumns.size() == kPrecisionCount);

inline constexpr auto kOthers = std::to_array<QuantityInfo>({
    {Quantity::kTime, "time_ns", "GPU time, all steps", "GPU time: kernels, summed over all measured steps.", "ns"},
    {Quantity::kModelFlop, "model_flop", "Model FLOP", "FLOP that the layer's mathematics asks for.", "FLOP"},
    {Quantity::kProductFlop, "", "", "", "FLOP"},
    {Quantity::kHiddenFlop, "", "", "", "FLOP"},
    {Quantity::kDramBytes, "dram_bytes", "DRAM bytes", "Bytes read from and written to the GPU's memory.", "B"},
    {Quantity::kCompulsoryBytes, "compulsory_bytes", "Compulsory bytes",
     "Bytes of operands and results, each moved once.", "B"},
    {Quantity::kL2Bytes, "l2_bytes", "L2 bytes", "Bytes through L2.", "B", Zero::kUnknown},
    {Quantity::kL1Bytes, "l1_bytes", "L1 bytes", "Bytes through L1.", "B", Zero::kUnknown},
    {Quantity::kPcieBytes, "pcie_bytes", "PCIe bytes",
     "Of an estimate: bytes over PCIe, of copies to and from the host, and of collectives where there is no NVLink.",
     "B", Zero::kUnknown},
    {Quantity::kNvlinkBytes, "nvlink_bytes", "NVLink bytes",
     "Of an estimate: bytes that collectives send over NVLink, nccl-tests' bus bandwidth times the time.", "B",
     Zero::kUnknown},
    {Quantity::kIdleBefore, "gpu_idle_before_ns", "GPU idle before",
     "Of a measured run: nothing ran on the GPU before these launches began, by the windows that were timed.", "ns",
     Zero::kUnknown},
    {Quantity::kGpuCycles, "gpu_cycles", "GPU cycles", "Cycles of the graphics clock.", "cycle", Zero::kUnknown},
    {Quantity::kLeastCompute, "least_compute_time_ns", "Least compute time",
     "Time that the FLOP need at the peaks of their pipes.", "ns", Zero::kUnknownRoofs},
    {Quantity::kLeastMemory, "least_memory_time_ns", "Least memory time",
     "Time that the DRAM bytes need at full bandwidth.", "ns", Zero::kUnknownRoofs},
    {Quantity::kLeastLink, "least_link_time_ns", "Least time of links",
     "Time that bytes over PCIe or NVLink need at the link's rate.", "ns", Zero::kUnknown},
    {Quantity::kLeast, "least_time_ns", "Least time", "Kernel by kernel the longest of these, summed.", "ns",
     Zero::kUnknownRoofs},
    {Quantity::kTimeWithCounters, "time_with_counters_ns", "GPU time with counters",
     "Of the GPU time, that of kernels whose FLOP and bytes are known.", "ns"},
    {Quantity::kLaunchBoundTime, "launch_bound_time_ns", "Launch-bound time",
     "Of the GPU time, that of kernels for whose launches the GPU waits.", "ns", Zero::kUnknownRoofs},
    {Quantity::kMemoryBoundTime, "memory_bound_time_ns", "Memory-bound time",
     "Of the GPU time, that of kernels whose bytes take longest.", "ns", Zero::kUnknownRoofs},
    {Quantity::kComputeBoundTime, "compute_bound_time_ns", "Compute-bound time",
     "Of the GPU time, that of kernels whose FLOP take longest.", "ns", Zero::kUnknownRoofs},
    {Quantity::kPcieBoundTime, "pcie_bound_time_ns", "PCIe-bound time",
     "Of the GPU time, that of copies and collectives whose bytes over PCIe take longest.", "ns", Zero::kUnknown},
    {Quantity::kNvlinkBoundTime, "nvlink_bound_time_ns", "NVLink-bound time",
     "Of the GPU time, that of collectives whose bytes over NVLink take longest.", "ns", Zero::kUnknown},
    {Quantity::kIdealTime, "ideal_time_ns", "Ideal time, all steps",
     "The least time that the datasheet allows operators whose work is known by shapes.", "ns", Zero::kUnknown},
    {Quantity::kTimeLow, "time_low_ns", "Time, 80 % from",
     "Of an estimate: lower end of the 80 % interval of the time.", "ns", Zero::kUnknown},
    {Quantity::kTimeHigh, "time_high_ns", "Time, 80 % to",
     "Of an estimate: upper end of the 80 % interval of the time.", "ns", Zero::kUnknown},
    {Quantity::kWinogradTime, "", "", "", "ns"},
    {Quantity::kForeignTime, "", "", "", "ns"},
    {Quantity::kCopyTime, "", "", "", "ns"},
    {Quantity::kUsualTime, "usual_time_ns", "Usual time, all steps",
     "The time that the same operators are expected to take on this GPU, as an estimate has it.", "ns",
     Zero::kUnknown},
    {Quantity::kUsualLow, "usual_time_low_ns", "Usual time, 80 % from",
     "Lower end of the 80 % interval of the usual time.", "ns", Zero::kUnknown},
    {Quantity::kUsualHigh, "usual_time_high_ns", "Usual time, 80 % to",
     "Upper end of the 80 % interval of the usual time.", "ns", Zero::kUnknown},
    {Quantity::kTimeWithUsual, "time_with_usual_ns", "GPU time with a usual time",
     "Of the GPU time, that of operators whose usual time is known.", "ns", Zero::kUnknown},
    {Quantity::kOtherTime, "other_gpu_time_ns", "Time on the other GPU",
     "With --on GPU: what the same operators are expected to take there, longer than usual by as much as here.", "ns",
     Zero::kUnknown},
    {Quantity::kOtherLow, "other_gpu_time_low_ns", "Time on the other GPU, 80 % from",
     "Lower end of the 80 % interval of the time on the other GPU.", "ns", Zero::kUnknown},
    {Quantity::kOtherHigh, "other_gpu_time_high_ns", "Time on the other GPU, 80 % to",
     "Upper end of the 80 % interval of the time on the other GPU.", "ns", Zero::kUnknown},
});

inline constexpr std::array<QuantityInfo, kQuantityCount> kTable = [] {
  std::array<QuantityInfo, kQuantityCount> table;
  for (const QuantityInfo& one : kOthers) table[static_cast<size_t>(one.id)] = one;
  for (size_t i = 0; i < kPrecisionCount; ++i) {
    const auto precision = static_cast<Precision>(i);
    const Quantity flop = FlopIn(precision), legacy = LegacyFlopIn(precision);
    table[static_cast<size_t>(flop)] = {.id = flop,
                                        .name = kFlopColumns[i].name,
                                        .title = kFlopColumns[i].title,
                                        .help = "Of the FLOP, those in this precision; _tc: on tensor cores.",
                                        .unit = "FLOP"};
    // Outputs have their sum over all precisions only.
    table[static_cast<size_t>(legacy)] = {.id = legacy, .name = {}, .title = {}, .help = {}, .unit = "FLOP"};
  }
  return table;
}();
static_assert(
    [] {
      for (size_t i = 0; i < kTable.size(); ++i) {
        if (static_cast<size_t>(kTable[i].id) != i || kTable[i].unit.empty()) return false;
      }
      return true;
    }(),
    "a Quantity has no line in the table, or two");

}  // namespace quantity_table

// One a Quantity, in the order of the enumerators, which is the order of the columns.
inline constexpr std::span<const QuantityInfo, kQuantityCount> AllQuantities() { return quantity_table::kTable; }

// The 80 % intervals of expected times, and the quantities that they consist of.
enum class Expectation : uint8_t { kTime, kUsual, kOther };
inline constexpr size_t kIntervals = 3;
struct IntervalQuantities {
  Quantity expected{}, low{}, high{};
};
inline constexpr std::array<IntervalQuantities, kIntervals> kIntervalQuantities = {
    {{Quantity::kTime, Quantity::kTimeLow, Quantity::kTimeHigh},
     {Quantity::kUsualTime, Quantity::kUsualLow, Quantity::kUsualHigh},
     {Quantity::kOtherTime, Quantity::kOtherLow, Quantity::kOtherHigh}}};

// The amounts of one thing (a kernel, a layer, a run) over all launches of the measured steps. What was sampled is
// scaled up to the launches it stands for: value = mean of the samples * launches.
class Sums {
 public:
  uint64_t launches = 0;

  double operator[](Quantity quantity) const { return values_[static_cast<size_t>(quantity)]; }
  double& operator[](Quantity quantity) { return values_[static_cast<size_t>(quantity)]; }

  // Names for those that are read in many places.
  double time_ns() const { return (*this)[Quantity::kTime]; }
  double model_flop() const { return (*this)[Quantity::kModelFlop]; }
  double dram_bytes() const { return (*this)[Quantity::kDramBytes]; }
  double compulsory_bytes() const { return (*this)[Quantity::kCompulsoryBytes]; }
  double l2_bytes() const { return (*this)[Quantity::kL2Bytes]; }
  double l1_bytes() const { return (*this)[Quantity::kL1Bytes]; }
  double least_compute_ns() const { return (*this)[Quantity::kLeastCompute]; }
  double least_memory_ns() const { return (*this)[Quantity::kLeastMemory]; }
  double least_ns() const { return (*this)[Quantity::kLeast]; }
  double time_with_counters_ns() const { return (*this)[Quantity::kTimeWithCounters]; }
  double ideal_ns() const { return (*this)[Quantity::kIdealTime]; }

  FlopByPrecision flop() const { return ByPrecision(Quantity::kFlop); }
  FlopByPrecision legacy_flop() const { return ByPrecision(Quantity::kLegacyFlop); }
  double total_flop() const;
  double total_legacy_flop() const;

  // Adds an expected time of a launch key with its interval, in ns. How far a sum of such may be off: launch keys of
  // a group have a part of their error in common, which adds up; the rest of them, and the errors of different
  // groups, are taken to be independent, and add up as squares (docs/method/ESTIMATOR.md).
  void AddExpected(Expectation interval, ErrorGroup group, double expected, double low, double high);
  // Multiplies an expected time and its interval.
  void ScaleExpected(Expectation interval, double factor);

  void Add(const Sums& other);
  // Returns the sums of one of `steps` equal steps; launches are rounded.
  Sums OfOneStep(double steps) const;

 private:
  // How far the expected times of a group may be off: the widths of their intervals to either side, added up, and the
  // squares of half their whole widths.
  struct ErrorOfGroup {
    double below = 0, above = 0, squares = 0;
    // The square of how far the sum may be off to the side whose widths add up to `side`.
    double Towards(double side, double shared_part) const;
  };
  struct Spread {
    double expected = 0;
    std::array<ErrorOfGroup, kErrorGroups> groups{};
    void Scale(double factor);
  };

  FlopByPrecision ByPrecision(Quantity first) const;
  void SetEnds(size_t interval);

  std::array<double, kQuantityCount> values_{};
  std::array<Spread, kIntervals> spreads_{};
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_KEYS_QUANTITY_H_
