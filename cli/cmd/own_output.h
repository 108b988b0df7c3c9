// File: own_output.h
//
// Tells whether a file that exists is an output of ours, which may be written anew, or somebody's work.
#ifndef RFINJECT_CLI_CMD_OWN_OUTPUT_H_
#define RFINJECT_CLI_CMD_OWN_OUTPUT_H_

#include <cstddef>
#include <string_view>

namespace rfinject::cli {

// As much of a file as IsOwnOutput wants to see.
inline constexpr size_t kOwnOutputBytes = 4096;

// Whether a file with this `beginning` was written by one of the formats (Format::marks), by an export or by
// `rfinject calibrate`. A test holds every format against it.
bool IsOwnOutput(std::string_view beginning);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_OWN_OUTPUT_H_
