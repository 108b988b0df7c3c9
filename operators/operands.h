// File: operands.h
//
// Small questions about an OpCall's arguments that the FLOP and byte rules share.
#ifndef RFINJECT_OPERATORS_OPERANDS_H_
#define RFINJECT_OPERATORS_OPERANDS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "operators/op_call.h"

namespace rfinject::estimate {

// Sums and products are UINT64_MAX where they would be larger.
inline uint64_t SaturatingAdd(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

inline uint64_t SaturatingMultiply(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

// The tensors that an argument refers to: one, those of a list, or none. Never reads outside `call`, whatever the
// argument says.
inline std::span<const TensorView> TensorsOf(const OpCall& call, const Argument& argument) {
  const bool list = argument.kind == Argument::Kind::kTensorList;
  if (!list && argument.kind != Argument::Kind::kTensor) return {};
  const size_t count = list ? argument.count : 1;
  if (argument.first > call.tensors.size() || count > call.tensors.size() - argument.first) return {};
  return call.tensors.subspan(argument.first, count);
}

// The tensor that is argument `index` of the inputs; nullptr when it is none, undefined or a list.
inline const TensorView* InputTensor(const OpCall& call, size_t index) {
  if (index >= call.inputs.size() || call.inputs[index].kind != Argument::Kind::kTensor) return nullptr;
  const auto tensors = TensorsOf(call, call.inputs[index]);
  return tensors.empty() ? nullptr : &tensors[0];
}

// The first argument that holds tensors; empty when there is none.
inline std::span<const TensorView> FirstTensors(const OpCall& call, std::span<const Argument> arguments) {
  for (const Argument& argument : arguments) {
    const auto tensors = TensorsOf(call, argument);
    if (!tensors.empty()) return tensors;
  }
  return {};
}

// What the operator produces: its first tensor result or, where it returns nothing (_foreach_add_), its first
// tensor argument.
inline std::span<const TensorView> ResultTensors(const OpCall& call) {
  const auto results = FirstTensors(call, call.outputs);
  return results.empty() ? FirstTensors(call, call.inputs) : results;
}

// How many elements all of the tensors have.
inline uint64_t Elements(std::span<const TensorView> tensors) {
  uint64_t sum = 0;
  for (const TensorView& tensor : tensors) sum = SaturatingAdd(sum, tensor.numel);
  return sum;
}

// Size of dimension `index`, from the end when negative; 0 when the tensor has no such dimension.
inline uint64_t Size(const TensorView& tensor, int index) {
  const int rank = tensor.rank < kMaxRank ? tensor.rank : static_cast<int>(kMaxRank);
  if (index < 0) index += rank;
  if (index < 0 || index >= rank) return 0;
  const int64_t size = tensor.shape[static_cast<size_t>(index)];
  return size < 0 ? 0 : static_cast<uint64_t>(size);
}

// The operator's boolean number `which`, from 0; `otherwise` where it has fewer.
inline bool Flag(const OpCall& call, size_t which, bool otherwise = false) {
  for (const Argument& argument : call.inputs) {
    if (argument.kind == Argument::Kind::kBool && which-- == 0) return argument.integer != 0;
  }
  return otherwise;
}

// The numbers of the argument at `index`; empty where that is no list of integers.
inline std::span<const int64_t> IntsOf(const OpCall& call, size_t index) {
  if (index >= call.inputs.size() || call.inputs[index].kind != Argument::Kind::kIntList) return {};
  const Argument& argument = call.inputs[index];
  if (argument.first > call.ints.size() || argument.count > call.ints.size() - argument.first) return {};
  return call.ints.subspan(argument.first, argument.count);
}

// The numbers of a vector of integers; empty where they are not known.
inline std::span<const int64_t> NumbersOf(const OpCall& call, const TensorView& vector) {
  const uint64_t first = vector.first_number;
  if (vector.number_count != vector.numel || first > call.ints.size() || vector.numel > call.ints.size() - first)
    return {};
  return call.ints.subspan(first, vector.numel);
}

}  // namespace rfinject::estimate

#endif  // RFINJECT_OPERATORS_OPERANDS_H_
