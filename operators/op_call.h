// File: op_call.h
//
// One executed ATen operator as plain data: what the estimator's cost model sees. Nothing of torch's types is here;
// the injector fills it from memory layouts that it calibrated.
#ifndef RFINJECT_OPERATORS_OP_CALL_H_
#define RFINJECT_OPERATORS_OP_CALL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace rfinject {

// Numbers equal c10::ScalarType.
enum class DType : int8_t {
  kUint8 = 0,
  kInt8 = 1,
  kInt16 = 2,
  kInt32 = 3,
  kInt64 = 4,
  kHalf = 5,
  kFloat = 6,
  kDouble = 7,
  kComplexHalf = 8,
  kComplexFloat = 9,
  kComplexDouble = 10,
  kBool = 11,
  kBFloat16 = 15,
  kOther = 127,
};

inline constexpr size_t kMaxRank = 8;  // of ranks above, the trailing dimensions are folded into the last one

// How four dimensions lie in memory: PyTorch's default, or torch.channels_last. Unknown where there are not four, or
// where it makes no difference: one channel, or one pixel.
enum class MemoryFormat : uint8_t { kUnknown, kChannelsFirst, kChannelsLast };

struct TensorView {
  DType dtype = DType::kOther;
  uint8_t rank = 0;
  MemoryFormat format = MemoryFormat::kUnknown;
  std::array<int64_t, kMaxRank> shape{};
  uint64_t numel = 0;
  uint64_t element_size = 0;  // bytes
  uintptr_t storage = 0;      // identity of the storage, to see aliases; 0 unknown
  bool broadcast = false;     // some stride is 0: fewer elements lie in memory than numel says
  uint64_t distinct = 0;      // elements that really lie in memory (strides of 0 counted once)
  int64_t offset = -1;        // elements between the storage's start and this tensor's first; -1 unknown
  // A sparse tensor (COO, CSR and the like): `shape` is the whole matrix's; numel, element_size and storage are those
  // of the numbers that it holds, and this many bytes say where they stand.
  bool sparse = false;
  uint64_t index_bytes = 0;
  // Of a vector of integers whose numbers are known (TakesSequences): where they stand in OpCall::ints.
  uint32_t first_number = 0, number_count = 0;
};

// One argument of the operator, in schema order.
struct Argument {
  enum class Kind : uint8_t { kOther, kNone, kTensor, kTensorList, kInt, kIntList, kDouble, kBool };
  Kind kind = Kind::kOther;
  uint16_t first = 0;   // kTensor, kTensorList: index into OpCall::tensors
  uint16_t count = 0;   //   and how many; kIntList: index into OpCall::ints
  int64_t integer = 0;  // kInt, kBool
  double real = 0;      // kDouble
};

struct OpCall {
  std::string_view name;  // "aten::convolution", without the overload
  std::span<const Argument> inputs;
  std::span<const Argument> outputs;    // as many as the operator returns
  std::span<const TensorView> tensors;  // what inputs and outputs refer to
  std::span<const int64_t> ints;
  bool on_host = false;           // all of its tensors lie in the host's memory
  bool crosses_devices = false;   // some of them lie in the host's, some in a GPU's
  bool children_counted = false;  // an operator that ran inside this one was turned into an estimated kernel
  // Where launches are seen (Source::LaunchesOfThread): it launched kernels itself, beside what ran inside, and how
  // many its thread had launched when it began.
  bool launched = false;
  uint64_t first_launch = 0;
};

// How the observer treats an operator before it runs: asked once per name, then remembered.
enum class OpKind : uint8_t {
  kLeafIfChildless,  // becomes a kernel when no operator inside it did, or when it launched one beside those
  kAtomic,           // becomes a kernel; operators inside it are its implementation and are not observed
  kFree,             // a view or bookkeeping: costs nothing, and so does what runs inside
};
OpKind ClassifyOp(std::string_view name) noexcept;

// Whether the operator copies one tensor into another ("aten::copy_"): between two devices, that is a transfer. Any
// other operator that is given tensors of two devices takes a number from the host.
bool IsCopy(std::string_view name) noexcept;

// Returns the product by which forward-mode differentiation multiplies by tangents inside the atomic operator `name`
// ("aten::mm" for "aten::addmm"); empty where there is none. An implementation of a product has no such product
// inside otherwise.
std::string_view TangentProductOf(std::string_view name) noexcept;

// Whether an operator of this name, an attention, takes sequences of several lengths, whose ends are the numbers of a
// vector (TensorView::first_number).
bool TakesSequences(std::string_view name) noexcept;

// Some operators are one call of a library on a GPU and many operators on the CPU, where their backward is many
// autograd nodes (nn.LSTM). For these, returns the name of the operator that does the same backward on a GPU, from
// the forward's operands and results; empty for all others.
std::string_view FusedBackwardOf(std::string_view name) noexcept;

}  // namespace rfinject

#endif  // RFINJECT_OPERATORS_OP_CALL_H_
