// File: repeated_launches.h
//
// RepeatedLaunches of the schema names keys by ranges of ids, so that a few bytes stand for many keys.
#ifndef RFINJECT_PROTO_WIRE_REPEATED_LAUNCHES_H_
#define RFINJECT_PROTO_WIRE_REPEATED_LAUNCHES_H_

#include <cstdint>

namespace rfinject::wire {

// A longer range is damage. A range takes three bytes at least, so the work of reading stays proportional to the
// file, whoever wrote it.
inline constexpr uint32_t kMostKeysInARange = 64;

}  // namespace rfinject::wire

#endif  // RFINJECT_PROTO_WIRE_REPEATED_LAUNCHES_H_
