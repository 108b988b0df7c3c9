// File: operands.h
//
// Reads the operands of an operator call out of torch's objects, at calibrated offsets, as plain data.
#ifndef RFINJECT_INJECTOR_TORCH_OPERANDS_H_
#define RFINJECT_INJECTOR_TORCH_OPERANDS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "injector/torch/layouts.h"
#include "injector/torch/sparse_layout.h"
#include "operators/op_call.h"

namespace rfinject {

// Arguments, and the tensors and integers that they refer to. An object is cleared and used again, so that its memory
// is reused.
struct Operands {
  std::vector<Argument> arguments;
  std::vector<TensorView> tensors;
  std::vector<int64_t> ints;
  bool has_meta = false;         // a tensor without data: a trace of shapes is made, nothing computes
  bool has_wrapper = false;      // a tensor whose data lies in other tensors (vmap, subclasses)
  bool has_zeros = false;        // a tensor of zeros that lie nowhere (torch._efficientzerotensor)
  bool crosses_devices = false;  // tensors on devices of two types, such as host and GPU

  // Whether all that was read lies in the host's memory (c10::DeviceType::CPU, which is 0).
  bool on_host() const { return first_device_ == 0 && !crosses_devices; }

  void Clear() {
    arguments.clear();
    tensors.clear();
    ints.clear();
    has_meta = has_wrapper = has_zeros = crosses_devices = false;
    first_device_ = -1;
  }

 private:
  friend class OperandReader;
  int first_device_ = -1;
};

class OperandReader {
 public:
  OperandReader() = default;
  OperandReader(const TensorLayout& tensor, const ValueLayout& value, const void* undefined_tensor,
                const SparseReader& sparse = {})
      : tensor_(tensor), value_(value), undefined_(reinterpret_cast<uintptr_t>(undefined_tensor)), sparse_(sparse) {}

  // Appends the `count` c10::IValues at `values`. Undefined tensors are kNone. Boolean lists become kIntList.
  void Read(uintptr_t values, size_t count, Operands* to) const;

  // Adds the numbers of vectors of 32-bit integers to `to`, as far as `knows(address, bytes)` says that they lie
  // there.
  void ReadNumbers(bool (*knows)(uintptr_t, size_t), Operands* to) const;

  // A TensorImpl's view.
  TensorView ReadTensor(uintptr_t tensor, Operands* to) const;

 private:
  bool IsZeros(uintptr_t tensor) const;
  // Fills in what a sparse tensor's parts say.
  void ReadSparse(const SparseParts& parts, TensorView* view) const;
  void ReadList(uintptr_t list, Argument* argument, Operands* to) const;

  TensorLayout tensor_;
  ValueLayout value_;
  uintptr_t undefined_ = 0;
  SparseReader sparse_;
};

// Bytes of one element of a c10::ScalarType.
uint64_t ElementSize(uint16_t dtype);

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_TORCH_OPERANDS_H_
