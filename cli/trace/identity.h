// File: identity.h
//
// Tells which trace a file is, from its beginning: two files can hold the same sums, and adding up both would count
// them twice.
#ifndef RFINJECT_CLI_TRACE_IDENTITY_H_
#define RFINJECT_CLI_TRACE_IDENTITY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/profile/profile.h"
#include "cli/trace/frames.h"

namespace rfinject::cli {

struct TraceIdentity {
  std::vector<std::string> ids;  // Chunk.trace_id; none in traces of older versions and in imports
  bool merged = false;           // written by the command (merge, import), not by a process
  uint64_t size = 0;             // of the file, in bytes
};

// Reads no further than it must. A file that cannot be read has no ids; the function that reads it whole says why. If
// `runs` is not null, it receives what the first chunk says of its runs: what ran, and where.
TraceIdentity IdentityOf(FileSource& source, Profile* runs);

// Whether the file is a trace that the command wrote and could write again.
bool IsMergedTrace(const std::string& path);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TRACE_IDENTITY_H_
