#include "cli/import/torch/recording_builder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "cli/import/torch/words.h"

namespace rfinject::cli {

uint32_t TextTable::NumberOf(std::string_view text) {
  const auto found = numbers_.find(text);
  if (found != numbers_.end()) return found->second;
  texts_.emplace_back(text);
  bytes_ += text.size();
  const auto number = static_cast<uint32_t>(texts_.size() - 1);
  numbers_.emplace(texts_.back(), number);
  return number;
}

namespace {

// "shapes" of one operator that are longer are left out.
constexpr size_t kLongestOperands = 64u << 10;

// "[3136,1,1]"
std::array<uint32_t, 3> Dimensions(std::string_view text) {
  std::array<uint32_t, 3> sizes{};
  ConsumePrefix(&text, "[");
  for (uint32_t& size : sizes) {
    const size_t end = text.find_first_of(",]");
    size = Unsigned32(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return sizes;
}

bool EndOf(const TorchEvent& event, int64_t* end) {
  return event.start && event.duration && *event.duration >= 0 &&
         !__builtin_add_overflow(*event.start, *event.duration, end);
}

}  // namespace

bool RecordingBuilder::full() const {
  constexpr uint64_t kMostTextBytes = uint64_t{1} << 30;
  return recording_.all_spans.size() + recording_.all_calls.size() + recording_.all_activities.size() +
                 recording_.counters.size() >=
             most_events_ ||
         recording_.texts.bytes() + recording_.operands.bytes() + recording_.threads.bytes() > kMostTextBytes;
}

void RecordingBuilder::Add(const TorchEvent& event) {
  constexpr size_t kMostOtherGpus = 64;
  ++recording_.events;
  const TorchKind kind = KindOf(event);
  if (kind <= TorchKind::kCall) {
    TorchSpan span = SpanOf(event, kind);
    if (!EndOf(event, &span.end)) return;
    kind == TorchKind::kCall ? AddCall(span) : AddSpan(span);
  } else if (kind <= TorchKind::kSet) {
    int64_t end = 0;
    if (EndOf(event, &end)) {
      AddActivity(ActivityOf(event, kind));
    } else {
      ++recording_.without_time;
    }
  } else if (kind == TorchKind::kCounters) {
    recording_.counters.push_back({recording_.texts.NumberOf(event.name), event.start.value_or(0), event.metrics});
  } else if (kind == TorchKind::kSamples) {
    AddSample(event);
  } else if (kind == TorchKind::kMemory) {
    recording_.memory_peak_bytes = std::max(recording_.memory_peak_bytes, event.allocated);
  } else if (kind == TorchKind::kOtherAccelerator && recording_.other_gpus.size() < kMostOtherGpus) {
    ++recording_.other_gpus[event.category];
  }
}

TorchSpan RecordingBuilder::SpanOf(const TorchEvent& event, TorchKind kind) {
  TorchSpan span;
  span.start = event.start.value_or(0);
  span.thread = recording_.threads.NumberOf(absl::StrCat(event.process, "/", event.thread));
  span.name = recording_.texts.NumberOf(NameOf(event, kind));
  if (kind == TorchKind::kCall) {
    span.external_id = event.correlation;
    return span;
  }
  span.sequence = event.sequence;
  span.external_id = event.external_id;
  if (!event.dims.empty() || !event.types.empty()) {
    // Blanks that JSON does not need are gone, and so a line break separates.
    std::string operands = absl::StrCat(event.dims, "\n", event.types, "\n", event.strides, "\n", event.values);
    // Behind the results, which no profiler writes.
    if (event.given_flop > 0 || event.given_gb > 0) {
      absl::StrAppend(&operands, "\n\n\n[", event.given_flop, ",", std::llround(1e9 * std::min(event.given_gb, 1e9)),
                      "]");
    }
    if (operands.size() <= kLongestOperands) span.operands = recording_.operands.NumberOf(operands);
  }
  span.kind = static_cast<TorchSpan::Kind>(kind);
  return span;
}

void RecordingBuilder::AddCall(const TorchSpan& call) {
  recording_.all_calls.Add({.start = call.start,
                            .end = call.end,
                            .correlation = call.external_id,
                            .thread = call.thread,
                            .name = call.name});
}

TorchActivity RecordingBuilder::ActivityOf(const TorchEvent& event, TorchKind kind) {
  TorchLaunch launch;
  launch.name = recording_.texts.NumberOf(event.name);
  launch.device = event.device;
  launch.shared_bytes = event.shared_bytes;
  launch.module = recording_.texts.NumberOf(event.module);
  launch.group = recording_.texts.NumberOf(event.group);
  launch.grid = Dimensions(event.grid);
  launch.block = Dimensions(event.block);
  const auto [known, is_new] = launches_.try_emplace(launch, static_cast<uint32_t>(recording_.launches.size()));
  if (is_new) recording_.launches.push_back(launch);
  return {.start = event.start.value_or(0),
          .duration = event.duration.value_or(0),
          .correlation = event.correlation,
          .external_id = event.external_id,
          .launch = known->second,
          .stream = event.stream,
          .kind = static_cast<TorchActivity::Kind>(static_cast<int>(kind) - static_cast<int>(TorchKind::kKernel))};
}

void RecordingBuilder::AddActivity(const TorchActivity& activity) {
  // Whether a stream's kernels may lie in one another, or are not in the order of time.
  const uint32_t device = recording_.launches[activity.launch].device;
  auto& [last, latest] = streams_.try_emplace({device, activity.stream}, INT64_MIN, INT64_MIN).first->second;
  const int64_t end = activity.start + activity.duration;
  recording_.may_overlap = recording_.may_overlap || activity.start < last || end < latest;
  last = activity.start;
  latest = std::max(latest, end);
  recording_.all_activities.Add(activity);
}

void RecordingBuilder::AddSample(const TorchEvent& event) {
  const bool known = recording_.samples.contains(event.name);
  if (event.metrics.empty() || (!known && recording_.samples.size() == kMostCountersOverTime)) return;
  TorchSamples& samples = recording_.samples[event.name];
  ++samples.count;
  samples.sum += event.metrics.front().second;
}

}  // namespace rfinject::cli
