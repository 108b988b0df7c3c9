// File: spread_code.h
//
// Where a duration lies among others (Spread.code): 64 places an octave, so that a quantile that is read from them is
// within 1/120 of the duration that it stands for, and all durations need at most 3,456 places.
//
//   SpreadCode(1'000'000) = 634;  DurationOf(634) = 1'003'648
#ifndef RFINJECT_PROTO_WIRE_SPREAD_CODE_H_
#define RFINJECT_PROTO_WIRE_SPREAD_CODE_H_

#include <cstdint>

#include "proto/wire/sum_code.h"

namespace rfinject::wire {

// A sum's code has 2,048 places an octave.
inline constexpr uint32_t kSpreadShift = 5;
inline constexpr uint32_t kMaxSpreadCode = 110'591 >> kSpreadShift;

// Grows with `ns`.
constexpr uint32_t SpreadCode(uint64_t ns) noexcept { return SumCode(ns) >> kSpreadShift; }

// The middle of the durations that have this code; 0 for the first, which holds nothing above 31 ns.
constexpr uint64_t DurationOf(uint32_t code) noexcept {
  return code == 0 ? 0 : SumOfCode((code << kSpreadShift) + (1u << (kSpreadShift - 1)));
}

}  // namespace rfinject::wire

#endif  // RFINJECT_PROTO_WIRE_SPREAD_CODE_H_
