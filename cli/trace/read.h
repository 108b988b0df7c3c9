// File: read.h
//
// Reads one trace file into a Profile. Memory is bounded: one frame of at most 16 MiB, one record (decode.h), and
// what the launch keys that were found take, up to kMaxDecodedBytes. Nothing in a file is trusted.
//
// A damaged trace is used up to the damage: every whole chunk before it counts, nothing after it does. A chunk whose
// records are refused (apply.h) is damage like any other, and no part of it counts.
#ifndef RFINJECT_CLI_TRACE_READ_H_
#define RFINJECT_CLI_TRACE_READ_H_

#include <cstdint>

#include "absl/status/status.h"
#include "cli/profile/profile.h"
#include "cli/trace/apply/apply.h"
#include "cli/trace/decode.h"
#include "cli/trace/frames.h"

namespace rfinject::cli {

// The limit for one file. 100,000 launch keys with 10 metrics each take about 200 MiB.
inline constexpr uint64_t kMaxDecodedBytes = uint64_t{2} << 30;

struct TraceContents {
  Profile profile;
  bool usable = false;    // the file's header was right; otherwise the profile is empty
  uint64_t chunks = 0;    // used
  bool finished = false;  // there was an End record
  absl::Status status;    // what stopped the reading (damage.h), if anything did
};
// Reads a trace up to its end or to the first damage. At most `max_decoded_bytes` are taken for what the trace holds;
// a trace that needs more counts as damaged.
TraceContents ReadTrace(ByteSource& source, uint64_t max_decoded_bytes = kMaxDecodedBytes);

// The content before it is a Profile: many files are read with one Decoder and added to one Accumulator.
struct TraceRecords {
  Applier applier{kMaxDecodedBytes};  // resolved
  bool usable = false;
  uint64_t chunks = 0;
  absl::Status status;
};
TraceRecords ReadRecords(ByteSource& source, Decoder* decoder, uint64_t max_decoded_bytes = kMaxDecodedBytes);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TRACE_READ_H_
