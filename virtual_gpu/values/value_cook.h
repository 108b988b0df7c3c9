// File: value_cook.h
//
// What a sequence of the CPU's operators is written with (value_recipes.h): tensors of the device come in, operators
// are called by name, and results go out.
//
//   Cook cook(kernels);
//   cook.Give(cook.Mul(cook.Take(arguments[0]), cook.Take(arguments[1])), results[0]);
//   return cook.good();
#ifndef RFINJECT_VIRTUAL_GPU_VALUES_VALUE_COOK_H_
#define RFINJECT_VIRTUAL_GPU_VALUES_VALUE_COOK_H_

#include <array>
#include <cstddef>
#include <initializer_list>

#include "virtual_gpu/values/cpu_kernels.h"

namespace rfinject {

// The values of one recipe, which it owns. After a step that fails, the steps that follow do nothing.
class Cook {
 public:
  explicit Cook(const CpuKernels& kernels) : kernels_(kernels) { good_ = kernels.MakeStack(kMostOperands, &stack_); }
  ~Cook();
  Cook(const Cook&) = delete;
  Cook& operator=(const Cook&) = delete;

  bool good() const { return good_; }

  // A tensor of the device as one of the CPU, halves as floats. Fails for a tensor that is not there.
  RawValue Take(const RawValue& tensor);
  RawValue TakeIfThere(const RawValue& tensor) { return kernels_.IsTensor(tensor) ? Take(tensor) : kernels_.None(); }

  // Calls an operator, "aten::mul.Tensor", and returns its result. Tensors among the operands stay the recipe's, and
  // lists go to the operator.
  RawValue Call(const char* name, std::initializer_list<RawValue> operands);
  // The same of an operator of up to three results, or of none.
  std::array<RawValue, 3> CallForAll(const char* name, std::initializer_list<RawValue> operands);

  RawValue Mul(const RawValue& a, const RawValue& b) { return Call("aten::mul.Tensor", {a, b}); }
  RawValue Add(const RawValue& a, const RawValue& b) { return Call("aten::add.Tensor", {a, b, kernels_.Integer(1)}); }
  RawValue Scale(const RawValue& a, double by) { return Call("aten::mul.Scalar", {a, kernels_.RealValue(by)}); }
  RawValue MatMul(const RawValue& a, const RawValue& b) { return Call("aten::matmul", {a, b}); }
  RawValue Turned(const RawValue& a) {
    return Call("aten::transpose.int", {a, kernels_.Integer(-2), kernels_.Integer(-1)});
  }
  // The elements of `a` where the mask is true, multiplied.
  RawValue Masked(const RawValue& a, const RawValue& mask, double by) {
    return Call("aten::native_dropout_backward", {a, mask, kernels_.RealValue(by)});
  }
  // A list of these tensors, for an operator. `like` is any list of tensors.
  RawValue List(const RawValue& like, const RawValue* tensors, size_t count);

  // Writes a tensor to a result of the operator, if that is there.
  void Give(const RawValue& from, const RawValue& to);

  // Takes over what a value owns.
  void Keep(const RawValue& value);
  // Notes that a step has failed. Returns none.
  RawValue Failed() {
    good_ = false;
    return kernels_.None();
  }

 private:
  static constexpr size_t kMostValues = 256;
  static constexpr size_t kMostOperands = 32;
  const CpuKernels& kernels_;
  bool good_ = false;
  RawVector stack_;
  std::array<RawValue, kMostValues> made_;
  size_t count_ = 0;
};

// Whether an element of a list of flags is true.
bool IsAsked(const CpuKernels& kernels, const RawValue& list, size_t which);

}  // namespace rfinject

#endif  // RFINJECT_VIRTUAL_GPU_VALUES_VALUE_COOK_H_
