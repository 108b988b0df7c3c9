// File: step_spans.h
//
// When the steps of one process began and ended. Profiles hold sums of steps; who shows single ones reads them here.
#ifndef RFINJECT_CLI_TRACE_STEP_SPANS_H_
#define RFINJECT_CLI_TRACE_STEP_SPANS_H_

#include <vector>

#include "cli/profile/step_span.h"
#include "cli/trace/frames.h"

namespace rfinject::v1 {
class Step;
class StepSpan;
}  // namespace rfinject::v1

namespace rfinject::cli {

// The measured steps that the trace says one by one, in their order; up to what is damaged. None of a merged trace,
// which has sums, nor of an imported one, whose Runs have them.
std::vector<StepSpan> ReadStepSpans(ByteSource& source);

// What one message says. StepSpan has the fields of Step that tell when it ran.
StepSpan SpanOf(const v1::Step& step);
StepSpan SpanOf(const v1::StepSpan& span);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TRACE_STEP_SPANS_H_
