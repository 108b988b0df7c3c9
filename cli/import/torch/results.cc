#include "cli/import/torch/results.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>

#include "cli/import/torch/words.h"
#include "operators/flop.h"
#include "operators/op_table.h"

namespace rfinject::cli {
namespace {

using estimate::FlopRule;
using Sizes = std::vector<int64_t>;

Sizes ShapeOf(const TensorView& tensor) { return {tensor.shape.begin(), tensor.shape.begin() + tensor.rank}; }

uint64_t Elements(const Sizes& shape) { return TensorOf(DType::kFloat, shape).numel; }

std::string_view BareName(std::string_view name) {
  ConsumePrefix(&name, "aten::");
  return name;
}

bool IsInPlace(std::string_view name) { return name.ends_with('_') && !name.ends_with("__"); }

// What elementwise operators make of their operands' shapes.
std::optional<Sizes> Broadcast(const RecordedCall& call) {
  std::optional<Sizes> result;
  for (size_t i = 0; i < call.size(); ++i) {
    const TensorView* tensor = call.Tensor(i);
    if (tensor == nullptr) continue;
    Sizes shape = ShapeOf(*tensor);
    if (!result) {
      result = shape;
      continue;
    }
    Sizes& wide = *result;
    if (shape.size() > wide.size()) std::swap(shape, wide);
    const size_t offset = wide.size() - shape.size();
    for (size_t d = 0; d < shape.size(); ++d) {
      if (wide[d + offset] == 1) wide[d + offset] = shape[d];
    }
  }
  return result;
}

// The type of what an elementwise operator returns: that of its first floating operand with dimensions, else of the
// first.
DType ElementType(const RecordedCall& call) {
  const TensorView* first = nullptr;
  for (size_t i = 0; i < call.size(); ++i) {
    const TensorView* tensor = call.Tensor(i);
    if (tensor == nullptr) continue;
    if (first == nullptr) first = tensor;
    if (estimate::IsFloating(tensor->dtype) && tensor->rank > 0) return tensor->dtype;
  }
  return first == nullptr ? DType::kOther : first->dtype;
}

// --- Products.

// The type of what a product of FP8 returns: the argument out_dtype, which stands in another place in each version of
// PyTorch (its numbers are those of DType). Where a recording has no values, what layers ask for.
DType ScaledProductType(const RecordedCall& call) {
  for (const size_t out_dtype : {6, 7, 3}) {
    const std::vector<int64_t> value = call.Integers(out_dtype);
    for (const DType type : {DType::kHalf, DType::kFloat, DType::kBFloat16}) {
      if (value.size() == 1 && value[0] == static_cast<int64_t>(type)) return type;
    }
  }
  return DType::kBFloat16;
}

std::optional<Sizes> MatrixProduct(const RecordedCall& call, std::string_view name) {
  const size_t at = Contains(name, "add") ? 1 : 0;
  const TensorView *a = call.Tensor(at), *b = call.Tensor(at + 1);
  if (a == nullptr || b == nullptr || a->rank < 2 || b->rank < 2) return std::nullopt;
  Sizes shape = ShapeOf(*a);
  shape.back() = ShapeOf(*b).back();
  return shape;
}

std::optional<Sizes> Linear(const RecordedCall& call) {
  const TensorView *input = call.Tensor(0), *weight = call.Tensor(1);
  if (input == nullptr || weight == nullptr || input->rank < 1 || weight->rank < 1) return std::nullopt;
  Sizes shape = ShapeOf(*input);
  shape.back() = weight->shape[0];
  return shape;
}

// --- Windows: a size along one dimension after a window of `size` went over it (torch.nn.Conv2d's page).
int64_t Windows(int64_t in, int64_t size, int64_t stride, int64_t padding, int64_t dilation, bool ceil) {
  if (stride <= 0) return 0;
  const int64_t span = in + 2 * padding - dilation * (size - 1) - 1;
  if (span < 0) return 0;
  int64_t count = (ceil ? (span + stride - 1) / stride : span / stride) + 1;
  if (ceil && (count - 1) * stride >= in + padding) --count;  // a window must begin inside
  return count;
}

int64_t Nth(const std::vector<int64_t>& list, size_t index, int64_t otherwise) {
  if (list.empty()) return otherwise;
  return list[std::min(index, list.size() - 1)];
}

// Where an operator that convolves has the arguments behind its weight; 0: it has no such argument.
struct ConvolutionArguments {
  std::string_view name;
  size_t stride = 0, padding = 0, dilation = 0, transposed = 0, extra = 0, groups = 0;
};
// By native_functions.yaml of torch 1.8 to 2.11.
constexpr ConvolutionArguments kConvolutions[] = {
    {"convolution", 3, 4, 5, 6, 7, 8},
    {"_convolution", 3, 4, 5, 6, 7, 8},
    {"convolution_overrideable", 3, 4, 5, 6, 7, 8},
    {"cudnn_convolution", 3, 2, 4, 0, 0, 5},
    {"cudnn_convolution_transpose", 4, 2, 5, 0, 3, 6},
    {"cudnn_convolution_relu", 3, 4, 5, 0, 0, 6},
    {"cudnn_convolution_add_relu", 5, 6, 7, 0, 0, 8},
    {"miopen_convolution", 4, 3, 5, 0, 0, 6},
    {"miopen_convolution_transpose", 5, 3, 6, 0, 4, 7},
    {"miopen_depthwise_convolution", 4, 3, 5, 0, 0, 6},
    {"_conv_depthwise2d", 4, 5, 6, 0, 0, 0},
    {"conv_depthwise3d", 4, 5, 6, 0, 0, 0},
};

std::optional<Sizes> Convolution(const RecordedCall& call, const ConvolutionArguments& at) {
  const TensorView *input = call.Tensor(0), *weight = call.Tensor(1);
  if (input == nullptr || weight == nullptr || input->rank != weight->rank || input->rank < 3) return std::nullopt;
  const auto integers = [&call](size_t index) { return index == 0 ? Sizes{} : call.Integers(index); };
  const std::vector<int64_t> stride = integers(at.stride), padding = integers(at.padding),
                             dilation = integers(at.dilation), transposed = integers(at.transposed),
                             extra = integers(at.extra), groups = integers(at.groups);
  if (stride.empty() || padding.empty() || dilation.empty()) return std::nullopt;
  const bool backwards = Contains(at.name, "transpose") || (!transposed.empty() && transposed[0] != 0);
  Sizes shape = ShapeOf(*input);
  shape[1] = backwards ? weight->shape[1] * Nth(groups, 0, 1) : weight->shape[0];
  for (size_t d = 2; d < shape.size(); ++d) {
    const int64_t size = weight->shape[d];
    const int64_t step = Nth(stride, d - 2, 1), border = Nth(padding, d - 2, 0), spread = Nth(dilation, d - 2, 1);
    shape[d] = backwards ? (shape[d] - 1) * step - 2 * border + spread * (size - 1) + Nth(extra, d - 2, 0) + 1
                         : Windows(shape[d], size, step, border, spread, false);
  }
  return shape;
}

// max_pool2d_with_indices(self, kernel, stride, padding, dilation, ceil), avg_pool2d(self, kernel, stride, padding,
// ceil, …)
std::optional<Sizes> Pool(const RecordedCall& call, bool average, size_t dimensions) {
  const TensorView* input = call.Tensor(0);
  const std::vector<int64_t> size = call.Integers(1);
  if (input == nullptr || size.empty() || input->rank < dimensions) return std::nullopt;
  std::vector<int64_t> stride = call.Integers(2);
  if (stride.empty()) stride = size;
  const std::vector<int64_t> padding = call.Integers(3), dilation = average ? Sizes{1} : call.Integers(4);
  const bool ceil = Nth(call.Integers(average ? 4 : 5), 0, 0) != 0;
  Sizes shape = ShapeOf(*input);
  const size_t first = shape.size() - dimensions;
  for (size_t d = first; d < shape.size(); ++d) {
    shape[d] = Windows(shape[d], Nth(size, d - first, 1), Nth(stride, d - first, 1), Nth(padding, d - first, 0),
                       Nth(dilation, d - first, 1), ceil);
  }
  return shape;
}

std::optional<Sizes> AdaptivePool(const RecordedCall& call, size_t dimensions) {
  const TensorView* input = call.Tensor(0);
  const std::vector<int64_t> size = call.Integers(1);
  if (input == nullptr || size.size() != dimensions || input->rank < dimensions) return std::nullopt;
  Sizes shape = ShapeOf(*input);
  std::copy(size.begin(), size.end(), shape.end() - static_cast<ptrdiff_t>(dimensions));
  return shape;
}

// --- Reductions: (self, dim, keepdim, …), or (self, …) of all elements.

bool IsReduction(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "sum",    "mean",   "amax", "amin", "var",       "std",  "prod",
      "argmax", "argmin", "any",  "all",  "logsumexp", "norm", "linalg_vector_norm",
      "nansum", "max",    "min"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// Whether the file has what the argument was; an argument that is None has no value to say.
bool IsSaid(const RecordedCall& call, size_t index) {
  return index >= call.size() || call[index].kind != Argument::Kind::kOther;
}

std::optional<Sizes> Reduction(const RecordedCall& call, std::string_view name) {
  const TensorView* input = call.Tensor(0);
  if (input == nullptr) return std::nullopt;
  const size_t at = name == "norm" || name == "linalg_vector_norm" ? 2 : 1;
  if (at < call.size() && call.Tensor(at) != nullptr) return Broadcast(call);  // max(a, b)
  if (!IsSaid(call, at)) return std::nullopt;
  // sum(self, dtype) has nothing but the type, which is None mostly; sum(self, dim, keepdim, dtype) has four.
  const bool of_all = call.size() <= at + 1;
  const std::vector<int64_t> dims = of_all ? Sizes{} : call.Integers(at);
  if (of_all || dims.empty()) return Sizes{};
  Sizes shape = ShapeOf(*input);
  const bool keep = Nth(call.Integers(at + 1), 0, 0) != 0;
  std::set<size_t> gone;
  for (int64_t dim : dims) {
    if (dim < 0) dim += input->rank;
    if (dim >= 0 && dim < input->rank) gone.insert(static_cast<size_t>(dim));
  }
  Sizes left;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!gone.contains(d)) left.push_back(shape[d]);
    if (gone.contains(d) && keep) left.push_back(1);
  }
  return left;
}

// --- Looking up.

std::optional<Sizes> Lookup(const RecordedCall& call, std::string_view name) {
  const TensorView* table = call.Tensor(0);
  if (table == nullptr) return std::nullopt;
  if (name == "embedding") {
    const TensorView* indices = call.Tensor(1);
    if (indices == nullptr || table->rank < 2) return std::nullopt;
    Sizes shape = ShapeOf(*indices);
    shape.push_back(table->shape[1]);
    return shape;
  }
  const TensorView* index = call.Tensor(2);
  if (name == "gather" || name == "take_along_dim") return index ? std::optional(ShapeOf(*index)) : std::nullopt;
  if (name == "index_select") {
    const std::vector<int64_t> dim = call.Integers(1);
    if (index == nullptr || table->rank == 0) return std::nullopt;
    Sizes shape = ShapeOf(*table);
    const int64_t at = Nth(dim, 0, 0) < 0 ? Nth(dim, 0, 0) + table->rank : Nth(dim, 0, 0);
    if (at >= 0 && at < table->rank) shape[static_cast<size_t>(at)] = static_cast<int64_t>(index->numel);
    return shape;
  }
  if (name == "index" && call.size() > 1 && call[1].kind == Argument::Kind::kTensorList && call[1].count == 1) {
    const OpCall view = call.call();
    const TensorView& only = view.tensors[call[1].first];
    if (only.dtype == DType::kBool || table->rank == 0) return std::nullopt;  // how many are chosen is not known
    Sizes shape = ShapeOf(only), rest = ShapeOf(*table);
    shape.insert(shape.end(), rest.begin() + 1, rest.end());
    return shape;
  }
  return std::nullopt;
}

bool IsLookup(std::string_view name) {
  return name == "embedding" || name == "gather" || name == "take_along_dim" || name == "index_select" ||
         name == "index";
}

// The largest tensor among the operands: what a gradient is of.
const TensorView* Largest(const RecordedCall& call) {
  const TensorView* largest = nullptr;
  for (size_t i = 0; i < call.size(); ++i) {
    const TensorView* tensor = call.Tensor(i);
    if (tensor != nullptr && (largest == nullptr || tensor->numel > largest->numel)) largest = tensor;
  }
  return largest;
}

// Elements of all tensors of the first list: cat and stack move them all.
std::optional<Sizes> Joined(const RecordedCall& call) {
  const OpCall view = call.call();
  for (const Argument& argument : view.inputs) {
    if (argument.kind != Argument::Kind::kTensorList) continue;
    uint64_t sum = 0;
    for (size_t i = 0; i < argument.count; ++i) sum += view.tensors[argument.first + i].numel;
    return Sizes{static_cast<int64_t>(std::min<uint64_t>(sum, INT64_MAX))};
  }
  return std::nullopt;
}

bool IsComparison(std::string_view name) {
  static constexpr std::string_view kNames[] = {"eq",          "ne",         "lt",    "le",       "gt",
                                                "ge",          "isnan",      "isinf", "isfinite", "logical_not",
                                                "logical_and", "logical_or", "any",   "all"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// Whether the shape of the first result follows from the operands, and which it is.
std::optional<Sizes> FirstResult(const RecordedCall& call, const std::optional<estimate::OpRule>& rule) {
  const std::string_view name = BareName(call.name());
  const size_t dimensions = Contains(name, "3d") ? 3 : Contains(name, "1d") ? 1 : 2;
  const auto* const convolution = std::ranges::find(kConvolutions, name, &ConvolutionArguments::name);
  if (convolution != std::end(kConvolutions)) return Convolution(call, *convolution);
  if (rule && rule->flop == FlopRule::kConvolution) return std::nullopt;  // other orders of arguments
  if (rule && (rule->flop == FlopRule::kMatmul)) return MatrixProduct(call, name);
  if (rule && rule->flop == FlopRule::kLinear) return Linear(call);
  if (rule && rule->flop == FlopRule::kMatVec) {
    const TensorView* matrix = call.Tensor(Contains(name, "add") ? 1 : 0);
    if (matrix == nullptr) return std::nullopt;
    return matrix->rank < 2 ? Sizes{} : Sizes{matrix->shape[0]};
  }
  if (rule && rule->flop == FlopRule::kAttention) {
    const TensorView *query = call.Tensor(0), *value = call.Tensor(2);
    if (query == nullptr || value == nullptr || query->rank == 0 || value->rank == 0) return std::nullopt;
    Sizes shape = ShapeOf(*query);
    shape.back() = ShapeOf(*value).back();
    return shape;
  }
  if (name == "embedding_dense_backward") {
    const TensorView* gradient = call.Tensor(0);
    const std::vector<int64_t> rows = call.Integers(2);
    if (gradient == nullptr || gradient->rank == 0 || rows.empty()) return std::nullopt;
    return Sizes{rows[0], ShapeOf(*gradient).back()};
  }
  if (name.starts_with("upsample") && name.ends_with("_backward")) {
    const std::vector<int64_t> size = call.Integers(2);
    return size.empty() ? std::nullopt : std::optional(size);
  }
  if (name.ends_with("_backward") || name.ends_with("_backward_data")) {
    const TensorView* largest = Largest(call);
    return largest == nullptr ? std::nullopt : std::optional(ShapeOf(*largest));
  }
  if (name.starts_with("max_pool")) return Pool(call, false, dimensions);
  if (name.starts_with("avg_pool")) return Pool(call, true, dimensions);
  if (Contains(name, "adaptive_")) return AdaptivePool(call, dimensions);
  if (name.starts_with("upsample")) {
    const TensorView* input = call.Tensor(0);
    const std::vector<int64_t> size = call.Integers(1);
    if (input == nullptr || size.empty() || input->rank < size.size()) return std::nullopt;
    Sizes shape = ShapeOf(*input);
    std::copy(size.begin(), size.end(), shape.end() - static_cast<ptrdiff_t>(size.size()));
    return shape;
  }
  if (IsReduction(name)) return Reduction(call, name);
  if (IsLookup(name)) return Lookup(call, name);
  if (name == "cat" || name == "_cat" || name == "stack" || name.starts_with("_foreach")) return Joined(call);
  if (name.starts_with("nll_loss") || name.ends_with("_loss")) return Sizes{};
  return Broadcast(call);
}

// Whether a shape that was seen elsewhere can be this operator's result.
bool Fits(const Sizes& seen, const RecordedCall& call, const std::optional<estimate::OpRule>& rule) {
  if (seen.empty()) return false;
  const TensorView* first = call.Tensor(0);
  if (rule && rule->flop == FlopRule::kConvolution) {
    const TensorView* weight = call.Tensor(1);
    return first != nullptr && weight != nullptr && seen.size() == first->rank && seen.size() > 2 &&
           seen[0] == first->shape[0] && seen[1] == weight->shape[0];
  }
  if (first == nullptr) return true;  // made of nothing
  const uint64_t elements = Elements(seen);
  return elements > 0 && elements <= first->numel && first->numel % elements == 0;
}

bool KnowsGradients(const RecordedCall& call) {
  return call.size() > 0 && call.Integers(call.size() - 1).size() == 3;
}

// (grad_output, input, weight, bias_sizes, stride, …, output_mask). Where the mask is not known, the input's gradient
// was asked for if a tensor of its shape was seen; the weight's always is.
bool AddConvolutionGradients(const Sizes& seen, RecordedCall* call) {
  const TensorView *gradient = call->Tensor(0), *input = call->Tensor(1), *weight = call->Tensor(2);
  if (gradient == nullptr || input == nullptr || weight == nullptr) return false;
  std::vector<int64_t> mask = {seen == ShapeOf(*input) ? 1 : 0, 1, 0};
  if (KnowsGradients(*call)) mask = call->Integers(call->size() - 1);
  const TensorView of_input = TensorOf(input->dtype, ShapeOf(*input));
  const TensorView of_weight = TensorOf(weight->dtype, ShapeOf(*weight));
  const TensorView of_bias = TensorOf(weight->dtype, {weight->shape[0]});
  const std::array<const TensorView*, 3> all = {&of_input, &of_weight, &of_bias};
  for (size_t i = 0; i < all.size(); ++i) {
    if (mask[i] != 0) {
      call->AddResult(*all[i]);
    } else {
      call->AddNoResult();
    }
  }
  return true;
}

// What normalisations return behind the result: statistics, or the gradients of weight and bias.
void AddFurtherResults(RecordedCall* call, const Sizes& first) {
  const std::string_view name = BareName(call->name());
  if (Contains(name, "batch_norm") && first.size() > 1) {
    for (int i = 0; i < 2; ++i) call->AddResult(TensorOf(DType::kFloat, {first[1]}));
  } else if (name == "native_layer_norm" || name == "native_group_norm") {
    // Of a layer norm one of each row, which is as long as its weight; of a group norm one of each image's groups.
    Sizes statistics;
    if (name == "native_group_norm") {
      const std::vector<int64_t> groups = call->Integers(6);
      if (!groups.empty() && !first.empty()) statistics = {first[0], groups[0]};
    } else {
      const std::vector<int64_t> normalised = call->Integers(1);
      const TensorView* weight = call->Tensor(2);
      const uint64_t width = !normalised.empty() ? Elements(normalised) : weight != nullptr ? weight->numel : 0;
      if (width > 0) statistics = {static_cast<int64_t>(Elements(first) / width)};
    }
    for (int i = 0; i < 2 && !statistics.empty(); ++i) call->AddResult(TensorOf(DType::kFloat, statistics));
  } else if (name == "native_dropout" || name == "_fused_dropout") {
    call->AddResult(TensorOf(DType::kBool, first));
  } else if (name == "max_pool2d_with_indices" || name == "max_pool3d_with_indices" || name == "topk" ||
             name == "sort") {
    call->AddResult(TensorOf(DType::kInt64, first));
  } else if (name == "native_layer_norm_backward") {
    for (const size_t parameter : {5, 6}) {
      const TensorView* tensor = call->Tensor(parameter);
      if (tensor != nullptr) call->AddResult(TensorOf(tensor->dtype, ShapeOf(*tensor)));
    }
  }
}

}  // namespace

bool NeedsSeenShape(const RecordedCall& call) {
  const auto rule = estimate::FindOp(call.name());
  if (rule && rule->flop == FlopRule::kConvolutionBackward) return !KnowsGradients(call);
  return !IsInPlace(BareName(call.name())) && !FirstResult(call, rule);
}

bool AddResults(const std::vector<int64_t>& seen, RecordedCall* call) {
  const std::string_view name = BareName(call->name());
  const auto rule = estimate::FindOp(call->name());
  if (rule && rule->flop == FlopRule::kConvolutionBackward) return AddConvolutionGradients(seen, call);
  if (IsInPlace(name)) {
    const TensorView* first = call->Tensor(0);
    if (first != nullptr) call->AddResult(TensorView(*first));
    return first != nullptr || name.starts_with("_foreach") || name.starts_with("_fused");
  }
  std::optional<Sizes> shape = FirstResult(*call, rule);
  if (!shape && Fits(seen, *call, rule)) shape = seen;
  if (!shape) return false;
  DType type = ElementType(*call);
  if (rule && rule->unit == estimate::Unit::kFp8Matmul) type = ScaledProductType(*call);
  if (rule && rule->unit == estimate::Unit::kInt8Matmul) type = DType::kInt32;
  if (IsComparison(name)) type = DType::kBool;
  if (name == "argmax" || name == "argmin") type = DType::kInt64;
  if (name == "_to_copy" || name == "to") {
    const std::vector<int64_t> wanted = call->Integers(1);
    if (wanted.size() == 1 && wanted[0] >= 0 && wanted[0] <= 15) type = static_cast<DType>(wanted[0]);
  }
  if (type == DType::kOther) {
    const OpCall view = call->call();
    for (const Argument& argument : view.inputs) {
      if (argument.kind == Argument::Kind::kTensorList && argument.count > 0)
        type = view.tensors[argument.first].dtype;
    }
  }
  TensorView result = TensorOf(type, *shape);
  if (type == DType::kOther && call->Tensor(0) != nullptr) result.element_size = call->Tensor(0)->element_size;
  call->AddResult(result);
  AddFurtherResults(call, *shape);
  return true;
}

}  // namespace rfinject::cli
