// File: step_spans.h
//
// When the steps of one process began and ended. Profiles hold sums of steps; who shows single ones reads them here.
#ifndef RFINJECT_CLI_TRACE_STEP_SPANS_H_
#define RFINJECT_CLI_TRACE_STEP_SPANS_H_

#include <cstddef>
#include <vector>

#include "cli/profile/step_span.h"
#include "cli/trace/frames.h"

namespace rfinject::v1 {
class Step;
}  // namespace rfinject::v1

namespace rfinject::cli {

// As many as a process writes one by one (proto/FORMAT.md); more are in no trace of ours.
inline constexpr size_t kMostStepSpans = size_t{1} << 16;

StepSpan SpanOf(const v1::Step& step);

// The measured steps that the trace says one by one, in their order; up to what is damaged. None of a merged or an
// imported trace, which have sums.
std::vector<StepSpan> ReadStepSpans(ByteSource& source);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TRACE_STEP_SPANS_H_
