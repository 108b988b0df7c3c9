// File: files.h
//
// Finds the trace files that the user means.
#ifndef RFINJECT_CLI_TRACE_FILES_H_
#define RFINJECT_CLI_TRACE_FILES_H_

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace rfinject::cli {

// Returns a file that is named, whatever its ending is, and of a folder all *.rfx in it and below, sorted. Links are
// followed where the user names them and not within folders.
absl::StatusOr<std::vector<std::string>> FindTraces(const std::string& path);

// Whether the file begins as a trace does, whatever it is called. Never waits, as opening a FIFO would.
bool IsTraceFile(const std::string& path);

// When a file last changed, in ns since 1970. Its owner may set that to any time; what no such number can hold
// becomes the nearest that one can.
int64_t ChangedUnixNs(const struct stat& status);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TRACE_FILES_H_
