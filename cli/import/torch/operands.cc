#include "cli/import/torch/operands.h"

#include <rapidjson/document.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cli/import/torch/words.h"

namespace rfinject::cli {
namespace {

struct NamedType {
  std::string_view name;
  DType type;
  uint64_t bytes;
};
// As caffe2::TypeMeta and, before 2022, the profiler's own table write them.
constexpr NamedType kTypes[] = {
    {"float", DType::kFloat, 4},
    {"double", DType::kDouble, 8},
    {"c10::Half", DType::kHalf, 2},
    {"c10::BFloat16", DType::kBFloat16, 2},
    {"long int", DType::kInt64, 8},
    {"long", DType::kInt64, 8},
    {"int", DType::kInt32, 4},
    {"short", DType::kInt16, 2},
    {"short int", DType::kInt16, 2},
    {"unsigned char", DType::kUint8, 1},
    {"signed char", DType::kInt8, 1},
    {"char", DType::kInt8, 1},
    {"bool", DType::kBool, 1},
    {"c10::complex<float>", DType::kComplexFloat, 8},
    {"c10::complex<double>", DType::kComplexDouble, 16},
    {"c10::complex<c10::Half>", DType::kComplexHalf, 4},
    {"c10::Float8_e4m3fn", DType::kOther, 1},
    {"c10::Float8_e5m2", DType::kOther, 1},
    {"c10::Float8_e4m3fnuz", DType::kOther, 1},
    {"c10::Float8_e5m2fnuz", DType::kOther, 1},
};

// The first one of the type.
NamedType NamedTypeOf(DType type) {
  const auto* found = std::ranges::find(kTypes, type, &NamedType::type);
  return found == std::end(kTypes) ? NamedType{"", DType::kOther, 0} : *found;
}

using Json = rapidjson::Document;

Json Parsed(std::string_view text) {
  Json json;
  json.Parse<rapidjson::kParseIterativeFlag>(text.data(), text.size());
  if (json.HasParseError() || !json.IsArray()) json.SetArray();
  return json;
}

std::vector<int64_t> Numbers(const rapidjson::Value& list) {
  std::vector<int64_t> numbers;
  if (!list.IsArray()) return numbers;
  for (const rapidjson::Value& one : list.GetArray()) numbers.push_back(one.IsInt64() ? one.GetInt64() : 0);
  return numbers;
}

bool IsListOfLists(const rapidjson::Value& value) { return value.IsArray() && !value.Empty() && value[0].IsArray(); }

// Whether channels are the fastest dimension; unknown where that makes no difference.
MemoryFormat FormatOf(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides) {
  if (shape.size() != 4 || strides.size() != 4 || shape[1] == 1 || shape[2] * shape[3] == 1) {
    return MemoryFormat::kUnknown;
  }
  return strides[1] == 1 ? MemoryFormat::kChannelsLast : MemoryFormat::kChannelsFirst;
}

}  // namespace

DType DTypeOfName(std::string_view name, uint64_t* bytes) {
  for (const NamedType& one : kTypes) {
    if (one.name != name) continue;
    *bytes = one.bytes;
    return one.type;
  }
  *bytes = 0;
  return DType::kOther;
}

std::string_view NameOfDType(DType type) { return NamedTypeOf(type).name; }

TensorView TensorOf(DType type, const std::vector<int64_t>& shape) {
  TensorView tensor;
  tensor.dtype = type;
  tensor.element_size = NamedTypeOf(type).bytes;
  tensor.rank = static_cast<uint8_t>(std::min(shape.size(), kMaxRank));
  tensor.numel = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    const uint64_t size = shape[i] < 0 ? 0 : static_cast<uint64_t>(shape[i]);
    if (__builtin_mul_overflow(tensor.numel, size, &tensor.numel)) tensor.numel = UINT64_MAX;
    int64_t& slot = tensor.shape[std::min(i, kMaxRank - 1)];
    slot =
        i < kMaxRank ? static_cast<int64_t>(size) : slot * static_cast<int64_t>(std::min<uint64_t>(size, 1u << 20));
  }
  tensor.distinct = tensor.numel;
  return tensor;
}

RecordedCall::RecordedCall(std::string name, std::string_view text, DType list_type) : name_(std::move(name)) {
  std::array<Json, 6> lists;
  for (Json& list : lists) {
    const size_t end = text.find('\n');
    list = Parsed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  const Json &dims = lists[0], &types = lists[1], &strides = lists[2], &values = lists[3];
  const rapidjson::SizeType count = std::max(dims.Size(), types.Size());
  const rapidjson::Value none(rapidjson::kArrayType);
  for (rapidjson::SizeType i = 0; i < count; ++i) {
    Argument argument;
    const std::string_view type = i < types.Size() && types[i].IsString() ? types[i].GetString() : "";
    const rapidjson::Value& shape = i < dims.Size() ? dims[i] : none;
    uint64_t bytes = 0;
    if (DTypeOfName(type, &bytes) != DType::kOther || bytes != 0) {
      AddTensor(&argument, Numbers(shape), i < strides.Size() ? Numbers(strides[i]) : std::vector<int64_t>(), type);
    } else if (type == "TensorList" || IsListOfLists(shape)) {
      argument.kind = Argument::Kind::kTensorList;
      argument.first = static_cast<uint16_t>(tensors_.size());
      if (shape.IsArray()) {
        for (const rapidjson::Value& one : shape.GetArray()) {
          if (tensors_.size() < UINT16_MAX) tensors_.push_back(TensorOf(list_type, Numbers(one)));
        }
      }
      argument.count = static_cast<uint16_t>(tensors_.size() - argument.first);
    } else {
      std::string_view value = i < values.Size() && values[i].IsString() ? values[i].GetString() : "";
      if (value == "True" || value == "False") {
        argument.kind = Argument::Kind::kBool;
        argument.integer = value == "True";
      } else if (ParseNumber(value, &argument.integer)) {
        argument.kind = Argument::Kind::kInt;
      } else if (ParseNumber(value, &argument.real)) {
        argument.kind = Argument::Kind::kDouble;
      } else if (value.starts_with('[') && value.ends_with(']')) {
        argument.kind = Argument::Kind::kIntList;
        argument.first = static_cast<uint16_t>(std::min<size_t>(ints_.size(), UINT16_MAX));
        value = value.substr(1, value.size() - 2);
        while (!value.empty() && ints_.size() < UINT16_MAX) {
          const std::string_view one = WithoutBlanks(value.substr(0, value.find(',')));
          int64_t number = one == "True" ? 1 : 0;
          ParseNumber(one, &number);
          ints_.push_back(number);
          value.remove_prefix(
              std::min(value.size(), value.find(',') == std::string_view::npos ? value.size() : value.find(',') + 1));
        }
        argument.count = static_cast<uint16_t>(ints_.size() - argument.first);
      } else if (type.empty()) {
        argument.kind = Argument::Kind::kNone;
      }
    }
    inputs_.push_back(argument);
  }
  const Json &result_dims = lists[4], &result_types = lists[5];
  knows_results_ = result_types.Size() > 0;
  for (rapidjson::SizeType i = 0; i < result_types.Size(); ++i) {
    const std::string_view type = result_types[i].IsString() ? result_types[i].GetString() : "";
    const rapidjson::Value& shape = i < result_dims.Size() ? result_dims[i] : none;
    uint64_t bytes = 0;
    const DType known = DTypeOfName(type, &bytes);
    if (bytes != 0) {
      TensorView tensor = TensorOf(known, Numbers(shape));
      tensor.element_size = bytes;
      AddResult(tensor);
    } else if (type == "TensorList" && shape.IsArray()) {
      for (const rapidjson::Value& one : shape.GetArray()) AddResult(TensorOf(list_type, Numbers(one)));
    } else {
      AddNoResult();
    }
  }
}

RecordedCall::RecordedCall(std::string name, const std::vector<TensorView>& tensors) : name_(std::move(name)) {
  for (const TensorView& tensor : tensors) {
    Argument argument{.kind = Argument::Kind::kTensor, .first = static_cast<uint16_t>(tensors_.size())};
    tensors_.push_back(tensor);
    inputs_.push_back(argument);
  }
}

void RecordedCall::AddTensor(Argument* argument, const std::vector<int64_t>& shape,
                             const std::vector<int64_t>& strides, std::string_view type) {
  if (tensors_.size() >= UINT16_MAX) return;
  argument->kind = Argument::Kind::kTensor;
  argument->first = static_cast<uint16_t>(tensors_.size());
  uint64_t bytes = 0;
  TensorView tensor = TensorOf(DTypeOfName(type, &bytes), shape);
  tensor.element_size = bytes;
  tensor.format = FormatOf(shape, strides);
  tensor.storage = tensors_.size() + 1;  // recordings do not say what lies where
  for (size_t i = 0; i < shape.size() && i < strides.size(); ++i) {
    if (strides[i] != 0 || shape[i] <= 1) continue;
    tensor.broadcast = true;
    tensor.distinct /= static_cast<uint64_t>(shape[i]);
  }
  tensors_.push_back(tensor);
}

OpCall RecordedCall::call() const {
  OpCall call;
  call.name = name_;
  call.inputs = inputs_;
  call.outputs = outputs_;
  call.tensors = tensors_;
  call.ints = ints_;
  return call;
}

const TensorView* RecordedCall::Tensor(size_t index) const {
  if (index >= inputs_.size() || inputs_[index].kind != Argument::Kind::kTensor) return nullptr;
  return &tensors_[inputs_[index].first];
}

bool RecordedCall::HasFirst() const {
  return Tensor(0) != nullptr ||
         (!inputs_.empty() && inputs_[0].kind == Argument::Kind::kTensorList && inputs_[0].count > 0);
}

std::vector<int64_t> RecordedCall::Integers(size_t index) const {
  if (index >= inputs_.size()) return {};
  const Argument& argument = inputs_[index];
  if (argument.kind == Argument::Kind::kInt || argument.kind == Argument::Kind::kBool) return {argument.integer};
  if (argument.kind != Argument::Kind::kIntList) return {};
  const auto first = ints_.begin() + argument.first;
  return {first, first + argument.count};
}

void RecordedCall::AssumeBool(size_t index, bool value) {
  if (index >= inputs_.size() || inputs_[index].kind != Argument::Kind::kOther) return;
  inputs_[index].kind = Argument::Kind::kBool;
  inputs_[index].integer = value;
}

void RecordedCall::AddResult(const TensorView& tensor) {
  if (tensors_.size() >= UINT16_MAX) return;
  outputs_.push_back({.kind = Argument::Kind::kTensor, .first = static_cast<uint16_t>(tensors_.size())});
  tensors_.push_back(tensor);
}

void RecordedCall::AddNoResult() { outputs_.push_back({.kind = Argument::Kind::kNone}); }

}  // namespace rfinject::cli
