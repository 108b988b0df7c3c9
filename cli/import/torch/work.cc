#include "cli/import/torch/work.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "cli/import/torch/dialect.h"
#include "cli/import/torch/results.h"
#include "cli/import/torch/words.h"
#include "operators/bytes.h"
#include "operators/op_table.h"
#include "operators/signature.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kNoShapes = "its shapes were not recorded";
constexpr std::string_view kNoRule = "there is no rule for it";
constexpr std::string_view kNoLengths = "the file has no lengths of its sequences, which its FLOP follow from";
constexpr std::string_view kCompiled =
    "torch.compile made it of the operators in its name, and the file does not say what it reads and writes";
constexpr std::string_view kNoResult = "the file does not show what it returned";

bool IsConvolutionBackward(std::string_view name) {
  const auto rule = estimate::FindOp(name);
  return rule && rule->flop == estimate::FlopRule::kConvolutionBackward;
}

// What the file itself says of a kernel that torch.compile made: "[FLOP,bytes]" in the seventh line of its operands.
// A kernel of a template (triton_tem_…) multiplies matrices, of its first operand's type.
bool AddGivenWork(const RecordedCall& call, std::string_view operands, OperatorWork* work) {
  constexpr int kLine = 6;
  for (int i = 0; i < kLine; ++i) {
    const size_t end = operands.find('\n');
    if (end == std::string_view::npos) return false;
    operands.remove_prefix(end + 1);
  }
  const size_t comma = operands.find(',');
  if (!operands.starts_with('[') || !operands.ends_with(']') || comma == std::string_view::npos) return false;
  if (!ParseNumber(operands.substr(1, comma - 1), &work->flop.model) ||
      !ParseNumber(operands.substr(comma + 1, operands.size() - comma - 2), &work->bytes)) {
    return false;
  }
  const bool multiplies = work->op.starts_with("triton_tem_");
  (multiplies ? work->flop.matrix : work->flop.vector) = work->flop.model;
  if (multiplies) work->unit = estimate::Unit::kMatmul;
  if (const TensorView* first = call.Tensor(0); first != nullptr) work->type = first->dtype;
  work->given = true;
  return true;
}

// Whether an attention is of sequences of several lengths: their ends are the numbers of a vector, and a recording
// has a tensor's sizes only.
bool HidesLengths(std::string_view name, const RecordedCall& call) {
  if (Contains(name, "varlen")) return true;
  if (!TakesSequences(name)) return false;
  constexpr size_t kBehind = 8;  // the states of random numbers, which are vectors, too
  for (size_t i = 0; i < std::min(call.size(), kBehind); ++i) {
    const TensorView* const tensor = call.Tensor(i);
    if (tensor != nullptr && tensor->rank == 1 && tensor->numel > 1 && !estimate::IsFloating(tensor->dtype))
      return true;
  }
  return false;
}

// What is asked of a convolution beside its FLOP.
void AddConvolution(const estimate::OpRule& rule, const OpCall& call, OperatorWork* work) {
  const bool backward = rule.flop == estimate::FlopRule::kConvolutionBackward;
  if (!backward && rule.flop != estimate::FlopRule::kConvolution) return;
  const auto tensor = [&call](std::span<const Argument> arguments, size_t index) -> const TensorView* {
    const bool there = index < arguments.size() && arguments[index].kind == Argument::Kind::kTensor;
    return there ? &call.tensors[arguments[index].first] : nullptr;
  };
  for (size_t i = 0; backward && i < 2; ++i) work->shape.gradients += tensor(call.outputs, i) != nullptr ? 1 : 0;
  const TensorView* result = backward ? tensor(call.inputs, 0) : tensor(call.outputs, 0);
  const TensorView* filter = tensor(call.inputs, backward ? 2 : 1);
  constexpr uint8_t kPlanes = 4;  // dimensions: images, channels, height, width
  if (result == nullptr || filter == nullptr || result->rank != kPlanes || filter->rank != kPlanes) return;
  work->shape.plane_h = result->shape[2];
  work->shape.plane_w = result->shape[3];
  work->shape.filter_h = filter->shape[2];
  work->shape.filter_w = filter->shape[3];
}

// The type that most tensors have: a list of tensors has none in a recording.
DType CommonType(const TorchRecording& recording) {
  std::map<std::string_view, uint64_t> counts;
  for (uint32_t i = 1; i < recording.operands.size(); ++i) {
    for (const std::string_view name : {"\"float\"", "\"c10::Half\"", "\"c10::BFloat16\"", "\"double\""}) {
      if (Contains(recording.operands[i], name)) ++counts[name.substr(1, name.size() - 2)];
    }
  }
  const auto most = std::max_element(counts.begin(), counts.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  uint64_t bytes = 0;
  return most == counts.end() ? DType::kFloat : DTypeOfName(most->first, &bytes);
}

}  // namespace

WorkTable::WorkTable(const TorchRecording& recording, const TorchWindow& window, const CallTree& tree)
    : recording_(recording),
      window_(window),
      tree_(tree),
      list_type_(CommonType(recording)),
      position_(tree.order.size()) {
  for (uint32_t i = 0; i < tree.order.size(); ++i) position_[tree.order[i]] = i;
  for (uint32_t i = 0; i < window.spans.size(); ++i) {
    const TorchSpan& span = window.spans[i];
    if (tree.spans[i].backward == kNoSpan || span.operands == 0 || span.sequence == TorchSpan::kNone) continue;
    if (recording.texts[span.name].starts_with("aten::")) continue;
    gradients_.emplace_back(span.sequence, span.start, i);
  }
  std::sort(gradients_.begin(), gradients_.end());
}

std::vector<int64_t> WorkTable::FirstShape(uint32_t span) const {
  const RecordedCall call = CallOf(span);
  const TensorView* tensor = call.Tensor(0);
  if (tensor == nullptr) return {};
  return {tensor->shape.begin(), tensor->shape.begin() + tensor->rank};
}

RecordedCall WorkTable::CallOf(uint32_t span) const {
  const TorchSpan& at = window_.spans[span];
  return {recording_.texts[at.name], recording_.operands[at.operands], list_type_};
}

// What flowed back into the operator's result: the first operand of the node with its number.
std::vector<int64_t> WorkTable::ShapeOfGradient(uint32_t span) const {
  const TorchSpan& at = window_.spans[span];
  if (at.sequence == TorchSpan::kNone) return {};
  const auto found = std::lower_bound(gradients_.begin(), gradients_.end(), std::tuple(at.sequence, at.end, 0u));
  if (found == gradients_.end() || std::get<0>(*found) != at.sequence) return {};
  return FirstShape(std::get<2>(*found));
}

// The shape of the first operand of the operator that follows on the thread, in the same step. Where `wanted` is not
// empty, an operator with that shape is looked for among those that follow. Empty where there is none.
std::vector<int64_t> WorkTable::ShapeBehind(uint32_t span, const std::vector<int64_t>& wanted) const {
  const TorchSpan& at = window_.spans[span];
  constexpr uint32_t kFar = 64;
  const size_t step = tree_.StepAt(at.start);
  uint32_t looked_at = 0;
  for (uint32_t i = position_[span] + 1; i < tree_.order.size() && looked_at < kFar; ++i, ++looked_at) {
    const TorchSpan& next = window_.spans[tree_.order[i]];
    if (next.thread != at.thread || tree_.StepAt(next.start) != step) break;
    if (next.start < at.end || next.operands == 0) continue;
    std::vector<int64_t> shape = FirstShape(tree_.order[i]);
    if (!shape.empty() && (wanted.empty() || shape == wanted)) return shape;
  }
  return {};
}

const OperatorWork& WorkTable::Of(uint32_t span) {
  const TorchSpan& at = window_.spans[span];
  const uint32_t parent = tree_.spans[span].parent;
  const bool old = OldGradientOf(recording_.texts[at.name]).has_value();
  const Key key{at.name, at.operands, old && parent != kNoSpan ? window_.spans[parent].operands : 0};
  const auto [needs, is_new] = needs_seen_.try_emplace(key, false);
  if (is_new && at.operands != 0 && !old) {
    const RecordedCall call = CallOf(span);
    needs->second = !call.knows_results() && NeedsSeenShape(call);
  }
  std::vector<int64_t> gradient, next;
  if (needs->second && IsConvolutionBackward(recording_.texts[at.name])) {
    // Whether its input has a gradient, the operators that take one show.
    if (const RecordedCall call = CallOf(span); call.Tensor(1) != nullptr) {
      const TensorView& input = *call.Tensor(1);
      gradient = next = ShapeBehind(span, {input.shape.begin(), input.shape.begin() + input.rank});
    }
  } else if (needs->second) {
    gradient = ShapeOfGradient(span);
    next = ShapeBehind(span, {});
  }
  const auto found = works_.find({key, gradient, next});
  if (found != works_.end()) return found->second;
  OperatorWork work = Make(span, gradient, next);
  return works_.emplace(std::tuple(key, gradient, next), std::move(work)).first->second;
}

OperatorWork WorkTable::Make(uint32_t span, const std::vector<int64_t>& gradient,
                             const std::vector<int64_t>& next) const {
  OperatorWork work;
  work.op = recording_.texts[window_.spans[span].name];
  std::optional<RecordedCall> call;
  bool complete = false;
  const uint32_t parent = tree_.spans[span].parent;
  if (const auto which = OldGradientOf(work.op); which && parent != kNoSpan) {
    const RecordedCall around = CallOf(parent);
    const TensorView *input = around.Tensor(0), *upper = around.Tensor(1), *weight = around.Tensor(2);
    work.op = "aten::convolution_backward";
    if (input == nullptr || upper == nullptr || weight == nullptr) {
      work.lacks = kNoShapes;
      return work;
    }
    call.emplace(work.op, std::vector<TensorView>{*upper, *input, *weight});
    if (*which == 1) call->AddNoResult();
    call->AddResult(*which == 0 ? TensorView(*input) : TensorView(*weight));
    complete = true;
  } else {
    if (!estimate::FindOp(work.op)) {
      if (AddGivenWork(CallOf(span), recording_.operands[window_.spans[span].operands], &work)) return work;
      work.lacks = IsMadeByCompile(work.op) ? kCompiled : Contains(work.op, "varlen") ? kNoLengths : kNoRule;
      return work;
    }
    if (window_.spans[span].operands == 0) {
      work.lacks = kNoShapes;
      return work;
    }
    if (HidesLengths(work.op, CallOf(span))) {
      work.lacks = kNoLengths;
      return work;
    }
    for (const std::vector<int64_t>& seen : {gradient, next}) {
      call.emplace(CallOf(span));
      if (call->knows_results()) {
        complete = true;
        break;
      }
      // (input, weight, bias, mean, variance, training, …): older dialects do not say the flag.
      if (Contains(work.op, "batch_norm")) call->AssumeBool(5, tree_.trains());
      complete = AddResults(seen, &*call);
      if (complete) break;
    }
  }
  const OpCall view = call->call();
  std::array<char, estimate::kMaxSignature> buffer;
  work.signature = estimate::FormatSignature(view, buffer);
  const estimate::OpRule rule = *estimate::FindOp(work.op);
  if (rule.kind == OpKind::kFree) return work;
  if (!complete) {
    work.lacks = kNoResult;
    return work;
  }
  work.flop = estimate::CountFlop(rule, view);
  work.unit = rule.unit;
  work.type = estimate::ResultType(view);
  AddConvolution(rule, view, &work);
  const estimate::Traffic traffic = estimate::CountBytes(rule, view);
  if (__builtin_add_overflow(traffic.read, traffic.write, &work.bytes)) work.bytes = UINT64_MAX;
  // A kernel that moved nothing would not have run: of a list of tensors the sizes are not always recorded.
  if (work.bytes == 0 && work.flop.model == 0) work.lacks = kNoShapes;
  return work;
}

}  // namespace rfinject::cli
