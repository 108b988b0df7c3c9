// File: join_times.h
//
// Puts one profiler's times in the place of another's.
#ifndef RFINJECT_CLI_IMPORT_NSYS_JOIN_TIMES_H_
#define RFINJECT_CLI_IMPORT_NSYS_JOIN_TIMES_H_

#include "absl/status/statusor.h"
#include "cli/import/imported.h"

namespace rfinject::cli {

// Puts the times of `times` (nsys) in the place of those of `counters` (ncu), kernel by kernel (name, grid, block),
// so that one run's counters stand beside undisturbed times. Warns of what differs between the two: ncu flushes
// caches and locks clocks by default, so its bytes are cold-cache bytes; and names what is in one file only. Fails
// as the first of the two that failed, and when they have no kernel in common.
absl::StatusOr<Imported> JoinTimes(absl::StatusOr<Imported> counters, const absl::StatusOr<Imported>& times);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_NSYS_JOIN_TIMES_H_
