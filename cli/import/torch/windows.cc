#include "cli/import/torch/windows.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"

namespace rfinject::cli {
TorchWindows::TorchWindows(const TorchRecording& recording, const RecordingOutline& outline, uint64_t events) {
  if (events != kOneWindow) FindCuts(recording, outline, events);
  if (!cuts_.empty()) FindWindowsOfActivities(recording);
}

size_t TorchWindows::WindowAt(int64_t time) const {
  return static_cast<size_t>(std::upper_bound(cuts_.begin(), cuts_.end(), time) - cuts_.begin());
}

void TorchWindows::FindCuts(const TorchRecording& recording, const RecordingOutline& outline, uint64_t events) {
  std::vector<int64_t> begins;  // of steps, but for the first one's
  for (size_t i = 1; i < outline.steps.size(); ++i) begins.push_back(outline.steps[i].start);
  const auto behind = [&begins](int64_t time) {
    return static_cast<size_t>(std::upper_bound(begins.begin(), begins.end(), time) - begins.begin());
  };
  std::vector<uint64_t> counts(begins.size() + 1, 0);  // of events before each, and after the one before
  std::vector<int64_t> running(begins.size() + 1, 0);  // how many more operators run there than at the one before
  recording.all_spans.ForEach([&](uint64_t /*index*/, const TorchSpan& span) {
    const size_t first = behind(span.start);
    ++counts[first];
    if (span.kind != TorchSpan::Kind::kOperator) return;
    ++running[first];
    // A call may begin in the nanosecond in which its operator ends, for clocks can count in microseconds.
    --running[behind(span.end)];
  });
  constexpr uint64_t kOfCall = 2;  // most have something on the GPU
  recording.all_calls.ForEach(
      [&](uint64_t /*index*/, const TorchCall& call) { counts[behind(call.start)] += kOfCall; });
  uint64_t count = 0;
  int64_t operators = 0;
  for (size_t i = 0; i < begins.size() && cuts_.size() + 1 < kMostWindows; ++i) {
    count += counts[i];
    operators += running[i];
    if (operators != 0 || count < events) continue;
    cuts_.push_back(begins[i]);
    count = 0;
  }
}

// A call leads to the window of what it launched; without one, the operator that the profiler numbered does, else the
// time.
void TorchWindows::FindWindowsOfActivities(const TorchRecording& recording) {
  std::vector<std::pair<uint64_t, Window>> of_calls;  // by correlation
  of_calls.reserve(recording.all_calls.size());
  recording.all_calls.ForEach([&](uint64_t /*index*/, const TorchCall& call) {
    of_calls.emplace_back(call.correlation, static_cast<Window>(WindowAt(call.start)));
  });
  std::sort(of_calls.begin(), of_calls.end());
  constexpr Window kUnknown = kMostWindows;
  absl::flat_hash_map<uint64_t, Window> of_ids;
  std::vector<std::pair<uint64_t, uint64_t>> without_call;  // their places, and the numbers of their operators
  of_activities_.reserve(recording.all_activities.size());
  recording.all_activities.ForEach([&](uint64_t index, const TorchActivity& activity) {
    const auto found = std::lower_bound(of_calls.begin(), of_calls.end(), std::pair(activity.correlation, Window{0}));
    if (activity.correlation != 0 && found != of_calls.end() && found->first == activity.correlation) {
      of_activities_.push_back(found->second);
      return;
    }
    of_activities_.push_back(static_cast<Window>(WindowAt(activity.start)));
    if (activity.external_id == 0) return;
    of_ids.try_emplace(activity.external_id, kUnknown);
    without_call.emplace_back(index, activity.external_id);
  });
  decltype(of_calls)().swap(of_calls);  // its memory is needed
  if (!of_ids.empty()) {
    recording.all_spans.ForEach([&](uint64_t /*index*/, const TorchSpan& span) {
      if (span.kind != TorchSpan::Kind::kOperator || span.external_id == 0) return;
      const auto wanted = of_ids.find(span.external_id);
      if (wanted != of_ids.end() && wanted->second == kUnknown) {
        wanted->second = static_cast<Window>(WindowAt(span.start));
      }
    });
  }
  for (const auto& [index, id] : without_call) {
    if (const Window window = of_ids.at(id); window != kUnknown) of_activities_[index] = window;
  }
  for (const auto& block : recording.all_activities.blocks()) {
    const auto begin = of_activities_.begin() + static_cast<ptrdiff_t>(block.first);
    const auto [least, most] = std::minmax_element(begin, begin + block.events);
    of_blocks_.emplace_back(*least, *most);
  }
}

TorchWindow TorchWindows::Unpack(size_t window, const TorchRecording& recording) const {
  TorchWindow unpacked;
  const int64_t begin = window == 0 ? INT64_MIN : cuts_[window - 1];
  const int64_t last = window == cuts_.size() ? INT64_MAX : cuts_[window] - 1;
  const auto begins_in = [begin, last](int64_t start) { return start >= begin && start <= last; };
  for (const auto& block : recording.all_spans.blocks()) {
    if (block.start > last || block.end < begin) continue;
    PackedList<TorchSpan>::ForEachOf(block, [&](uint64_t /*index*/, const TorchSpan& span) {
      const bool reaches_in = span.kind != TorchSpan::Kind::kOperator && span.start <= last && span.end >= begin;
      if (begins_in(span.start) || reaches_in) unpacked.spans.push_back(span);
    });
  }
  for (const auto& block : recording.all_calls.blocks()) {
    if (block.start > last || block.end < begin) continue;
    PackedList<TorchCall>::ForEachOf(block, [&](uint64_t /*index*/, const TorchCall& call) {
      if (begins_in(call.start)) unpacked.calls.push_back(call);
    });
  }
  const auto& blocks = recording.all_activities.blocks();
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (!of_blocks_.empty() && (of_blocks_[i].first > window || of_blocks_[i].second < window)) continue;
    PackedList<TorchActivity>::ForEachOf(blocks[i], [&](uint64_t index, const TorchActivity& activity) {
      if (of_activities_.empty() || of_activities_[index] == window) unpacked.activities.push_back(activity);
    });
  }
  return unpacked;
}

}  // namespace rfinject::cli
