// File: records.h
//
// One function for each kind of record that is not merely kept (apply.cc has these): it adds what the record says to
// the State of its file, and returns damage where the record contradicts itself or what came before; the State must
// not be used any more then. The functions of one subject are in one file.
#ifndef RFINJECT_CLI_TRACE_APPLY_RECORDS_H_
#define RFINJECT_CLI_TRACE_APPLY_RECORDS_H_

#include <string>

#include "absl/status/status.h"
#include "cli/trace/apply/state.h"
#include "cli/trace/decode.h"

namespace rfinject::cli {

// facts.cc
absl::Status Apply(const std::string& trace_id, const Record& record, State* state);
absl::Status Apply(const v1::Run& message, const Record& record, State* state);
absl::Status Apply(const v1::End& message, const Record& record, State* state);
// layers.cc
absl::Status Apply(const v1::Model& message, const Record& record, State* state);
absl::Status Apply(const v1::Layer& message, const Record& record, State* state);
// definitions.cc
absl::Status Apply(const v1::Name& message, const Record& record, State* state);
absl::Status Apply(const v1::Metric& message, const Record& record, State* state);
absl::Status Apply(const v1::NativeModule& message, const Record& record, State* state);
absl::Status Apply(const v1::NativeStack& message, const Record& record, State* state);
absl::Status Apply(const v1::SourceLine& message, const Record& record, State* state);
// launches.cc
absl::Status Apply(const v1::LaunchKey& message, const Record& record, State* state);
absl::Status ApplyKeyStats(const Record& record, State* state);
absl::Status Apply(const v1::RepeatedLaunches& message, const Record& record, State* state);
// operators.cc
absl::Status Apply(const v1::OperatorWork& message, const Record& record, State* state);
// timelines.cc
absl::Status Apply(const v1::StepTimeline& message, const Record& record, State* state);
// samples.cc
absl::Status Apply(const v1::SampledStep& message, const Record& record, State* state);
// steps.cc
absl::Status Apply(const v1::Step& message, const Record& record, State* state);
absl::Status Apply(const v1::StepStats& message, const Record& record, State* state);
// Adds a measured step to the sums of its run. Returns how many bytes that takes, roughly.
uint64_t AddMeasuredStep(const trace::Step& step, RunState* run);
absl::Status Apply(const v1::PmWindow& message, const Record& record, State* state);
// iterations.cc
absl::Status Apply(const v1::StepLaunches& message, const Record& record, State* state);
// memory.cc
absl::Status Apply(const v1::MemoryPeak& message, const Record& record, State* state);

// --- When the last record was applied, what only the whole file says becomes part of the Runs, in this order.
void FinishLayers(State* state);     // layers.cc: which model a run is of
void FinishSteps(State* state);      // iterations.cc: which steps are in complete iterations
void FinishTimes(State* state);      // times.cc: how long a step takes, by whose clock, and what counting cost
void FinishFacts(State* state);      // facts.cc: what a process is, and which GPU it ran on
void FinishSamples(State* state);    // samples.cc: which steps were sampled, and what durations of steps show
void FinishMemory(State* state);     // memory.cc: places by name
void FinishOperators(State* state);  // operators.cc: what launches compute
void FinishTimelines(State* state);  // timelines.cc: what ran, by name

// Keeps a window if it is among the first of its run (steps.cc).
void KeepPmWindow(PmWindowInfo window, Run* run);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TRACE_APPLY_RECORDS_H_
