// File: step_spans.h
//
// When the steps of one process began and ended. Profiles hold sums of steps; single ones are read here.
#ifndef RFINJECT_CLI_TRACE_STEP_SPANS_H_
#define RFINJECT_CLI_TRACE_STEP_SPANS_H_

#include <vector>

#include "cli/profile/step_span.h"
#include "cli/trace/frames.h"
#include "proto/rfinject/v1/trace.schema.h"

namespace rfinject::cli {

// The measured steps that the trace says one by one, in their order; up to what is damaged. None of a merged trace,
// which has sums, nor of an imported one, whose Runs have them.
std::vector<StepSpan> ReadStepSpans(ByteSource& source);

// What one message says, and the message that says it. StepSpan has the fields of Step that tell when it ran.
StepSpan SpanOf(const trace::Step& step);
StepSpan SpanOf(const trace::StepSpan& span);
trace::StepSpan MessageOf(const StepSpan& span);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TRACE_STEP_SPANS_H_
