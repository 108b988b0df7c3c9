// File: nearest.h
//
// Nearest makes a whole number of a computed one. What a trace may hold makes sums and quotients that no integer can
// hold, and C++ leaves open what their conversion does.
#ifndef RFINJECT_CLI_PROFILE_NEAREST_H_
#define RFINJECT_CLI_PROFILE_NEAREST_H_

#include <cmath>
#include <cstdint>

namespace rfinject::cli {

// Returns the integer nearest to `value`, the nearest that there is where it is out of range, and 0 of NaN.
inline uint64_t Nearest(double value) {
  constexpr double kFirstTooLarge = 18446744073709551616.0;  // 2^64
  if (!(value > 0)) return 0;
  const double whole = std::round(value);
  return whole < kFirstTooLarge ? static_cast<uint64_t>(whole) : UINT64_MAX;
}

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PROFILE_NEAREST_H_
