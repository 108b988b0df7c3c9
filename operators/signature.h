// File: signature.h
//
// The text that stands for grid and block in an estimated kernel's key: "f32[8,3,224,224] f32[64,3,7,7]".
#ifndef RFINJECT_OPERATORS_SIGNATURE_H_
#define RFINJECT_OPERATORS_SIGNATURE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "operators/op_call.h"

namespace rfinject::estimate {

inline constexpr size_t kMaxSignature = 200;

// Types and shapes of the tensor arguments, separated by spaces; a list as "62*f32{11689512}"
// (count, type of its first, elements of all), a sparse tensor as "f32[2708,2708]{13264}" (its shape, and how many
// numbers it holds). Types are written as types.h has them. The first tensor of a convolution or batch norm bears the
// operator's memory format where that is not the usual one, which is channels last for halves and channels first for
// all else: "f32:nhwc[8,64,56,56]", "f16:nchw[8,64,56,56]". That of a causal attention bears ":causal". Written into
// `buffer`; what does not fit is cut and ends in "…".
std::string_view FormatSignature(const OpCall& call, std::span<char, kMaxSignature> buffer) noexcept;

// A hash of the operator's name and of everything that FormatSignature would print, and of what it cuts: two calls
// with different signatures have the same hash with probability 2^-64.
uint64_t HashSignature(const OpCall& call) noexcept;

}  // namespace rfinject::estimate

#endif  // RFINJECT_OPERATORS_SIGNATURE_H_
