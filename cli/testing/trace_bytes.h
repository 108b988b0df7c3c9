// File: trace_bytes.h
//
// Traces in memory, for tests: framed around payloads that a test makes itself, or written from a Profile.
#ifndef RFINJECT_CLI_TESTING_TRACE_BYTES_H_
#define RFINJECT_CLI_TESTING_TRACE_BYTES_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cli/profile/profile.h"

namespace rfinject::cli::testing {

// A file header.
std::vector<uint8_t> EmptyTrace();
// Appends a frame with a right checksum around `payload`.
void AppendFrame(std::vector<uint8_t>& trace, uint32_t sequence, std::span<const uint8_t> payload);
void AppendFrame(std::vector<uint8_t>& trace, uint32_t sequence, std::string_view payload);
std::vector<uint8_t> WrittenTrace(const Profile& profile);

}  // namespace rfinject::cli::testing

#endif  // RFINJECT_CLI_TESTING_TRACE_BYTES_H_
