// File: types.h
//
// The types of tensors' elements: how they are written, and how large they are.
#ifndef RFINJECT_OPERATORS_TYPES_H_
#define RFINJECT_OPERATORS_TYPES_H_

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "operators/op_call.h"

namespace rfinject {

struct TypeFacts {
  DType type = DType::kOther;
  std::string_view name = "?";
  uint64_t bytes = 0;  // of an element
};
inline constexpr TypeFacts kTypes[] = {{DType::kUint8, "u8", 1},
                                       {DType::kInt8, "i8", 1},
                                       {DType::kInt16, "i16", 2},
                                       {DType::kInt32, "i32", 4},
                                       {DType::kInt64, "i64", 8},
                                       {DType::kHalf, "f16", 2},
                                       {DType::kFloat, "f32", 4},
                                       {DType::kDouble, "f64", 8},
                                       {DType::kComplexHalf, "c32", 4},
                                       {DType::kComplexFloat, "c64", 8},
                                       {DType::kComplexDouble, "c128", 16},
                                       {DType::kBool, "bool", 1},
                                       {DType::kBFloat16, "bf16", 2}};

// The first type that has this value in `member`; kOther, "?" and 0 where there is none.
template <typename T>
constexpr TypeFacts FindType(T TypeFacts::*member, const T& value) {
  const auto* const found = std::ranges::find(kTypes, value, member);
  return found != std::end(kTypes) ? *found : TypeFacts();
}
constexpr TypeFacts FactsOf(DType type) { return FindType(&TypeFacts::type, type); }

}  // namespace rfinject

#endif  // RFINJECT_OPERATORS_TYPES_H_
