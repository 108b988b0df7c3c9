#include "cli/import/torch/outline.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "cli/import/torch/dialect.h"

namespace rfinject::cli {
namespace {

class OutlineMaker {
 public:
  explicit OutlineMaker(const TorchRecording& recording)
      : recording_(recording),
        is_node_(recording.texts.size(), kUnknown),
        nodes_(recording.threads.size(), 0),
        others_(recording.threads.size(), 0) {}

  void Add(uint64_t index, const TorchSpan& span) {
    first_time_ = std::min(first_time_, span.start);
    const std::string& name = recording_.texts[span.name];
    if (IsNode(span.name)) nodes_[span.thread] = 1;
    if (span.kind == TorchSpan::Kind::kOperator) {
      outline_.trains = outline_.trains || IsNode(span.name);
      if (span.external_id != 0) ids_.push_back(span.external_id);
      return;
    }
    others_[span.thread] = 1;
    if (span.kind == TorchSpan::Kind::kModule) {
      outline_.has_modules = true;
      return;
    }
    const Mark mark{span.thread, span.start, -span.end, index, span.name};
    if (IsMarkedStep(name)) marked_.push_back(mark);
    if (IsOptimizerStep(name)) optimized_.push_back(mark);
  }

  RecordingOutline Finish() {
    outline_.first_time = first_time_ == INT64_MAX ? 0 : first_time_;
    outline_.engine_threads.resize(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i) outline_.engine_threads[i] = nodes_[i] != 0 && others_[i] == 0;
    outline_.operator_ids = NumberSet(std::move(ids_));
    outline_.steps_marked = !marked_.empty();
    FindSteps(outline_.steps_marked ? &marked_ : &optimized_);
    return std::move(outline_);
  }

 private:
  using Mark = std::tuple<uint32_t, int64_t, int64_t, uint64_t, uint32_t>;  // thread, start, -end, index, name

  bool IsNode(uint32_t name) {
    uint8_t& known = is_node_[name];
    if (known == kUnknown) known = IsEngineSpan(recording_.texts[name]) || IsAutogradNode(recording_.texts[name]);
    return known != 0;
  }

  // The spans that the profiler's own step() made, else from one optimizer's step to the next; those of the thread
  // that has most.
  void FindSteps(std::vector<Mark>* marks) {
    std::sort(marks->begin(), marks->end());
    std::map<uint32_t, size_t> counts;
    for (const Mark& mark : *marks) ++counts[std::get<0>(mark)];
    const auto most = std::max_element(counts.begin(), counts.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most == counts.end()) return;
    outline_.step_thread = most->first;
    for (const auto& [thread, start, negative_end, index, name] : *marks) {
      if (thread != most->first) continue;
      StepRange step{start, -negative_end, name};
      if (!outline_.steps.empty()) {
        if (start < outline_.steps.back().end) continue;  // one inside of another
        if (!outline_.steps_marked) step.start = outline_.steps.back().end;
      } else if (!outline_.steps_marked) {
        step.start = INT64_MIN;  // what came before the first optimizer's step belongs to it
      }
      outline_.steps.push_back(step);
    }
  }

  static constexpr uint8_t kUnknown = 0xFF;
  const TorchRecording& recording_;
  RecordingOutline outline_;
  int64_t first_time_ = INT64_MAX;
  std::vector<uint8_t> is_node_;         // by name
  std::vector<uint8_t> nodes_, others_;  // by thread: whether it ran nodes, and something that is no operator
  std::vector<uint64_t> ids_;
  std::vector<Mark> marked_, optimized_;
};

}  // namespace

NumberSet::NumberSet(std::vector<uint64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  for (const uint64_t number : numbers) {
    if (!ranges_.empty() && number - ranges_.back().second <= 1) {
      ranges_.back().second = number;
    } else {
      ranges_.emplace_back(number, number);
    }
  }
}

bool NumberSet::contains(uint64_t number) const {
  const auto behind = std::upper_bound(ranges_.begin(), ranges_.end(), std::pair(number, UINT64_MAX));
  return behind != ranges_.begin() && std::prev(behind)->second >= number;
}

size_t RecordingOutline::StepAt(int64_t time) const {
  const auto behind = std::upper_bound(steps.begin(), steps.end(), time,
                                       [](int64_t at, const StepRange& step) { return at < step.start; });
  if (behind == steps.begin() || time >= std::prev(behind)->end) return steps.size();
  return static_cast<size_t>(std::prev(behind) - steps.begin());
}

RecordingOutline OutlineOf(const TorchRecording& recording) {
  OutlineMaker maker(recording);
  recording.all_spans.ForEach([&maker](uint64_t index, const TorchSpan& span) { maker.Add(index, span); });
  return maker.Finish();
}

RecordingOutline OutlineOf(const TorchRecording& recording, const TorchWindow& window) {
  OutlineMaker maker(recording);
  for (uint64_t i = 0; i < window.spans.size(); ++i) maker.Add(i, window.spans[i]);
  return maker.Finish();
}

}  // namespace rfinject::cli
