#include "virtual_gpu/values/value_substitutes.h"

#include <algorithm>
#include <iterator>

namespace rfinject {
namespace {

using enum Substitute::Operand;

constexpr std::string_view kAttention = "_scaled_dot_product_flash_attention_for_cpu";
constexpr std::string_view kAttentionBackward = "_scaled_dot_product_flash_attention_for_cpu_backward";

// The schemas are those of aten/src/ATen/native/native_functions.yaml, the same from torch 2.2 to 2.15.
//  * Batch normalization: both devices save the mean and the reciprocal of the deviation, and multiply the variance
//  that
//    they add to the running one by n/(n-1). cuDNN's reserve is not used, and the saved values
//    are where running ones are.
//  * Attention: both devices save the logarithm of the sum of exponentials; CUDA's memory-efficient kernel has it
//  with
//    rows up to a multiple of 32.
//  * Softmax: CUDA's may take halves and give floats, which the CPU does not do; halves are floats here (wide).
constexpr Substitute kSubstitutes[] = {
    {"cudnn_batch_norm", "native_batch_norm", 8, 3, 8, {0, 1, 2, 3, 4, 5, 6, 7}},
    {"cudnn_batch_norm_backward",
     "native_batch_norm_backward",
     9,
     3,
     10,
     {1, 0, 2, 3, 4, 5, 6, kTrue, 7, kThreeTrue}},
    {"native_batch_norm", "native_batch_norm", 8, 3, 8, {0, 1, 2, 3, 4, 5, 6, 7}},
    {"_native_batch_norm_legit", "_native_batch_norm_legit", 8, 3, 8, {0, 1, 2, 3, 4, 5, 6, 7}},
    {"_batch_norm_with_update", "_batch_norm_with_update", 7, 3, 7, {0, 1, 2, 3, 4, 5, 6}},
    {"batch_norm_backward", "native_batch_norm_backward", 11, 3, 10, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
    {"_scaled_dot_product_flash_attention", kAttention, 7, 2, 7, {0, 1, 2, 3, 4, kNone, 6}, 3},
    {"_scaled_dot_product_flash_attention_backward",
     kAttentionBackward,
     15,
     3,
     10,
     {0, 1, 2, 3, 4, 5, 10, 11, kNone, 14},
     10},
    {"_scaled_dot_product_efficient_attention", kAttention, 8, 2, 7, {0, 1, 2, 5, 6, 3, 7}, 5},
    {"_scaled_dot_product_efficient_attention_backward",
     kAttentionBackward,
     13,
     3,
     10,
     {0, 1, 2, 3, 5, 6, 9, 11, 4, 12},
     9,
     10,
     6},
    {"_softmax", "_softmax", 3, 1, 3, {0, 1, kFalse}},
    {"_log_softmax", "_log_softmax", 3, 1, 3, {0, 1, kFalse}},
    {"_softmax_backward_data", "_softmax_backward_data", 4, 1, 4, {0, 1, 2, kTypeOfFirst}},
    {"_log_softmax_backward_data", "_log_softmax_backward_data", 4, 1, 4, {0, 1, 2, kTypeOfFirst}},
    {"native_dropout", "native_dropout_backward", 3, 1, 3, {0, kDrawn, kUndropped}},
    {"cudnn_grid_sampler", "grid_sampler_2d", 2, 1, 5, {0, 1, kZero, kZero, kTrue}},
    {"cudnn_grid_sampler_backward", "grid_sampler_2d_backward", 3, 2, 7, {2, 0, 1, kZero, kZero, kTrue, kTwoTrue}},
};

}  // namespace

const Substitute* SubstituteFor(std::string_view name) {
  constexpr std::string_view kPrefix = "aten::";
  if (!name.starts_with(kPrefix)) return nullptr;
  name.remove_prefix(kPrefix.size());
  const auto* found = std::find_if(std::begin(kSubstitutes), std::end(kSubstitutes),
                                   [name](const Substitute& one) { return one.name == name; });
  return found != std::end(kSubstitutes) ? found : nullptr;
}

}  // namespace rfinject
