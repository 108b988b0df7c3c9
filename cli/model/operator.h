// File: operator.h
//
// One operator as the model of expected times has it: what it computes, on which unit, and how large it is. It is
// pure maths.
#ifndef RFINJECT_CLI_MODEL_OPERATOR_H_
#define RFINJECT_CLI_MODEL_OPERATOR_H_

#include <array>
#include <cstdint>
#include <string_view>

#include "proto/wire/vocabulary.h"

namespace rfinject::cli {

enum class OperatorKind : uint8_t {
  kElementwise,  // reads and writes
  kOther,        // everything that has no better description than FLOP and bytes
  kReordering,   // threads take rows x cols elements one by one, because operands lie differently in memory: copies
                 // into another order, concatenations, broadcasts
  kProduct,      // batch products of m x k by k x n; `shared_right`: the right operand is one matrix (a linear layer)
  kConvolution,
  kSoftmax,
  kLayerNorm,
  kRmsNorm,
  kBatchNorm,
  kBatchNormByTorch,  // by torch's own kernels, not cuDNN's
  kReduction,         // of elements to fewer: sums, means
  kPool,              // windows of an input
  kScatter,           // adds values up at indices, which are sorted first: a chain of kernels
  kAttention,         // a fused one: batch heads of m queries and n keys of k elements
  kCausalAttention,   // the same, where a query sees the keys before it only
};

// dgrad: the input's gradient; wgrad: the weight's, where a product's left operand lies with rows of m elements.
enum class Pass : uint8_t { kForward, kDgrad, kWgrad };

struct Operator {
  OperatorKind kind = OperatorKind::kElementwise;
  Pass pass = Pass::kForward;
  Precision precision = Precision::kFp32;  // the unit that products and convolutions run on
  double element_bytes = 4;
  // Products.
  double batch = 1, m = 0, k = 0, n = 0;
  bool shared_right = true;
  // Convolutions, by the forward's sizes whatever the pass.
  bool channels_last = false;
  double images = 0, c_in = 0, c_out = 0, kernel_h = 1, kernel_w = 1, h = 0, w = 0, out_h = 0, out_w = 0, groups = 1;
  // Operators over rows x cols; the norms and softmax run along cols. A batch norm's rows are its channels where a
  // block of a kernel reduces each of them, otherwise 0.
  double rows = 0, cols = 0;
  // Compulsory traffic of what is neither product nor convolution, bytes read and written; what of it a batch norm
  // reads a second time; and FLOP of kOther.
  double bytes = 0, reread_bytes = 0, flop = 0;
};

// Operators that share parameters: a kind of operator on a kind of unit and, for convolutions, the pass.
enum class Family : uint8_t {
  kElementwise,
  kOther,
  kSoftmax,
  kLayerNorm,
  kRmsNorm,
  kBatchNorm,
  kLinearFp32,
  kLinearTensor,
  kBmmFp32,
  kBmmTensor,
  kConvFp32,
  kConvFp32Dgrad,
  kConvFp32Wgrad,
  kConvTensor,
  kConvTensorDgrad,
  kConvTensorWgrad,
  kConvTf32,  // on tensor cores, too, at another rate than halves
  kConvTf32Dgrad,
  kConvTf32Wgrad,
  kConvDepthwise,  // as many groups as channels
  kConvSingle,     // one channel of halves: there are no tensor cores' kernels for it
  kConvSingleWgrad,
  kConvFew,  // halves of fewer channels than tensor cores' kernels want, which are filled up (Ampere and later)
  kAttention,
  kAttentionBackward,
  kReduction,  // sums, means and the like
  kScatter,
  kLayerNormBackward,
  kPool,
  kPoolBackward,
};
// As in the column family of calibration.csv.
inline constexpr std::array<std::string_view, 30> kFamilyNames = {
    "elementwise",         "other",          "softmax",
    "layer_norm",          "rms_norm",       "batch_norm",
    "linear_fp32",         "linear_tensor",  "bmm_fp32",
    "bmm_tensor",          "conv_fp32",      "conv_fp32_dgrad",
    "conv_fp32_wgrad",     "conv_tensor",    "conv_tensor_dgrad",
    "conv_tensor_wgrad",   "conv_tf32",      "conv_tf32_dgrad",
    "conv_tf32_wgrad",     "conv_depthwise", "conv_single",
    "conv_single_wgrad",   "conv_few",       "attention",
    "attention_backward",  "reduction",      "scatter",
    "layer_norm_backward", "pool",           "pool_backward"};
Family FamilyOf(const Operator& op);
constexpr bool IsBatchNorm(const Operator& op) {
  return op.kind == OperatorKind::kBatchNorm || op.kind == OperatorKind::kBatchNormByTorch;
}

// Of a family, operators that take another time than the others by what only recordings of networks say.
enum class ScaleKind : uint8_t {
  kPlain,
  kTf32,
  kFp32,
  kChannelsFirst,
  kChannelsLast,
  kNative,
  kGrouped,
  kMisaligned,
  kNarrow
};
// As in the column parameter of calibration.csv.
inline constexpr std::array<std::string_view, 9> kScaleNames = {
    "scale",        "scale_tf32",    "scale_fp32",       "scale_channels_first", "scale_channels_last",
    "scale_native", "scale_grouped", "scale_misaligned", "scale_narrow"};
// Products: of TF32, or whose rows do not begin at multiples of 16 bytes, or of 4. Attention: of FP32. Batch norm:
// torch's own kernels instead of cuDNN's, or of channels last. Convolutions: of several groups, but not as many as
// channels. Both: of halves with channels first.
ScaleKind ScaleKindOf(const Operator& op);

// Operators whose errors have a cause in common: kernels of one library, on one kind of unit.
enum class ErrorGroup : uint8_t {
  kProductFp32,
  kProductTensor,
  kConvolutionFp32,
  kConvolutionTensor,
  kAttention,
  kNorm,     // softmax and reductions, too
  kTraffic,  // element-wise operators and copies
  kOther,    // what is known least, and links
};
inline constexpr size_t kErrorGroups = 8;
ErrorGroup ErrorGroupOf(Family family);

// Whether the unit is one of matrix products.
bool IsTensor(Precision precision);
// A convolution whose channels tensor cores' kernels do not take runs on the FP32 units.
bool OnTensorCores(const Operator& op);
// With channels first a convolution of 1x1 is, for each image, a product of the filters and the planes of its
// channels. cuBLAS's kernels for tensor cores take rows that begin at multiples of 16 bytes.
bool IsProductAsItLies(const Operator& op);
// Whether cuDNN has Winograd kernels for it.
bool IsWinogradShape(const Operator& op);

// Of a product on tensor cores, the elements of its matrices whose rows do not begin at multiples of 16 bytes:
// cuBLAS's kernels read and write so much at a time where all do, and move those one by one. `narrow`: some rows do
// not even begin at multiples of 4 bytes, the least that is copied to shared memory asynchronously; such kernels are
// Turing's.
struct Misaligned {
  double elements = 0;
  bool narrow = false;
};
Misaligned MisalignedOf(const Operator& op);

// FLOP that the operator's mathematics asks for, and bytes of operands and results, each moved once.
double Flop(const Operator& op);

// How many keys a query of an attention sees on average: where it is causal, those up to its own place.
double KeysSeen(const Operator& op);
double Bytes(const Operator& op);

inline constexpr double kTensorAlignment = 8;  // channels: tensor cores' convolution kernels want multiples of it
inline constexpr double kRowAlignment = 16, kLeastAlignment = 4;  // bytes

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_MODEL_OPERATOR_H_
