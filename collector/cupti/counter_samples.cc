#include "collector/cupti/counter_samples.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace rfinject::cupti {
namespace {

// Returns a value that a metric of 64 bits can hold.
uint64_t ToInteger(double value) {
  return !(value > 0)    ? 0
         : value >= 9e18 ? uint64_t{9'000'000'000'000'000'000u}
                         : static_cast<uint64_t>(std::llround(value));
}

std::string_view UnitOf(std::string_view name) {
  for (const BaseMetric& metric : kBaseMetrics) {
    if (metric.name == name) return metric.unit;
  }
  if (name.find("per_second") != std::string_view::npos) return "Hz";
  return "1";
}

uint64_t PlaceOf(uint32_t key, uint32_t metric) { return uint64_t{key} << 32 | metric; }

}  // namespace

void CounterSamples::Describe(const CounterBackend& backend) {
  columns_.clear();
  flop_metrics_.clear();
  flop_metrics_of_.assign(kPrecisionCount, {});
  half_fma_ = recorder_.DefineMetric(kMetricHalfFma, "FLOP", 1);
  const ChipMetrics& metrics = backend.metrics();
  std::unordered_map<std::string, int> flop_index;
  for (const auto* list : {&metrics.scalar, &metrics.tensor}) {
    for (const FlopMetric& metric : *list) {
      flop_index[metric.name] = static_cast<int>(flop_metrics_.size());
      flop_metrics_of_[static_cast<size_t>(metric.precision)].push_back(static_cast<int>(flop_metrics_.size()));
      const bool half_fma = metric.precision == Precision::kFp16 && metric.name.find("hfma") != std::string::npos;
      flop_metrics_.push_back({metric.precision, metric.flop, half_fma});
    }
  }
  for (const CounterGroup& group : backend.groups()) {
    std::vector<Column>& columns = columns_.emplace_back();
    for (const std::string& name : group.metrics) {
      Column column;
      column.dram = std::any_of(kDramCounters.begin(), kDramCounters.end(), [&name](const DramCounters& dram) {
        return dram.read == name || dram.write == name;
      });
      column.sparse = std::any_of(metrics.sparse.begin(), metrics.sparse.end(),
                                  [&](const FlopMetric& metric) { return metric.name == name; });
      if (auto at = flop_index.find(name); at != flop_index.end()) column.flop_metric = at->second;
      column.tensor_activity = group.kind == GroupKind::kHardware && name == kTensorCyclesMetric;
      // Bytes and FLOP are kept by what they mean; everything else under CUPTI's name.
      if (!column.dram && !column.tensor_activity && column.flop_metric < 0)
        column.metric = recorder_.DefineMetric(name, UnitOf(name), 1);
      columns.push_back(column);
    }
  }
}

template <typename Add>
void CounterSamples::Read(size_t group, std::span<const double> row, uint32_t key, Add add) {
  const std::vector<Column>& columns = columns_[group];
  std::vector<double>& last = last_flop_[key];
  if (last.empty()) last.assign(flop_metrics_.size(), -1);
  double dram = 0;
  bool has_dram = false;
  uint32_t touched = 0;  // precisions, as bits
  for (size_t i = 0; i < columns.size(); ++i) {
    const Column& column = columns[i];
    if (column.dram) {
      dram += row[i];
      has_dram = true;
    } else if (column.flop_metric >= 0) {
      const FlopMetricState& metric = flop_metrics_[static_cast<size_t>(column.flop_metric)];
      last[static_cast<size_t>(column.flop_metric)] = row[i] * metric.flop;
      touched |= 1u << static_cast<uint32_t>(metric.precision);
    } else if (column.metric != 0) {
      add(column.metric, row[i]);
    }
  }
  if (has_dram) add(kDramBytes, dram);
  // A precision's FLOP may be counted by metrics of several groups. These do not vary between launches of a key, so
  // the last values of the other groups' metrics are used; until all are known the precision has no sample.
  for (uint32_t precision = 0; precision < kPrecisionCount; ++precision) {
    if ((touched >> precision & 1) == 0) continue;
    double sum = 0, half_fma = 0;
    bool known = true;
    for (int index : flop_metrics_of_[precision]) {
      const double flop = last[static_cast<size_t>(index)];
      known = known && flop >= 0;
      sum += flop;
      if (flop_metrics_[static_cast<size_t>(index)].half_fma) half_fma += flop;
    }
    if (!known) continue;
    add(kFlopFirst + precision, sum);
    if (precision == static_cast<uint32_t>(Precision::kFp16)) add(half_fma_, half_fma);
  }
}

double CounterSamples::AddLaunch(size_t group, uint32_t key, std::span<const uint32_t> twins,
                                 std::span<const double> row) {
  const auto add = [&](uint32_t of) {
    Read(group, row, of, [&](uint32_t metric, double value) {
      known_[PlaceOf(of, metric)] = value;
      AddSample(of, Recorder::kOfNoStep, metric, ToInteger(value));
    });
  };
  if (std::find(twins.begin(), twins.end(), key) == twins.end()) add(key);
  for (const uint32_t twin : twins) add(twin);
  return SumOf(group, row);
}

double CounterSamples::AddRest(size_t group, uint32_t whole, std::span<const uint32_t> keys,
                               std::span<const double> row) {
  Read(group, row, whole, [&](uint32_t metric, double value) {
    for (const uint32_t key : keys) {
      if (const auto known = known_.find(PlaceOf(key, metric)); known != known_.end()) value -= known->second;
    }
    AddSample(whole, Recorder::kOfNoStep, metric, ToInteger(value));
  });
  return SumOf(group, row);
}

void CounterSamples::AddSample(uint32_t key, uint64_t step, uint32_t metric, uint64_t value) {
  LaunchRecord record;
  record.launches = 0;  // the launch itself was recorded when it happened
  record.identity = keys_.Identity(key);
  record.AddSample(metric, value);
  recorder_.AddSamples(record, step);
}

double CounterSamples::SumOf(size_t group, std::span<const double> row) const {
  double sum = 0;
  for (size_t i = 0; i < row.size(); ++i) sum += columns_[group][i].tensor_activity ? 0 : row[i];
  return sum;
}

bool CounterSamples::IsSparse(size_t group, std::span<const double> row) const {
  for (size_t i = 0; i < columns_[group].size(); ++i) {
    if (columns_[group][i].sparse && row[i] > 0) return true;
  }
  return false;
}

bool CounterSamples::TensorRested(size_t group, std::span<const double> row) const {
  for (size_t i = 0; i < row.size(); ++i) {
    if (columns_[group][i].tensor_activity) return row[i] == 0;
  }
  return false;
}

}  // namespace rfinject::cupti
