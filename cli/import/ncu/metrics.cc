#include "cli/import/ncu/metrics.h"

#include <algorithm>
#include <utility>

#include "gpus/chips.h"
#include "gpus/counters.h"

namespace rfinject::cli {
namespace {

// The human names of the details page, and what they are. (Names of sections/*.section of Nsight Compute.)
struct HumanName {
  std::string_view section, name, metric;
};
constexpr HumanName kHumanNames[] = {
    {"GPU Speed Of Light Throughput", "Duration", kGpuTimeMetric},
    {"GPU Speed Of Light", "Duration", kGpuTimeMetric},
    {"GPU Speed Of Light Throughput", "SM Frequency", kSmClockMetric},
    {"GPU Speed Of Light", "SM Frequency", kSmClockMetric},
};

KeptMetric Count(std::string_view name) { return {.name = std::string(name), .unit = "count"}; }
KeptMetric Bytes(std::string_view name) {
  return {.name = std::string(name), .dimension = Dimension::kBytes, .unit = "byte"};
}
KeptMetric Nanoseconds(std::string_view name) {
  return {.name = std::string(name), .dimension = Dimension::kSeconds, .unit = "ns", .to_integer = 1e9};
}

KeptMetric Kept(const BaseMetric& metric) {
  if (metric.unit == "byte") return Bytes(metric.name);
  if (metric.unit == "ns") return Nanoseconds(metric.name);
  return Count(metric.name);
}

}  // namespace

const NcuMetrics& NcuMetrics::Get() {
  static const NcuMetrics* const metrics = new NcuMetrics;
  return *metrics;
}

NcuMetrics::NcuMetrics() {
  for (const BaseMetric& metric : kBaseMetrics) Add(Kept(metric));
  Add(Bytes(kDramTotalMetric));
  Add({.name = std::string(kDramRateMetric), .dimension = Dimension::kBytesPerSecond, .unit = "byte/s"});
  Add({.name = std::string(kSmClockMetric), .dimension = Dimension::kPerSecond, .unit = "hz"});
  for (const Chip& chip : AllChips()) {
    for (const FlopTerm& term : chip.flop) Add(Count(term.metric));
  }
  for (const AlternativeCounter& counter : kAlternativeCounters) Add(Count(counter.term.metric));
  for (const std::string_view name : kTensorInstructionMetrics) Add(Count(name));

  gpu_time_ = Find({}, kGpuTimeMetric);
  dram_rate_ = Find({}, kDramRateMetric);
  dram_total_ = Find({}, kDramTotalMetric);
  dram_bytes_.push_back(dram_total_);
  for (const DramCounters& counters : kDramCounters) {
    dram_bytes_.push_back(Find({}, counters.read));
    dram_bytes_.push_back(Find({}, counters.write));
  }
}

void NcuMetrics::Add(KeptMetric metric) {
  const auto [entry, is_new] = index_.try_emplace(metric.name, static_cast<int>(metrics_.size()));
  if (is_new) metrics_.push_back(std::move(metric));  // the chips share most of their counters
}

int NcuMetrics::Find(std::string_view section, std::string_view name) const {
  for (const HumanName& human : kHumanNames) {
    if (human.name == name && human.section == section) return Find({}, human.metric);
  }
  // The details page, "Memory Workload Analysis": a rate, which times the duration is the kernel's traffic.
  if (name == "Memory Throughput" && section.find("Memory Workload") != std::string_view::npos)
    return Find({}, kDramRateMetric);
  if (name.ends_with(".max") || name.ends_with(".avg") || name.ends_with(".min")) {
    if (name.starts_with(kGpuTimePrefix)) return Find({}, kGpuTimeMetric);
  }
  if (name == kGpuTimeUserMetric) return Find({}, kGpuTimeMetric);
  const auto found = index_.find(std::string(name));
  if (found != index_.end()) return found->second;
  // ncu leaves ".sum" out of derived metrics.
  const auto with_sum = index_.find(std::string(name) + ".sum");
  return with_sum != index_.end() && name.starts_with("derived__") ? with_sum->second : -1;
}

std::optional<double> NcuMetrics::Factor(int i, std::string_view unit, bool assume_base) const {
  const KeptMetric& kept = (*this)[i];
  if (assume_base && unit.empty()) {
    // ncu's base unit of time is the nanosecond.
    return kept.dimension == Dimension::kSeconds ? 1 : kept.to_integer;
  }
  const std::optional<UnitScale> scale = ParseUnit(unit);
  if (!scale) return std::nullopt;
  // A raw table of old versions leaves the unit of counts and bytes empty.
  const bool plain_bytes = unit.empty() && kept.dimension == Dimension::kBytes;
  if (scale->dimension != kept.dimension && !plain_bytes) return std::nullopt;
  return scale->factor * kept.to_integer;
}

bool NcuMetrics::IsDramBytes(int i) const { return std::ranges::find(dram_bytes_, i) != dram_bytes_.end(); }

}  // namespace rfinject::cli
