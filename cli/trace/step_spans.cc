#include "cli/trace/step_spans.h"

#include "cli/trace/fields.h"
#include "proto/rfinject/v1/trace.pb.h"
#include "proto/wire/step_parts.h"

namespace rfinject::cli {
namespace {

template <typename Message>
StepSpan TimesOf(const Message& step) {
  const auto watched = [&step](uint32_t bit, uint64_t ns) {
    return (step.watched() & bit) != 0 ? std::optional(ns) : std::nullopt;
  };
  return {.index = step.index(),
          .start_unix_ns = step.start_unix_ns(),
          .duration_ns = step.duration_ns(),
          .data_wait_ns = watched(wire::kWatchedDataWaits, step.data_wait_ns()),
          .gpu_wait_ns = watched(wire::kWatchedGpuWaits, step.gpu_wait_ns()),
          .busy_ns = watched(wire::kWatchedGpuBusy, step.gpu_busy_ns())};
}

}  // namespace

StepSpan SpanOf(const v1::Step& step) {
  StepSpan span = TimesOf(step);
  span.samples = step.samples();
  span.armed = step.armed_group() != 0;
  return span;
}

StepSpan SpanOf(const v1::StepSpan& span) { return TimesOf(span); }

std::vector<StepSpan> ReadStepSpans(ByteSource& source) {
  std::vector<StepSpan> spans;
  FrameReader frames(source);
  while (frames.Next()) {
    FieldCursor cursor(frames.payload(), frames.payload_offset());
    for (Field field; cursor.Next(&field);) {
      if (field.number != v1::Chunk::kStepFieldNumber || field.type != WireType::kBytes) continue;
      v1::Step step;
      if (!step.ParseFromArray(field.bytes.data(), static_cast<int>(field.bytes.size()))) return spans;
      if (!step.measured() || step.start_unix_ns() <= 0) continue;
      if (spans.size() >= kMostStepSpans) return spans;
      spans.push_back(SpanOf(step));
    }
    if (!cursor.ok()) return spans;
  }
  return spans;
}

}  // namespace rfinject::cli
