#include "operators/op_table.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>

namespace rfinject::estimate {
namespace {

// A view or bookkeeping: launches nothing, and neither does what runs inside it.
constexpr OpRule Free() { return {{}, OpKind::kFree}; }

// Decomposes into operators that are observed themselves. Where none of them ran, the operator was a view of its
// operand (reshape, to and contiguous often are) or did the work itself; it is then taken to read its operands and to
// write its results.
constexpr OpRule Through(FlopRule flop = FlopRule::kNone, uint8_t per = 0, BytesRule bytes = BytesRule::kOperands,
                         Unit unit = Unit::kVector) {
  return {{}, OpKind::kLeafIfChildless, flop, per, bytes, unit};
}

// One kernel, whatever runs inside: on the CPU an operator calls others where CUDA's version is a kernel of its own.
constexpr OpRule Kernel(FlopRule flop = FlopRule::kNone, uint8_t per = 0, BytesRule bytes = BytesRule::kOperands,
                        Unit unit = Unit::kVector, uint8_t unread = 0) {
  return {{}, OpKind::kAtomic, flop, per, bytes, unit, unread};
}

// Elementwise: `per` FLOP for each element of the result.
constexpr OpRule Each(uint8_t per) { return Kernel(FlopRule::kPerResult, per); }

constexpr OpRule Matrix(FlopRule flop, Unit unit) { return Kernel(flop, 0, BytesRule::kOperands, unit); }

// The operators that one rule holds for.
struct Group {
  OpRule rule;                               // without a name
  std::initializer_list<const char*> names;  // (GCC 12 takes no std::string_view here.)
};

constexpr uint8_t Bit(int argument) { return static_cast<uint8_t>(1u << argument); }

using enum FlopRule;

// What one FLOP is: an addition, subtraction, multiplication, division or square root of one element; 2 for a
// multiply-add. Nothing for comparisons, minimum and maximum, absolute values and changes of sign (they select or
// flip bits) and conversions. Nothing for the transcendental part of a function (exp, log, tanh, erf, sin): it runs
// on the special function units, which no FLOP counter of the hardware counts either; the arithmetic around it is
// counted.
constexpr Group kGroups[] = {
    // --- Views.
    {Free(),
     {"_conj",
      "_fw_primal",
      "_make_dual",
      "_neg_view",
      "_reshape_alias",
      "_unpack_dual",
      "_unsafe_view",
      "adjoint",
      "alias",
      "as_strided",
      "broadcast_tensors",
      "broadcast_to",
      "chunk",
      "conj",
      "detach",
      "diagonal",
      "dsplit",
      "expand",
      "expand_as",
      "hsplit",
      "imag",
      "lift",
      "lift_fresh",
      "mH",
      "mT",
      "matrix_H",
      "moveaxis",
      "movedim",
      "narrow",
      "numpy_T",
      "permute",
      "positive",
      "real",
      "select",
      "slice",
      "split",
      "split_with_sizes",
      "squeeze",
      "swapaxes",
      "swapdims",
      "t",
      "tensor_split",
      "transpose",
      "unbind",
      "unflatten",
      "unfold",
      "unsafe_chunk",
      "unsafe_split",
      "unsafe_split_with_sizes",
      "unsqueeze",
      "view",
      "view_as",
      "view_as_complex",
      "view_as_real",
      "vsplit"}},
    // Bookkeeping: questions about tensors, and what changes no element.
    {Free(),
     {"set_data",
      "set",
      "retain_grad",
      "requires_grad_",
      "_version",
      "output_nr",
      "is_leaf",
      "size",
      "sym_size",
      "stride",
      "sym_stride",
      "numel",
      "sym_numel",
      "sym_storage_offset",
      "dim",
      "is_contiguous",
      "is_complex",
      "is_floating_point",
      "is_same_size",
      "result_type",
      "can_cast",
      "_has_compatible_shallow_copy_type",
      "_nnpack_available",
      "cudnn_is_acceptable",
      "_fused_sdp_choice",
      "_use_cudnn_ctc_loss",
      "_use_cudnn_rnn_flatten_weight",
      "record_stream",
      "resize",
      "resize_as"}},
    // Parts of a nested tensor, and one made of its parts.
    {Free(),
     {"_nested_get_jagged_dummy", "_nested_get_lengths", "_nested_get_max_seqlen", "_nested_get_min_seqlen",
      "_nested_get_offsets", "_nested_get_ragged_idx", "_nested_get_values", "_nested_tensor_size",
      "_nested_tensor_storage_offsets", "_nested_tensor_strides", "_nested_view_from_buffer",
      "_nested_view_from_jagged"}},
    // Memory comes from the caching allocator: no kernel.
    {Free(),
     {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided",
      "_efficientzerotensor"}},
    // A copy of one scalar to the host. It is no kernel. In the training loops that we saw the operand is on the host
    // already (the optimizers' step counters), or it is the loss, once a step.
    {Free(), {"item", "_local_scalar_dense", "is_nonzero"}},

    // --- Convolution. Bias additions are not counted: the field's convention (torch.utils.flop_counter, fvcore) is
    // 2 per multiply-add of the weight, and the comparison with published numbers rests on it.
    {Matrix(kConvolution, Unit::kConvolution),
     {"convolution",
      "_convolution",
      "convolution_overrideable",
      "mkldnn_convolution",
      "cudnn_convolution",
      "cudnn_convolution_relu",
      "cudnn_convolution_add_relu",
      "cudnn_convolution_transpose",
      "miopen_convolution",
      "miopen_convolution_relu",
      "miopen_convolution_add_relu",
      "miopen_convolution_transpose",
      "miopen_depthwise_convolution",
      "thnn_conv2d",
      "_slow_conv2d_forward",
      "slow_conv3d",
      "slow_conv3d_forward",
      "slow_conv_dilated2d",
      "slow_conv_dilated3d",
      "slow_conv_transpose2d",
      "slow_conv_transpose3d",
      "_nnpack_spatial_convolution"}},
    // PyTorch's own depthwise kernels: plain CUDA code, no tensor cores.
    {Matrix(kConvolution, Unit::kVector), {"_conv_depthwise2d", "conv_depthwise3d"}},
    {Kernel(kConvolutionBackward, 0, BytesRule::kConvolutionBackward, Unit::kConvolution),
     {"convolution_backward", "convolution_backward_overrideable", "_slow_conv2d_backward"}},
    {Through(),
     {"conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "_convolution_mode",
      "_convolution_double_backward"}},

    // --- Matrix products. As with convolution, the bias that addmm adds is not counted.
    {Matrix(kMatmul, Unit::kMatmul), {"mm", "bmm", "addmm", "addbmm", "baddbmm", "_addmm_activation"}},
    {Matrix(kMatmul, Unit::kFp8Matmul), {"_scaled_mm", "_scaled_mm_v2"}},
    {Matrix(kMatmul, Unit::kInt8Matmul), {"_int_mm"}},
    {Matrix(kLinear, Unit::kMatmul), {"mkldnn_linear", "_weight_int8pack_mm"}},
    {Matrix(kGroupedMatmul, Unit::kMatmul), {"_grouped_mm"}},
    {Matrix(kGroupedMatmul, Unit::kFp8Matmul), {"_scaled_grouped_mm", "_scaled_grouped_mm_v2"}},
    // Vectors: cuBLAS's gemv and dot run on the CUDA cores whatever the policy is.
    {Matrix(kMatVec, Unit::kVector), {"mv", "addmv", "dot", "vdot"}},
    {Each(2), {"addr"}},
    {Each(1), {"ger"}},
    {Through(),
     {"outer", "inner", "matmul", "einsum", "tensordot", "bilinear", "_trilinear", "chain_matmul", "linalg_multi_dot",
      "kron"}},
    // Usually runs t and addmm; where the CPU's library does it in one call, it is a leaf.
    {Through(kLinear, 0, BytesRule::kOperands, Unit::kMatmul), {"linear"}},

    // --- Attention. The fused operators; the `math` one and the front end decompose.
    {Matrix(kAttention, Unit::kMatmul),
     {"_scaled_dot_product_flash_attention", "_scaled_dot_product_flash_attention_for_cpu",
      "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention",
      "_scaled_dot_product_fused_attention_overrideable", "_flash_attention_forward",
      "_flash_attention_forward_no_dropout_inplace", "_efficient_attention_forward", "_cudnn_attention_forward",
      "_cudnn_attention_forward_no_dropout_inplace", "flex_attention"}},
    {Matrix(kAttentionBackward, Unit::kMatmul),
     {"_scaled_dot_product_flash_attention_backward", "_scaled_dot_product_flash_attention_for_cpu_backward",
      "_scaled_dot_product_efficient_attention_backward", "_scaled_dot_product_cudnn_attention_backward",
      "_scaled_dot_product_fused_attention_overrideable_backward", "_flash_attention_backward",
      "_efficient_attention_backward", "_cudnn_attention_backward", "flex_attention_backward"}},
    {Matrix(kMultiHead, Unit::kMatmul), {"_native_multi_head_attention"}},
    // The bias is added to query, key and value, and the query scaled: 4 for each element of the query, the first
    // result.
    {Kernel(kPerResult, 4), {"_transform_bias_rescale_qkv"}},
    {Through(),
     {"scaled_dot_product_attention", "_scaled_dot_product_attention", "_scaled_dot_product_attention_math",
      "_transformer_encoder_layer_fwd", "_safe_softmax"}},

    // --- Recurrent layers. cuDNN's TF32 switch governs them, as it does convolutions.
    {Matrix(kRnn, Unit::kConvolution), {"_cudnn_rnn", "miopen_rnn", "mkldnn_rnn_layer"}},
    {Matrix(kRnnBackward, Unit::kConvolution),
     {"_cudnn_rnn_backward", "miopen_rnn_backward", "mkldnn_rnn_layer_backward"}},
    // The gates' sums and sigmoids (3 for each of 4 or 3 gates) and the update of the cell's state. The numbers are
    // per element of the gates; the backward does about twice as much.
    {Kernel(kPerOperand, 3), {"_thnn_fused_lstm_cell", "_thnn_fused_gru_cell"}},
    {Kernel(kPerResult, 6), {"_thnn_fused_lstm_cell_backward_impl", "_thnn_fused_gru_cell_backward"}},
    {Through(),
     {"_thnn_fused_lstm_cell_backward", "_thnn_differentiable_lstm_cell_backward",
      "_thnn_differentiable_gru_cell_backward"}},
    // The operators that nn.LSTM and the like call. CUDA's version is one of the above; the CPU's is an operator for
    // each gate and token. The backward's names are ours (FusedBackwardOf).
    {Matrix(kRnn, Unit::kConvolution), {"lstm", "gru", "rnn_tanh", "rnn_relu"}},
    {Kernel(kRnnBackward, 0, BytesRule::kFusedBackward, Unit::kConvolution),
     {"lstm_backward", "gru_backward", "rnn_tanh_backward", "rnn_relu_backward"}},
    {Through(),
     {"lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell", "_pack_padded_sequence", "_pad_packed_sequence"}},
    {Kernel(), {"_cudnn_rnn_flatten_weight", "_cudnn_init_dropout_state"}},

    // --- Normalisation. See flop.cc for the counts.
    {Kernel(kBatchNorm, 0, BytesRule::kBatchNorm),
     {"native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm", "_native_batch_norm_legit",
      "_batch_norm_with_update"}},
    {Kernel(kBatchNorm), {"_native_batch_norm_legit_no_training", "_batch_norm_no_update"}},
    // Sums of g and of g*xhat (xhat: 2; 4 in all), dx = (g - mean g - xhat*mean(g*xhat)) * scale (5): 9.
    {Kernel(kPerOperand, 9),
     {"native_batch_norm_backward", "cudnn_batch_norm_backward", "miopen_batch_norm_backward",
      "batch_norm_backward"}},
    {Through(), {"_batch_norm_impl_index_backward"}},
    // SyncBatchNorm's parts: Welford's mean and variance 4; normalise and scale 4; the backward as above, in two
    // parts.
    {Kernel(kPerOperand, 4),
     {"batch_norm_stats", "batch_norm_elemt", "batch_norm_update_stats", "batch_norm_backward_reduce"}},
    {Kernel(), {"batch_norm_gather_stats", "batch_norm_gather_stats_with_counts"}},
    {Kernel(kPerOperand, 5), {"batch_norm_backward_elemt"}},
    {Kernel(kNormalise), {"native_layer_norm", "native_group_norm"}},
    // xhat 2, g*weight 1, its two sums 3, dx 4, the weight's gradient 2, the bias's 1: 13.
    {Kernel(kPerOperand, 13), {"native_layer_norm_backward", "native_group_norm_backward"}},
    // Squares and their sum 2, scale and weight 2; the backward: xhat 1, g*weight 1, sum 2, dx 3, weight 2.
    {Kernel(kPerOperand, 4), {"_fused_rms_norm"}},
    {Kernel(kPerOperand, 9), {"_fused_rms_norm_backward"}},
    {Through(),
     {"batch_norm", "_batch_norm_impl_index", "layer_norm", "group_norm", "instance_norm", "rms_norm", "_weight_norm",
      "norm_except_dim", "_weight_norm_differentiable_backward"}},
    {Kernel(kPerOperand, 3), {"_weight_norm_interface"}},
    {Kernel(kPerOperand, 5), {"_weight_norm_interface_backward"}},

    // --- Softmax and losses.
    {Each(3), {"_softmax"}},      // minus the maximum, sum of the exponentials, division
    {Each(3), {"_log_softmax"}},  // minus the maximum, sum of the exponentials, minus its logarithm
    {Each(4), {"_softmax_backward_data"}},
    {Each(3), {"_log_softmax_backward_data"}},
    {Through(),
     {"softmax", "log_softmax", "cross_entropy_loss", "nll_loss", "nll_loss_nd", "nll_loss2d",
      "binary_cross_entropy_with_logits", "l1_loss", "kl_div", "cosine_embedding_loss", "triplet_margin_loss",
      "margin_ranking_loss", "hinge_embedding_loss", "soft_margin_loss", "ctc_loss", "cosine_similarity",
      "pairwise_distance", "pdist"}},
    // One log-probability is looked up and added per target; the gradient is one number per target, zeros elsewhere.
    {Kernel(kPerSecond, 1, BytesRule::kPick), {"nll_loss_forward", "nll_loss2d_forward"}},
    {Kernel(kNone, 0, BytesRule::kOperands, Unit::kVector, Bit(1)), {"nll_loss_backward", "nll_loss2d_backward"}},
    {Kernel(kPerOperand, 3), {"mse_loss"}},
    {Each(3), {"mse_loss_backward", "smooth_l1_loss_backward", "huber_loss_backward"}},
    {Kernel(kPerOperand, 4), {"smooth_l1_loss", "huber_loss"}},
    {Kernel(kPerOperand, 5), {"binary_cross_entropy"}},
    {Each(5), {"binary_cross_entropy_backward"}},

    // --- Pooling and resampling. Maxima are comparisons; the backward adds each gradient to where it came from.
    {Kernel(),
     {"max_pool2d_with_indices", "max_pool3d_with_indices", "mkldnn_max_pool2d", "mkldnn_max_pool3d",
      "max_pool1d_with_indices", "adaptive_max_pool2d", "adaptive_max_pool3d", "fractional_max_pool2d",
      "fractional_max_pool3d", "max_unpool2d", "max_unpool3d"}},
    {Kernel(kPerOperand, 1, BytesRule::kOperands, Unit::kVector, Bit(1)),
     {"max_pool2d_with_indices_backward", "max_pool3d_with_indices_backward", "adaptive_max_pool2d_backward",
      "adaptive_max_pool3d_backward"}},
    {Kernel(kPerOperand, 1), {"mkldnn_max_pool2d_backward"}},
    {Through(), {"max_pool1d", "max_pool2d", "max_pool3d"}},
    // A window of k elements: k-1 additions and a division.
    {Kernel(kPoolWindow), {"avg_pool2d", "avg_pool3d"}},
    {Through(), {"avg_pool1d"}},
    {Kernel(kPoolWindowBackward, 0, BytesRule::kOperands, Unit::kVector, Bit(1)),
     {"avg_pool2d_backward", "avg_pool3d_backward"}},
    // Every input is added once; one division a result. The backward divides once for every element it writes.
    {Kernel(kPerOperand, 1), {"_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "mkldnn_adaptive_avg_pool2d"}},
    {Kernel(kPerResult, 1, BytesRule::kOperands, Unit::kVector, Bit(1)),
     {"_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward"}},
    {Through(), {"adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d"}},
    // Weighted sums of 1, 2, 4, 8 or 16 neighbours: a multiplication each, and the additions between them; the
    // backward multiplies and adds for each.
    {Kernel(),
     {"upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "_upsample_nearest_exact1d",
      "_upsample_nearest_exact2d", "_upsample_nearest_exact3d", "im2col"}},
    {Each(3), {"upsample_linear1d"}},
    {Each(7), {"upsample_bilinear2d", "_upsample_bilinear2d_aa", "grid_sampler_2d", "cudnn_grid_sampler"}},
    {Each(15), {"upsample_trilinear3d", "grid_sampler_3d"}},
    {Each(31), {"upsample_bicubic2d", "_upsample_bicubic2d_aa"}},
    {Kernel(kPerOperand, 1),
     {"upsample_nearest1d_backward", "upsample_nearest2d_backward", "upsample_nearest3d_backward",
      "_upsample_nearest_exact1d_backward", "_upsample_nearest_exact2d_backward",
      "_upsample_nearest_exact3d_backward", "col2im"}},
    {Kernel(kPerOperand, 4), {"upsample_linear1d_backward"}},
    {Kernel(kPerOperand, 8), {"upsample_bilinear2d_backward", "_upsample_bilinear2d_aa_backward"}},
    {Kernel(kPerOperand, 16),
     {"upsample_trilinear3d_backward", "grid_sampler_2d_backward", "cudnn_grid_sampler_backward"}},
    {Kernel(kPerOperand, 32),
     {"upsample_bicubic2d_backward", "_upsample_bicubic2d_aa_backward", "grid_sampler_3d_backward"}},
    {Through(), {"grid_sampler", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "native_channel_shuffle"}},
    // Padding.
    {Through(), {"pad", "constant_pad_nd", "_pad_enum", "_pad_circular"}},
    {Kernel(),
     {"reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "replication_pad1d", "replication_pad2d",
      "replication_pad3d"}},
    {Kernel(kPerOperand, 1, BytesRule::kOperands, Unit::kVector, Bit(1)),
     {"reflection_pad1d_backward", "reflection_pad2d_backward", "reflection_pad3d_backward",
      "replication_pad1d_backward", "replication_pad2d_backward", "replication_pad3d_backward"}},

    // --- Looking up and scattering.
    {Kernel(kNone, 0, BytesRule::kGather),
     {"index", "index_select", "gather", "take", "masked_select", "take_along_dim"}},
    {Kernel(kEmbeddingBag, 0, BytesRule::kEmbeddingBag),
     {"_embedding_bag", "_embedding_bag_forward_only", "_embedding_bag_per_sample_weights_backward"}},
    {Through(), {"embedding_bag", "_embedding_bag_backward", "_embedding_bag_sparse_backward"}},
    {Kernel(kEmbeddingBag), {"_embedding_bag_dense_backward"}},
    // index_select on the CPU, a kernel of its own or the same on CUDA.
    {Through(kNone, 0, BytesRule::kGather), {"embedding"}},
    {Through(), {"embedding_backward", "_unsafe_index"}},
    {Kernel(kPerOperand, 1), {"embedding_dense_backward"}},
    {Kernel(kNone, 0, BytesRule::kGather), {"embedding_renorm_"}},
    {Kernel(kPerLastIfFlag, 1, BytesRule::kScatter), {"_index_put_impl_", "put_"}},
    {Through(kPerLastIfFlag, 1), {"index_put", "index_put_", "_unsafe_index_put"}},
    {Kernel(kPerLast, 1), {"_unsafe_masked_index_put_accumulate"}},
    {Kernel(kNone, 0, BytesRule::kScatter), {"index_fill_", "index_copy_", "scatter_"}},
    {Kernel(kPerLast, 1, BytesRule::kScatter), {"index_add_", "scatter_add_", "scatter_reduce_"}},
    // In an eager run they copy their operand and do the same; in compiled code they are operators of their own.
    {Through(),
     {"scatter", "index_copy", "index_fill", "gather_backward", "index_select_backward", "masked_select_backward",
      "value_selecting_reduction_backward", "select_backward", "slice_backward", "diagonal_backward",
      "unfold_backward", "_unsafe_masked_index", "one_hot", "select_scatter", "slice_scatter", "masked_scatter"}},
    {Through(kPerLast, 1), {"scatter_add", "scatter_reduce", "index_add"}},
    {Kernel(), {"masked_scatter_"}},

    // --- Moving data.
    {Kernel(kNone, 0, BytesRule::kCopy), {"copy_"}},
    {Through(),
     {"clone",
      "contiguous",
      "to",
      "_to_copy",
      "type_as",
      "reshape",
      "reshape_as",
      "flatten",
      "ravel",
      "resolve_conj",
      "resolve_neg",
      "pin_memory",
      "is_pinned",
      "_cast_Float",
      "_cast_Half",
      "_autocast_to_full_precision",
      "_autocast_to_reduced_precision",
      "concat",
      "concatenate",
      "stack",
      "hstack",
      "vstack",
      "roll",
      "repeat",
      "tile",
      "rot90",
      "meshgrid",
      "unfold_copy",
      "copy",
      "expand_copy",
      "view_copy"}},
    {Kernel(), {"cat", "flip", "repeat_interleave", "tril", "triu"}},

    // --- Filling.
    {Kernel(kNone, 0, BytesRule::kWriteOnly), {"fill_", "zero_"}},
    {Through(),
     {"scalar_tensor", "zeros", "zeros_like", "ones", "ones_like", "full", "full_like", "new_zeros", "new_ones",
      "new_full", "zero", "fill", "rand", "rand_like", "randn", "randn_like", "randint", "randint_like"}},
    {Kernel(), {"arange", "linspace", "eye", "tril_indices", "triu_indices", "range", "randperm"}},

    // Random bits are integer work; uniform and normal scale and shift them.
    {Kernel(kNone, 0, BytesRule::kWriteOnly), {"bernoulli_", "random_", "geometric_"}},
    {Through(), {"bernoulli", "normal"}},
    {Kernel(kPerResult, 2, BytesRule::kWriteOnly), {"uniform_", "normal_", "log_normal_"}},
    {Kernel(kPerResult, 1, BytesRule::kWriteOnly), {"exponential_"}},
    {Kernel(), {"multinomial"}},
    {Kernel(kPerResult, 3, BytesRule::kWriteOnly), {"cauchy_"}},

    // --- Quantisation that is trained with: x / scale + zero point, and back; rounding and clamping are free. The
    // backward selects by a mask.
    {Kernel(kPerResult, 4),
     {"fake_quantize_per_tensor_affine_cachemask", "fake_quantize_per_channel_affine_cachemask",
      "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams"}},
    {Through(),
     {"fake_quantize_per_tensor_affine", "fake_quantize_per_channel_affine",
      "fake_quantize_per_tensor_affine_cachemask_backward", "fake_quantize_per_channel_affine_cachemask_backward"}},

    // --- Dropout: value * mask * scale.
    {Each(2), {"native_dropout", "native_dropout_backward", "_fused_dropout", "_masked_scale"}},
    {Through(), {"dropout", "dropout_", "feature_dropout", "feature_dropout_", "alpha_dropout", "alpha_dropout_"}},

    // --- Arithmetic.
    {Kernel(kScaledAdd), {"add", "sub", "rsub"}},
    {Each(1), {"mul", "div", "true_divide", "reciprocal", "sqrt"}},
    {Each(2), {"rsqrt"}},  // a square root and a division
    {Each(1),
     {"square", "pow", "float_power", "floor_divide", "cumsum", "cumprod", "frac", "deg2rad", "rad2deg", "xlogy"}},
    {Each(4), {"hypot"}},
    {Kernel(kAddProduct), {"addcmul", "addcdiv"}},
    {Each(3), {"lerp"}},
    {Each(2), {"fmod", "remainder", "logcumsumexp", "logaddexp", "logit", "sinc"}},
    {Each(5), {"cross"}},
    {Through(), {"linalg_cross", "subtract", "multiply", "divide", "diff"}},
    // Selecting and flipping bits.
    {Kernel(), {"neg",       "negative", "abs",     "sgn",   "sign",       "clamp",    "clamp_min",
                "clamp_max", "maximum",  "minimum", "fmax",  "fmin",       "where",    "masked_fill_",
                "floor",     "ceil",     "round",   "trunc", "nan_to_num", "copysign", "heaviside"}},
    {Through(), {"clip", "masked_fill", "fix", "absolute"}},
    // Comparisons, logic, integers.
    {Kernel(),
     {"eq",
      "ne",
      "equal",
      "lt",
      "le",
      "gt",
      "ge",
      "isnan",
      "isinf",
      "isfinite",
      "isposinf",
      "isneginf",
      "logical_and",
      "logical_or",
      "logical_not",
      "logical_xor",
      "bitwise_and",
      "bitwise_or",
      "bitwise_not",
      "bitwise_xor",
      "bitwise_left_shift",
      "bitwise_right_shift",
      "__and__",
      "__or__",
      "__xor__",
      "signbit"}},
    {Through(), {"isclose", "allclose", "greater", "less", "not_equal"}},
    // Functions of the special function units: only the arithmetic around them counts.
    {Kernel(),
     {"exp", "exp2", "log", "log2", "log10", "sin", "cos", "tanh", "asin", "acos", "atan", "atan2", "asinh", "acosh",
      "atanh", "erf", "erfinv", "lgamma", "digamma"}},
    {Each(1), {"expm1", "log1p", "tan", "erfc"}},
    {Each(3), {"sinh", "cosh"}},

    // --- Activations.
    {Kernel(), {"relu", "threshold", "threshold_backward", "hardtanh"}},
    {Through(), {"relu6"}},
    {Through(), {"hardtanh_"}},  // a copy for the backward, then hardtanh
    {Kernel(), {"hardtanh_backward"}},
    {Each(1),
     {"leaky_relu", "leaky_relu_backward", "rrelu_with_noise", "rrelu_with_noise_backward", "prelu",
      "_prelu_kernel"}},
    {Through(), {"rrelu"}},
    {Each(2), {"_prelu_kernel_backward", "prelu_backward"}},
    {Each(2), {"sigmoid"}},           // 1 / (1 + exp(-x))
    {Each(3), {"sigmoid_backward"}},  // g * (1 - y) * y
    {Each(3), {"tanh_backward"}},     // g * (1 - y*y)
    {Each(3), {"silu"}},              // x * sigmoid(x)
    {Each(7), {"silu_backward"}},     // g * s * (1 + x * (1 - s)), s = sigmoid(x)
    {Each(4), {"gelu"}},              // x * 0.5 * (1 + erf(x * sqrt(1/2)))
    {Each(9), {"gelu_backward"}},     // g * (cdf + x*pdf): cdf 3, pdf 3
    {Each(2), {"mish", "hardsigmoid"}},
    {Each(7), {"mish_backward"}},
    {Each(3), {"softplus", "elu", "elu_backward", "celu"}},
    {Each(4), {"softplus_backward"}},
    {Through(), {"selu"}},
    {Each(1), {"hardsigmoid_backward"}},
    {Each(3), {"hardswish"}},           // x * clamp(x + 3) * (1/6)
    {Each(3), {"hardswish_backward"}},  // g * (x/3 + 0.5)
    {Kernel(), {"hardshrink", "hardshrink_backward", "softshrink_backward"}},
    {Each(1), {"softshrink"}},
    {Each(2), {"log_sigmoid_forward"}},
    {Each(3), {"log_sigmoid_backward", "glu"}},
    {Through(), {"log_sigmoid"}},
    {Kernel(kPerOperand, 6), {"glu_backward"}},

    // --- Reductions.
    {Kernel(kSum), {"sum", "nansum"}},
    {Kernel(kPerOperand, 1), {"mean"}},  // additions, and a division a result
    {Through(),
     {"nanmean", "linalg_norm", "linalg_matrix_norm", "frobenius_norm", "nuclear_norm", "msort", "cdist",
      "sum_to_size"}},
    {Kernel(kSum), {"prod", "trace"}},
    {Kernel(kPerOperand, 4), {"var", "std", "var_mean", "std_mean"}},
    {Kernel(kPerOperand, 2), {"norm", "linalg_vector_norm", "logsumexp", "powsum"}},
    {Kernel(), {"amax",     "amin",     "aminmax",       "max",          "min",      "argmax",     "argmin",
                "all",      "any",      "count_nonzero", "nonzero",      "topk",     "sort",       "argsort",
                "kthvalue", "median",   "mode",          "cummax",       "cummin",   "unique_dim", "_unique2",
                "_unique",  "bincount", "histc",         "searchsorted", "bucketize"}},
    {Kernel(kDistance), {"_cdist_forward", "_cdist_backward", "_pdist_forward", "_pdist_backward"}},

    // --- Fourier transforms. What torch does around cuFFT's kernels, a copy of the operand or a scaling of the
    // result,
    // is taken for a part of them.
    {Kernel(kFft), {"_fft_r2c", "_fft_c2r", "_fft_c2c"}},
    {Through(), {"fft_fft",   "fft_fft2",  "fft_fftn",   "fft_ifft",   "fft_ifft2",    "fft_ifftn",    "fft_rfft",
                 "fft_rfft2", "fft_rfftn", "fft_irfft",  "fft_irfft2", "fft_irfftn",   "fft_hfft",     "fft_hfft2",
                 "fft_hfftn", "fft_ihfft", "fft_ihfft2", "fft_ihfftn", "fft_fftshift", "fft_ifftshift"}},

    // --- Factorisations of matrices, and what is solved with them. They work by blocks, column after column, and
    // reach less than a product's speed; no time of them is known.
    {Kernel(kLinearAlgebra),
     {"_cholesky_solve_helper",
      "_linalg_det",
      "_linalg_eigh",
      "_linalg_eigvals",
      "_linalg_slogdet",
      "_linalg_solve_ex",
      "_linalg_svd",
      "cholesky",
      "cholesky_inverse",
      "cholesky_solve",
      "geqrf",
      "linalg_cholesky_ex",
      "linalg_eig",
      "linalg_householder_product",
      "linalg_inv_ex",
      "linalg_lstsq",
      "linalg_lu",
      "linalg_lu_factor_ex",
      "linalg_lu_solve",
      "linalg_qr",
      "linalg_solve_triangular",
      "triangular_solve"}},
    {Kernel(), {"lu_unpack"}},

    // --- Sparse tensors. Products with them have the rules of dense ones (mm, addmm, mv), which see that an operand
    // is sparse. Element-wise operators count the numbers that a sparse tensor holds.
    {Matrix(kMatmul, Unit::kVector), {"_sparse_sparse_matmul", "hspmm", "sspaddmm"}},
    {Kernel(kSampledProduct), {"sparse_sampled_addmm"}},
    {Kernel(), {"_coalesce", "_convert_indices_from_coo_to_csr", "_convert_indices_from_csr_to_coo"}},
    {Through(),
     {"_sparse_mm", "_sparse_addmm", "_sparse_addmm_sparse_backward", "sparse_mask", "_to_dense", "_to_sparse",
      "_to_sparse_csr", "coalesce", "sparse_coo_tensor", "sparse_compressed_tensor", "sparse_csr_tensor", "to_dense",
      "to_sparse", "to_sparse_csr"}},
    {Free(),
     {"_coalesced", "_indices", "_nnz", "_sparse_compressed_tensor_unsafe", "_sparse_coo_tensor_unsafe",
      "_sparse_coo_tensor_with_dims", "_sparse_coo_tensor_with_dims_and_tensors", "_sparse_csr_tensor_unsafe",
      "_values", "ccol_indices", "col_indices", "crow_indices", "dense_dim", "indices", "is_coalesced", "row_indices",
      "sparse_dim", "values"}},

    // --- Fused optimizers, per element of the parameters: the update as torch/optim writes it, every branch taken.
    // SGD: weight decay 2, momentum 2, update 2.
    {Kernel(kPerOperand, 6, BytesRule::kFusedOptimizer), {"_fused_sgd_"}},
    // Adam and AdamW: weight decay 2, first moment 3, second moment 4, denominator 3, step 3.
    {Kernel(kPerOperand, 15, BytesRule::kFusedOptimizer), {"_fused_adam_", "_fused_adamw_"}},
    // Weight decay 2, sum of squares 2, root, epsilon, division, update 2.
    {Kernel(kPerOperand, 7, BytesRule::kFusedOptimizer), {"_fused_adagrad_"}},
    // GradScaler: one multiplication an element.
    {Kernel(kPerOperand, 1), {"_amp_foreach_non_finite_check_and_unscale_", "_amp_update_scale_"}},
};

constexpr size_t Count() {
  size_t count = 0;
  for (const Group& group : kGroups) count += group.names.size();
  return count;
}

constexpr auto MakeRows() {
  std::array<OpRule, Count()> rows{};
  size_t count = 0;
  for (const Group& group : kGroups) {
    for (const std::string_view name : group.names) {
      rows[count] = group.rule;
      rows[count++].name = name;
    }
  }
  std::sort(rows.begin(), rows.end(), [](const OpRule& a, const OpRule& b) { return a.name < b.name; });
  return rows;
}

constexpr auto kRows = MakeRows();
static_assert(std::adjacent_find(kRows.begin(), kRows.end(),
                                 [](const OpRule& a, const OpRule& b) { return a.name == b.name; }) == kRows.end());

}  // namespace

const OpRule* FindRow(std::string_view name) noexcept {
  const auto at = std::ranges::lower_bound(kRows, name, {}, &OpRule::name);
  return at != kRows.end() && at->name == name ? &*at : nullptr;
}

std::span<const OpRule> AllOps() noexcept { return kRows; }

}  // namespace rfinject::estimate
