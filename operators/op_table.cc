#include "operators/op_table.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace rfinject::estimate {
namespace {

// A view or bookkeeping: launches nothing, and neither does what runs inside it.
constexpr OpRule Free(std::string_view name) { return {name, OpKind::kFree}; }

// Decomposes into operators that are observed themselves. Where none of them ran, the operator was a view of its
// operand (reshape, to and contiguous often are) or did the work itself; it is then taken to read its operands and to
// write its results.
constexpr OpRule Through(std::string_view name, FlopRule flop = FlopRule::kNone, uint8_t per = 0,
                         BytesRule bytes = BytesRule::kOperands, Unit unit = Unit::kVector) {
  return {name, OpKind::kLeafIfChildless, flop, per, bytes, unit};
}

// One kernel, whatever runs inside: on the CPU an operator calls others where CUDA's version is a kernel of its own.
constexpr OpRule Kernel(std::string_view name, FlopRule flop = FlopRule::kNone, uint8_t per = 0,
                        BytesRule bytes = BytesRule::kOperands, Unit unit = Unit::kVector, uint8_t unread = 0) {
  return {name, OpKind::kAtomic, flop, per, bytes, unit, unread};
}

// Elementwise: `per` FLOP for each element of the result.
constexpr OpRule Each(std::string_view name, uint8_t per) { return Kernel(name, FlopRule::kPerResult, per); }

constexpr OpRule Matrix(std::string_view name, FlopRule flop, Unit unit) {
  return Kernel(name, flop, 0, BytesRule::kOperands, unit);
}

constexpr uint8_t Bit(int argument) { return static_cast<uint8_t>(1u << argument); }

using enum FlopRule;

// What one FLOP is: an addition, subtraction, multiplication, division or square root of one element; 2 for a
// multiply-add. Nothing for comparisons, minimum and maximum, absolute values and changes of sign (they select or
// flip bits) and conversions. Nothing for the transcendental part of a function (exp, log, tanh, erf, sin): it runs
// on the special function units, which no FLOP counter of the hardware counts either; the arithmetic around it is
// counted.
constexpr OpRule kOps[] = {
    // --- Views and bookkeeping.
    Free("_conj"),
    Free("_fw_primal"),
    Free("_make_dual"),
    Free("_neg_view"),
    Free("_reshape_alias"),
    Free("_unpack_dual"),
    Free("_unsafe_view"),
    Free("adjoint"),
    Free("alias"),
    Free("as_strided"),
    Free("broadcast_tensors"),
    Free("broadcast_to"),
    Free("chunk"),
    Free("conj"),
    Free("detach"),
    Free("diagonal"),
    Free("dsplit"),
    Free("expand"),
    Free("expand_as"),
    Free("hsplit"),
    Free("imag"),
    Free("lift"),
    Free("lift_fresh"),
    Free("mH"),
    Free("mT"),
    Free("matrix_H"),
    Free("moveaxis"),
    Free("movedim"),
    Free("narrow"),
    Free("numpy_T"),
    Free("permute"),
    Free("positive"),
    Free("real"),
    Free("select"),
    Free("slice"),
    Free("split"),
    Free("split_with_sizes"),
    Free("squeeze"),
    Free("swapaxes"),
    Free("swapdims"),
    Free("t"),
    Free("tensor_split"),
    Free("transpose"),
    Free("unbind"),
    Free("unflatten"),
    Free("unfold"),
    Free("unsafe_chunk"),
    Free("unsafe_split"),
    Free("unsafe_split_with_sizes"),
    Free("unsqueeze"),
    Free("view"),
    Free("view_as"),
    Free("view_as_complex"),
    Free("view_as_real"),
    Free("vsplit"),
    Free("set_data"),
    Free("set"),
    Free("retain_grad"),
    Free("requires_grad_"),
    Free("_version"),
    Free("output_nr"),
    Free("is_leaf"),
    Free("size"),
    Free("sym_size"),
    Free("stride"),
    Free("sym_stride"),
    Free("numel"),
    Free("sym_numel"),
    Free("sym_storage_offset"),
    Free("dim"),
    Free("is_contiguous"),
    Free("is_complex"),
    Free("is_floating_point"),
    Free("is_same_size"),
    Free("result_type"),
    Free("can_cast"),
    Free("_has_compatible_shallow_copy_type"),
    Free("_nnpack_available"),
    Free("cudnn_is_acceptable"),
    Free("_fused_sdp_choice"),
    Free("_use_cudnn_ctc_loss"),
    Free("_use_cudnn_rnn_flatten_weight"),
    Free("record_stream"),
    Free("resize"),
    Free("resize_as"),
    // Memory comes from the caching allocator: no kernel.
    Free("empty"),
    Free("empty_like"),
    Free("empty_strided"),
    Free("empty_permuted"),
    Free("new_empty"),
    Free("new_empty_strided"),
    Free("_efficientzerotensor"),
    Free("scalar_tensor"),
    // A copy of one scalar to the host. It is no kernel. In the training loops that we saw the operand is on the host
    // already (the optimizers' step counters), or it is the loss, once a step.
    Free("item"),
    Free("_local_scalar_dense"),
    Free("is_nonzero"),

    // --- Convolution. Bias additions are not counted: the field's convention (torch.utils.flop_counter, fvcore) is
    // 2 per multiply-add of the weight, and the comparison with published numbers rests on it.
    Matrix("convolution", kConvolution, Unit::kConvolution),
    Matrix("_convolution", kConvolution, Unit::kConvolution),
    Matrix("convolution_overrideable", kConvolution, Unit::kConvolution),
    Matrix("mkldnn_convolution", kConvolution, Unit::kConvolution),
    Matrix("cudnn_convolution", kConvolution, Unit::kConvolution),
    Matrix("cudnn_convolution_relu", kConvolution, Unit::kConvolution),
    Matrix("cudnn_convolution_add_relu", kConvolution, Unit::kConvolution),
    Matrix("cudnn_convolution_transpose", kConvolution, Unit::kConvolution),
    Matrix("miopen_convolution", kConvolution, Unit::kConvolution),
    Matrix("miopen_convolution_relu", kConvolution, Unit::kConvolution),
    Matrix("miopen_convolution_add_relu", kConvolution, Unit::kConvolution),
    Matrix("miopen_convolution_transpose", kConvolution, Unit::kConvolution),
    Matrix("miopen_depthwise_convolution", kConvolution, Unit::kConvolution),
    Matrix("thnn_conv2d", kConvolution, Unit::kConvolution),
    Matrix("_slow_conv2d_forward", kConvolution, Unit::kConvolution),
    Matrix("slow_conv3d", kConvolution, Unit::kConvolution),
    Matrix("slow_conv3d_forward", kConvolution, Unit::kConvolution),
    Matrix("slow_conv_dilated2d", kConvolution, Unit::kConvolution),
    Matrix("slow_conv_dilated3d", kConvolution, Unit::kConvolution),
    Matrix("slow_conv_transpose2d", kConvolution, Unit::kConvolution),
    Matrix("slow_conv_transpose3d", kConvolution, Unit::kConvolution),
    Matrix("_nnpack_spatial_convolution", kConvolution, Unit::kConvolution),
    // PyTorch's own depthwise kernels: plain CUDA code, no tensor cores.
    Matrix("_conv_depthwise2d", kConvolution, Unit::kVector),
    Matrix("conv_depthwise3d", kConvolution, Unit::kVector),
    Kernel("convolution_backward", kConvolutionBackward, 0, BytesRule::kConvolutionBackward, Unit::kConvolution),
    Kernel("convolution_backward_overrideable", kConvolutionBackward, 0, BytesRule::kConvolutionBackward,
           Unit::kConvolution),
    Kernel("_slow_conv2d_backward", kConvolutionBackward, 0, BytesRule::kConvolutionBackward, Unit::kConvolution),
    Through("conv1d"),
    Through("conv2d"),
    Through("conv3d"),
    Through("conv_transpose1d"),
    Through("conv_transpose2d"),
    Through("conv_transpose3d"),
    Through("_convolution_mode"),
    Through("_convolution_double_backward"),

    // --- Matrix products. As with convolution, the bias that addmm adds is not counted.
    Matrix("mm", kMatmul, Unit::kMatmul),
    Matrix("bmm", kMatmul, Unit::kMatmul),
    Matrix("addmm", kMatmul, Unit::kMatmul),
    Matrix("addbmm", kMatmul, Unit::kMatmul),
    Matrix("baddbmm", kMatmul, Unit::kMatmul),
    Matrix("_addmm_activation", kMatmul, Unit::kMatmul),
    Matrix("_int_mm", kMatmul, Unit::kMatmul),
    Matrix("_scaled_mm", kMatmul, Unit::kFp8Matmul),
    Matrix("mkldnn_linear", kLinear, Unit::kMatmul),
    // Vectors: cuBLAS's gemv and dot run on the CUDA cores whatever the policy is.
    Matrix("mv", kMatVec, Unit::kVector),
    Matrix("addmv", kMatVec, Unit::kVector),
    Matrix("dot", kMatVec, Unit::kVector),
    Matrix("vdot", kMatVec, Unit::kVector),
    Each("addr", 2),
    Each("ger", 1),
    Through("outer"),
    Through("inner"),
    Through("matmul"),
    Through("einsum"),
    Through("tensordot"),
    Through("bilinear"),
    Through("_trilinear"),
    Through("chain_matmul"),
    Through("linalg_multi_dot"),
    Through("kron"),
    // Usually runs t and addmm; where the CPU's library does it in one call, it is a leaf.
    Through("linear", kLinear, 0, BytesRule::kOperands, Unit::kMatmul),

    // --- Attention. The fused operators; the `math` one and the front end decompose.
    Matrix("_scaled_dot_product_flash_attention", kAttention, Unit::kMatmul),
    Matrix("_scaled_dot_product_flash_attention_for_cpu", kAttention, Unit::kMatmul),
    Matrix("_scaled_dot_product_efficient_attention", kAttention, Unit::kMatmul),
    Matrix("_scaled_dot_product_cudnn_attention", kAttention, Unit::kMatmul),
    Matrix("_scaled_dot_product_fused_attention_overrideable", kAttention, Unit::kMatmul),
    Matrix("_scaled_dot_product_flash_attention_backward", kAttentionBackward, Unit::kMatmul),
    Matrix("_scaled_dot_product_flash_attention_for_cpu_backward", kAttentionBackward, Unit::kMatmul),
    Matrix("_scaled_dot_product_efficient_attention_backward", kAttentionBackward, Unit::kMatmul),
    Matrix("_scaled_dot_product_cudnn_attention_backward", kAttentionBackward, Unit::kMatmul),
    Matrix("_scaled_dot_product_fused_attention_overrideable_backward", kAttentionBackward, Unit::kMatmul),
    Matrix("_native_multi_head_attention", kMultiHead, Unit::kMatmul),
    // The bias is added to query, key and value, and the query scaled: 4 for each element of the query, the first
    // result.
    Kernel("_transform_bias_rescale_qkv", kPerResult, 4),
    Through("scaled_dot_product_attention"),
    Through("_scaled_dot_product_attention"),
    Through("_scaled_dot_product_attention_math"),
    Through("_transformer_encoder_layer_fwd"),
    Through("_safe_softmax"),

    // --- Recurrent layers. cuDNN's TF32 switch governs them, as it does convolutions.
    Matrix("_cudnn_rnn", kRnn, Unit::kConvolution),
    Matrix("miopen_rnn", kRnn, Unit::kConvolution),
    Matrix("mkldnn_rnn_layer", kRnn, Unit::kConvolution),
    Matrix("_cudnn_rnn_backward", kRnnBackward, Unit::kConvolution),
    Matrix("miopen_rnn_backward", kRnnBackward, Unit::kConvolution),
    Matrix("mkldnn_rnn_layer_backward", kRnnBackward, Unit::kConvolution),
    // The gates' sums and sigmoids (3 for each of 4 or 3 gates) and the update of the cell's state. The numbers are
    // per element of the gates; the backward does about twice as much.
    Kernel("_thnn_fused_lstm_cell", kPerOperand, 3),
    Kernel("_thnn_fused_gru_cell", kPerOperand, 3),
    Kernel("_thnn_fused_lstm_cell_backward_impl", kPerResult, 6),
    Kernel("_thnn_fused_gru_cell_backward", kPerResult, 6),
    Through("_thnn_fused_lstm_cell_backward"),
    Through("_thnn_differentiable_lstm_cell_backward"),
    Through("_thnn_differentiable_gru_cell_backward"),
    // The operators that nn.LSTM and the like call. CUDA's version is one of the above; the CPU's is an operator for
    // each gate and token. The backward's names are ours (FusedBackwardOf).
    Matrix("lstm", kRnn, Unit::kConvolution),
    Matrix("gru", kRnn, Unit::kConvolution),
    Matrix("rnn_tanh", kRnn, Unit::kConvolution),
    Matrix("rnn_relu", kRnn, Unit::kConvolution),
    Kernel("lstm_backward", kRnnBackward, 0, BytesRule::kFusedBackward, Unit::kConvolution),
    Kernel("gru_backward", kRnnBackward, 0, BytesRule::kFusedBackward, Unit::kConvolution),
    Kernel("rnn_tanh_backward", kRnnBackward, 0, BytesRule::kFusedBackward, Unit::kConvolution),
    Kernel("rnn_relu_backward", kRnnBackward, 0, BytesRule::kFusedBackward, Unit::kConvolution),
    Through("lstm_cell"),
    Through("gru_cell"),
    Through("rnn_tanh_cell"),
    Through("rnn_relu_cell"),
    Through("_pack_padded_sequence"),
    Through("_pad_packed_sequence"),
    Kernel("_cudnn_rnn_flatten_weight"),
    Kernel("_cudnn_init_dropout_state"),

    // --- Normalisation. See flop.cc for the counts.
    Kernel("native_batch_norm", kBatchNorm, 0, BytesRule::kBatchNorm),
    Kernel("cudnn_batch_norm", kBatchNorm, 0, BytesRule::kBatchNorm),
    Kernel("miopen_batch_norm", kBatchNorm, 0, BytesRule::kBatchNorm),
    Kernel("_native_batch_norm_legit", kBatchNorm, 0, BytesRule::kBatchNorm),
    Kernel("_native_batch_norm_legit_no_training", kBatchNorm),
    Kernel("_batch_norm_with_update", kBatchNorm, 0, BytesRule::kBatchNorm),
    Kernel("_batch_norm_no_update", kBatchNorm),
    // Sums of g and of g*xhat (xhat: 2; 4 in all), dx = (g - mean g - xhat*mean(g*xhat)) * scale (5): 9.
    Kernel("native_batch_norm_backward", kPerOperand, 9),
    Kernel("cudnn_batch_norm_backward", kPerOperand, 9),
    Kernel("miopen_batch_norm_backward", kPerOperand, 9),
    Kernel("batch_norm_backward", kPerOperand, 9),
    Through("_batch_norm_impl_index_backward"),
    // SyncBatchNorm's parts: Welford's mean and variance 4; normalise and scale 4; the backward as above, in two
    // parts.
    Kernel("batch_norm_stats", kPerOperand, 4),
    Kernel("batch_norm_elemt", kPerOperand, 4),
    Kernel("batch_norm_gather_stats"),
    Kernel("batch_norm_gather_stats_with_counts"),
    Kernel("batch_norm_update_stats", kPerOperand, 4),
    Kernel("batch_norm_backward_reduce", kPerOperand, 4),
    Kernel("batch_norm_backward_elemt", kPerOperand, 5),
    Kernel("native_layer_norm", kNormalise),
    Kernel("native_group_norm", kNormalise),
    // xhat 2, g*weight 1, its two sums 3, dx 4, the weight's gradient 2, the bias's 1: 13.
    Kernel("native_layer_norm_backward", kPerOperand, 13),
    Kernel("native_group_norm_backward", kPerOperand, 13),
    // Squares and their sum 2, scale and weight 2; the backward: xhat 1, g*weight 1, sum 2, dx 3, weight 2.
    Kernel("_fused_rms_norm", kPerOperand, 4),
    Kernel("_fused_rms_norm_backward", kPerOperand, 9),
    Through("batch_norm"),
    Through("_batch_norm_impl_index"),
    Through("layer_norm"),
    Through("group_norm"),
    Through("instance_norm"),
    Through("rms_norm"),
    Kernel("_weight_norm_interface", kPerOperand, 3),
    Kernel("_weight_norm_interface_backward", kPerOperand, 5),
    Through("_weight_norm"),
    Through("norm_except_dim"),
    Through("_weight_norm_differentiable_backward"),

    // --- Softmax and losses.
    Each("_softmax", 3),      // minus the maximum, sum of the exponentials, division
    Each("_log_softmax", 3),  // minus the maximum, sum of the exponentials, minus its logarithm
    Each("_softmax_backward_data", 4),
    Each("_log_softmax_backward_data", 3),
    Through("softmax"),
    Through("log_softmax"),
    Through("cross_entropy_loss"),
    Through("nll_loss"),
    Through("nll_loss_nd"),
    Through("nll_loss2d"),
    Through("binary_cross_entropy_with_logits"),
    Through("l1_loss"),
    Through("kl_div"),
    Through("cosine_embedding_loss"),
    Through("triplet_margin_loss"),
    Through("margin_ranking_loss"),
    Through("hinge_embedding_loss"),
    Through("soft_margin_loss"),
    Through("ctc_loss"),
    Through("cosine_similarity"),
    Through("pairwise_distance"),
    Through("pdist"),
    // One log-probability is looked up and added per target; the gradient is one number per target, zeros elsewhere.
    Kernel("nll_loss_forward", kPerSecond, 1, BytesRule::kPick),
    Kernel("nll_loss2d_forward", kPerSecond, 1, BytesRule::kPick),
    Kernel("nll_loss_backward", kNone, 0, BytesRule::kOperands, Unit::kVector, Bit(1)),
    Kernel("nll_loss2d_backward", kNone, 0, BytesRule::kOperands, Unit::kVector, Bit(1)),
    Kernel("mse_loss", kPerOperand, 3),
    Each("mse_loss_backward", 3),
    Kernel("smooth_l1_loss", kPerOperand, 4),
    Each("smooth_l1_loss_backward", 3),
    Kernel("huber_loss", kPerOperand, 4),
    Each("huber_loss_backward", 3),
    Kernel("binary_cross_entropy", kPerOperand, 5),
    Each("binary_cross_entropy_backward", 5),

    // --- Pooling and resampling. Maxima are comparisons; the backward adds each gradient to where it came from.
    Kernel("max_pool2d_with_indices"),
    Kernel("max_pool3d_with_indices"),
    Kernel("mkldnn_max_pool2d"),
    Kernel("mkldnn_max_pool3d"),
    Kernel("max_pool1d_with_indices"),
    Kernel("adaptive_max_pool2d"),
    Kernel("adaptive_max_pool3d"),
    Kernel("fractional_max_pool2d"),
    Kernel("fractional_max_pool3d"),
    Kernel("max_pool2d_with_indices_backward", kPerOperand, 1, BytesRule::kOperands, Unit::kVector, Bit(1)),
    Kernel("max_pool3d_with_indices_backward", kPerOperand, 1, BytesRule::kOperands, Unit::kVector, Bit(1)),
    Kernel("adaptive_max_pool2d_backward", kPerOperand, 1, BytesRule::kOperands, Unit::kVector, Bit(1)),
    Kernel("adaptive_max_pool3d_backward", kPerOperand, 1, BytesRule::kOperands, Unit::kVector, Bit(1)),
    Kernel("mkldnn_max_pool2d_backward", kPerOperand, 1),
    Through("max_pool1d"),
    Through("max_pool2d"),
    Through("max_pool3d"),
    Kernel("max_unpool2d"),
    Kernel("max_unpool3d"),
    // A window of k elements: k-1 additions and a division.
    Kernel("avg_pool2d", kPoolWindow),
    Kernel("avg_pool3d", kPoolWindow),
    Through("avg_pool1d"),
    Kernel("avg_pool2d_backward", kPoolWindowBackward, 0, BytesRule::kOperands, Unit::kVector, Bit(1)),
    Kernel("avg_pool3d_backward", kPoolWindowBackward, 0, BytesRule::kOperands, Unit::kVector, Bit(1)),
    // Every input is added once; one division a result. The backward divides once for every element it writes.
    Kernel("_adaptive_avg_pool2d", kPerOperand, 1),
    Kernel("_adaptive_avg_pool3d", kPerOperand, 1),
    Kernel("mkldnn_adaptive_avg_pool2d", kPerOperand, 1),
    Kernel("_adaptive_avg_pool2d_backward", kPerResult, 1, BytesRule::kOperands, Unit::kVector, Bit(1)),
    Kernel("_adaptive_avg_pool3d_backward", kPerResult, 1, BytesRule::kOperands, Unit::kVector, Bit(1)),
    Through("adaptive_avg_pool1d"),
    Through("adaptive_avg_pool2d"),
    Through("adaptive_avg_pool3d"),
    Through("adaptive_max_pool1d"),
    // Weighted sums of 1, 2, 4, 8 or 16 neighbours: a multiplication each, and the additions between them; the
    // backward multiplies and adds for each.
    Kernel("upsample_nearest1d"),
    Kernel("upsample_nearest2d"),
    Kernel("upsample_nearest3d"),
    Kernel("_upsample_nearest_exact1d"),
    Kernel("_upsample_nearest_exact2d"),
    Kernel("_upsample_nearest_exact3d"),
    Each("upsample_linear1d", 3),
    Each("upsample_bilinear2d", 7),
    Each("_upsample_bilinear2d_aa", 7),
    Each("upsample_trilinear3d", 15),
    Each("upsample_bicubic2d", 31),
    Each("_upsample_bicubic2d_aa", 31),
    Kernel("upsample_nearest1d_backward", kPerOperand, 1),
    Kernel("upsample_nearest2d_backward", kPerOperand, 1),
    Kernel("upsample_nearest3d_backward", kPerOperand, 1),
    Kernel("_upsample_nearest_exact1d_backward", kPerOperand, 1),
    Kernel("_upsample_nearest_exact2d_backward", kPerOperand, 1),
    Kernel("_upsample_nearest_exact3d_backward", kPerOperand, 1),
    Kernel("upsample_linear1d_backward", kPerOperand, 4),
    Kernel("upsample_bilinear2d_backward", kPerOperand, 8),
    Kernel("_upsample_bilinear2d_aa_backward", kPerOperand, 8),
    Kernel("upsample_trilinear3d_backward", kPerOperand, 16),
    Kernel("upsample_bicubic2d_backward", kPerOperand, 32),
    Kernel("_upsample_bicubic2d_aa_backward", kPerOperand, 32),
    Each("grid_sampler_2d", 7),
    Each("grid_sampler_3d", 15),
    Each("cudnn_grid_sampler", 7),
    Kernel("grid_sampler_2d_backward", kPerOperand, 16),
    Kernel("grid_sampler_3d_backward", kPerOperand, 32),
    Kernel("cudnn_grid_sampler_backward", kPerOperand, 16),
    Through("grid_sampler"),
    Through("pixel_shuffle"),
    Through("pixel_unshuffle"),
    Through("channel_shuffle"),
    Through("native_channel_shuffle"),
    Kernel("im2col"),
    Kernel("col2im", kPerOperand, 1),
    // Padding.
    Through("pad"),
    Through("constant_pad_nd"),
    Through("_pad_enum"),
    Through("_pad_circular"),
    Kernel("reflection_pad1d"),
    Kernel("reflection_pad2d"),
    Kernel("reflection_pad3d"),
    Kernel("replication_pad1d"),
    Kernel("replication_pad2d"),
    Kernel("replication_pad3d"),
    Kernel("reflection_pad1d_backward", kPerOperand, 1, BytesRule::kOperands, Unit::kVector, Bit(1)),
    Kernel("reflection_pad2d_backward", kPerOperand, 1, BytesRule::kOperands, Unit::kVector, Bit(1)),
    Kernel("reflection_pad3d_backward", kPerOperand, 1, BytesRule::kOperands, Unit::kVector, Bit(1)),
    Kernel("replication_pad1d_backward", kPerOperand, 1, BytesRule::kOperands, Unit::kVector, Bit(1)),
    Kernel("replication_pad2d_backward", kPerOperand, 1, BytesRule::kOperands, Unit::kVector, Bit(1)),
    Kernel("replication_pad3d_backward", kPerOperand, 1, BytesRule::kOperands, Unit::kVector, Bit(1)),

    // --- Looking up and scattering.
    Kernel("index", kNone, 0, BytesRule::kGather),
    Kernel("index_select", kNone, 0, BytesRule::kGather),
    Kernel("gather", kNone, 0, BytesRule::kGather),
    Kernel("take", kNone, 0, BytesRule::kGather),
    Kernel("masked_select", kNone, 0, BytesRule::kGather),
    Kernel("take_along_dim", kNone, 0, BytesRule::kGather),
    Kernel("_embedding_bag", kPerResult, 1, BytesRule::kGather),
    Kernel("_embedding_bag_forward_only", kPerResult, 1, BytesRule::kGather),
    Through("embedding_bag"),
    Through("_embedding_bag_backward"),
    Kernel("_embedding_bag_dense_backward", kPerOperand, 1),
    // index_select on the CPU, a kernel of its own or the same on CUDA.
    Through("embedding", kNone, 0, BytesRule::kGather),
    Through("embedding_backward"),
    Kernel("embedding_dense_backward", kPerOperand, 1),
    Kernel("embedding_renorm_", kNone, 0, BytesRule::kGather),
    Kernel("_index_put_impl_", kNone, 0, BytesRule::kScatter),
    Through("index_put"),
    Through("index_put_"),
    Through("_unsafe_index_put"),
    Through("_unsafe_index"),
    Kernel("index_fill_", kNone, 0, BytesRule::kScatter),
    Kernel("index_copy_", kNone, 0, BytesRule::kScatter),
    Kernel("scatter_", kNone, 0, BytesRule::kScatter),
    Kernel("put_", kNone, 0, BytesRule::kScatter),
    Kernel("index_add_", kPerLast, 1, BytesRule::kScatter),
    Kernel("scatter_add_", kPerLast, 1, BytesRule::kScatter),
    Kernel("scatter_reduce_", kPerLast, 1, BytesRule::kScatter),
    Through("scatter"),
    Through("scatter_add"),
    Through("scatter_reduce"),
    Through("index_add"),
    Through("index_copy"),
    Through("index_fill"),
    Through("gather_backward"),
    Through("index_select_backward"),
    Through("masked_select_backward"),
    Through("value_selecting_reduction_backward"),
    Through("select_backward"),
    Through("slice_backward"),
    Through("diagonal_backward"),
    Through("unfold_backward"),
    Through("_unsafe_masked_index"),
    Through("one_hot"),
    Through("select_scatter"),
    Through("slice_scatter"),
    Kernel("masked_scatter_"),
    Through("masked_scatter"),

    // --- Moving data.
    Kernel("copy_", kNone, 0, BytesRule::kCopy),
    Through("clone"),
    Through("contiguous"),
    Through("to"),
    Through("_to_copy"),
    Through("type_as"),
    Through("reshape"),
    Through("reshape_as"),
    Through("flatten"),
    Through("ravel"),
    Through("resolve_conj"),
    Through("resolve_neg"),
    Through("pin_memory"),
    Through("is_pinned"),
    Through("_cast_Float"),
    Through("_cast_Half"),
    Through("_autocast_to_full_precision"),
    Through("_autocast_to_reduced_precision"),
    Kernel("cat"),
    Through("concat"),
    Through("concatenate"),
    Through("stack"),
    Through("hstack"),
    Through("vstack"),
    Through("roll"),
    Kernel("flip"),
    Through("repeat"),
    Kernel("repeat_interleave"),
    Through("tile"),
    Kernel("tril"),
    Kernel("triu"),
    Through("rot90"),
    Through("meshgrid"),
    Through("unfold_copy"),
    Through("copy"),
    Through("expand_copy"),
    Through("view_copy"),

    // --- Filling.
    Kernel("fill_", kNone, 0, BytesRule::kWriteOnly),
    Kernel("zero_", kNone, 0, BytesRule::kWriteOnly),
    Through("zeros"),
    Through("zeros_like"),
    Through("ones"),
    Through("ones_like"),
    Through("full"),
    Through("full_like"),
    Through("new_zeros"),
    Through("new_ones"),
    Through("new_full"),
    Through("zero"),
    Through("fill"),
    Kernel("arange"),
    Kernel("linspace"),
    Kernel("eye"),
    Kernel("tril_indices"),
    Kernel("triu_indices"),
    Kernel("range"),
    Through("rand"),
    Through("rand_like"),
    Through("randn"),
    Through("randn_like"),
    Through("randint"),
    Through("randint_like"),
    Kernel("randperm"),

    // Random bits are integer work; uniform and normal scale and shift them.
    Kernel("bernoulli_", kNone, 0, BytesRule::kWriteOnly),
    Through("bernoulli"),
    Kernel("random_", kNone, 0, BytesRule::kWriteOnly),
    Kernel("uniform_", kPerResult, 2, BytesRule::kWriteOnly),
    Kernel("normal_", kPerResult, 2, BytesRule::kWriteOnly),
    Through("normal"),
    Kernel("exponential_", kPerResult, 1, BytesRule::kWriteOnly),
    Kernel("multinomial"),
    Kernel("cauchy_", kPerResult, 3, BytesRule::kWriteOnly),
    Kernel("geometric_", kNone, 0, BytesRule::kWriteOnly),
    Kernel("log_normal_", kPerResult, 2, BytesRule::kWriteOnly),

    // --- Quantisation that is trained with: x / scale + zero point, and back; rounding and clamping are free. The
    // backward selects by a mask.
    Kernel("fake_quantize_per_tensor_affine_cachemask", kPerResult, 4),
    Kernel("fake_quantize_per_channel_affine_cachemask", kPerResult, 4),
    Kernel("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", kPerResult, 4),
    Through("fake_quantize_per_tensor_affine"),
    Through("fake_quantize_per_channel_affine"),
    Through("fake_quantize_per_tensor_affine_cachemask_backward"),
    Through("fake_quantize_per_channel_affine_cachemask_backward"),

    // --- Dropout: value * mask * scale.
    Each("native_dropout", 2),
    Each("native_dropout_backward", 2),
    Each("_fused_dropout", 2),
    Each("_masked_scale", 2),
    Through("dropout"),
    Through("dropout_"),
    Through("feature_dropout"),
    Through("feature_dropout_"),
    Through("alpha_dropout"),
    Through("alpha_dropout_"),

    // --- Arithmetic.
    Kernel("add", kScaledAdd),
    Kernel("sub", kScaledAdd),
    Kernel("rsub", kScaledAdd),
    Each("mul", 1),
    Each("div", 1),
    Each("true_divide", 1),
    Each("reciprocal", 1),
    Each("sqrt", 1),
    Each("rsqrt", 2),  // a square root and a division
    Each("square", 1),
    Each("pow", 1),
    Each("float_power", 1),
    Each("hypot", 4),
    Kernel("addcmul", kAddProduct),
    Kernel("addcdiv", kAddProduct),
    Each("lerp", 3),
    Each("fmod", 2),
    Each("remainder", 2),
    Each("floor_divide", 1),
    Each("cumsum", 1),
    Each("cumprod", 1),
    Each("logcumsumexp", 2),
    Each("frac", 1),
    Each("cross", 5),
    Through("linalg_cross"),
    Each("deg2rad", 1),
    Each("rad2deg", 1),
    Through("subtract"),
    Through("multiply"),
    Through("divide"),
    Through("diff"),
    Each("xlogy", 1),
    Each("logaddexp", 2),
    Each("logit", 2),
    Each("sinc", 2),
    // Selecting and flipping bits.
    Kernel("neg"),
    Kernel("negative"),
    Kernel("abs"),
    Kernel("sgn"),
    Kernel("sign"),
    Kernel("clamp"),
    Kernel("clamp_min"),
    Kernel("clamp_max"),
    Through("clip"),
    Kernel("maximum"),
    Kernel("minimum"),
    Kernel("fmax"),
    Kernel("fmin"),
    Kernel("where"),
    Kernel("masked_fill_"),
    Through("masked_fill"),
    Kernel("floor"),
    Kernel("ceil"),
    Kernel("round"),
    Kernel("trunc"),
    Kernel("nan_to_num"),
    Kernel("copysign"),
    Kernel("heaviside"),
    Through("fix"),
    Through("absolute"),
    // Comparisons, logic, integers.
    Kernel("eq"),
    Kernel("ne"),
    Kernel("equal"),
    Kernel("lt"),
    Kernel("le"),
    Kernel("gt"),
    Kernel("ge"),
    Kernel("isnan"),
    Kernel("isinf"),
    Kernel("isfinite"),
    Kernel("isposinf"),
    Kernel("isneginf"),
    Kernel("logical_and"),
    Kernel("logical_or"),
    Kernel("logical_not"),
    Kernel("logical_xor"),
    Kernel("bitwise_and"),
    Kernel("bitwise_or"),
    Kernel("bitwise_not"),
    Kernel("bitwise_xor"),
    Kernel("bitwise_left_shift"),
    Kernel("bitwise_right_shift"),
    Kernel("__and__"),
    Kernel("__or__"),
    Kernel("__xor__"),
    Through("isclose"),
    Through("allclose"),
    Through("greater"),
    Through("less"),
    Through("not_equal"),
    Kernel("signbit"),
    // Functions of the special function units: only the arithmetic around them counts.
    Kernel("exp"),
    Kernel("exp2"),
    Each("expm1", 1),
    Kernel("log"),
    Kernel("log2"),
    Kernel("log10"),
    Each("log1p", 1),
    Kernel("sin"),
    Kernel("cos"),
    Each("tan", 1),
    Kernel("tanh"),
    Each("sinh", 3),
    Each("cosh", 3),
    Kernel("asin"),
    Kernel("acos"),
    Kernel("atan"),
    Kernel("atan2"),
    Kernel("asinh"),
    Kernel("acosh"),
    Kernel("atanh"),
    Kernel("erf"),
    Each("erfc", 1),
    Kernel("erfinv"),
    Kernel("lgamma"),
    Kernel("digamma"),

    // --- Activations.
    Kernel("relu"),
    Through("relu6"),
    Kernel("threshold"),
    Kernel("threshold_backward"),
    Kernel("hardtanh"),
    Through("hardtanh_"),  // a copy for the backward, then hardtanh
    Kernel("hardtanh_backward"),
    Each("leaky_relu", 1),
    Each("leaky_relu_backward", 1),
    Each("rrelu_with_noise", 1),
    Each("rrelu_with_noise_backward", 1),
    Through("rrelu"),
    Each("prelu", 1),
    Each("_prelu_kernel", 1),
    Each("_prelu_kernel_backward", 2),
    Each("prelu_backward", 2),
    Each("sigmoid", 2),           // 1 / (1 + exp(-x))
    Each("sigmoid_backward", 3),  // g * (1 - y) * y
    Each("tanh_backward", 3),     // g * (1 - y*y)
    Each("silu", 3),              // x * sigmoid(x)
    Each("silu_backward", 7),     // g * s * (1 + x * (1 - s)), s = sigmoid(x)
    Each("gelu", 4),              // x * 0.5 * (1 + erf(x * sqrt(1/2)))
    Each("gelu_backward", 9),     // g * (cdf + x*pdf): cdf 3, pdf 3
    Each("mish", 2),
    Each("mish_backward", 7),
    Each("softplus", 3),
    Each("softplus_backward", 4),
    Each("elu", 3),
    Each("elu_backward", 3),
    Each("celu", 3),
    Through("selu"),
    Each("hardsigmoid", 2),
    Each("hardsigmoid_backward", 1),
    Each("hardswish", 3),           // x * clamp(x + 3) * (1/6)
    Each("hardswish_backward", 3),  // g * (x/3 + 0.5)
    Kernel("hardshrink"),
    Kernel("hardshrink_backward"),
    Each("softshrink", 1),
    Kernel("softshrink_backward"),
    Each("log_sigmoid_forward", 2),
    Each("log_sigmoid_backward", 3),
    Through("log_sigmoid"),
    Each("glu", 3),
    Kernel("glu_backward", kPerOperand, 6),

    // --- Reductions.
    Kernel("sum", kSum),
    Kernel("nansum", kSum),
    Kernel("mean", kPerOperand, 1),  // additions, and a division a result
    Through("nanmean"),
    Kernel("prod", kSum),
    Kernel("var", kPerOperand, 4),
    Kernel("std", kPerOperand, 4),
    Kernel("var_mean", kPerOperand, 4),
    Kernel("std_mean", kPerOperand, 4),
    Kernel("norm", kPerOperand, 2),
    Kernel("linalg_vector_norm", kPerOperand, 2),
    Through("linalg_norm"),
    Through("linalg_matrix_norm"),
    Through("frobenius_norm"),
    Through("nuclear_norm"),
    Kernel("logsumexp", kPerOperand, 2),
    Kernel("amax"),
    Kernel("amin"),
    Kernel("aminmax"),
    Kernel("max"),
    Kernel("min"),
    Kernel("argmax"),
    Kernel("argmin"),
    Kernel("all"),
    Kernel("any"),
    Kernel("count_nonzero"),
    Kernel("nonzero"),
    Kernel("topk"),
    Kernel("sort"),
    Kernel("argsort"),
    Kernel("kthvalue"),
    Kernel("median"),
    Kernel("mode"),
    Kernel("cummax"),
    Kernel("cummin"),
    Kernel("unique_dim"),
    Kernel("_unique2"),
    Kernel("_unique"),
    Kernel("bincount"),
    Kernel("histc"),
    Kernel("searchsorted"),
    Kernel("bucketize"),
    Kernel("powsum", kPerOperand, 2),
    Through("msort"),
    Kernel("_cdist_forward", kPerResult, 3),
    Kernel("trace", kSum),
    Through("cdist"),
    Through("sum_to_size"),

    // --- Fused optimizers, per element of the parameters: the update as torch/optim writes it, every branch taken.
    // SGD: weight decay 2, momentum 2, update 2.
    Kernel("_fused_sgd_", kPerOperand, 6, BytesRule::kFusedOptimizer),
    // Adam and AdamW: weight decay 2, first moment 3, second moment 4, denominator 3, step 3.
    Kernel("_fused_adam_", kPerOperand, 15, BytesRule::kFusedOptimizer),
    Kernel("_fused_adamw_", kPerOperand, 15, BytesRule::kFusedOptimizer),
    // Weight decay 2, sum of squares 2, root, epsilon, division, update 2.
    Kernel("_fused_adagrad_", kPerOperand, 7, BytesRule::kFusedOptimizer),
    // GradScaler: one multiplication an element.
    Kernel("_amp_foreach_non_finite_check_and_unscale_", kPerOperand, 1),
    Kernel("_amp_update_scale_", kPerOperand, 1),
};

constexpr size_t kCount = std::size(kOps);

constexpr auto MakeOrder() {
  std::array<uint16_t, kCount> order{};
  for (size_t i = 0; i < kCount; ++i) order[i] = static_cast<uint16_t>(i);
  std::sort(order.begin(), order.end(), [](uint16_t a, uint16_t b) { return kOps[a].name < kOps[b].name; });
  return order;
}

// Rows by name, so that the table above can be in the order in which it is read.
constexpr auto kOrder = MakeOrder();

constexpr bool NamesAreUnique() {
  for (size_t i = 1; i < kCount; ++i) {
    if (kOps[kOrder[i - 1]].name == kOps[kOrder[i]].name) return false;
  }
  return true;
}
static_assert(NamesAreUnique());

const OpRule* FindExactly(std::string_view name) {
  const auto at = std::lower_bound(kOrder.begin(), kOrder.end(), name,
                                   [](uint16_t row, std::string_view wanted) { return kOps[row].name < wanted; });
  return at != kOrder.end() && kOps[*at].name == name ? &kOps[*at] : nullptr;
}

constexpr std::string_view kAten = "aten::";
constexpr std::string_view kForeach = "_foreach_";

// The operators of these namespaces are not the GPU's. Collectives are bound by the interconnect, of which the table
// of GPUs knows nothing: no estimate is better than a wrong one.
constexpr std::array<std::string_view, 4> kFreeNamespaces = {"c10d::", "_c10d_functional::", "profiler::", "prim::"};

}  // namespace

std::optional<OpRule> FindOp(std::string_view name) noexcept {
  for (std::string_view prefix : kFreeNamespaces) {
    if (name.starts_with(prefix)) return OpRule{prefix, OpKind::kFree};
  }
  if (!name.starts_with(kAten)) return std::nullopt;
  name.remove_prefix(kAten.size());
  if (const OpRule* rule = FindExactly(name)) return *rule;
  const bool foreach = name.starts_with(kForeach);
  if (foreach) name.remove_prefix(kForeach.size());
  const OpRule* rule = FindExactly(name);
  if (rule == nullptr && name.ends_with('_')) {
    name.remove_suffix(1);
    rule = FindExactly(name);
  }
  if (rule == nullptr) return std::nullopt;
  OpRule found = *rule;
  // On the CPU each element of the list is an operator; on CUDA the whole list takes a few launches, and is counted
  // as one.
  if (foreach) found.kind = OpKind::kAtomic;
  return found;
}

std::span<const OpRule> AllOps() noexcept { return kOps; }

}  // namespace rfinject::estimate

namespace rfinject {

std::string_view TangentProductOf(std::string_view name) noexcept {
  // The products by which the formulas of these operators in torch's derivatives.yaml multiply by tangents.
  constexpr std::array<std::array<std::string_view, 2>, 10> kProducts = {
      {{"aten::mm", "aten::mm"},
       {"aten::addmm", "aten::mm"},
       {"aten::bmm", "aten::bmm"},
       {"aten::baddbmm", "aten::bmm"},
       {"aten::addbmm", "aten::bmm"},
       {"aten::mv", "aten::mv"},
       {"aten::addmv", "aten::mv"},
       {"aten::dot", "aten::dot"},
       {"aten::vdot", "aten::vdot"},
       {"aten::convolution", "aten::convolution"}}};
  for (const auto& [product, inside] : kProducts) {
    if (name == product) return inside;
  }
  return {};
}

std::string_view FusedBackwardOf(std::string_view name) noexcept {
  constexpr std::array<std::array<std::string_view, 2>, 4> kFused = {{{"aten::lstm", "aten::lstm_backward"},
                                                                      {"aten::gru", "aten::gru_backward"},
                                                                      {"aten::rnn_tanh", "aten::rnn_tanh_backward"},
                                                                      {"aten::rnn_relu", "aten::rnn_relu_backward"}}};
  for (const auto& [forward, backward] : kFused) {
    if (name == forward) return backward;
  }
  return {};
}

OpKind ClassifyOp(std::string_view name) noexcept {
  const auto rule = estimate::FindOp(name);
  return rule ? rule->kind : OpKind::kLeafIfChildless;
}

bool IsCopy(std::string_view name) noexcept {
  const auto rule = estimate::FindOp(name);
  return rule && rule->bytes == estimate::BytesRule::kCopy;
}

}  // namespace rfinject
