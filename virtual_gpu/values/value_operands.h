// File: value_operands.h
//
// An operator's arguments as operands of a CPU kernel: what lies on the device is handed over as a tensor of the CPU
// on the same memory, and nothing that the program has is changed by that.
#ifndef RFINJECT_VIRTUAL_GPU_VALUES_VALUE_OPERANDS_H_
#define RFINJECT_VIRTUAL_GPU_VALUES_VALUE_OPERANDS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "virtual_gpu/values/cpu_kernels.h"
#include "virtual_gpu/values/value_rules.h"
#include "virtual_gpu/values/value_substitutes.h"

namespace rfinject {

inline constexpr int8_t kCudaDevice = 1;         // c10::DeviceType
inline constexpr size_t kMostArguments = 24;     // of an operator
inline constexpr size_t kMostTensors = 8 << 10;  // in lists, of the operators that run inside each other

// A call whose operands are wanted.
struct ValueCall {
  std::span<RawValue> arguments;
  std::span<const RawValue> results;  // the operator's own
  const ValueRule* rule = nullptr;
  const Substitute* substitute = nullptr;  // null: the arguments are the operands
  bool keep = false;                       // the arguments stay; otherwise what they own goes to the kernel
  bool wide = false;                       // halves are handed over as floats
};

// Draws a mask that is dense: each element is true with that probability. The numbers follow from the seed and the
// element's place.
void DrawMask(const TensorPlace& mask, uint64_t seed, double probability);

// The operands of one thread. A new one is all zeros, and nothing is to be done at its end.
class ValueOperands {
 public:
  // Puts the operands onto the stack. Returns false where that cannot be; the stack then holds what has to be
  // cleared. Release must follow in either case, after the kernel.
  bool Push(const CpuKernels& kernels, const ValueCall& call);
  // Gives back what the operands were made of. `computed`: what was written to copies is written to the originals.
  // Returns false where that failed.
  bool Release(const CpuKernels& kernels, bool computed);

  // Operands before the kernel, results after it. Its memory comes with the first Push.
  RawVector& stack() { return stack_; }

 private:
  struct Copied {
    RawValue copy;
    TensorPlace original;
  };

  bool MakeOperand(const CpuKernels& kernels, const RawValue& value, bool wide, bool written, RawValue* operand);
  bool MakeSparseOperand(const CpuKernels& kernels, const RawValue& value, const SparseParts& from, bool wide,
                         RawValue* operand);
  bool MakeListOperand(const CpuKernels& kernels, bool wide, bool written, RawValue* value);
  bool PushArguments(const CpuKernels& kernels, const ValueCall& call);
  bool PushSubstitutes(const CpuKernels& kernels, const ValueCall& call);
  bool PushConstant(const CpuKernels& kernels, const ValueCall& call, int16_t which);

  RawVector stack_;
  std::array<RawValue, kMostTensors> replaced_;  // tensors whose places in lists were taken by aliases
  size_t replaced_count_ = 0;
  std::array<Copied, 8> copied_;  // of operands that are written to
  size_t copied_count_ = 0;
};

}  // namespace rfinject

#endif  // RFINJECT_VIRTUAL_GPU_VALUES_VALUE_OPERANDS_H_
