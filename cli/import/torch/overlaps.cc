#include "cli/import/torch/overlaps.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "cli/import/torch/dialect.h"
#include "cli/import/torch/outline.h"
#include "cli/import/torch/words.h"

namespace rfinject::cli {

namespace {

// Whether a call queues work that begins when what is in its stream has ended. A kernel that is launched with
// attributes may begin before that (CUDA C++ Programming Guide, "Programmatic Dependent Launch"), and so may a
// graph's.
bool WaitsForItsStream(std::string_view call) {
  return call.starts_with("cu") && !Contains(call, "LaunchKernelEx") && !Contains(call, "Graph");
}

// What begins while another of its stream runs, by when: device, stream, beginning and number.
using InStream = std::tuple<uint32_t, uint32_t, int64_t, uint64_t>;

// The correlations of calls that wait for their stream, among those of `correlations`.
absl::flat_hash_set<uint64_t> Waiting(const TorchRecording& recording,
                                      const absl::flat_hash_set<uint64_t>& correlations) {
  absl::flat_hash_set<uint64_t> waiting;
  recording.all_calls.ForEach([&](uint64_t /*index*/, const TorchCall& call) {
    if (correlations.contains(call.correlation) && WaitsForItsStream(recording.texts[call.name])) {
      waiting.insert(call.correlation);
    }
  });
  return waiting;
}

// Where activities end that others show to have ended earlier, by their number.
absl::flat_hash_map<uint64_t, int64_t> EarlierEnds(const std::vector<InStream>& order,
                                                   const std::vector<int64_t>& ends,
                                                   const absl::flat_hash_set<uint64_t>& waits) {
  absl::flat_hash_map<uint64_t, int64_t> cut;
  // The one whose end is the latest so far, the first that began in it, and how many ended in it.
  size_t open = 0, first_in = 0;
  int inside = 0;
  constexpr int kSeveral = 2;
  for (size_t i = 1; i < order.size(); ++i) {
    const auto& [device, stream, start, index] = order[i];
    const auto& [open_device, open_stream, open_start, open_index] = order[open];
    const int64_t open_end = ends[open_index];
    bool next = open_device != device || open_stream != stream || start >= open_end;
    if (!next) {
      if (first_in == 0) first_in = i;
      // Times of whole microseconds make a kernel of no length end where another does. One kernel in another does not
      // tell which of the two is wrong, where nothing says how it was launched.
      inside += ends[index] < open_end && ends[index] > start && start > open_start ? 1 : 0;
      if (waits.contains(index) && start > open_start) {
        cut[open_index] = start;
      } else if (inside >= kSeveral) {
        cut[open_index] = std::get<2>(order[first_in]);
      }
      next = cut.contains(open_index) || ends[index] >= open_end;
    }
    if (!next) continue;
    open = i;
    first_in = 0;
    inside = 0;
  }
  return cut;
}

}  // namespace

void CutOverlaps(TorchRecording* recording) {
  if (!recording->may_overlap) return;
  std::vector<InStream> order;
  std::vector<int64_t> ends;
  std::vector<uint64_t> correlations;
  order.reserve(recording->all_activities.size());
  recording->all_activities.ForEach([&](uint64_t index, const TorchActivity& activity) {
    order.emplace_back(recording->launches[activity.launch].device, activity.stream, activity.start, index);
    ends.push_back(activity.start + activity.duration);
    correlations.push_back(activity.correlation);
  });
  std::sort(order.begin(), order.end());
  // Clocks of whole microseconds are no overlap.
  constexpr int64_t kClockNs = 1000;
  absl::flat_hash_set<uint64_t> early;
  std::vector<uint64_t> early_index;
  int64_t latest = INT64_MIN;
  for (size_t i = 1; i < order.size(); ++i) {
    const auto& [device, stream, start, index] = order[i];
    const auto& [last_device, last_stream, last_start, last_index] = order[i - 1];
    latest = device == last_device && stream == last_stream ? std::max(latest, ends[last_index]) : INT64_MIN;
    if (latest == INT64_MIN || start >= latest - kClockNs) continue;
    early.insert(correlations[index]);
    early_index.push_back(index);
  }
  const absl::flat_hash_set<uint64_t> waiting = Waiting(*recording, early);
  absl::flat_hash_set<uint64_t> waits;
  for (const uint64_t index : early_index) {
    if (waiting.contains(correlations[index])) waits.insert(index);
  }
  const absl::flat_hash_map<uint64_t, int64_t> cut = EarlierEnds(order, ends, waits);
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
