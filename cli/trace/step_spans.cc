#include "cli/trace/step_spans.h"

#include "cli/trace/fields.h"
#include "proto/rfinject/v1/trace.pb.h"
#include "proto/wire/step_times.h"

namespace rfinject::cli {
namespace {

template <typename Message>
StepSpan TimesOf(const Message& step) {
  const wire::StepTime time = wire::TimeOf(step);
  return {.index = step.index,
          .start_unix_ns = step.start_unix_ns,
          .duration_ns = step.duration_ns,
          .data_wait_ns = time.data_wait_ns,
          .gpu_wait_ns = time.gpu_wait_ns,
          .busy_ns = time.gpu_busy_ns};
}

}  // namespace

StepSpan SpanOf(const trace::Step& step) {
  StepSpan span = TimesOf(step);
  span.samples = step.samples;
  span.armed = step.armed_group != 0;
  return span;
}

StepSpan SpanOf(const trace::StepSpan& span) { return TimesOf(span); }

trace::StepSpan MessageOf(const StepSpan& span) {
  return {.index = span.index,
          .start_unix_ns = span.start_unix_ns,
          .duration_ns = span.duration_ns,
          .data_wait_ns = span.data_wait_ns.value_or(0),
          .gpu_wait_ns = span.gpu_wait_ns.value_or(0),
          .gpu_busy_ns = span.busy_ns.value_or(0),
          .watched = (span.data_wait_ns ? wire::kWatchedDataWaits : 0) |
                     (span.gpu_wait_ns ? wire::kWatchedGpuWaits : 0) | (span.busy_ns ? wire::kWatchedGpuBusy : 0)};
}

std::vector<StepSpan> ReadStepSpans(ByteSource& source) {
  std::vector<StepSpan> spans;
  FrameReader frames(source);
  while (frames.Next()) {
    FieldCursor cursor(frames.payload(), frames.payload_offset());
    for (Field field; cursor.Next(&field);) {
      if (field.number != v1::Chunk::kStepFieldNumber || field.type != WireType::kBytes) continue;
      v1::Step message;
      trace::Step step;
      if (!message.ParseFromArray(field.bytes.data(), static_cast<int>(field.bytes.size()))) return spans;
      if (Read(message, &step) != nullptr || !step.measured || step.start_unix_ns <= 0) continue;
      if (spans.size() >= kMostStepSpans) return spans;
      spans.push_back(SpanOf(step));
    }
    if (!cursor.ok()) return spans;
  }
  return spans;
}

}  // namespace rfinject::cli
