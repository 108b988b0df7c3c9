// File: found.h
//
// What of an export of nsys found no place, or was not used, and how that is said.
#ifndef RFINJECT_CLI_IMPORT_NSYS_FOUND_H_
#define RFINJECT_CLI_IMPORT_NSYS_FOUND_H_

#include <cstdint>

#include "cli/import/run_builder.h"
#include "cli/import/stream_overlaps.h"

namespace rfinject::cli {

struct NsysFound {
  uint64_t total_ns = 0;                           // of all launches
  uint64_t without_call = 0, without_call_ns = 0;  // launches, and their time, whose calls are not in the file
  LostOverlaps overlaps;
  bool too_many_to_search = false;  // for overlaps
  uint64_t ranges_not_nesting = 0;  // NvtxStartEndRange

  // Says it in the report.
  void SayIn(RunBuilder* builder) const;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_NSYS_FOUND_H_
