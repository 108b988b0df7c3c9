// File: trace_writer.h
//
// Profile -> trace file. Reading it back gives the same Profile, and equal Profiles give equal bytes.
#ifndef RFINJECT_CLI_PROFILE_TRACE_WRITER_H_
#define RFINJECT_CLI_PROFILE_TRACE_WRITER_H_

#include <cstddef>
#include <functional>
#include <string>

#include "cli/profile/profile.h"

namespace rfinject::cli {

// Takes the next bytes of the file; false when they could not be written.
using ByteSink = std::function<bool(const void* data, size_t size)>;

// Writes the file header and frames of about 1 MiB. Empty on success; otherwise why not (the sink's own failures are
// "could not be written": the sink knows more).
std::string WriteTrace(const Profile& profile, const ByteSink& sink);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PROFILE_TRACE_WRITER_H_
