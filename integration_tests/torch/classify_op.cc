// A stand-in for the estimator's table: enough for the tests of the observer.
#include <algorithm>
#include <array>

#include "collector/op_call.h"

namespace rfinject {

OpKind ClassifyOp(std::string_view name) noexcept {
  static constexpr std::array<std::string_view, 30> kFree = {
      "aten::view", "aten::_unsafe_view", "aten::t", "aten::transpose", "aten::permute", "aten::expand", "aten::as_strided",
      "aten::reshape", "aten::select", "aten::slice", "aten::squeeze", "aten::unsqueeze", "aten::split", "aten::chunk",
      "aten::unbind", "aten::detach", "aten::alias", "aten::empty", "aten::empty_like", "aten::empty_strided",
      "aten::new_empty", "aten::new_empty_strided", "aten::result_type", "aten::flatten", "aten::unflatten",
      "aten::contiguous", "aten::detach_", "aten::lift_fresh", "aten::is_same_size", "aten::item"};
  static constexpr std::array<std::string_view, 8> kAtomic = {
      "aten::convolution", "aten::convolution_backward", "aten::native_batch_norm", "aten::native_batch_norm_backward",
      "aten::mm",          "aten::addmm",                "aten::bmm",               "aten::native_layer_norm"};
  if (name.starts_with("profiler::")) return OpKind::kFree;
  if (std::find(kFree.begin(), kFree.end(), name) != kFree.end()) return OpKind::kFree;
  if (std::find(kAtomic.begin(), kAtomic.end(), name) != kAtomic.end()) return OpKind::kAtomic;
  return OpKind::kLeafIfChildless;
}

}  // namespace rfinject
