// File: split_mix.h
//
// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): random numbers that are the same on all ranks and in all runs.
#ifndef RFINJECT_COLLECTOR_ARMING_SPLIT_MIX_H_
#define RFINJECT_COLLECTOR_ARMING_SPLIT_MIX_H_

#include <cstdint>

namespace rfinject::arming {

// The next 64 random bits; `state` begins as the seed.
inline uint64_t SplitMix64(uint64_t* state) noexcept {
  uint64_t z = (*state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// Random bits that depend on the seed and on two numbers alone: the same wherever they are asked for.
inline uint64_t RandomAt(uint64_t seed, uint64_t a, uint64_t b) noexcept {
  uint64_t state = seed + a * 0xD1342543DE82EF95u;
  state = SplitMix64(&state) + b;
  return SplitMix64(&state);
}

}  // namespace rfinject::arming

#endif  // RFINJECT_COLLECTOR_ARMING_SPLIT_MIX_H_
