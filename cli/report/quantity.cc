#include "cli/report/quantity.h"

#include <cmath>
#include <numeric>

#include "gpus/counters.h"

namespace rfinject::cli {
namespace {

// Our own time was taken while no counters ran; the counters' passes are slower.
constexpr auto kTimeMetrics =
    std::to_array<MetricName>({{kMetricTime}, {kGpuTimeMetric, {{{kMetricTime, kMetricTime}}}}});
constexpr auto kModelFlopMetrics = std::to_array<MetricName>({{kMetricModelFlop}});
// GB202 and its sisters say "op_read".
constexpr auto kDramMetrics = std::to_array<MetricName>(
    {{kMetricDramBytes},
     {kDramReadMetric},
     {kDramWriteMetric},
     {kDramOpReadMetric},
     {kDramOpWriteMetric},
     {kDramTotalMetric, {{{kDramReadMetric, kDramWriteMetric}, {kDramOpReadMetric, kDramOpWriteMetric}}}}});
constexpr auto kCompulsoryMetrics = std::to_array<MetricName>({{kMetricCompulsoryBytes}});
constexpr auto kL2Metrics = std::to_array<MetricName>({{kL2BytesMetric}});
constexpr auto kL1Metrics = std::to_array<MetricName>({{kL1BytesMetric}});

constexpr std::array<MetricName, kPrecisionCount> kFlopMetrics = [] {
  std::array<MetricName, kPrecisionCount> metrics;
  for (size_t i = 0; i < kPrecisionCount; ++i) metrics[i] = {kMetricFlop[i]};
  return metrics;
}();

struct FlopColumn {
  std::string_view name, title;
  int page;
};
constexpr auto kFlopColumns = std::to_array<FlopColumn>({{"flop_fp64", "FLOP in FP64", 280},
                                                         {"flop_fp32", "FLOP in FP32", 290},
                                                         {"flop_fp16", "FLOP in FP16", 300},
                                                         {"flop_tf32_tc", "FLOP in TF32 tensor", 310},
                                                         {"flop_fp16_tc", "FLOP in FP16 tensor", 320},
                                                         {"flop_bf16_tc", "FLOP in BF16 tensor", 330},
                                                         {"flop_fp8_tc", "FLOP in FP8 tensor", 340},
                                                         {"flop_fp64_tc", "FLOP in FP64 tensor", 350}});
static_assert(kFlopColumns.size() == kPrecisionCount);

// The FLOP come from FlopFormula as well, by chip.
constexpr auto kOthers = std::to_array<QuantityInfo>({
    {Quantity::kTime, "time_ns", "GPU time, all steps", "ns", 150, Zero::kValue, kTimeMetrics},
    {Quantity::kModelFlop, "model_flop", "Model FLOP", "FLOP", 170, Zero::kValue, kModelFlopMetrics},
    {Quantity::kDramBytes, "dram_bytes", "DRAM bytes", "B", 210, Zero::kValue, kDramMetrics},
    {Quantity::kCompulsoryBytes, "compulsory_bytes", "Compulsory bytes", "B", 220, Zero::kValue, kCompulsoryMetrics},
    {Quantity::kL2Bytes, "l2_bytes", "L2 bytes", "B", 240, Zero::kUnknown, kL2Metrics},
    {Quantity::kL1Bytes, "l1_bytes", "L1 bytes", "B", 250, Zero::kUnknown, kL1Metrics},
    {Quantity::kLeastCompute, "least_compute_time_ns", "Least compute time", "ns", 370, Zero::kUnknownRoofs},
    {Quantity::kLeastMemory, "least_memory_time_ns", "Least memory time", "ns", 380, Zero::kUnknownRoofs},
    {Quantity::kLeast, "least_time_ns", "Least time", "ns", 390, Zero::kUnknownRoofs},
    {Quantity::kTimeWithCounters, "time_with_counters_ns", "GPU time with counters", "ns", 410},
    {Quantity::kIdealTime, "ideal_time_ns", "Ideal time, all steps", "ns", 152, Zero::kUnknown},
    {Quantity::kTimeLow, "time_low_ns", "Time, 80 % from", "ns", 154, Zero::kUnknown},
    {Quantity::kTimeHigh, "time_high_ns", "Time, 80 % to", "ns", 156, Zero::kUnknown},
    {Quantity::kWinogradTime, "", "", "ns"},
    {Quantity::kForeignTime, "", "", "ns"},
});

constexpr std::array<QuantityInfo, kQuantityCount> kTable = [] {
  std::array<QuantityInfo, kQuantityCount> table;
  for (const QuantityInfo& one : kOthers) table[static_cast<size_t>(one.id)] = one;
  for (size_t i = 0; i < kPrecisionCount; ++i) {
    const auto precision = static_cast<Precision>(i);
    const Quantity flop = FlopIn(precision), legacy = LegacyFlopIn(precision);
    table[static_cast<size_t>(flop)] = {.id = flop,
                                        .name = kFlopColumns[i].name,
                                        .title = kFlopColumns[i].title,
                                        .unit = "FLOP",
                                        .page = kFlopColumns[i].page,
                                        .metrics = std::span(&kFlopMetrics[i], 1)};
    // Outputs have their sum over all precisions only.
    table[static_cast<size_t>(legacy)] = {.id = legacy, .name = {}, .title = {}, .unit = "FLOP"};
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

}  // namespace

std::span<const QuantityInfo, kQuantityCount> AllQuantities() { return kTable; }

FlopByPrecision Sums::ByPrecision(Quantity first) const {
  FlopByPrecision flop;
  for (size_t i = 0; i < kPrecisionCount; ++i) flop[i] = values_[static_cast<size_t>(first) + i];
  return flop;
}

double Sums::total_flop() const {
  const FlopByPrecision all = flop();
  return std::accumulate(all.begin(), all.end(), 0.0);
}

double Sums::total_legacy_flop() const {
  const FlopByPrecision all = legacy_flop();
  return std::accumulate(all.begin(), all.end(), 0.0);
}

void Sums::Add(const Sums& other) {
  launches += other.launches;
  for (size_t i = 0; i < values_.size(); ++i) values_[i] += other.values_[i];
}

Sums Sums::OfOneStep(double steps) const {
  Sums step;
  step.launches = static_cast<uint64_t>(std::llround(static_cast<double>(launches) / steps));
  for (size_t i = 0; i < values_.size(); ++i) step.values_[i] = values_[i] / steps;
  return step;
}

}  // namespace rfinject::cli
