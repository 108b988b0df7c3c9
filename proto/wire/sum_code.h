// File: sum_code.h
//
// The code of a sum in SampledStep.change: a floating-point number in an integer, so that sums that differ little
// have codes that differ little, whatever their size. Two sums that differ by 3 % have codes that differ by 61, which
// is one byte of a varint. Sums below 4096 are exact; others are within 1/4096 of what they were.
//
//   SumCode(1'000'000) = 8 * 2048 + 3906;  SumOfCode(20290) = 1'000'064
#ifndef RFINJECT_PROTO_WIRE_SUM_CODE_H_
#define RFINJECT_PROTO_WIRE_SUM_CODE_H_

#include <bit>
#include <cstdint>

namespace rfinject::wire {

// Codes keep 11 bits after the leading one; what is lost is far below the spread of anything that is measured.
inline constexpr int kSumCodeBits = 11;

// Returns the code of `sum`, which grows with it and is at most 110,591.
constexpr uint32_t SumCode(uint64_t sum) noexcept {
  const int shift = static_cast<int>(std::bit_width(sum)) - kSumCodeBits - 1;
  if (shift <= 0) return static_cast<uint32_t>(sum);
  return (static_cast<uint32_t>(shift) << kSumCodeBits) + static_cast<uint32_t>(sum >> shift);
}

// Returns the middle of the sums that have this code; the largest sum for codes that no sum has.
constexpr uint64_t SumOfCode(uint32_t code) noexcept {
  constexpr uint32_t kOne = 1u << kSumCodeBits;
  if (code < 2 * kOne) return code;
  const uint32_t shift = (code >> kSumCodeBits) - 1;
  if (shift > 63 - kSumCodeBits) return UINT64_MAX;
  return (uint64_t{(code & (kOne - 1)) + kOne} << shift) + (uint64_t{1} << (shift - 1));
}

// Folds a signed difference of codes to an unsigned number, such that small ones stay small (protobuf's sint32).
constexpr uint32_t FoldSign(int32_t value) noexcept {
  return (static_cast<uint32_t>(value) << 1) ^ static_cast<uint32_t>(value >> 31);
}
constexpr int32_t UnfoldSign(uint32_t folded) noexcept {
  return static_cast<int32_t>((folded >> 1) ^ (~(folded & 1) + 1));
}

}  // namespace rfinject::wire

#endif  // RFINJECT_PROTO_WIRE_SUM_CODE_H_
