// File: join_execution_trace.h
//
// Gives a recording the shapes that it lacks, from the execution trace of the same program.
#ifndef RFINJECT_CLI_IMPORT_ET_JOIN_EXECUTION_TRACE_H_
#define RFINJECT_CLI_IMPORT_ET_JOIN_EXECUTION_TRACE_H_

#include <cstdint>

#include "cli/import/et/execution_trace.h"
#include "cli/import/torch/call_tree.h"
#include "cli/import/torch/recording.h"

namespace rfinject::cli {

struct JoinedCalls {
  uint64_t joined = 0, not_joined = 0;  // operators of the recording
};

// An outermost operator of the recording is that of the trace which calls the same operators in the same order. Where
// the trace has several such, the k-th of a step is the k-th; a kind that a step calls another number of times, which
// is no multiple, is left alone. What is joined of the window gets operands and results as the trace has them, which
// are added to `operands`, the recording's. `texts` are its names.
JoinedCalls JoinExecutionTrace(const ExecutionTrace& trace, const TextTable& texts, const CallTree& tree,
                               TorchWindow* window, TextTable* operands);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_ET_JOIN_EXECUTION_TRACE_H_
