// File: value_substitutes.h
//
// Operators that CUDA's libraries or fused kernels carry out, and operators of the CPU that compute the same from the
// same operands in another order. Used where all values are computed (ValueRuleOf).
//
//   const Substitute* other = SubstituteFor("aten::cudnn_batch_norm");  // aten::native_batch_norm
#ifndef RFINJECT_VIRTUAL_GPU_VALUES_VALUE_SUBSTITUTES_H_
#define RFINJECT_VIRTUAL_GPU_VALUES_VALUE_SUBSTITUTES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rfinject {

struct Substitute {
  // What an operand of the CPU's operator is: one of the arguments, by its place, or one of these.
  enum Operand : int16_t {
    kNone = -1,
    kFalse = -2,
    kTrue = -3,
    kZero = -4,         // the integer
    kTwoTrue = -5,      // a list, which asks for the first two results
    kThreeTrue = -6,    // the same for three
    kTypeOfFirst = -7,  // c10::ScalarType of the first operand, as the kernel is given it
    kDrawn = -8,        // the second result, a mask: each element is true with 1 minus the probability in argument 1
    kUndropped = -9,    // what is not dropped is multiplied by that: the reciprocal of that probability
  };
  static constexpr size_t kMost = 12;
  static constexpr int16_t kNowhere = -1;

  std::string_view name;  // without "aten::"
  std::string_view op;    // the CPU's, without "aten::" and overload
  uint8_t arguments;      // that the operator has, so that no other overload is meant
  uint8_t results;        // how many of its results the CPU's operator gives
  int16_t count;          // of operands
  std::array<int16_t, kMost> operands;
  int16_t zero = kNowhere;     // an argument that must be 0: the probability of a dropout
  int16_t unasked = kNowhere;  // a list of what is asked for, whose fourth element must be false
  int16_t rows = kNowhere;     // an operand of more rows (third dimension) than argument 1 has: the others are unused

  bool Uses(size_t argument) const {
    for (int16_t i = 0; i < count; ++i) {
      if (operands[static_cast<size_t>(i)] == static_cast<int16_t>(argument)) return true;
    }
    return zero == static_cast<int16_t>(argument) || unasked == static_cast<int16_t>(argument);
  }
};

// `name` is "aten::cudnn_batch_norm". Returns null where the CPU's operator of that name is the one that computes it.
const Substitute* SubstituteFor(std::string_view name);

}  // namespace rfinject

#endif  // RFINJECT_VIRTUAL_GPU_VALUES_VALUE_SUBSTITUTES_H_
