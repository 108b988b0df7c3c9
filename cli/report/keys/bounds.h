// File: bounds.h
//
// What a machine needs for the work of one launch key at least, and which of its limits holds the key back.
#ifndef RFINJECT_CLI_REPORT_KEYS_BOUNDS_H_
#define RFINJECT_CLI_REPORT_KEYS_BOUNDS_H_

#include "cli/model/roofline.h"
#include "cli/report/keys/quantity.h"

namespace rfinject::cli {

// Sets the least times of one launch key's sums, or of anything that runs as one kernel. FLOP on a path that the
// machine lacks cannot be held against a roof of it: they are left out, and R003 names them.
void AddLeastTimes(const Machine& machine, Sums& sums);

// Says what holds back one launch key, whose least times must be set: launching where the GPU waits for its launches
// (queue.h); else bytes, arithmetic or a link.
void AddBoundTime(bool waited_for, Sums& sums);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_KEYS_BOUNDS_H_
