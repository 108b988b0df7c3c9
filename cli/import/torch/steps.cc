#include <algorithm>

#include "cli/import/nvtx_ranges.h"
#include "cli/import/torch/dialect.h"
#include "cli/import/torch/stages.h"
#include "gpus/kernel_names.h"

namespace rfinject::cli {
namespace {

bool IsCommunication(const TorchRecording& recording, const TorchActivity& activity) {
  return activity.kind == TorchActivity::Kind::kKernel &&
         IsCommunicationKernel(recording.texts[recording.launches[activity.launch].name]);
}

void SortByStart(std::vector<Interval>* list) {
  std::sort(list->begin(), list->end(), [](const Interval& a, const Interval& b) { return a.start < b.start; });
}

// When something ran on the GPU; without communication, something else.
std::vector<Interval> BusyIntervals(const TorchRecording& recording, bool with_communication) {
  std::vector<Interval> busy;
  busy.reserve(recording.all_activities.size());
  recording.all_activities.ForEach([&](uint64_t /*index*/, const TorchActivity& activity) {
    if (!with_communication && IsCommunication(recording, activity)) return;
    busy.push_back({activity.start, activity.start + activity.duration});
  });
  SortByStart(&busy);
  return busy;
}

}  // namespace

TimedSteps TimeSteps(const TorchRecording& recording, const RecordingOutline& outline) {
  TimedSteps timed;
  std::vector<TimedStep>& steps = timed.steps;
  for (const StepRange& range : outline.steps) {
    if (steps.size() == kMostTimedSteps) break;
    TimedStep step;
    step.at = {steps.empty() ? std::max(range.start, outline.first_time) : steps.back().at.end, range.end};
    steps.push_back(step);
  }
  std::vector<Interval> data, waits;
  const uint32_t thread = outline.step_thread;
  recording.all_spans.ForEach([&](uint64_t /*index*/, const TorchSpan& span) {
    if (span.kind != TorchSpan::Kind::kAnnotation || span.thread != thread) return;
    if (IsLoaderName(recording.texts[span.name])) data.push_back({span.start, span.end});
  });
  recording.all_calls.ForEach([&](uint64_t /*index*/, const TorchCall& call) {
    if (call.thread != thread) return;
    const std::string& name = recording.texts[call.name];
    if (WaitsForGpu(name)) waits.push_back({call.start, call.end});
  });
  for (std::vector<Interval>* list : {&data, &waits}) SortByStart(list);
  std::vector<Interval> busy = BusyIntervals(recording, true);
  AddOverlap(IntervalsOf(busy), &TimedStep::busy_ns, &steps);
  AddOverlap(Merged(IntervalsOf(busy), IntervalsOf(data)), &TimedStep::busy_or_data_ns, &steps);
  const bool communicates = std::any_of(
      recording.launches.begin(), recording.launches.end(),
      [&recording](const TorchLaunch& launch) { return IsCommunicationKernel(recording.texts[launch.name]); });
  if (communicates) {
    busy.clear();
    busy = BusyIntervals(recording, false);
    AddOverlap(IntervalsOf(busy), &TimedStep::working_ns, &steps);
  }
  AddOverlap(IntervalsOf(data), &TimedStep::data_ns, &steps);
  AddOverlap(IntervalsOf(waits), &TimedStep::gpu_wait_ns, &steps);
  timed.shown = {.data = !data.empty(), .calls = recording.all_calls.size() > 0, .communication = communicates};
  return timed;
}

}  // namespace rfinject::cli
