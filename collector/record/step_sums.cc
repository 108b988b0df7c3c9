#include "collector/record/step_sums.h"

#include <algorithm>

#include "proto/wire/sum_code.h"

namespace rfinject {

void StepSums::Add(uint64_t step, uint32_t key, const Sample& sample) {
  for (Series& series : series_) {
    if (series.metric != sample.metric || series.steps >= kMaxSteps) continue;
    if (step < series.open || (step == series.open && series.closed)) continue;
    if (step > series.open) {
      if (!series.keys.empty()) Complete(&series);
      series.open = step;
      series.closed = series.steps >= kMaxSteps;
      if (series.closed) continue;
    }
    if (series.sums.size() <= key) {
      const size_t size = std::max<size_t>(key + 1, 2 * series.sums.size());
      series.codes.resize(size);
      series.has.resize(size);
      series.sums.resize(size);
    }
    if (!series.has[key]) {
      series.keys.push_back(key);
      series.has[key] = true;
      series.sums[key] = 0;
    }
    uint64_t& sum = series.sums[key];
    if (__builtin_add_overflow(sum, sample.value, &sum)) sum = UINT64_MAX;
  }
}

void StepSums::CompleteAll() {
  for (Series& series : series_) {
    if (!series.keys.empty()) Complete(&series);
    series.closed = true;
  }
}

void StepSums::Complete(Series* series) {
  std::sort(series->keys.begin(), series->keys.end());
  SampledStep done;
  done.step = series->open;
  done.metric = series->metric;
  if (series->keys != series->last_keys) {
    uint32_t before = 0;
    for (const uint32_t key : series->keys) {
      done.key.push_back(key - before);
      before = key;
    }
  }
  for (const uint32_t key : series->keys) {
    const uint32_t code = wire::SumCode(series->sums[key]);
    done.change.push_back(wire::FoldSign(static_cast<int32_t>(code) - static_cast<int32_t>(series->codes[key])));
    series->codes[key] = code;
    series->has[key] = false;
  }
  series->last_keys.swap(series->keys);
  series->keys.clear();
  ++series->steps;
  complete_.push_back(std::move(done));
}

}  // namespace rfinject
