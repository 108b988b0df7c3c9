// File: saturating_add.h
//
// Sums that stop at the largest value stay associative and commutative; sums that wrap would too, but lie.
#ifndef RFINJECT_PROTO_WIRE_SATURATING_ADD_H_
#define RFINJECT_PROTO_WIRE_SATURATING_ADD_H_

#include <type_traits>

namespace rfinject::wire {

// Adds `value` to `*into`. Integer is an unsigned type, which may be __int128.
template <typename Integer>
constexpr void SaturatingAdd(Integer* into, std::type_identity_t<Integer> value) noexcept {
  if (__builtin_add_overflow(*into, value, into)) *into = static_cast<Integer>(~Integer{0});
}

}  // namespace rfinject::wire

#endif  // RFINJECT_PROTO_WIRE_SATURATING_ADD_H_
