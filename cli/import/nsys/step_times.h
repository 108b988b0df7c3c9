// File: step_times.h
//
// How long the steps that NVTX ranges mark in an export of nsys took by the clock, and what took the time.
#ifndef RFINJECT_CLI_IMPORT_NSYS_STEP_TIMES_H_
#define RFINJECT_CLI_IMPORT_NSYS_STEP_TIMES_H_

#include <cstdint>
#include <functional>

#include "cli/import/nsys/untrusted_database.h"
#include "cli/import/nvtx_ranges.h"
#include "cli/profile/profile.h"

namespace rfinject::cli {

// A globalTid is its process's number times this, and the thread's own number.
inline constexpr int64_t kThreadsOfProcess = 16777216;

// Gives the ranges that nest (NvtxPushPopRange) and have an end, in the order that NvtxStack wants; false: no more.
std::function<bool(NvtxRange*)> PushPopRanges(UntrustedDatabase* database);

// Adds to `run` the steps that ranges of `thread` mark. As in our own traces a step goes from the end of the one
// before to its own end, so that loading its batch is part of it; the first one is its range.
void AddNsysSteps(int64_t thread, UntrustedDatabase* database, Run* run);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_NSYS_STEP_TIMES_H_
