// File: ranges.h
//
// What the NVTX ranges of an export of nsys say: its steps, and the operators that are among them.
#ifndef RFINJECT_CLI_IMPORT_NSYS_RANGES_H_
#define RFINJECT_CLI_IMPORT_NSYS_RANGES_H_

#include <cstdint>
#include <optional>

#include "cli/import/nsys/nvtx_operators.h"
#include "cli/import/nsys/untrusted_database.h"

namespace rfinject::cli {

struct NsysRanges {
  bool known = false;        // launches can be found in ranges
  uint64_t steps = 0;        // of the thread that has most
  int64_t step_thread = 0;   // its globalTid
  bool has_shapes = false;   // ranges of operators have their operands' sizes
  uint64_t not_nesting = 0;  // ranges that begin and end anywhere (NvtxStartEndRange), which are not used
  // Where ranges have sizes, or the numbers that join the backward with the forward.
  std::optional<NvtxOperators> operators;
};

// Looks them up; `ranges` is new.
void FindNsysRanges(UntrustedDatabase* database, NsysRanges* ranges);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_NSYS_RANGES_H_
