#include "collector/cupti/counter_samples.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "collector/hash.h"

namespace rfinject::cupti {
namespace {

// Returns a value that a metric of 64 bits can hold.
uint64_t ToInteger(double value) {
  return !(value > 0)    ? 0
         : value >= 9e18 ? uint64_t{9'000'000'000'000'000'000u}
                         : static_cast<uint64_t>(std::llround(value));
}

// The `i`-th of `shares` equal shares of a sum, with the remainder spread over them.
uint64_t ShareOf(uint64_t sum, uint64_t i, uint64_t shares) {
  const auto upto = [&](uint64_t n) {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(sum) * n / shares);
  };
  return upto(i + 1) - upto(i);
}

std::string_view UnitOf(std::string_view name) {
  for (const BaseMetric& metric : kBaseMetrics) {
    if (metric.name == name) return metric.unit;
  }
  if (name.find("per_second") != std::string_view::npos) return "Hz";
  return "1";
}

}  // namespace

void CounterSamples::Describe(const CounterBackend& backend) {
  columns_.clear();
  flop_metrics_.clear();
  last_flop_.clear();
  last_mix_flop_.clear();
  known_.clear();
  counted_.clear();
  keys_.SetGroups(backend.groups().size());
  flop_metrics_of_.assign(kPrecisionCount, {});
  const ChipMetrics& metrics = backend.metrics();
  std::unordered_map<std::string, int> flop_index;
  for (const auto* list : {&metrics.scalar, &metrics.tensor}) {
    for (const FlopMetric& metric : *list) {
      flop_index[metric.name] = static_cast<int>(flop_metrics_.size());
      flop_metrics_of_[static_cast<size_t>(metric.precision)].push_back(static_cast<int>(flop_metrics_.size()));
      flop_metrics_.push_back({metric.precision, metric.flop});
    }
  }
  for (const CounterGroup& group : backend.groups()) {
    std::vector<Column> columns;
    for (const std::string& name : group.metrics) {
      Column column;
      auto base = std::find_if(kBaseMetrics.begin(), kBaseMetrics.end(),
                               [&](const BaseMetric& metric) { return metric.name == name; });
      column.dram = base != kBaseMetrics.end() &&
                    (base->quantity == BaseQuantity::kDramRead || base->quantity == BaseQuantity::kDramWrite);
      column.sparse = std::any_of(metrics.sparse.begin(), metrics.sparse.end(),
                                  [&](const FlopMetric& metric) { return metric.name == name; });
      if (auto at = flop_index.find(name); at != flop_index.end()) column.flop_metric = at->second;
      column.sum = name.ends_with(".sum") && UnitOf(name) != "ns";  // a range's time is its own, not its kernels'
      // Bytes and FLOP are kept by what they mean; everything else under CUPTI's name.
      if (!column.dram && column.flop_metric < 0) column.metric = recorder_.DefineMetric(name, UnitOf(name), 1);
      columns.push_back(column);
    }
    columns_.push_back(std::move(columns));
  }
}

template <typename Add>
void CounterSamples::Read(size_t group, const double* row, std::vector<double>* last, Add add) {
  const std::vector<Column>& columns = columns_[group];
  double dram = 0;
  bool has_dram = false;
  uint32_t touched = 0;  // precisions, as bits
  if (last->empty()) last->assign(flop_metrics_.size(), -1);
  for (size_t i = 0; i < columns.size(); ++i) {
    const Column& column = columns[i];
    if (column.dram) {
      dram += row[i];
      has_dram = true;
    } else if (column.flop_metric >= 0) {
      const FlopMetricState& metric = flop_metrics_[static_cast<size_t>(column.flop_metric)];
      (*last)[static_cast<size_t>(column.flop_metric)] = row[i] * metric.flop;
      touched |= 1u << static_cast<uint32_t>(metric.precision);
    } else if (column.metric != 0) {
      add(column.metric, row[i], column.sum);
    }
  }
  if (has_dram) add(kDramBytes, dram, true);
  // A precision's FLOP may be counted by metrics of several groups. These do not vary between launches of a key, so
  // the last values of the other groups' metrics are used; until all are known the precision has no sample.
  for (uint32_t precision = 0; precision < kPrecisionCount; ++precision) {
    if ((touched >> precision & 1) == 0) continue;
    double sum = 0;
    bool known = true;
    for (int index : flop_metrics_of_[precision]) {
      known = known && (*last)[static_cast<size_t>(index)] >= 0;
      sum += (*last)[static_cast<size_t>(index)];
    }
    if (known) add(kFlopFirst + precision, sum, true);
  }
}

void CounterSamples::AddLaunch(size_t group, uint32_t key, const double* row) {
  NoteCounted(group, key);
  Read(group, row, &last_flop_[key], [&](uint32_t metric, double value, bool is_sum) {
    if (is_sum) NoteKnown(key, metric, ToInteger(value));
    AddSample(key, metric, ToInteger(value));
  });
  Flush();
}

void CounterSamples::AddRange(size_t group, const std::vector<uint32_t>& keys, const double* row) {
  if (keys.empty()) return;
  uint64_t mix = keys.size();
  for (uint32_t key : keys) mix = HashMix(mix, key);
  // Programs whose shapes change in every step launch ever new mixes of keys.
  if (last_mix_flop_.size() >= kMaxMixes) last_mix_flop_.clear();
  std::vector<Sample> sums;
  const bool alone = keys.size() == 1;
  Read(group, row, &last_mix_flop_[mix], [&](uint32_t metric, double value, bool is_sum) {
    if (alone || is_sum) sums.push_back({metric, ToInteger(value)});
  });
  const uint64_t launches = keys.size();
  const bool one_key = keys.front() == keys.back();
  for (uint64_t i = 0; i < launches; ++i) {
    if (i == 0 || keys[i] != keys[i - 1]) NoteCounted(group, keys[i]);
  }
  // The range is one sample and not as many equal ones as it has launches: it says no more than one.
  if (one_key) {
    for (const Sample& sum : sums) {
      if (sum.value % launches != 0) continue;
      NoteKnown(keys[0], sum.metric, sum.value / launches);
      AddSample(keys[0], sum.metric, sum.value / launches);
    }
    Flush();
  }
  for (uint64_t i = 0; i < launches; ++i) {
    const bool first = i == 0 || keys[i] != keys[i - 1];
    for (const Sample& sum : sums) {
      if (one_key && sum.value % launches == 0) continue;
      const uint64_t share = ShareOf(sum.value, i, launches);
      NoteKnown(keys[i], sum.metric, share);
      AddSample(keys[i], sum.metric, share);
      pending_.shared_sums = first ? 1 : 0;
    }
    Flush();
  }
}

void CounterSamples::AddRest(size_t group, uint32_t whole, uint64_t launches, const std::vector<uint32_t>& keys,
                             const double* row) {
  if (launches == 0 || whole == LaunchKeys::kNoKey) return;
  if (last_mix_flop_.size() >= kMaxMixes) last_mix_flop_.clear();
  const uint64_t mix = HashMix(HashMix(keys.size(), whole), launches);
  std::vector<Sample> rests;
  Read(group, row, &last_mix_flop_[mix], [&](uint32_t metric, double value, bool is_sum) {
    if (!is_sum) return;
    for (const uint32_t key : keys) value -= KnownMean(key, metric) * static_cast<double>(launches);
    rests.push_back({metric, ToInteger(value)});
  });
  for (uint64_t i = 0; i < launches; ++i) {
    for (const Sample& rest : rests) AddSample(whole, rest.metric, ShareOf(rest.value, i, launches));
    Flush();
  }
}

void CounterSamples::NoteCounted(size_t group, uint32_t key) {
  uint32_t& groups = counted_[key];
  const uint32_t bit = group < 32 ? uint32_t{1} << group : 0;
  if ((groups & bit) != 0) return;
  groups |= bit;
  keys_.NoteCounted(key, group);
}

void CounterSamples::NoteKnown(uint32_t key, uint32_t metric, uint64_t value) {
  const uint64_t at = uint64_t{key} << 32 | metric;
  if (known_.size() >= kMaxKnown && !known_.contains(at)) return;
  Known& known = known_[at];
  known.sum += static_cast<double>(value);
  ++known.samples;
}

double CounterSamples::KnownMean(uint32_t key, uint32_t metric) const {
  const auto known = known_.find(uint64_t{key} << 32 | metric);
  return known != known_.end() ? known->second.sum / static_cast<double>(known->second.samples) : 0;
}

void CounterSamples::AddTime(uint32_t key, uint64_t ns) {
  AddSample(key, kTime, ns);
  Flush();
}

void CounterSamples::AddSample(uint32_t key, uint32_t metric, uint64_t value) {
  if (pending_.sample_count == kMaxSamplesPerRecord) Flush();
  if (pending_.sample_count == 0) {
    pending_ = {};
    pending_.launches = 0;  // the launch itself was recorded when it happened
    pending_.identity = keys_.Identity(key);
  }
  pending_.AddSample(metric, value);
}

void CounterSamples::Flush() {
  if (pending_.sample_count != 0) recorder_.Add(pending_);
  pending_.sample_count = 0;
}

bool CounterSamples::HasDramBytes(size_t group) const {
  const std::vector<Column>& columns = columns_[group];
  return std::any_of(columns.begin(), columns.end(), [](const Column& column) { return column.dram; });
}

double CounterSamples::DramBytes(size_t group, const double* row) const {
  double sum = 0;
  for (size_t i = 0; i < columns_[group].size(); ++i) {
    if (columns_[group][i].dram) sum += row[i];
  }
  return sum;
}

bool CounterSamples::IsSparse(size_t group, const double* row) const {
  for (size_t i = 0; i < columns_[group].size(); ++i) {
    if (columns_[group][i].sparse && row[i] > 0) return true;
  }
  return false;
}

}  // namespace rfinject::cupti
