// File: trace_reader.h
//
// One trace file -> Profile. Memory is bounded: one frame of at most 16 MiB, and what the launch keys that were found
// take, up to kMaxDecodedBytes. Nothing in a file is trusted.
//
// A damaged trace is used up to the damage: every whole chunk before it counts, nothing after it does. A chunk whose
// checksum is right but which contradicts itself or what came before (an id that was never defined, an id defined
// twice) is damage like any other; then not even a part of that chunk counts.
#ifndef RFINJECT_CLI_READER_TRACE_READER_H_
#define RFINJECT_CLI_READER_TRACE_READER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "cli/profile/profile.h"
#include "cli/reader/frames.h"

namespace rfinject::cli {

// A record (one field of a Chunk) that is longer is damage.
inline constexpr size_t kMaxRecordSize = 4u << 20;
// Of one file. 100,000 launch keys with 10 metrics each take about 200 MiB.
inline constexpr uint64_t kMaxDecodedBytes = uint64_t{2} << 30;

struct TraceContents {
  Profile profile;
  bool usable = false;           // the file's header was right; otherwise the profile is empty
  uint64_t chunks = 0;           // used
  bool finished = false;         // there was an End record
  std::optional<Damage> damage;  // what stopped the reading, if anything did
};
TraceContents ReadTrace(ByteSource& source, uint64_t max_decoded_bytes = kMaxDecodedBytes);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_READER_TRACE_READER_H_
