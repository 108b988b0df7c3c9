#include "operators/attention.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string_view>

#include "operators/operands.h"

namespace rfinject {

bool TakesSequences(std::string_view name) noexcept {
  return name.starts_with("aten::_flash_attention_") || name.starts_with("aten::_efficient_attention_") ||
         name.starts_with("aten::_cudnn_attention_");
}

}  // namespace rfinject

namespace rfinject::estimate {
namespace {

bool Named(const OpCall& call, std::string_view part) { return call.name.find(part) != std::string_view::npos; }

// Which keys a query sees: all of them, or those up to its own place, counted from the first query and key or from
// the last.
enum class Mask : uint8_t { kNone, kFromFirst, kFromLast };

// Where the mask stands among the arguments is by native_functions.yaml: the forwards of efficient attention and
// cuDNN's have compute_log_sumexp before is_causal. What is_causal means where there are more keys than queries is
// FlashAttention's in its own operator (from the last, README of its 2.1), and PyTorch's elsewhere (from the first).
Mask MaskOf(const OpCall& call) {
  if (Named(call, "flex_attention")) return Mask::kNone;  // a function of the program's, and blocks that it fills
  const bool front = Named(call, "scaled_dot_product");
  if (!front && Named(call, "_efficient_attention_")) {
    // custom_mask_type, the first integer behind dropout_p
    const auto dropout = std::ranges::find(call.inputs, Argument::Kind::kDouble, &Argument::kind);
    const auto type = std::find_if(dropout, call.inputs.end(),
                                   [](const Argument& argument) { return argument.kind == Argument::Kind::kInt; });
    if (type == call.inputs.end() || type->integer < 1 || type->integer > 2) return Mask::kNone;
    return type->integer == 1 ? Mask::kFromFirst : Mask::kFromLast;
  }
  const bool second = call.name.ends_with("_efficient_attention") || call.name.ends_with("_cudnn_attention") ||
                      call.name.ends_with("_cudnn_attention_forward");
  if (!Flag(call, second ? 1 : 0)) return Mask::kNone;
  return !front && Named(call, "_flash_attention_") ? Mask::kFromLast : Mask::kFromFirst;
}

uint64_t Times(uint64_t a, uint64_t b) { return SaturatingMultiply(a, b); }

uint64_t Triangle(uint64_t n) { return Times(n, n + 1) / 2; }

// Pairs of queries and keys that the mask leaves.
uint64_t Pairs(uint64_t queries, uint64_t keys, Mask mask) {
  if (mask == Mask::kNone) return Times(queries, keys);
  if (queries <= keys) {
    const uint64_t before = mask == Mask::kFromLast ? Times(queries, keys - queries) : 0;
    return SaturatingAdd(before, Triangle(queries));
  }
  const uint64_t after = mask == Mask::kFromFirst ? Times(queries - keys, keys) : 0;
  return SaturatingAdd(after, Triangle(keys));
}

// The elements of a head as the program has them. FlashAttention takes multiples of 8 only: torch pads the others
// with zeros and says the scale that it would have taken without, 1 / sqrt(elements) (ATen,
// native/transformers/attention.cpp, pad_last_dim and calculate_scale). `scale` is the last number behind is_causal.
uint64_t AskedHeadSize(const OpCall& call, uint64_t size) {
  constexpr uint64_t kMultiple = 8;
  double scale = 0;
  for (const Argument& argument : call.inputs) {
    if (argument.kind == Argument::Kind::kBool) scale = 0;
    if (argument.kind == Argument::Kind::kDouble) scale = argument.real;
  }
  if (!(scale > 0 && scale <= 1)) return size;
  const double exact = 1 / (scale * scale), asked = std::round(exact);
  const bool padded = std::abs(exact - asked) < 1e-6 * asked && asked < static_cast<double>(size) &&
                      asked + kMultiple > static_cast<double>(size);
  return padded ? static_cast<uint64_t>(asked) : size;
}

struct ScoreCounts {
  uint64_t all = 0, seen = 0;
};

void AddSequences(uint64_t count, uint64_t queries, uint64_t keys, Mask mask, ScoreCounts* scores) {
  scores->all = SaturatingAdd(scores->all, Times(count, Times(queries, keys)));
  scores->seen = SaturatingAdd(scores->seen, Times(count, Pairs(queries, keys, mask)));
}

const TensorView* Ends(const OpCall& call, size_t index) {
  const TensorView* tensor = InputTensor(call, index);
  return tensor != nullptr && tensor->rank == 1 && tensor->dtype == DType::kInt32 && tensor->numel > 1 ? tensor
                                                                                                       : nullptr;
}

// The argument behind `first` that has the ends of the queries' sequences, one more than there are sequences. That of
// the keys' is the next. Returns the number of arguments where there is none, because all are equally long.
size_t EndsArgument(const OpCall& call, size_t first) {
  while (first < call.inputs.size() && Ends(call, first) == nullptr) ++first;
  return first;
}

// Of one head, all sequences of the batch.
ScoreCounts OfSequences(const OpCall& call, size_t argument, uint64_t queries, uint64_t keys, Mask mask) {
  ScoreCounts scores;
  const TensorView& query_ends = *Ends(call, argument);
  const TensorView* const key_ends = Ends(call, argument + 1);
  const uint64_t count = query_ends.numel - 1;
  const auto q = NumbersOf(call, query_ends), k = key_ends != nullptr ? NumbersOf(call, *key_ends) : q;
  if (!q.empty() && q.size() == k.size()) {
    const auto length = [](std::span<const int64_t> ends, size_t i, uint64_t most) {
      return ends[i + 1] > ends[i] ? std::min(static_cast<uint64_t>(ends[i + 1] - ends[i]), most) : 0;
    };
    for (size_t i = 0; i < count; ++i) AddSequences(1, length(q, i, queries), length(k, i, keys), mask, &scores);
    return scores;
  }
  const uint64_t longer_q = queries % count, longer_k = keys % count;
  const uint64_t both = std::min(longer_q, longer_k), either = std::max(longer_q, longer_k);
  const uint64_t even_q = queries / count, even_k = keys / count;
  AddSequences(both, even_q + 1, even_k + 1, mask, &scores);
  AddSequences(either - both, even_q + (longer_q > longer_k), even_k + (longer_k > longer_q), mask, &scores);
  AddSequences(count - either, even_q, even_k, mask, &scores);
  return scores;
}

}  // namespace

bool IsCausalAttention(const OpCall& call) noexcept {
  return (Named(call, "scaled_dot_product") || TakesSequences(call.name)) && MaskOf(call) != Mask::kNone;
}

FlopCount AttentionFlop(const OpCall& call, bool backward) noexcept {
  // Behind the gradient, or the result. The backward of flex_attention has its gradients at the end.
  const bool behind = (backward && !Named(call, "flex_attention")) || call.name.ends_with("_inplace");
  const size_t first = behind ? 1 : 0;
  const TensorView* query = InputTensor(call, first);
  const TensorView* key = InputTensor(call, first + 1);
  const TensorView* value = InputTensor(call, first + 2);
  if (query == nullptr || key == nullptr || value == nullptr) return {};
  const uint64_t head_size = Size(*query, -1);
  if (head_size == 0 || Size(*key, -1) == 0) return {};
  const Mask mask = MaskOf(call);
  ScoreCounts scores;
  const bool sequences = TakesSequences(call.name);
  if (const size_t ends = EndsArgument(call, first + 3); sequences && ends < call.inputs.size()) {
    // [tokens, heads, elements], of all sequences one behind the other; efficient attention has a 1 in front.
    const uint64_t heads = Size(*query, -2), key_heads = std::max<uint64_t>(Size(*key, -2), 1);
    if (heads == 0) return {};
    scores = OfSequences(call, ends, query->numel / head_size / heads, key->numel / Size(*key, -1) / key_heads, mask);
    scores = {Times(scores.all, heads), Times(scores.seen, heads)};
  } else {
    // Tokens stand before the heads in the operators that take sequences, cuDNN's excepted.
    const int tokens = sequences && !Named(call, "_cudnn_") ? -3 : -2;
    const uint64_t queries = Size(*query, tokens);
    if (queries == 0) return {};
    AddSequences(1, queries, Size(*key, tokens), mask, &scores);
    const uint64_t heads = query->numel / head_size / queries;  // of the whole batch
    scores = {Times(scores.all, heads), Times(scores.seen, heads)};
  }
  const uint64_t asked = AskedHeadSize(call, head_size);
  const uint64_t value_size = Size(*value, -1) == head_size ? asked : Size(*value, -1);
  const auto products = [&](uint64_t of) { return Times(2, Times(of, SaturatingAdd(asked, value_size))); };
  const uint64_t passes = backward ? 2 : 1, per_score = backward ? 5 : 4;
  FlopCount count;
  count.model = SaturatingAdd(Times(passes, products(scores.all)), Times(per_score, scores.all));
  count.matrix = Times(passes, products(scores.seen));
  count.products = Times(passes, products(scores.all));
  count.hidden = count.products - count.matrix;
  if (backward) count.matrix = SaturatingAdd(count.matrix, Times(2, Times(scores.seen, asked)));
  count.vector = Times(per_score, scores.seen);
  return count;
}

}  // namespace rfinject::estimate
