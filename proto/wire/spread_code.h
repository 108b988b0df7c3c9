// File: spread_code.h
//
// The code of a duration in Spread.code: the range that it lies in, of 64 in each octave. So a quantile that is read
// from codes is within 1/120 of the duration that it stands for, and all durations need at most 3,456 codes.
//
//   SpreadCode(1'000'000) = 634;  DurationOf(634) = 1'003'648
#ifndef RFINJECT_PROTO_WIRE_SPREAD_CODE_H_
#define RFINJECT_PROTO_WIRE_SPREAD_CODE_H_

#include <cstdint>

#include "proto/wire/sum_code.h"

namespace rfinject::wire {

// A sum's code (sum_code.h) has 2,048 ranges in each octave.
inline constexpr uint32_t kSpreadShift = 5;
inline constexpr uint32_t kMaxSpreadCode = 110'591 >> kSpreadShift;

// Returns the code of `ns`, which grows with it.
constexpr uint32_t SpreadCode(uint64_t ns) noexcept { return SumCode(ns) >> kSpreadShift; }

// Returns the middle of the durations that have this code; 0 for the first code, which holds nothing above 31 ns.
constexpr uint64_t DurationOf(uint32_t code) noexcept {
  return code == 0 ? 0 : SumOfCode((code << kSpreadShift) + (1u << (kSpreadShift - 1)));
}

}  // namespace rfinject::wire

#endif  // RFINJECT_PROTO_WIRE_SPREAD_CODE_H_
