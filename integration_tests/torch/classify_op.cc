// A stand-in for the estimator's table: enough for the tests of the observer.
#include <algorithm>
#include <array>

#include "operators/op_call.h"

namespace rfinject {

OpKind ClassifyOp(std::string_view name) noexcept {
  using namespace std::literals;
  static constexpr std::array kFree = {
      "view"sv,      "_unsafe_view"sv, "t"sv,          "transpose"sv,   "permute"sv,
      "expand"sv,    "as_strided"sv,   "select"sv,     "slice"sv,       "squeeze"sv,
      "unsqueeze"sv, "split"sv,        "chunk"sv,      "unbind"sv,      "detach"sv,
      "alias"sv,     "empty"sv,        "empty_like"sv, "result_type"sv, "empty_strided"sv,
      "new_empty"sv, "item"sv,         "detach_"sv,    "lift_fresh"sv,  "is_same_size"sv};
  static constexpr std::array kComposite = {
      "conv2d"sv,     "linear"sv,   "matmul"sv, "einsum"sv,     "batch_norm"sv,         "layer_norm"sv, "dropout"sv,
      "reshape"sv,    "flatten"sv,  "to"sv,     "contiguous"sv, "cross_entropy_loss"sv, "ones_like"sv,  "zeros"sv,
      "zeros_like"sv, "_to_copy"sv, "clone"sv,  "square"sv,     "embedding"sv};
  if (name.starts_with("profiler::")) return OpKind::kFree;
  if (!name.starts_with("aten::")) return OpKind::kLeafIfChildless;
  name.remove_prefix(6);
  if (std::find(kFree.begin(), kFree.end(), name) != kFree.end()) return OpKind::kFree;
  if (std::find(kComposite.begin(), kComposite.end(), name) != kComposite.end()) return OpKind::kLeafIfChildless;
  return OpKind::kAtomic;
}
std::string_view TangentProductOf(std::string_view) noexcept { return {}; }
bool TakesSequences(std::string_view) noexcept { return false; }
std::string_view FusedBackwardOf(std::string_view) noexcept { return {}; }
bool IsCopy(std::string_view name) noexcept { return name == "aten::copy_"; }

}  // namespace rfinject
