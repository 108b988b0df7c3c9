#include "cli/import/nsys/nvtx_operators.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "cli/import/torch/operands.h"
#include "cli/import/torch/words.h"
#include "gpus/kernel_names.h"

namespace rfinject::cli {
namespace {

// What follows `key` in the text; empty where it is not there.
std::string_view Behind(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  return at == std::string_view::npos ? std::string_view() : text.substr(at + key.size());
}

// The elements of all tensors in a list of sizes.
uint64_t ElementsIn(std::string_view sizes) {
  uint64_t sum = 0;
  sizes.remove_prefix(1);  // the outer bracket
  for (size_t at = 0; (at = sizes.find('[', at)) != std::string_view::npos; ++at) {
    std::string_view one = sizes.substr(at + 1, sizes.find(']', at) - at - 1);
    uint64_t elements = one.empty() ? 0 : 1;
    while (!one.empty()) {
      uint64_t size = 0;
      ParseNumber(one.substr(0, one.find(',')), &size);
      if (__builtin_mul_overflow(elements, size, &elements)) elements = INT64_MAX;
      one.remove_prefix(one.find(',') == std::string_view::npos ? one.size() : one.find(',') + 1);
    }
    if (__builtin_add_overflow(sum, elements, &sum) || sum > INT64_MAX) sum = INT64_MAX;
  }
  return sum;
}

// A call as TorchRecording::operands has it: the sizes, and a type for each that is known to be a tensor's.
std::string OperandsText(std::string_view name, std::string_view sizes, DType type) {
  std::string types = "[";
  size_t operands = 0;
  for (size_t at = 1; at < sizes.size(); ++at) {  // behind the first bracket
    if (sizes[at] != '[') continue;
    const bool tensor = at + 1 < sizes.size() && sizes[at + 1] != ']';
    absl::StrAppend(&types, operands++ == 0 ? "\"" : ",\"", tensor ? std::string(NameOfDType(type)) : "Unknown",
                    "\"");
  }
  std::string text = absl::StrCat(std::string(sizes), "\n", types, "]");
  // They are lists of tensors, whose elements they return.
  if (name == "aten::cat" || name == "aten::_cat" || name == "aten::stack") {
    absl::StrAppend(&text, "\n[]\n[]\n[[", ElementsIn(sizes), "]]\n[\"", std::string(NameOfDType(type)), "\"]");
  }
  return text;
}

}  // namespace

NvtxOperator ParseNvtxOperator(std::string_view text) {
  NvtxOperator found;
  found.name = NameOfRange(text);
  const std::string_view sequence = Behind(text, ", seq = ");
  ParseNumber(sequence.substr(0, sequence.find(',')), &found.sequence);
  std::string_view sizes = Behind(text, ", sizes = ");
  sizes = sizes.substr(0, sizes.find(", input_op_ids = "));
  const bool only_sizes = sizes.find_first_not_of("0123456789[], ") == std::string_view::npos;
  if (sizes.starts_with("[[") && sizes.ends_with("]]") && only_sizes) found.sizes = sizes;
  return found;
}

DType OperandsOfKernel(std::string_view kernel) {
  if (const std::optional<Precision> precision = PrecisionOfKernel(kernel)) {
    switch (*precision) {
      case Precision::kFp64:
      case Precision::kFp64Tensor:
        return DType::kDouble;
      case Precision::kFp16:
      case Precision::kFp16Tensor:
        return DType::kHalf;
      case Precision::kBf16Tensor:
        return DType::kBFloat16;
      case Precision::kFp8Tensor:
        return DType::kOther;  // of a byte
      default:
        return DType::kFloat;
    }
  }
  if (Contains(kernel, "BFloat16") || Contains(kernel, "nv_bfloat16")) return DType::kBFloat16;
  if (Contains(kernel, "c10::Half") || Contains(kernel, "__half")) return DType::kHalf;
  return Contains(kernel, "double") ? DType::kDouble : DType::kFloat;
}

void NvtxOperators::Add(const NvtxRange& range, bool layer) {
  if (full()) return;
  TorchSpan span;
  span.start = range.start;
  span.end = range.end;
  span.thread = recording_.threads.NumberOf(absl::StrCat(range.thread));
  threads_.resize(std::max<size_t>(threads_.size(), span.thread + 1));
  threads_[span.thread] = range.thread;
  const NvtxOperator parsed = ParseNvtxOperator(range.name);
  span.name = recording_.texts.NumberOf(parsed.name);
  span.sequence = parsed.sequence;
  if (!IsOperatorRange(range.name)) {
    span.kind = layer ? TorchSpan::Kind::kModule : TorchSpan::Kind::kAnnotation;
  } else if (!Contains(parsed.name, "_foreach") && !Contains(parsed.name, "_fused") && !parsed.sizes.empty()) {
    // Of several lists nothing says where one ends.
    span.operands = recording_.operands.NumberOf(OperandsText(parsed.name, parsed.sizes, DType::kFloat));
  }
  window_.spans.push_back(span);
}

std::string NvtxOperators::PathOf(uint32_t span) const {
  std::string path;
  for (uint32_t at = span; at != kNoSpan; at = tree_.spans[at].parent) {
    if (window_.spans[at].kind != TorchSpan::Kind::kModule) continue;
    const std::string& name = recording_.texts[window_.spans[at].name];
    path = path.empty() ? name : absl::StrCat(name, ".", path);
  }
  return path;
}

void NvtxOperators::Finish() {
  tree_ = MakeCallTree(recording_, window_);
  PlaceLayers(recording_, window_, nullptr, &tree_);
  layers_.resize(tree_.layers.size());
  for (uint32_t i = 0; i < tree_.spans.size(); ++i) {
    if (window_.spans[i].kind != TorchSpan::Kind::kModule || tree_.spans[i].backward != kNoSpan) continue;
    std::string& path = layers_[tree_.spans[i].layer];
    if (path.empty()) path = PathOf(i);
  }
  works_.emplace(recording_, window_, tree_);
}

void NvtxOperators::Rewind() {
  next_ = 0;
  open_.clear();
}

uint32_t NvtxOperators::At(int64_t thread, int64_t time) {
  for (; next_ < tree_.order.size(); ++next_) {
    const TorchSpan& ahead = window_.spans[tree_.order[next_]];
    if (std::tie(threads_[ahead.thread], ahead.start) > std::tie(thread, time)) break;
    if (!open_.empty() && window_.spans[open_.back()].thread != ahead.thread) open_.clear();
    while (!open_.empty() && window_.spans[open_.back()].end <= ahead.start) open_.pop_back();
    open_.push_back(tree_.order[next_]);
  }
  while (!open_.empty() && window_.spans[open_.back()].end <= time) open_.pop_back();
  if (open_.empty()) return kNoSpan;
  return threads_[window_.spans[open_.back()].thread] == thread ? tree_.spans[open_.back()].cost : kNoSpan;
}

const OperatorWork& NvtxOperators::WorkOf(uint32_t op, DType type) {
  TorchSpan& span = window_.spans[op];
  if (span.operands != 0 && type != DType::kFloat) {
    const std::string& text = recording_.operands[span.operands];
    std::string typed(text);
    for (size_t at = 0; (at = typed.find("\"float\"", at)) != std::string::npos;) {
      const std::string name = absl::StrCat("\"", std::string(NameOfDType(type)), "\"");
      typed.replace(at, sizeof("\"float\"") - 1, name);
      at += name.size();
    }
    span.operands = recording_.operands.NumberOf(typed);
  }
  return works_->Of(op);
}

uint32_t NvtxOperators::RootOf(uint32_t op) const {
  uint32_t root = op;
  for (uint32_t up = op; up != kNoSpan; up = tree_.spans[up].parent) {
    if (window_.spans[up].kind == TorchSpan::Kind::kOperator) root = up;
  }
  return root;
}

std::optional<std::string> NvtxOperators::LayerOfBackward(uint32_t op) const {
  if (tree_.spans[op].backward == kNoSpan) return std::nullopt;
  return layers_[tree_.spans[op].layer];
}

}  // namespace rfinject::cli
