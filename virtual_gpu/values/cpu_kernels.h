// File: cpu_kernels.h
//
// Runs an operator's CPU kernel on operands that lie in memory which the host can read, without the program noticing:
// no callback, autograd, autocast, mode or subclass sees the call.
//
// Torch keeps for each operator a kernel for each kind of device, in a form that takes its operands from a stack of
// c10::IValue. That form and the few structs on the way to it were the same from torch 2.2 on. What can be checked is
// checked before anything is called (Init); where a check fails there are no kernels.
#ifndef RFINJECT_VIRTUAL_GPU_VALUES_CPU_KERNELS_H_
#define RFINJECT_VIRTUAL_GPU_VALUES_CPU_KERNELS_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

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
  // What is to be done to the elements before they are used: a view says so instead of doing it.
  bool conjugate = false, negate = false;
  size_t element_bytes = 0;

  // Bytes from its first element to the end of its last. Strides are not negative in torch.
  size_t span() const;
  // Whether no byte within its span is another's.
  bool dense() const { return span() == numel * element_bytes; }
  bool contiguous() const;
  // Whether its numbers are whole, or true and false.
  bool integers() const { return dtype <= 4 || dtype == 11; }
  bool halves() const { return dtype == 5 || dtype == 15; }
};
inline constexpr uint16_t kFloat = 6, kDouble = 7, kBool = 11;  // c10::ScalarType

class CpuKernels {
 public:
  // Returns false, with the reason in `*why` (a literal), where this torch has other structs. `every`: also for
  // tensors of complex numbers, and for operators whose implementation for the CPU consists of other operators.
  bool Init(const TorchSymbols& symbols, const TorchLayouts& layouts, bool every, const char** why);

  // Finds the kernel of the operator that a RecordFunction is of, for tensors of that form; false where it has none
  // for the CPU, or one of the program's in Python.
  bool Find(const abi::RecordFunction& record, Form form, CpuKernel* kernel) const;
  // The same by the operator's name, "aten::neg" or, with that of its overload, "aten::mul.Tensor".
  bool FindByName(std::string_view name, CpuKernel* kernel) const;

  bool IsTensor(const RawValue& value) const { return value.tag == value_.tensor && value.payload != undefined_; }
  uint32_t TensorTag() const { return value_.tensor; }  // also of a tensor that is undefined
  bool IsNone(const RawValue& value) const { return value.tag == value_.none; }
  bool IsList(const RawValue& value) const { return value.tag == value_.list; }
  bool IsGenerator(const RawValue& value) const { return value.tag == tags_.generator; }
  // Whether the value owns an object that is neither a tensor nor none.
  bool IsShared(const RawValue& value) const;
  // Whether the value is of a kind that can be handed on: none, a tensor, a number, a string, a list, a device or a
  // generator.
  bool IsCarried(const RawValue& value) const { return value.tag < 64 && (carried_ >> value.tag & 1) != 0; }
  bool IsNumber(const RawValue& value) const { return value.tag == value_.real || value.tag == value_.integer; }
  // Of a number as torch hands it over: a double, or an integer.
  double Real(const RawValue& value) const;
  // Calls `visit(value)` for each tensor that a value lies in: itself, its parts, or the elements of a list.
  template <typename Visit>
  void ForTensors(const RawValue& value, const Visit& visit) const {
    if (SparseParts parts; ReadSparse(value, &parts)) {
      for (size_t i = 0; i < parts.index_count(); ++i) visit(PartOf(parts.indices[i]));
      visit(PartOf(parts.values));
    } else if (IsTensor(value)) {
      visit(value);
    } else if (IsList(value) && value.payload != 0) {
      const RawVector* list = Elements(value);
      for (const RawValue* element = list->begin; element != list->end; ++element) {
        if (IsTensor(*element)) visit(*element);
      }
    }
  }
  // False for a tensor without memory of its own, or of numbers that are not plain.
  bool Read(const RawValue& tensor, TensorPlace* place) const;
  // Where the first eight bytes of a tensor of whatever numbers lie; 0 where it has fewer.
  uintptr_t FirstWord(const RawValue& tensor) const;
  // The parts of a sparse tensor; false for any other value. PartOf is one of them, as a value.
  bool ReadSparse(const RawValue& tensor, SparseParts* parts) const {
    return IsTensor(tensor) && sparse_.reader.Read(tensor.payload, parts);
  }
  RawValue PartOf(uintptr_t part) const { return {part, value_.tensor, 0}; }
  Form FormOf(const RawValue& value) const {
    SparseParts parts;
    return !ReadSparse(value, &parts) ? Form::kDense : parts.compressed ? Form::kCompressed : Form::kCoo;
  }
  // How many rows a tensor has, or numbers where it is sparse; false where that cannot be read.
  bool Count(const RawValue& tensor, int64_t* count) const;
  RawVector* Elements(const RawValue& list) const {
    return reinterpret_cast<RawVector*>(list.payload + value_.list_values);
  }

  // Takes part in the ownership of what a value refers to, and gives that up. For IsShared values, and for
  // tensors that not only Python owns.
  void Share(const RawValue& value) const;
  bool IsMine(const RawValue& value) const;  // it has no other owner
  // Makes a list of the same elements.
  bool CloneList(const RawValue& list, RawValue* clone) const;
  // Destroys any value.
  void Destroy(const RawValue& value) const;

  // Makes a tensor of the CPU on that memory; false when there is no memory for it.
  bool MakeAlias(const TensorPlace& place, RawValue* value) const;
  // Makes a tensor of the CPU of that shape, and where nothing lies between its elements of those strides, with
  // memory of its own and other numbers; false when there is no memory for it.
  bool MakeTensor(const TensorPlace& like, uint16_t dtype, RawValue* value) const;
  // Makes a list of `count` times true; false when there is no memory for it.
  bool MakeTrueList(size_t count, RawValue* value) const;
  // Makes a sparse tensor of the CPU of tensors of the CPU that are its parts: indices, then values. `like` is the
  // program's, whose form and sizes it gets. False where this torch cannot do that.
  bool MakeSparse(const RawValue& like, const SparseParts& form, const RawValue* parts, RawValue* value) const;
  // Another owner of the same tensor.
  bool Another(const RawValue& tensor, RawValue* value) const;
  // A generator of the CPU for what CUDA's generator has just given: each seed and offset has numbers of its own.
  // `cuda` is the program's generator, or none for the default one.
  bool MakeGenerator(const RawValue& cuda, RawValue* value) const;
  // The seed of that generator.
  uint64_t Seed(const RawValue& cuda) const;
  RawValue None() const { return {0, value_.none, 0}; }
  RawValue Integer(int64_t number) const { return {static_cast<uint64_t>(number), value_.integer, 0}; }
  RawValue Boolean(bool is) const { return {is ? uint64_t{1} : uint64_t{0}, value_.boolean, 0}; }
  RawValue RealValue(double number) const { return {std::bit_cast<uint64_t>(number), value_.real, 0}; }

  // Runs the kernel on the calling thread. It takes the operands off the stack, whatever happens, and leaves results.
  // Returns false, with an empty stack, when it throws.
  bool Run(const CpuKernel& kernel, RawVector* stack) const;
  // Copies between tensors of the CPU of one shape, with conversion.
  bool Copy(const RawValue& to, const RawValue& from) const;
  // Replaces the tensor, which is owned, by its negative, or by its conjugate where `conjugate` is true.
  bool Resolve(bool conjugate, RawValue* tensor) const;

  // Whether the thread's operators are noted for a backward from now on. Returns whether they were.
  bool SetGradients(bool wanted) const;
  // What a backward has found for a tensor, which stays the tensor's; a tensor that is not there where it found
  // nothing.
  RawValue GradientOf(const RawValue& tensor) const;

  // Memory for a stack of `count` values, which torch may enlarge and we free.
  bool MakeStack(size_t count, RawVector* stack) const;
  void Clear(RawVector* stack) const;

 private:
  struct Handle;

  const char* Check() const;
  void FindNumbers(bool every);
  void FindSparse(void* torch, const TensorLayout& layout);
  bool FindSchema(const void* name, Handle* handle) const;
  // `composite`: also one that consists of other operators.
  bool KernelOf(const Handle& handle, bool composite, Form form, CpuKernel* kernel) const;
  RawValue TakeFromBox(void* box) const;
  template <typename Call>
  bool Unseen(const Call& call) const;

  void* (*new_)(size_t) = nullptr;
  struct {
    int (*alias)(void*, int64_t, const int64_t*, const int64_t*, int64_t, int32_t, int32_t, int32_t,
                 void**) = nullptr;
    int (*empty)(int64_t, const int64_t*, const int64_t*, int32_t, int32_t, int32_t, void**) = nullptr;
    int (*handle)(void*, void**) = nullptr;
    void (*list)(void* list, RawVector* values, void* type) = nullptr;
    void* (*bool_type)() = nullptr;
  } make_;
  int (*delete_tensor_)(void*) = nullptr;
  void* (*dispatcher_)() = nullptr;
  void* (*find_schema_)(void* result, void* dispatcher, const void* name) = nullptr;
  void* (*operator_name_)(void* result, const abi::RecordFunction*) = nullptr;
  const void* (*kernel_of_)(const void* entry, uint16_t key) = nullptr;
  void* (*copy_)(void*, const void*, bool) = nullptr;
  bool (*records_)() = nullptr;
  void (*record_)(bool) = nullptr;
  struct {
    void* (*make)(void*, uint64_t) = nullptr;
    void* (*of_device)(int8_t) = nullptr;
    uint64_t (*seed)(const void*) = nullptr;
    uint64_t (*offset)(const void*) = nullptr;
  } generators_;
  struct {
    bool (*enabled)() = nullptr;
    void (*enable)(bool) = nullptr;
    void** (*of_tensor)(uint64_t tensor) = nullptr;
  } gradients_;
  struct {
    void* (*get)() = nullptr;
    void (*set)(void*) = nullptr;
  } warnings_;
  void* c10_ = nullptr;
  ForeignExceptions exceptions_;
  bool complex_ = false;               // tensors of complex numbers are read
  std::array<uint16_t, 4> keys_ = {};  // of a kernel for the CPU, best first
  uint16_t cuda_key_ = 0;
  // What a view may say of its elements: a bit in a tensor's keys, 0 where it was not found, and what is done then.
  struct Lazy {
    uint64_t key = 0;
    CpuKernel kernel;
  };
  Lazy conjugate_, negative_;
  struct {
    uint32_t string = 0, generator = 0, complex = 0;
  } tags_;
  uint64_t carried_ = 0;  // a bit for each tag (IsCarried)
  uintptr_t undefined_ = 0;
  TensorLayout tensor_;
  ValueLayout value_;
  struct {
    SparseReader reader;
    void* (*coo)(void* result, const void* indices, const void* values, const int64_t* sizes, size_t rank,
                 uint64_t dtype, uint64_t layout, uint64_t device, uint64_t pin, uint64_t coalesced) = nullptr;
    void* (*compressed)(void* result, const void* compressed, const void* plain, const void* values,
                        const int64_t* sizes, size_t rank, uint64_t dtype, uint64_t layout, uint64_t device,
                        uint64_t pin) = nullptr;
    void (*exclude_key)(uint16_t key, bool excluded) = nullptr;
    uint16_t keys_above[4] = {};
    uint16_t keys[2] = {};  // the first of keys_ for COO and for compressed tensors; 0: not known
  } sparse_;
};

}  // namespace rfinject

#endif  // RFINJECT_VIRTUAL_GPU_VALUES_CPU_KERNELS_H_
