// File: results.h
//
// Finds what an operator returned, which no recording says: from its operands by the operator's own rule, else from
// what the file shows elsewhere.
#ifndef RFINJECT_CLI_IMPORT_TORCH_RESULTS_H_
#define RFINJECT_CLI_IMPORT_TORCH_RESULTS_H_

#include <cstdint>
#include <vector>

#include "cli/import/torch/operands.h"

namespace rfinject::cli {

// Adds the results to `call`; false where they cannot be known. `seen` is the shape of its first result where it was
// seen elsewhere (its gradient, or the next operator's operand), empty otherwise; a shape that the operands
// contradict is not used.
bool AddResults(const std::vector<int64_t>& seen, RecordedCall* call);

// Whether the shape that was seen elsewhere would be used: the operands alone do not tell.
bool NeedsSeenShape(const RecordedCall& call);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_TORCH_RESULTS_H_
