// File: layouts.h
//
// Where the fields that we read lie in torch's objects, as calibration found them in this process, and how a
// field is found: by elimination over objects whose contents are known.
#ifndef RFINJECT_INJECTOR_TORCH_LAYOUTS_H_
#define RFINJECT_INJECTOR_TORCH_LAYOUTS_H_

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "injector/safe_read.h"
#include "injector/torch/abi.h"

namespace rfinject {

// torch::autograd::Node and how the running one is told (current_node.h).
struct NodeLayout {
  enum class Reference : uint8_t { kNone, kShared, kIntrusive, kBorrowed };
  bool valid = false;
  Reference reference = Reference::kNone;
  uint16_t sequence = 0;   // u64; UINT64_MAX for AccumulateGrad
  uint16_t thread = 0;     // u64, torch's number of the thread that made it
  uint16_t parameter = 0;  // of AccumulateGrad: pointer to the TensorImpl; at 0: not found
};

// at::RecordFunction. Its std::string member has two sizes, so the offsets differ by the C++ library's ABI as well.
struct RecordLayout {
  bool sequence_valid = false;
  bool forward_thread_valid = false;
  bool operands_valid = false;
  uint16_t sequence = 0;        // i64, -1: none
  uint16_t forward_thread = 0;  // u64, BACKWARD scope
  uint16_t inputs = 0;          // c10::ArrayRef: pointer, count
  uint16_t outputs = 0;         // std::vector: begin, end, capacity
};

template <typename T>
T FieldOf(const abi::RecordFunction& record, uint16_t offset) noexcept {
  return Load<T>(reinterpret_cast<uintptr_t>(&record) + offset);
}

// c10::TensorImpl and c10::StorageImpl.
struct TensorLayout {
  bool valid = false;
  uint16_t storage = 0;       // pointer to the StorageImpl, null for tensors that wrap others
  uint16_t storage_data = 0;  // in the StorageImpl: pointer to the bytes
  // c10::impl::SizesAndStrides: u64 rank, then 5 sizes and 5 strides in place; from rank 6 on a pointer to rank sizes
  // and rank strides.
  uint16_t sizes = 0;
  uint16_t offset = 0;  // i64, elements between the storage's start and the tensor's; at 0: not found
  uint16_t numel = 0;   // i64
  uint16_t dtype = 0;   // u16, c10::ScalarType
  uint16_t device = 0;  // i8, c10::DeviceType
  uint8_t meta_device = 0;
  uint16_t keys = 0;       // u64, c10::DispatchKeySet
  uint64_t zeros_key = 0;  // its bit for a tensor of zeros that lie nowhere; 0: not found
};
inline constexpr size_t kInlineRank = 5;

struct TensorShape {
  uint64_t rank;
  const int64_t *sizes, *strides;
};
inline TensorShape ShapeOf(uintptr_t tensor, const TensorLayout& layout) noexcept {
  const uintptr_t at = tensor + layout.sizes;
  const auto rank = Load<uint64_t>(at);
  const auto* sizes = rank > kInlineRank ? Load<const int64_t*>(at + 8) : reinterpret_cast<const int64_t*>(at + 8);
  return {rank, sizes, sizes + std::max<uint64_t>(rank, kInlineRank)};
}

// c10::IValue: 8 bytes of payload, then a u32 tag; 16 in all. Tags are renumbered between releases.
struct ValueLayout {
  bool valid = false;
  uint32_t none = 0;
  uint32_t tensor = 0;
  uint32_t integer = 0;
  uint32_t real = 0;
  uint32_t boolean = 0;
  uint32_t list = 0;
  uint16_t list_values = 0;  // in c10::detail::ListImpl: std::vector<IValue>
};
inline constexpr size_t kValueSize = 16;

struct TorchLayouts {
  NodeLayout node;
  RecordLayout record;
  TensorLayout tensor;
  ValueLayout value;
};

// Which offsets of an object may hold a field, given what the field held in objects seen so far.
class FieldSearch {
 public:
  // Fields of `width` bytes, naturally aligned, whose first byte lies below `span`.
  explicit FieldSearch(size_t width, size_t span = 512) : width_(width) {
    for (size_t offset = 0; offset + width <= span && offset + width <= kSpan; offset += width)
      candidates_.set(offset);
  }

  // Keeps the offsets that hold `value` in this object.
  void Require(const Snapshot& object, uint64_t value) {
    for (size_t offset = 0; offset < kSpan; offset += width_) {
      if (candidates_[offset] && (offset + width_ > object.size || object.Field(offset, width_) != value)) {
        candidates_.reset(offset);
      }
    }
    if (observations_ == 0) {
      first_value_ = value;
    } else if (value != first_value_) {
      distinct_ = true;
    }
    ++observations_;
  }

  // Keeps the offsets for which `keep` is true.
  template <typename Predicate>
  void Filter(Predicate keep) {
    for (size_t offset = 0; offset < kSpan; offset += width_) {
      if (candidates_[offset] && !keep(offset)) candidates_.reset(offset);
    }
    ++observations_;
  }

  size_t observations() const { return observations_; }
  bool distinct() const { return distinct_; }  // Require saw two different values
  size_t count() const { return candidates_.count(); }
  bool Has(size_t offset) const { return offset < kSpan && candidates_[offset]; }
  size_t First() const { return candidates_._Find_first(); }

  static constexpr size_t kNowhere = SIZE_MAX;
  // Where the field is: at the one of `usual` (where releases so far have it) that is a candidate, else at the only
  // candidate; kNowhere when there is more than one. Other words may hold small numbers, such as a thread's, by
  // chance.
  size_t Place(std::initializer_list<size_t> usual) const {
    size_t place = kNowhere;
    for (size_t offset : usual) {
      if (!Has(offset)) continue;
      if (place != kNowhere) return kNowhere;
      place = offset;
    }
    return place == kNowhere && count() == 1 ? First() : place;
  }

 private:
  static constexpr size_t kSpan = 512;
  size_t width_;
  size_t observations_ = 0;
  uint64_t first_value_ = 0;
  bool distinct_ = false;
  std::bitset<kSpan> candidates_;
};

// What is known about one tensor.
struct KnownTensor {
  uintptr_t address = 0;
  uint16_t dtype = 0;
  bool meta = false;   // lives on the device "meta", has no data; otherwise on the CPU
  uintptr_t data = 0;  // of the storage
  uint64_t offset = 0;
  uint64_t numel = 0;
  std::span<const int64_t> sizes;
  std::span<const int64_t> strides;
};

// Finds the layout of TensorImpl from tensors of known contents: at least two ranks, one above kInlineRank, several
// types, two storages, one on "meta".
class TensorSearch {
 public:
  void Observe(const KnownTensor& tensor);
  // Looks at a tensor of torch._efficientzerotensor on the CPU, after ordinary ones.
  void ObserveZeros(uintptr_t address);
  // Whether every field was found. If not, `*why` says which was not (a literal). The offset and the key of zeros may
  // be missing.
  bool Finish(TensorLayout* layout, const char** why) const;

 private:
  FieldSearch sizes_{8, 256};
  FieldSearch offset_{8, 256};
  FieldSearch numel_{8, 256};
  FieldSearch dtype_{2, 256};
  FieldSearch device_{1, 256};
  FieldSearch storage_{8, 128};
  std::bitset<64> data_;  // offsets in the StorageImpl that still fit, for the storage offset found first
  bool data_started_ = false;
  // Words that are the same in all tensors of the CPU, and in which zeros have one more bit.
  std::bitset<32> keys_ = ~std::bitset<32>();
  std::array<uint64_t, 32> plain_keys_{};
  std::array<uint64_t, 32> zeros_keys_{};
  bool zeros_seen_ = false;
  uint8_t meta_device_ = 0;
  bool small_rank_ = false;
  bool large_rank_ = false;
  size_t storages_ = 0;
};

// One argument of an operator call that is known beforehand.
struct KnownValue {
  enum class Kind : uint8_t { kTensor, kInteger, kReal, kBoolean, kNone, kIntegerList, kTensorList };
  Kind kind = Kind::kNone;
  uint64_t bits = 0;               // the payload: address of the TensorImpl, integer, bits of the double, 0 or 1
  std::array<uint64_t, 8> list{};  // payloads of a list
  size_t list_size = 0;
};

// Finds the tags of IValue and the layout of lists.
class ValueSearch {
 public:
  // `values`: kValueSize bytes for each of `known`, already copied. False when they contradict what was learned.
  bool Observe(const unsigned char* values, std::span<const KnownValue> known);
  bool Finish(ValueLayout* layout, const char** why) const;

 private:
  struct Tag {
    uint32_t value = 0;
    size_t seen = 0;
  };
  bool Learn(Tag* tag, uint32_t value);
  Tag tensor_, integer_, real_, boolean_, none_, list_;
  FieldSearch list_values_{8, 64};
};

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_TORCH_LAYOUTS_H_
