#include "injector/torch/layouts.h"

#include <bit>
#include <cstring>

namespace rfinject {
namespace {

bool SameNumbers(const unsigned char* bytes, std::span<const int64_t> numbers) {
  return std::memcmp(bytes, numbers.data(), numbers.size_bytes()) == 0;
}

}  // namespace

void TensorSearch::Observe(const KnownTensor& tensor) {
  const Snapshot object = TakeSnapshot(tensor.address, 256);
  const size_t rank = tensor.sizes.size();
  sizes_.Filter([&](size_t offset) {
    if (offset + 8 + 2 * kInlineRank * 8 > object.size || object.Word(offset) != rank) return false;
    if (rank <= kInlineRank) {
      return SameNumbers(&object.bytes[offset + 8], tensor.sizes) &&
             SameNumbers(&object.bytes[offset + 8 + kInlineRank * 8], tensor.strides);
    }
    unsigned char outside[2 * 16 * 8];
    if (rank > 16 || SafeRead(object.Word(offset + 8), outside, 2 * rank * 8) != 2 * rank * 8) return false;
    return SameNumbers(outside, tensor.sizes) && SameNumbers(outside + rank * 8, tensor.strides);
  });
  (rank <= kInlineRank ? small_rank_ : large_rank_) = true;
  offset_.Require(object, tensor.offset);
  numel_.Require(object, tensor.numel);
  dtype_.Require(object, tensor.dtype);

  // An engaged optional of c10::Device: type, index (-1: the current one). Engaged is a byte of 1 behind
  // (std::optional) or in front (c10::optional, up to torch 2.0).
  device_.Filter([&](size_t offset) {
    if (offset == 0 || offset + 3 > object.size || object.bytes[offset + 1] != 0xff) return false;
    if (object.bytes[offset + 2] != 1 && object.bytes[offset - 1] != 1) return false;
    return tensor.meta ? object.bytes[offset] != 0 && object.bytes[offset] < 32 : object.bytes[offset] == 0;
  });
  if (tensor.meta) {
    if (device_.count() == 1) meta_device_ = object.bytes[device_.First()];
    return;
  }

  for (size_t i = 0; i < keys_.size(); ++i) {
    if (storages_ == 0) plain_keys_[i] = object.Word(8 * i);
    if (8 * i + 8 > object.size || object.Word(8 * i) != plain_keys_[i]) keys_.reset(i);
  }

  // The storage's offset and that of the data pointer in it are found together: keep the offsets that lead to a
  // StorageImpl with the known data pointer at some place that served for all tensors before.
  std::bitset<64> places;
  storage_.Filter([&](size_t offset) {
    const Snapshot storage = TakeSnapshot(object.Word(offset), 64);
    bool any = false;
    for (size_t place = 0; place + 8 <= storage.size; place += 8) {
      if (storage.Word(place) == tensor.data && (!data_started_ || data_[place])) {
        places.set(place);
        any = true;
      }
    }
    return any;
  });
  data_ = places;
  data_started_ = true;
  ++storages_;
}

void TensorSearch::ObserveZeros(uintptr_t address) {
  const Snapshot object = TakeSnapshot(address, 256);
  for (size_t i = 0; i < keys_.size(); ++i) {
    zeros_keys_[i] = object.Word(8 * i) ^ plain_keys_[i];
    const bool more = (object.Word(8 * i) & zeros_keys_[i]) != 0;
    if (8 * i + 8 > object.size || !std::has_single_bit(zeros_keys_[i]) || !more) keys_.reset(i);
  }
  zeros_seen_ = true;
}

bool TensorSearch::Finish(TensorLayout* layout, const char** why) const {
  *why = nullptr;
  if (sizes_.count() != 1 || !small_rank_ || !large_rank_) {
    *why = "TensorImpl: sizes";
  } else if (numel_.count() != 1 || !numel_.distinct()) {
    *why = "TensorImpl: numel";
  } else if (dtype_.count() != 1 || !dtype_.distinct()) {
    *why = "TensorImpl: dtype";
  } else if (device_.count() != 1 || meta_device_ == 0) {
    *why = "TensorImpl: device";
  } else if (storage_.count() != 1 || data_.none() || storages_ < 2) {
    *why = "TensorImpl: storage";
  }
  if (*why != nullptr) return false;
  layout->sizes = static_cast<uint16_t>(sizes_.First());
  if (offset_.count() == 1 && offset_.distinct()) layout->offset = static_cast<uint16_t>(offset_.First());
  // They lie behind numel, the type, the device and some flags, in two words. What lies behind them may look
  // alike.
  const size_t first = numel_.First() / 8 + 1;
  const std::bitset<32> near = zeros_seen_ ? keys_ & std::bitset<32>(uint64_t{0b11} << first) : std::bitset<32>();
  if (near.count() == 1) {
    layout->keys = static_cast<uint16_t>(8 * near._Find_first());
    layout->zeros_key = zeros_keys_[near._Find_first()];
  }
  layout->numel = static_cast<uint16_t>(numel_.First());
  layout->dtype = static_cast<uint16_t>(dtype_.First());
  layout->device = static_cast<uint16_t>(device_.First());
  layout->meta_device = meta_device_;
  layout->storage = static_cast<uint16_t>(storage_.First());
  // The CPU allocator's context is the data pointer again, so the first of the two places is the data.
  layout->storage_data = static_cast<uint16_t>(data_._Find_first());
  layout->valid = true;
  return true;
}

bool ValueSearch::Learn(Tag* tag, uint32_t value) {
  if (tag->seen++ == 0) tag->value = value;
  return tag->value == value;
}

bool ValueSearch::Observe(const unsigned char* values, std::span<const KnownValue> known) {
  for (size_t i = 0; i < known.size(); ++i) {
    const KnownValue& value = known[i];
    uint64_t payload = 0;
    uint32_t tag = 0;
    std::memcpy(&payload, values + i * kValueSize, sizeof(payload));
    std::memcpy(&tag, values + i * kValueSize + 8, sizeof(tag));
    bool good = false;
    switch (value.kind) {
      case KnownValue::Kind::kTensor:
        good = payload == value.bits && Learn(&tensor_, tag);
        break;
      case KnownValue::Kind::kInteger:
        good = payload == value.bits && Learn(&integer_, tag);
        break;
      case KnownValue::Kind::kReal:
        good = payload == value.bits && Learn(&real_, tag);
        break;
      case KnownValue::Kind::kBoolean:
        good = (payload & 0xff) == value.bits && Learn(&boolean_, tag);
        break;
      case KnownValue::Kind::kNone:
        good = Learn(&none_, tag);
        break;
      case KnownValue::Kind::kIntegerList:
      case KnownValue::Kind::kTensorList: {
        const Snapshot object = TakeSnapshot(payload, 64);
        Tag& element = value.kind == KnownValue::Kind::kTensorList ? tensor_ : integer_;
        uint32_t element_tag = 0;
        list_values_.Filter([&](size_t offset) {
          const uint64_t begin = object.Word(offset);
          const uint64_t size = object.Word(offset + 8) - begin;
          unsigned char elements[8 * kValueSize];
          if (size != value.list_size * kValueSize || SafeRead(begin, elements, size) != size) return false;
          for (size_t j = 0; j < value.list_size; ++j) {
            if (std::memcmp(elements + j * kValueSize, &value.list[j], 8) != 0) return false;
          }
          std::memcpy(&element_tag, elements + 8, sizeof(element_tag));
          return true;
        });
        good = list_values_.count() != 0 && Learn(&list_, tag) && Learn(&element, element_tag);
        break;
      }
    }
    if (!good) return false;
  }
  return true;
}

bool ValueSearch::Finish(ValueLayout* layout, const char** why) const {
  *why = nullptr;
  const std::array<const Tag*, 6> tags = {&tensor_, &integer_, &real_, &boolean_, &none_, &list_};
  for (size_t i = 0; i < tags.size(); ++i) {
    if (tags[i]->seen < 2) *why = "IValue: a type was seen once at most";
    for (size_t j = 0; j < i; ++j) {
      if (tags[i]->value == tags[j]->value) *why = "IValue: two types with one tag";
    }
  }
  if (list_values_.count() != 1) *why = "IValue: lists";
  if (*why != nullptr) return false;
  layout->tensor = tensor_.value;
  layout->integer = integer_.value;
  layout->real = real_.value;
  layout->boolean = boolean_.value;
  layout->none = none_.value;
  layout->list = list_.value;
  layout->list_values = static_cast<uint16_t>(list_values_.First());
  layout->valid = true;
  return true;
}

}  // namespace rfinject
