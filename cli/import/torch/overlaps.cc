#include "cli/import/torch/overlaps.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "cli/import/stream_overlaps.h"
#include "cli/import/torch/dialect.h"
#include "cli/import/torch/outline.h"
#include "cli/import/torch/words.h"

namespace rfinject::cli {

void CutOverlaps(TorchRecording* recording) {
  if (!recording->may_overlap) return;
  std::vector<OnStream> ran;
  ran.reserve(recording->all_activities.size());
  recording->all_activities.ForEach([&](uint64_t index, const TorchActivity& activity) {
    const uint64_t device = recording->launches[activity.launch].device;
    ran.push_back({.stream = device << 32 | activity.stream,
                   .start = activity.start,
                   .end = activity.start + activity.duration,
                   .index = index,
                   .correlation = activity.correlation});
  });
  const auto cut = EarlierEnds(std::move(ran), [&](const Correlations& correlations) {
    Correlations waiting;
    recording->all_calls.ForEach([&](uint64_t /*index*/, const TorchCall& call) {
      if (correlations.contains(call.correlation) && WaitsForItsStream(recording->texts[call.name])) {
        waiting.insert(call.correlation);
      }
    });
    return waiting;
  });
  if (cut.empty()) return;
  PackedList<TorchActivity> activities;
  recording->all_activities.ForEach([&](uint64_t index, const TorchActivity& activity) {
    TorchActivity kept = activity;
    if (const auto found = cut.find(index); found != cut.end()) {
      kept.duration = std::max<int64_t>(found->second - activity.start, 0);
      recording->damage.overlapping.Add(static_cast<uint64_t>(activity.duration - kept.duration),
                                        recording->texts[recording->launches[activity.launch].name]);
    }
    activities.Add(kept);
  });
  recording->all_activities = std::move(activities);
}

void CountLaunches(TorchRecording* recording) {
  if (recording->all_activities.size() == 0) return;
  std::vector<uint64_t> numbers;
  numbers.reserve(recording->all_activities.size());
  recording->all_activities.ForEach(
      [&](uint64_t /*index*/, const TorchActivity& activity) { numbers.push_back(activity.correlation); });
  const NumberSet ran(std::move(numbers));
  std::vector<int8_t> launches(recording->texts.size(), -1);  // by name, whether it launches a kernel; -1: not known
  recording->all_calls.ForEach([&](uint64_t /*index*/, const TorchCall& call) {
    int8_t& is_launch = launches[call.name];
    if (is_launch < 0) is_launch = IsKernelLaunch(recording->texts[call.name]) ? 1 : 0;
    if (is_launch == 0 || call.correlation == 0) return;
    ++recording->damage.launches;
    recording->damage.launches_without_kernel += ran.contains(call.correlation) ? 0 : 1;
  });
}

void CountClockJumps(TorchRecording* recording) {
  std::vector<std::pair<uint64_t, int64_t>> last(recording->threads.size());  // number and beginning, by thread
  TorchDamage& damage = recording->damage;
  recording->all_calls.ForEach([&](uint64_t /*index*/, const TorchCall& call) {
    auto& [number, start] = last[call.thread];
    if (call.correlation <= number) return;
    if (number != 0 && call.start < start) {
      ++damage.clock_went_back;
      damage.clock_back_ns =
          std::max(damage.clock_back_ns, static_cast<uint64_t>(start) - static_cast<uint64_t>(call.start));
    }
    number = call.correlation;
    start = call.start;
  });
}

}  // namespace rfinject::cli
