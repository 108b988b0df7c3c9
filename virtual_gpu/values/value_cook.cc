#include "virtual_gpu/values/value_cook.h"

#include <algorithm>
#include <new>
#include <span>

#include "injector/torch/name_cache.h"
#include "virtual_gpu/values/value_operands.h"
#include "virtual_gpu/values/value_results.h"

namespace rfinject {

Cook::~Cook() {
  for (size_t i = 0; i < count_; ++i) kernels_.Destroy(made_[i]);
  if (stack_.begin != nullptr) {
    kernels_.Clear(&stack_);
    ::operator delete(stack_.begin);
  }
}

RawValue Cook::Take(const RawValue& tensor) {
  TensorPlace place;
  RawValue value;
  if (!good_ || !kernels_.IsTensor(tensor) || !kernels_.Read(tensor, &place) || place.device != kCudaDevice ||
      place.negate || place.conjugate || !kernels_.MakeAlias(place, &value)) {
    return Failed();
  }
  Keep(value);
  if (!place.halves()) return value;
  RawValue copy;
  if (!kernels_.MakeTensor(place, kFloat, &copy)) return Failed();
  Keep(copy);
  good_ = good_ && kernels_.Copy(copy, value);
  return copy;
}

std::array<RawValue, 3> Cook::CallForAll(const char* name, std::initializer_list<RawValue> operands) {
  static auto* const found = new NameCache<CpuKernel>;
  const CpuKernel kernel =
      found->FindByText(name, [this](const char* text, CpuKernel* made) { return kernels_.FindByName(text, made); });
  std::array<RawValue, 3> results = {kernels_.None(), kernels_.None(), kernels_.None()};
  if (kernel.run == nullptr || operands.size() > kMostOperands) good_ = false;
  for (const RawValue& operand : operands) {
    RawValue own = operand;
    if (!good_) {
      if (kernels_.IsShared(operand)) kernels_.Destroy(operand);
      continue;
    }
    if (kernels_.IsTensor(operand) && !kernels_.Another(operand, &own)) {
      good_ = false;
      continue;
    }
    *stack_.end++ = own;
  }
  if (!good_ || !kernels_.Run(kernel, &stack_) || stack_.size() > results.size()) {
    good_ = false;
    kernels_.Clear(&stack_);
    return results;
  }
  std::copy(stack_.begin, stack_.end, results.begin());
  for (size_t i = 0; i < stack_.size(); ++i) Keep(results[i]);
  stack_.end = stack_.begin;
  return results;
}

RawValue Cook::Call(const char* name, std::initializer_list<RawValue> operands) {
  const RawValue result = CallForAll(name, operands)[0];
  return kernels_.IsTensor(result) ? result : Failed();
}

RawValue Cook::List(const RawValue& like, const RawValue* tensors, size_t count) {
  RawValue list;
  if (!good_ || !kernels_.IsList(like) || like.payload == 0 || !kernels_.CloneList(like, &list)) return Failed();
  RawVector* elements = kernels_.Elements(list);
  const auto room = static_cast<size_t>(elements->capacity - elements->begin);
  while (elements->end != elements->begin) kernels_.Destroy(*--elements->end);
  for (size_t i = 0; i < count; ++i) {
    if (i == room || !kernels_.IsTensor(tensors[i]) || !kernels_.Another(tensors[i], elements->end)) {
      kernels_.Destroy(list);
      return Failed();
    }
    ++elements->end;
  }
  return list;
}

void Cook::Give(const RawValue& from, const RawValue& to) {
  if (!good_ || !kernels_.IsTensor(to)) return;
  RawValue one = from;
  RawVector results;
  results.begin = &one;
  results.end = results.capacity = &one + 1;
  good_ = DeliverResults(kernels_, results, std::span(&to, 1), false);
}

void Cook::Keep(const RawValue& value) {
  if (count_ < kMostValues) {
    made_[count_++] = value;
  } else {
    kernels_.Destroy(value);
    good_ = false;
  }
}

bool IsAsked(const CpuKernels& kernels, const RawValue& list, size_t which) {
  if (!kernels.IsList(list) || list.payload == 0) return false;
  const RawVector* flags = kernels.Elements(list);
  return which < flags->size() && (flags->begin[which].payload & 1) != 0;
}

}  // namespace rfinject
