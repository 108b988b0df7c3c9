#include "cli/import/torch/overlaps.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cli/import/torch/dialect.h"
#include "cli/import/torch/outline.h"

namespace rfinject::cli {

void CutOverlaps(TorchRecording* recording) {
  if (!recording->may_overlap) return;
  // Device, stream, when it began, and its number.
  std::vector<std::tuple<uint32_t, uint32_t, int64_t, uint64_t>> order;
  std::vector<int64_t> ends;
  order.reserve(recording->all_activities.size());
  recording->all_activities.ForEach([&](uint64_t index, const TorchActivity& activity) {
    order.emplace_back(recording->launches[activity.launch].device, activity.stream, activity.start, index);
    ends.push_back(activity.start + activity.duration);
  });
  std::sort(order.begin(), order.end());
  absl::flat_hash_map<uint64_t, int64_t> cut;  // by number: where it ends
  // The one whose end is the latest so far, the first that began in it, and how many ended in it. One kernel in
  // another does not tell which of the two is wrong.
  size_t open = 0, first_in = 0;
  int inside = 0;
  constexpr int kSeveral = 2;
  for (size_t i = 1; i < order.size(); ++i) {
    const auto& [device, stream, start, index] = order[i];
    const bool same = std::get<0>(order[open]) == device && std::get<1>(order[open]) == stream;
    const int64_t open_end = ends[std::get<3>(order[open])];
    if (!same || start >= open_end) {
      open = i;
      first_in = 0;
      inside = 0;
      continue;
    }
    if (first_in == 0) first_in = i;
    // Times of whole microseconds make a kernel of no length end where another does.
    const bool is_inside = ends[index] < open_end && ends[index] > start && start > std::get<2>(order[open]);
    inside += is_inside ? 1 : 0;
    const bool wrong = inside >= kSeveral;
    if (wrong) cut[std::get<3>(order[open])] = std::get<2>(order[first_in]);
    if (wrong || ends[index] >= open_end) {
      open = i;
      first_in = 0;
      inside = 0;
    }
  }
  if (cut.empty()) return;
  PackedList<TorchActivity> activities;
  int64_t most = 0;
  TorchDamage& damage = recording->damage;
  recording->all_activities.ForEach([&](uint64_t index, const TorchActivity& activity) {
    TorchActivity kept = activity;
    if (const auto found = cut.find(index); found != cut.end()) {
      kept.duration = std::max<int64_t>(found->second - activity.start, 0);
      const int64_t lost = activity.duration - kept.duration;
      ++damage.overlapping;
      damage.overlapping_ns += static_cast<uint64_t>(lost);
      if (lost > most) damage.overlapping_name = recording->launches[activity.launch].name;
      most = std::max(most, lost);
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
