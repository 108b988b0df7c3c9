#include "injector/torch/operands.h"

#include <algorithm>
#include <array>
#include <bit>

namespace rfinject {
namespace {

// Lists of more integers are not shapes or strides, and are cut.
constexpr size_t kMaxInts = 64;

DType DTypeOf(uint16_t number) {
  if (number <= static_cast<uint16_t>(DType::kBool)) return static_cast<DType>(number);
  return number == static_cast<uint16_t>(DType::kBFloat16) ? DType::kBFloat16 : DType::kOther;
}

}  // namespace

uint64_t ElementSize(uint16_t dtype) {
  // c10/core/ScalarType.h, in its order: u8 i8 i16 i32 i64 f16 f32 f64 c32 c64 c128 bool qint8 quint8 qint32 bf16.
  // The numbers above are 1-byte types (sub-byte ones take a byte, float8) except uint16, uint32 and uint64.
  static constexpr std::array<uint8_t, 16> kSizes = {1, 1, 2, 4, 8, 2, 4, 8, 4, 8, 16, 1, 1, 1, 4, 2};
  if (dtype < kSizes.size()) return kSizes[dtype];
  switch (dtype) {
    case 27:
      return 2;
    case 28:
      return 4;
    case 29:
      return 8;
    default:
      return 1;
  }
}

bool OperandReader::IsZeros(uintptr_t tensor) const {
  return tensor_.zeros_key != 0 && (Load<uint64_t>(tensor + tensor_.keys) & tensor_.zeros_key) != 0;
}

void OperandReader::ReadSparse(const SparseParts& parts, TensorView* view) const {
  view->sparse = true;
  view->numel = view->distinct = Load<uint64_t>(parts.values + tensor_.numel);
  view->storage = Load<uintptr_t>(parts.values + tensor_.storage);
  if (tensor_.offset != 0) view->offset = Load<int64_t>(parts.values + tensor_.offset);
  view->broadcast = false;
  view->format = MemoryFormat::kUnknown;
  for (size_t i = 0; i < parts.index_count(); ++i) {
    view->index_bytes += Load<uint64_t>(parts.indices[i] + tensor_.numel) *
                         ElementSize(Load<uint16_t>(parts.indices[i] + tensor_.dtype));
  }
}

TensorView OperandReader::ReadTensor(uintptr_t tensor, Operands* to) const {
  TensorView view;
  const auto dtype = Load<uint16_t>(tensor + tensor_.dtype);
  const auto device = Load<uint8_t>(tensor + tensor_.device);
  view.dtype = DTypeOf(dtype);
  view.element_size = ElementSize(dtype);
  view.numel = Load<uint64_t>(tensor + tensor_.numel);
  view.storage = Load<uintptr_t>(tensor + tensor_.storage);
  if (tensor_.offset != 0) view.offset = Load<int64_t>(tensor + tensor_.offset);
  const uintptr_t data = view.storage != 0 ? Load<uintptr_t>(view.storage + tensor_.storage_data) : 0;
  bool zeros = false;
  SparseParts parts;
  bool sparse = false;
  if (device == tensor_.meta_device) {
    to->has_meta = true;
  } else if (IsZeros(tensor)) {
    to->has_zeros = true;
    zeros = true;
  } else if (view.storage == 0 || (data == 0 && view.numel != 0)) {
    sparse = view.storage == 0 && sparse_.Read(tensor, &parts);
    if (!sparse) to->has_wrapper = true;
  }
  if (to->first_device_ < 0) {
    to->first_device_ = device;
  } else if (to->first_device_ != device) {
    to->crosses_devices = true;
  }

  const auto [rank, sizes, strides] = ShapeOf(tensor, tensor_);
  view.rank = static_cast<uint8_t>(std::min<uint64_t>(rank, kMaxRank));
  view.distinct = 1;
  for (uint64_t i = 0; i < rank; ++i) {
    const int64_t size = sizes[i];
    if (i < kMaxRank) {
      view.shape[i] = size;
    } else {
      view.shape[kMaxRank - 1] *= size;
    }
    if (strides[i] == 0 && size > 1) {
      view.broadcast = true;
    } else {
      view.distinct *= static_cast<uint64_t>(size);
    }
  }
  if (zeros) {  // torch makes one zero of them, as large as need be by strides of 0
    view.broadcast = true;
    view.distinct = 1;
  }
  const bool has_format = rank == 4 && view.shape[1] > 1 && view.shape[2] * view.shape[3] > 1;
  if (has_format) {
    view.format = strides[1] == 1 ? MemoryFormat::kChannelsLast : MemoryFormat::kChannelsFirst;
  }
  if (sparse) ReadSparse(parts, &view);
  return view;
}

void OperandReader::ReadNumbers(bool (*knows)(uintptr_t, size_t), Operands* to) const {
  constexpr uint64_t kMost = 1 << 14;  // longer ones are no ends of sequences
  for (TensorView& vector : to->tensors) {
    if (vector.rank != 1 || vector.dtype != DType::kInt32 || vector.broadcast || vector.offset < 0) continue;
    if (vector.numel == 0 || vector.numel > kMost || vector.storage == 0) continue;
    const uintptr_t at = Load<uintptr_t>(vector.storage + tensor_.storage_data) +
                         static_cast<uint64_t>(vector.offset) * sizeof(int32_t);
    if (!knows(at, vector.numel * sizeof(int32_t))) continue;
    vector.first_number = static_cast<uint32_t>(to->ints.size());
    vector.number_count = static_cast<uint32_t>(vector.numel);
    for (uint64_t i = 0; i < vector.numel; ++i) to->ints.push_back(Load<int32_t>(at + i * sizeof(int32_t)));
  }
}

void OperandReader::ReadList(uintptr_t list, Argument* argument, Operands* to) const {
  if (list == 0) return;
  const auto begin = Load<uintptr_t>(list + value_.list_values);
  const auto end = Load<uintptr_t>(list + value_.list_values + 8);
  const size_t count = (end - begin) / kValueSize;
  size_t tensors = 0;
  size_t ints = 0;
  argument->first = static_cast<uint16_t>(to->tensors.size());
  const size_t first_int = to->ints.size();
  for (size_t i = 0; i < count; ++i) {
    const uintptr_t value = begin + i * kValueSize;
    const auto tag = Load<uint32_t>(value + 8);
    const auto payload = Load<uint64_t>(value);
    if (tag == value_.tensor && payload != undefined_) {
      if (to->tensors.size() >= UINT16_MAX) break;
      to->tensors.push_back(ReadTensor(payload, to));
      ++tensors;
    } else if ((tag == value_.integer || tag == value_.boolean) && ints < kMaxInts) {
      to->ints.push_back(tag == value_.integer ? static_cast<int64_t>(payload) : static_cast<int64_t>(payload & 1));
      ++ints;
    }
  }
  if (tensors != 0) {
    argument->kind = Argument::Kind::kTensorList;
    argument->count = static_cast<uint16_t>(tensors);
  } else if (ints == count) {  // an empty list is one of integers as well as of anything
    argument->kind = Argument::Kind::kIntList;
    argument->first = static_cast<uint16_t>(first_int);
    argument->count = static_cast<uint16_t>(ints);
  }
}

void OperandReader::Read(uintptr_t values, size_t count, Operands* to) const {
  for (size_t i = 0; i < count; ++i) {
    const uintptr_t value = values + i * kValueSize;
    const auto tag = Load<uint32_t>(value + 8);
    const auto payload = Load<uint64_t>(value);
    Argument argument;
    if (tag == value_.tensor) {
      if (payload == undefined_ || payload == 0) {
        argument.kind = Argument::Kind::kNone;
      } else if (to->tensors.size() < UINT16_MAX) {
        argument.kind = Argument::Kind::kTensor;
        argument.first = static_cast<uint16_t>(to->tensors.size());
        argument.count = 1;
        to->tensors.push_back(ReadTensor(payload, to));
      }
    } else if (tag == value_.none) {
      argument.kind = Argument::Kind::kNone;
    } else if (tag == value_.integer) {
      argument.kind = Argument::Kind::kInt;
      argument.integer = static_cast<int64_t>(payload);
    } else if (tag == value_.boolean) {
      argument.kind = Argument::Kind::kBool;
      argument.integer = static_cast<int64_t>(payload & 1);
    } else if (tag == value_.real) {
      argument.kind = Argument::Kind::kDouble;
      argument.real = std::bit_cast<double>(payload);
    } else if (tag == value_.list) {
      ReadList(payload, &argument, to);
    }
    to->arguments.push_back(argument);
  }
}

}  // namespace rfinject
