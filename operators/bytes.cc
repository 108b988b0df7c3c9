#include "operators/bytes.h"

#include <algorithm>
#include <cstddef>

#include "operators/flop.h"
#include "operators/operands.h"

namespace rfinject::estimate {
namespace {

uint64_t DistinctElements(const TensorView& tensor) {
  return tensor.broadcast && tensor.distinct != 0 ? std::min(tensor.distinct, tensor.numel) : tensor.numel;
}

uint64_t Bytes(const TensorView& tensor) {
  return SaturatingAdd(SaturatingMultiply(DistinctElements(tensor), tensor.element_size), tensor.index_bytes);
}

uint64_t Bytes(std::span<const TensorView> tensors) {
  uint64_t sum = 0;
  for (const TensorView& tensor : tensors) sum = SaturatingAdd(sum, Bytes(tensor));
  return sum;
}

// Whether two tensors are the same memory and not merely in the same storage, as far as is known where an offset is
// not.
bool SameMemory(const TensorView& a, const TensorView& b) {
  return a.storage != 0 && a.storage == b.storage && a.offset == b.offset && a.dtype == b.dtype &&
         a.numel == b.numel && DistinctElements(a) == DistinctElements(b);
}

bool IsInPlace(const OpCall& call) { return call.name.ends_with('_') && !call.name.ends_with("__"); }

// An out variant has the name of its functional form; its `out` argument stands behind the operands and comes back as
// the result.
bool IsOutArgument(const OpCall& call, size_t index) {
  if (IsInPlace(call) || index == 0) return false;
  const TensorView* argument = InputTensor(call, index);
  if (argument == nullptr) return false;
  for (size_t i = index + 1; i < call.inputs.size(); ++i) {
    // An operator with several results has several out arguments at the end.
    if (!TensorsOf(call, call.inputs[i]).empty() && !IsOutArgument(call, i)) return false;
  }
  for (const Argument& output : call.outputs) {
    for (const TensorView& tensor : TensorsOf(call, output)) {
      if (SameMemory(tensor, *argument)) return true;
    }
  }
  return false;
}

// Where the offset is not known (some imports), the parts of one storage look alike, and each is counted: query, key
// and value of one projection are common, the same tensor given twice is rare.
bool ReadBefore(const OpCall& call, size_t index, const TensorView& tensor) {
  if (tensor.offset < 0) return false;
  for (size_t i = 0; i < index; ++i) {
    const TensorView* earlier = InputTensor(call, i);
    if (earlier != nullptr && SameMemory(*earlier, tensor)) return true;
  }
  return false;
}

// A Python number that an operator of two tensors was given (`count.add_(1)`) comes as a 0-dim tensor of the widest
// type of its kind. It lies on the host, and a kernel gets it with its arguments.
bool IsNumber(const OpCall& call, size_t index, const TensorView& tensor) {
  if (index != 1 || tensor.rank != 0 || InputTensor(call, 0) == nullptr) return false;
  return tensor.dtype == DType::kInt64 || tensor.dtype == DType::kDouble || tensor.dtype == DType::kBool ||
         tensor.dtype == DType::kComplexDouble;
}

// Bytes read of argument `index`.
uint64_t ReadOf(const OpCall& call, size_t index) {
  if (const TensorView* tensor = InputTensor(call, index)) {
    if (IsNumber(call, index, *tensor)) return 0;
    return ReadBefore(call, index, *tensor) || IsOutArgument(call, index) ? 0 : Bytes(*tensor);
  }
  return index < call.inputs.size() ? Bytes(TensorsOf(call, call.inputs[index])) : 0;
}

// The first argument that holds tensors: what an in-place operator changes.
size_t FirstTensorArgument(const OpCall& call) {
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!TensorsOf(call, call.inputs[i]).empty()) return i;
  }
  return call.inputs.size();
}

uint64_t ReadAll(const OpCall& call, uint32_t except) {
  uint64_t sum = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (i < 32 && (except >> i & 1) != 0) continue;
    sum = SaturatingAdd(sum, ReadOf(call, i));
  }
  return sum;
}

uint64_t WriteResults(const OpCall& call) {
  uint64_t sum = 0;
  bool any = false;
  for (const Argument& output : call.outputs) {
    const auto tensors = TensorsOf(call, output);
    any = any || !tensors.empty();
    sum = SaturatingAdd(sum, Bytes(tensors));
  }
  if (any || !IsInPlace(call)) return sum;
  return Bytes(FirstTensors(call, call.inputs));  // _foreach_add_ returns nothing
}

uint32_t ArgumentBit(size_t index) { return index < 32 ? 1u << index : 0; }

Traffic Gather(const OpRule& rule, const OpCall& call, uint64_t picked) {
  const size_t table = FirstTensorArgument(call);
  Traffic traffic{ReadAll(call, rule.unread | ArgumentBit(table)), WriteResults(call)};
  const auto tensors = FirstTensors(call, call.inputs);
  if (tensors.empty()) return traffic;
  const uint64_t elements = std::min(picked, Elements(tensors));
  traffic.read = SaturatingAdd(traffic.read, SaturatingMultiply(elements, tensors[0].element_size));
  return traffic;
}

// The first operand is the table of rows, but for the backward of weights, where it is the second. What else the
// forward returns tells the backward which row went where, and is of no size beside the rows.
Traffic EmbeddingBag(const OpRule& rule, const OpCall& call) {
  const size_t table = call.name.find("per_sample_weights") != std::string_view::npos ? 1 : 0;
  const TensorView* rows = InputTensor(call, table);
  const auto results = FirstTensors(call, call.outputs);
  Traffic traffic{ReadAll(call, rule.unread | ArgumentBit(table)), Bytes(results)};
  if (rows == nullptr) return traffic;
  const uint64_t elements = std::min(LookedUp(call), rows->numel);
  traffic.read = SaturatingAdd(traffic.read, SaturatingMultiply(elements, rows->element_size));
  return traffic;
}

// Only part of the target is written. That part is as large as the largest of the other tensors, which hold the
// indices and the new values.
Traffic Scatter(const OpRule& rule, const OpCall& call) {
  const size_t target = FirstTensorArgument(call);
  const auto tensors = FirstTensors(call, call.inputs);
  Traffic traffic{ReadAll(call, rule.unread | ArgumentBit(target)), 0};
  if (tensors.empty()) return traffic;
  uint64_t addressed = 0;
  for (size_t i = target + 1; i < call.inputs.size(); ++i) {
    for (const TensorView& tensor : TensorsOf(call, call.inputs[i])) addressed = std::max(addressed, tensor.numel);
  }
  const uint64_t bytes = SaturatingMultiply(std::min(addressed, Elements(tensors)), tensors[0].element_size);
  traffic.write = bytes;
  if (Accumulates(rule, call)) traffic.read = SaturatingAdd(traffic.read, bytes);
  return traffic;
}

// (grad_output, input, weight, …) and the gradients of input, weight and bias, as far as they were asked for.
Traffic ConvolutionBackward(const OpCall& call) {
  const auto computed = [&](size_t i) {
    return i < call.outputs.size() && !TensorsOf(call, call.outputs[i]).empty();
  };
  uint32_t unread = 0;
  if (!computed(0)) unread |= ArgumentBit(2);
  if (!computed(1)) unread |= ArgumentBit(1);
  return {ReadAll(call, unread), WriteResults(call)};
}

// (input, weight, bias, running_mean, running_var, training, …)
Traffic BatchNorm(const OpCall& call) {
  Traffic traffic{ReadAll(call, 0), WriteResults(call)};
  if (!Flag(call, 0, /*otherwise=*/true)) return traffic;
  for (size_t i = 3; i <= 4; ++i) {
    if (const TensorView* statistic = InputTensor(call, i)) {
      traffic.write = SaturatingAdd(traffic.write, Bytes(*statistic));
    }
  }
  return traffic;
}

// _fused_adam_(parameters, gradients, moments…, steps) and the like: every list but the gradients is updated.
Traffic FusedOptimizer(const OpCall& call) {
  Traffic traffic{ReadAll(call, 0), 0};
  size_t list = 0;
  for (const Argument& argument : call.inputs) {
    if (argument.kind != Argument::Kind::kTensorList) continue;
    if (list != 1) traffic.write = SaturatingAdd(traffic.write, Bytes(TensorsOf(call, argument)));
    ++list;
  }
  return traffic;
}

}  // namespace

Traffic CountBytes(const OpRule& rule, const OpCall& call) noexcept {
  switch (rule.bytes) {
    case BytesRule::kOperands:
      return {ReadAll(call, rule.unread), WriteResults(call)};
    case BytesRule::kWriteOnly:
    case BytesRule::kCopy:
      return {ReadAll(call, rule.unread | ArgumentBit(FirstTensorArgument(call))), WriteResults(call)};
    case BytesRule::kGather:
      return Gather(rule, call, Elements(ResultTensors(call)));
    case BytesRule::kPick: {
      const TensorView* picks = InputTensor(call, 1);
      return Gather(rule, call, picks == nullptr ? UINT64_MAX : picks->numel);
    }
    case BytesRule::kEmbeddingBag:
      return EmbeddingBag(rule, call);
    case BytesRule::kScatter:
      return Scatter(rule, call);
    case BytesRule::kConvolutionBackward:
      return ConvolutionBackward(call);
    case BytesRule::kBatchNorm:
      return BatchNorm(call);
    case BytesRule::kFusedBackward: {
      const uint64_t operands = ReadAll(call, rule.unread);
      return {SaturatingAdd(operands, SaturatingMultiply(2, WriteResults(call))), operands};
    }
    case BytesRule::kFusedOptimizer:
      return FusedOptimizer(call);
  }
  return {};
}

bool IsViewOrQuery(const OpCall& call) noexcept {
  if (IsInPlace(call)) return false;
  const auto operand = FirstTensors(call, call.inputs);
  for (const Argument& output : call.outputs) {
    for (const TensorView& tensor : TensorsOf(call, output)) {
      if (operand.empty() || tensor.storage == 0) return false;
      const bool aliases =
          std::ranges::any_of(operand, [&](const TensorView& source) { return source.storage == tensor.storage; });
      if (!aliases) return false;
    }
  }
  return true;
}

}  // namespace rfinject::estimate
