#include "virtual_gpu/values/value_recipes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>

#include "virtual_gpu/values/value_cook.h"
#include "virtual_gpu/values/value_operands.h"
#include "virtual_gpu/virtual_gpu.h"

namespace rfinject {
namespace {

// log_sigmoid_backward(grad, self, buffer): CUDA leaves the buffer empty.
bool LogSigmoidBackward(const CpuKernels& kernels, std::span<const RawValue> in, std::span<const RawValue> out) {
  Cook cook(kernels);
  const RawValue slope = cook.Call("aten::sigmoid", {cook.Call("aten::neg", {cook.Take(in[1])})});
  cook.Give(cook.Mul(cook.Take(in[0]), slope), out[0]);
  return cook.good();
}

// _fused_rms_norm_backward(grad, input, normalized_shape, rstd, weight, output_mask) of y = x r w with r = rstd,
// which depends on x: dx = r (g w - x r mean(g w x r)), dw = sum(g x r).
bool RmsNormBackward(const CpuKernels& kernels, std::span<const RawValue> in, std::span<const RawValue> out) {
  Cook cook(kernels);
  const RawValue grad = cook.Take(in[0]), input = cook.Take(in[1]), rate = cook.Take(in[3]);
  const RawValue weight = cook.TakeIfThere(in[4]);
  if (!cook.good() || !kernels.IsList(in[2]) || in[2].payload == 0) return false;
  const RawValue normal = cook.Mul(input, rate);
  const auto inner = static_cast<int64_t>(kernels.Elements(in[2])->size());
  // Lists of dimensions are made of the list of sizes.
  const auto list_of = [&](int64_t count, int64_t first, int64_t step) {
    RawValue list;
    if (!cook.good() || !kernels.CloneList(in[2], &list)) return cook.Failed();
    RawVector* dimensions = kernels.Elements(list);
    dimensions->end = dimensions->begin + count;
    for (int64_t i = 0; i < count; ++i) dimensions->begin[i] = kernels.Integer(first + i * step);
    return list;
  };
  if (IsAsked(kernels, in[5], 0)) {
    const RawValue slope = kernels.IsNone(weight) ? grad : cook.Mul(grad, weight);
    const RawValue mean = cook.Call(
        "aten::mean.dim", {cook.Mul(slope, normal), list_of(inner, -1, -1), kernels.Boolean(true), kernels.None()});
    const RawValue along = cook.Call("aten::sub.Tensor", {slope, cook.Mul(normal, mean), kernels.Integer(1)});
    cook.Give(cook.Mul(along, rate), out[0]);
  }
  TensorPlace place;
  if (cook.good() && IsAsked(kernels, in[5], 1) && kernels.Read(in[1], &place)) {
    const auto outer = static_cast<int64_t>(place.rank) - inner;
    RawValue sum = cook.Mul(grad, normal);
    if (outer > 0) {
      sum = cook.Call("aten::flatten.using_ints", {sum, kernels.Integer(0), kernels.Integer(outer - 1)});
      sum = cook.Call("aten::sum.dim_IntList", {sum, list_of(1, 0, 1), kernels.Boolean(false), kernels.None()});
    }
    cook.Give(sum, out[1]);
  }
  return cook.good();
}

// What the fused operators of attention have in common.
struct Attention {
  RawValue query, key, value, bias, causal, scale;
  double dropout = 0;
  uint64_t seed = 0;
};
// Where its parts stand among an operator's arguments: key and value stand behind the query, and the bias may be
// none.
struct Places {
  size_t query, causal, scale, dropout;
  std::optional<size_t> bias;
};
Attention Take(const CpuKernels& kernels, Cook* cook, std::span<const RawValue> in, const Places& at) {
  return {.query = cook->Take(in[at.query]),
          .key = cook->Take(in[at.query + 1]),
          .value = cook->Take(in[at.query + 2]),
          .bias = at.bias ? cook->TakeIfThere(in[*at.bias]) : kernels.None(),
          .causal = in[at.causal],
          .scale = in[at.scale],
          .dropout = kernels.Real(in[at.dropout])};
}

// A mask of the shape of a tensor, and where it lies.
RawValue MaskLike(const CpuKernels& kernels, Cook* cook, const RawValue& like, TensorPlace* place) {
  RawValue mask;
  if (!cook->good() || !kernels.Read(like, place) || !kernels.MakeTensor(*place, kBool, &mask)) return cook->Failed();
  cook->Keep(mask);
  return kernels.Read(mask, place) && place->contiguous() ? mask : cook->Failed();
}

// The mask of what a dropout keeps.
RawValue DrawnLike(const CpuKernels& kernels, Cook* cook, const RawValue& weights, const Attention& of) {
  TensorPlace place;
  const RawValue mask = MaskLike(kernels, cook, weights, &place);
  if (cook->good()) DrawMask(place, of.seed, 1 - of.dropout);
  return mask;
}

// The mask of the keys that come after the query.
RawValue LaterLike(const CpuKernels& kernels, Cook* cook, const RawValue& scores) {
  TensorPlace place;
  const RawValue mask = MaskLike(kernels, cook, scores, &place);
  if (!cook->good() || place.rank < 2) return cook->Failed();
  const auto rows = static_cast<uint64_t>(place.sizes[place.rank - 2]);
  const auto columns = static_cast<uint64_t>(place.sizes[place.rank - 1]);
  auto* const at = reinterpret_cast<unsigned char*>(place.data);
  for (uint64_t i = 0; i < place.numel; ++i) at[i] = i % columns > i / columns % rows ? 1 : 0;
  return mask;
}

double FactorOf(const CpuKernels& kernels, const Attention& of) {
  TensorPlace query;
  if (!kernels.IsNone(of.scale)) return kernels.Real(of.scale);
  if (!kernels.Read(of.query, &query) || query.rank != 4) return 0;
  return 1 / std::sqrt(static_cast<double>(query.sizes[3]));
}

// The weights before the dropout.
RawValue Weights(const CpuKernels& kernels, Cook* cook, const Attention& of) {
  RawValue scores = cook->Scale(cook->MatMul(of.query, cook->Turned(of.key)), FactorOf(kernels, of));
  if (!kernels.IsNone(of.bias)) scores = cook->Add(scores, of.bias);
  if ((of.causal.payload & 1) != 0) {
    const RawValue lowest = kernels.RealValue(-std::numeric_limits<double>::infinity());
    scores = cook->Call("aten::masked_fill.Scalar", {scores, LaterLike(kernels, cook, scores), lowest});
  }
  return cook->Call("aten::_softmax", {scores, kernels.Integer(-1), kernels.Boolean(false)});
}

// The output of attention with a dropout, whose seed is written to `seed`. The logarithms of sums, which only the
// backward of the fused operators needs, are not: that is BackwardOf, which computes the weights again.
bool ForwardOf(const CpuKernels& kernels, Cook* cook, Attention of, const RawValue& output, const RawValue& seed) {
  // CUDA's kernel keeps its seed there, too.
  const uintptr_t kept = kernels.FirstWord(seed);
  if (!cook->good() || kept == 0) return false;
  of.seed = kernels.Seed(kernels.None());
  std::memcpy(reinterpret_cast<void*>(kept), &of.seed, sizeof of.seed);
  rfinject_virtual_gpu_computed(kept, sizeof of.seed, true);
  const RawValue weights = Weights(kernels, cook, of);
  const RawValue mask = DrawnLike(kernels, cook, weights, of);
  cook->Give(cook->MatMul(cook->Masked(weights, mask, 1 / (1 - of.dropout)), of.value), output);
  return cook->good();
}

// With weights p, mask m, which is divided by the probability to be kept, and scores s:
// dv = (p m)' do; dp = (do v') m; ds = p (dp - sum(dp p)); dq = f ds k; dk = f ds' q.
bool BackwardOf(const CpuKernels& kernels, Cook* cook, Attention of, const RawValue& grad, const RawValue& seed,
                std::span<const RawValue> out) {
  if (!cook->good()) return false;
  const RawValue weights = Weights(kernels, cook, of);
  RawValue dropped = weights;
  RawValue slope = cook->MatMul(grad, cook->Turned(of.value));
  if (of.dropout > 0) {
    const uintptr_t kept = kernels.FirstWord(seed);
    if (kept == 0) return false;
    std::memcpy(&of.seed, reinterpret_cast<const void*>(kept), sizeof of.seed);
    const RawValue mask = DrawnLike(kernels, cook, weights, of);
    dropped = cook->Masked(weights, mask, 1 / (1 - of.dropout));
    slope = cook->Masked(slope, mask, 1 / (1 - of.dropout));
  }
  TensorPlace place;
  if (!cook->good() || !kernels.Read(slope, &place)) return false;
  const RawValue scores =
      cook->Call("aten::_softmax_backward_data", {slope, weights, kernels.Integer(-1), kernels.Integer(place.dtype)});
  const double factor = FactorOf(kernels, of);
  cook->Give(cook->Scale(cook->MatMul(scores, of.key), factor), out[0]);
  cook->Give(cook->Scale(cook->MatMul(cook->Turned(scores), of.query), factor), out[1]);
  cook->Give(cook->MatMul(cook->Turned(dropped), grad), out[2]);
  if (out.size() > 3) cook->Give(scores, out[3]);
  return cook->good();
}

// (query, key, value, dropout_p, is_causal, return_debug_mask, scale)
bool FlashAttention(const CpuKernels& kernels, std::span<const RawValue> in, std::span<const RawValue> out) {
  Cook cook(kernels);
  const Attention of = Take(kernels, &cook, in, {.query = 0, .causal = 4, .scale = 6, .dropout = 3});
  return ForwardOf(kernels, &cook, of, out[0], out[6]);
}

// (grad, query, key, value, out, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal, philox_seed,
// philox_offset, scale)
bool FlashAttentionBackward(const CpuKernels& kernels, std::span<const RawValue> in, std::span<const RawValue> out) {
  Cook cook(kernels);
  const Attention of = Take(kernels, &cook, in, {.query = 1, .causal = 11, .scale = 14, .dropout = 10});
  return BackwardOf(kernels, &cook, of, cook.Take(in[0]), in[12], out.first(3));
}

// (query, key, value, attn_bias, compute_log_sumexp, dropout_p, is_causal, scale)
bool EfficientAttention(const CpuKernels& kernels, std::span<const RawValue> in, std::span<const RawValue> out) {
  Cook cook(kernels);
  const Attention of = Take(kernels, &cook, in, {.query = 0, .causal = 6, .scale = 7, .dropout = 5, .bias = 3});
  return ForwardOf(kernels, &cook, of, out[0], out[2]);
}

// (grad, query, key, value, attn_bias, out, logsumexp, philox_seed, philox_offset, dropout_p, grad_input_mask,
// is_causal, scale)
bool EfficientAttentionBackward(const CpuKernels& kernels, std::span<const RawValue> in,
                                std::span<const RawValue> out) {
  Cook cook(kernels);
  const Attention of = Take(kernels, &cook, in, {.query = 1, .causal = 11, .scale = 12, .dropout = 9, .bias = 4});
  return BackwardOf(kernels, &cook, of, cook.Take(in[0]), in[7], out);
}

struct Entry {
  std::string_view name;
  ValueRecipe recipe;
};
constexpr Entry kRecipes[] = {
    {"aten::_cudnn_rnn", RecurrentLayers},
    {"aten::_cudnn_rnn_backward", RecurrentLayersBackward},
    {"aten::_fused_rms_norm_backward", RmsNormBackward},
    {"aten::_scaled_dot_product_efficient_attention", EfficientAttention},
    {"aten::_scaled_dot_product_efficient_attention_backward", EfficientAttentionBackward},
    {"aten::_scaled_dot_product_flash_attention", FlashAttention},
    {"aten::_scaled_dot_product_flash_attention_backward", FlashAttentionBackward},
    {"aten::log_sigmoid_backward", LogSigmoidBackward},
};

// _foreach_add_(self, scalar) of tensors that hold one float each, as optimizers count the steps of each parameter:
// the CPU's operator takes some microseconds for every tensor.
bool AddToFloats(const CpuKernels& kernels, std::span<const RawValue> in, std::span<const RawValue> /*out*/) {
  if (in.size() != 2 || !kernels.IsList(in[0]) || in[0].payload == 0) return false;
  if (!kernels.IsNumber(in[1])) return false;
  const RawVector& list = *kernels.Elements(in[0]);
  const std::span<const RawValue> tensors(list.begin, list.end);
  const auto place_of = [&kernels](const RawValue& tensor, TensorPlace* place) {
    return kernels.IsTensor(tensor) && kernels.Read(tensor, place) && place->device == kCudaDevice &&
           place->dtype == kFloat && place->numel == 1 && !place->negate;
  };
  TensorPlace place;
  for (const RawValue& tensor : tensors) {
    if (!place_of(tensor, &place)) return false;
  }
  const auto added = static_cast<float>(kernels.Real(in[1]));
  for (const RawValue& tensor : tensors) {
    place_of(tensor, &place);
    float value;
    std::memcpy(&value, reinterpret_cast<const void*>(place.data), sizeof value);
    value += added;
    std::memcpy(reinterpret_cast<void*>(place.data), &value, sizeof value);
  }
  return true;
}

}  // namespace

ValueRecipe RecipeFor(std::string_view name) {
  const auto* found = std::find_if(std::begin(kRecipes), std::end(kRecipes),
                                   [name](const Entry& entry) { return entry.name == name; });
  return found != std::end(kRecipes) ? found->recipe : nullptr;
}

ValueRecipe ShortcutFor(std::string_view name) { return name == "aten::_foreach_add_" ? AddToFloats : nullptr; }

}  // namespace rfinject
