// File: damage.h
//
// The absl::Status with which every function of this folder fails when a trace is damaged: the reason in one line,
// "byte 123: a frame is damaged (checksum)", and the offset for those who want it as a number.
#ifndef RFINJECT_CLI_TRACE_DAMAGE_H_
#define RFINJECT_CLI_TRACE_DAMAGE_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace rfinject::cli {

// Returns kDataLoss: the file is damaged from byte `offset` on. `reason` is one line.
absl::Status DamageAt(uint64_t offset, std::string_view reason);

// Returns the same for a file that ends at or after byte `offset`, where more should come: its writer was killed, or
// is still writing.
absl::Status CutAt(uint64_t offset, std::string_view reason);
// Whether CutAt made the status.
bool IsCut(const absl::Status& status);

// The offset and the reason of a status that these made; 0 and the whole message of any other.
uint64_t DamageOffset(const absl::Status& status);
std::string_view DamageReason(const absl::Status& status);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TRACE_DAMAGE_H_
