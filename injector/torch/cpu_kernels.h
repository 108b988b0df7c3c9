// File: cpu_kernels.h
//
// Runs an operator's CPU kernel on operands that lie in memory which the host can read, without the program noticing:
// no callback, autograd, autocast, mode or subclass sees the call.
//
// Torch keeps for each operator a kernel for each kind of device, in a form that takes its operands from a stack of
// c10::IValue. That form and the few structs on the way to it were the same from torch 2.2 on. What can be checked is
// checked before anything is called (Init); where a check fails there are no kernels.
#ifndef RFINJECT_INJECTOR_TORCH_CPU_KERNELS_H_
#define RFINJECT_INJECTOR_TORCH_CPU_KERNELS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "injector/foreign_exceptions.h"
#include "injector/torch/abi.h"
#include "injector/torch/layouts.h"
#include "injector/torch/sparse_layout.h"
#include "injector/torch/symbols.h"

namespace rfinject {

// A c10::IValue, bit by bit: who owns what it points to is the code's business that has it.
struct RawValue {
  uint64_t payload = 0;
  uint32_t tag = 0;
  uint32_t unused = 0;
};
static_assert(sizeof(RawValue) == kValueSize);

// The elements of a c10::List, which lie in a std::vector.
struct RawVector {
  RawValue* begin = nullptr;
  RawValue* end = nullptr;
  RawValue* capacity = nullptr;
  size_t size() const { return static_cast<size_t>(end - begin); }
};

// The kernel of one operator.
struct CpuKernel {
  void* functor = nullptr;
  void (*run)(void* functor, const void* handle, uint64_t keys, RawVector* stack) = nullptr;
  const void* handle = nullptr;  // a c10::OperatorHandle
  bool sparse = false;
};

// What an operator's kernels are chosen by: the most special of its tensors.
enum class Form : uint8_t { kDense, kCoo, kCompressed };

// A tensor's place and shape.
struct TensorPlace {
  uintptr_t data = 0;  // of its first element
  uint64_t numel = 0;
  uint64_t rank = 0;
  const int64_t* sizes = nullptr;
  const int64_t* strides = nullptr;
  uint16_t dtype = 0;  // c10::ScalarType
  int8_t device = 0;   // c10::DeviceType
  size_t element_bytes = 0;

  // Bytes from its first element to the end of its last. Strides are not negative in torch.
  size_t span() const;
  // Whether no byte within its span is another's.
  bool dense() const { return span() == numel * element_bytes; }
  bool contiguous() const;
  // Whether its numbers are whole, or true and false.
  bool integers() const { return dtype <= 4 || dtype == 11; }
};

class CpuKernels {
 public:
  // Returns false, with the reason in `*why` (a literal), where this torch has other structs.
  bool Init(const TorchSymbols& symbols, const TorchLayouts& layouts, const char** why);

  // Finds the kernel of the operator that a RecordFunction is of; false where it has none for the CPU.
  bool Find(const abi::RecordFunction& record, Form form, CpuKernel* kernel) const;

  bool IsTensor(const RawValue& value) const { return value.tag == value_.tensor && value.payload != undefined_; }
  bool IsNone(const RawValue& value) const { return value.tag == value_.none; }
  bool IsList(const RawValue& value) const { return value.tag == value_.list; }
  bool IsGenerator(const RawValue& value) const { return value.tag == generator_tag_; }
  // Whether the value owns an object that is neither a tensor nor none.
  bool IsShared(const RawValue& value) const;
  // False for a tensor without memory of its own, or of numbers that are not plain.
  bool Read(const RawValue& tensor, TensorPlace* place) const;
  // The parts of a sparse tensor; false for any other value. PartOf is one of them, as a value.
  bool ReadSparse(const RawValue& tensor, SparseParts* parts) const {
    return IsTensor(tensor) && sparse_.Read(tensor.payload, parts);
  }
  RawValue PartOf(uintptr_t part) const { return {part, value_.tensor, 0}; }
  Form FormOf(const RawValue& value) const;
  // How many rows a tensor has, or numbers where it is sparse; false where that cannot be read.
  bool Count(const RawValue& tensor, int64_t* count) const;
  RawVector* Elements(const RawValue& list) const {
    return reinterpret_cast<RawVector*>(list.payload + value_.list_values);
  }

  // Takes part in the ownership of what a value refers to, and gives that up. For IsShared values, and for
  // tensors that somebody else than Python owns.
  void Share(const RawValue& value) const;
  bool IsMine(const RawValue& value) const;  // nobody else owns it
  // Makes a list of the same elements.
  bool CloneList(const RawValue& list, RawValue* clone) const;
  // Destroys any value.
  void Destroy(const RawValue& value) const;

  // Makes a tensor of the CPU on that memory; false when there is no memory for it.
  bool MakeAlias(const TensorPlace& place, RawValue* value) const;
  // Makes an owned operand of a tensor: an alias of what lies on the device, or the program's own tensor. A sparse
  // one is made anew of such parts.
  bool MakeOperand(const RawValue& tensor, RawValue* operand) const;
  // Another owner of the same tensor.
  bool Another(const RawValue& tensor, RawValue* value) const;
  // A generator of the CPU for what CUDA's generator has just given: each seed and offset has numbers of its own.
  // `cuda` is the program's generator, or none for the default one.
  bool MakeGenerator(const RawValue& cuda, RawValue* value) const;
  RawValue None() const { return {0, value_.none, 0}; }

  // Runs the kernel on the calling thread. It takes the operands off the stack, whatever happens, and leaves results.
  // Returns false, with an empty stack, when it throws.
  bool Run(const CpuKernel& kernel, RawVector* stack) const;
  // Copies between tensors of the CPU of one shape, with conversion.
  bool Copy(const RawValue& to, const RawValue& from) const;

  // Memory for a stack of `count` values, which torch may enlarge and we free.
  bool MakeStack(size_t count, RawVector* stack) const;
  void Clear(RawVector* stack) const;

 private:
  const char* Check() const;
  // Makes a sparse tensor of the CPU of tensors of the CPU that are its parts: indices, then values. `like` is the
  // program's, whose form and sizes it gets. False where this torch cannot do that.
  bool MakeSparse(const RawValue& like, const SparseParts& form, const RawValue* parts, RawValue* value) const;

  void* (*new_)(size_t) = nullptr;
  int (*make_alias_)(void*, int64_t, const int64_t*, const int64_t*, int64_t, int32_t, int32_t, int32_t,
                     void**) = nullptr;
  int (*new_handle_)(void*, void**) = nullptr;
  int (*delete_tensor_)(void*) = nullptr;
  void* (*dispatcher_)() = nullptr;
  void* (*find_schema_)(void* result, void* dispatcher, const void* name) = nullptr;
  void* (*operator_name_)(void* result, const abi::RecordFunction*) = nullptr;
  const void* (*kernel_of_)(const void* entry, uint16_t key) = nullptr;
  void* (*copy_)(void*, const void*, bool) = nullptr;
  void* (*make_coo_)(void* result, const void* indices, const void* values, const int64_t* sizes, size_t rank,
                     uint64_t dtype, uint64_t layout, uint64_t device, uint64_t pin, uint64_t coalesced) = nullptr;
  void* (*make_compressed_)(void* result, const void* compressed, const void* plain, const void* values,
                            const int64_t* sizes, size_t rank, uint64_t dtype, uint64_t layout, uint64_t device,
                            uint64_t pin) = nullptr;
  void (*exclude_key_)(uint16_t key, bool excluded) = nullptr;
  bool (*records_)() = nullptr;
  void (*record_)(bool) = nullptr;
  void* (*make_generator_)(void*, uint64_t) = nullptr;
  void* (*default_generator_)(int8_t) = nullptr;
  uint64_t (*seed_)(const void*) = nullptr;
  uint64_t (*offset_)(const void*) = nullptr;
  void* c10_ = nullptr;
  ForeignExceptions exceptions_;
  uint16_t keys_[3] = {};  // of a kernel for the CPU, best first
  uint16_t keys_above_[4] = {};
  uint16_t sparse_keys_[2] = {};  // the first of them for COO and for compressed tensors; 0: not known
  uint32_t string_tag_ = 0, generator_tag_ = 0, complex_tag_ = 0;
  uintptr_t undefined_ = 0;
  TensorLayout tensor_;
  ValueLayout value_;
  SparseReader sparse_;
};

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_TORCH_CPU_KERNELS_H_
