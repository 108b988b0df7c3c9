// File: encode.h
//
// Writes a Profile as a trace file. Reading it back gives the same Profile, and equal Profiles give equal bytes.
#ifndef RFINJECT_CLI_TRACE_ENCODE_H_
#define RFINJECT_CLI_TRACE_ENCODE_H_

#include <cstddef>
#include <functional>

#include "absl/status/status.h"
#include "cli/profile/profile.h"

namespace rfinject::cli {

// Takes the next bytes of the file.
using ByteSink = std::function<absl::Status(const void* data, size_t size)>;

// Writes the file header and frames of about 1 MiB. Fails where the sink does, with its status, and with
// kResourceExhausted where a record is larger than any reader takes.
absl::Status WriteTrace(const Profile& profile, const ByteSink& sink);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TRACE_ENCODE_H_
