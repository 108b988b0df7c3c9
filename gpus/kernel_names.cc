#include "gpus/kernel_names.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <utility>

namespace rfinject {
namespace {

template <typename Words>
bool HasAny(std::string_view name, const Words& words) noexcept {
  return std::any_of(std::begin(words), std::end(words),
                     [name](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

// The instruction, the tile or the type.
constexpr std::string_view kTensorCores[] = {"tensorop", "s884",   "s1688", "s16816", "h884",     "h1688",
                                             "h16816",   "i8816",  "s64x",  "hmma",   "gmma",     "tf32",
                                             "bf16f32",  "_bf16_", "xmma",  "wgmma",  "mma_sync", "fp8_e4m3"};
// xmma is also the name of cuDNN's and cuBLAS's kernel family, whose FP32 members run on the CUDA cores.
constexpr std::string_view kCudaCores[] = {"simt", "ffma", "sgemm", "scudnn", "f32f32_f32f32"};

// As C++, cuDNN, cuBLAS, CUTLASS and the instructions of tensor cores spell them.
constexpr std::string_view kHalfTypes[] = {
    "half",   "Half", "f16",   "fp16",   "float16", "bf16",   "BF16",  "Float16", "fp8",  "e4m3",    "e5m2",
    "Float8", "h884", "h1688", "h16816", "s884",    "s16816", "hgemm", "hcudnn",  "hmma", "nvjet_h", "nvjet_tst_h"};
constexpr std::string_view kFullTypes[] = {"float", "double", "f32", "sgemm", "dgemm", "scudnn", "ffma"};

// Only these kernels have their type in their names; templates of elementwise kernels name types of operands, too.
constexpr std::string_view kProducts[] = {"gemm",  "gemv",     "cutlass", "xmma",   "cudnn_", "wgrad",
                                          "dgrad", "fprop",    "scudnn",  "hcudnn", "nvjet",  "implicit_convolve",
                                          "cijk_", "winograd", "igemm"};
// They multiply, and the name has no type of theirs.
constexpr std::string_view kOtherProducts[] = {"flash_",          "fmha",      "sdpa",        "attention",
                                               "_grouped_direct", "depthwise", "conv2d_c1_k1"};
// Kernels that exchange data with other GPUs: NCCL's, RCCL's, Microsoft's (MSCCL, MSCCL++), NVSHMEM's; those of
// PyTorch's symmetric memory; the all-reduces of vLLM and SGLang (cross_device_reduce); Transformer Engine's user
// buffers; DeepEP's and Perplexity's exchanges of experts' tokens.
constexpr std::string_view kCommunication[] = {"ncclKernel",
                                               "ncclDevKernel",
                                               "rcclGenericKernel",
                                               "mscclKernel",
                                               "mscclpp",
                                               "nvshmem",
                                               "rocshmem",
                                               "cross_device_reduce",
                                               "multimem_",
                                               "symmetric_memory::",
                                               "userbuffers_",
                                               "deep_ep::intranode::",
                                               "pplx::",
                                               "deep_ep::internode"};
// Whoever writes a collective names it: two_shot_all_reduce, oneShotAllReduce, trtllm_allreduce_fusion.
constexpr std::string_view kCollectives[] = {"allreduce",     "all_reduce",     "allgather", "all_gather",
                                             "reducescatter", "reduce_scatter", "alltoall",  "all_to_all"};
constexpr std::string_view kNamedByOperators = "triton_";  // of torch.compile: by those around it, too

// What libraries run before and behind products, by names as in recordings of cuDNN 7 to 9 and cuBLAS 10 to 13: other
// layouts (nchwToNhwcKernel, flip_filter, im2col), transforms of Winograd's and of Fourier's algorithm, sums of
// parts (splitKreduce_kernel), and preparations (init_device_workspace_kernel<xmma…>, computeOffsetsKernel,
// computeWgradBOffsetsKernel).
constexpr std::string_view kHelpers[] = {"nchwtonhwc",       "nhwctonchw",
                                         "addpadding",       "flip_filter",
                                         "im2col",           "col2im",
                                         "fft1d_",           "fft2d_",
                                         "fft3d_",           "winograd_nonfused",
                                         "splitkreduce",     "reducesplitk",
                                         "reduce_split_k",   "execute_split_k_kernel",
                                         "generatewinograd", "init_device_workspace",
                                         "computeoffsets",   "computeboffsets",
                                         "computewgrad",     "scalepackedtensor",
                                         "kern_precompute",  "convert_dq",
                                         "dot_do_o",         "converttensor",
                                         "batched_transpose"};

// cuBLAS's kernels since CUDA 12.8, "nvjet_sm90_tst_192x128_64x5_…": after the architecture a letter each for what is
// read, added up in and written, h FP16, t BF16, s FP32, q FP8, d FP64. What is read is multiplied; TF32 is what
// reads FP32 and says so.
std::optional<Precision> PrecisionOfNvjet(std::string_view lower) {
  constexpr std::string_view kName = "nvjet_";
  std::string_view code = lower.substr(lower.find(kName) + kName.size());
  if (code.starts_with("sm")) code.remove_prefix(std::min(code.find('_'), code.size() - 1) + 1);
  const std::string_view types = code.substr(0, code.find('_'));
  if (types.size() < 3 || types.find_first_not_of("abcdefghijklmnopqrstuvwxyz") != std::string_view::npos) {
    return std::nullopt;
  }
  switch (types.front()) {
    case 'h':
      return Precision::kFp16Tensor;
    case 't':
      return Precision::kBf16Tensor;
    case 'q':
      return Precision::kFp8Tensor;
    case 'd':
      return Precision::kFp64Tensor;
    case 's':
      if (code.starts_with("sss_tf32")) return Precision::kTf32Tensor;
      break;
    default:
      break;
  }
  return std::nullopt;
}

std::string Lower(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

// As HasAny, whatever the capitals of `name` are; `words` have none.
bool HasAnyOfAnyCase(std::string_view name, std::span<const std::string_view> words) noexcept {
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return std::search(name.begin(), name.end(), word.begin(), word.end(), same) != name.end();
  });
}

}  // namespace

bool IsCommunicationKernel(std::string_view name) noexcept {
  if (name.starts_with("_Z")) name.remove_prefix(std::min(name.find_first_not_of("0123456789", 2), name.size()));
  if (constexpr std::string_view kStandIn = "standin_"; name.starts_with(kStandIn))
    name.remove_prefix(kStandIn.size());
  return name.starts_with("nccl") || name.starts_with("rccl") || HasAny(name, kCommunication) ||
         (!name.starts_with(kNamedByOperators) && HasAnyOfAnyCase(name, kCollectives));
}

bool AllRanksMeetIn(std::string_view name) noexcept {
  constexpr std::string_view kMeetToo[] = {"cross_device_reduce", "sendrecv"};
  return IsCommunicationKernel(name) && (HasAnyOfAnyCase(name, kCollectives) || HasAnyOfAnyCase(name, kMeetToo));
}

bool NamesTensorCores(std::string_view name) noexcept {
  // What prepares a product has the product's name in its own: init_device_workspace_kernel<xmma…>.
  return HasAny(name, kTensorCores) && !HasAny(name, kCudaCores) && !HasAnyOfAnyCase(name, kHelpers);
}

KernelRole RoleOfKernel(std::string_view name) {
  constexpr std::string_view kCopyOrMemorySet = "cuMem";  // of the driver
  if (name.starts_with(kCopyOrMemorySet) || HasAnyOfAnyCase(name, kHelpers)) return KernelRole::kHelps;
  return HasAnyOfAnyCase(name, kProducts) || HasAnyOfAnyCase(name, kOtherProducts) ? KernelRole::kMultiplies
                                                                                   : KernelRole::kUnknown;
}

GradientOf GradientOfKernel(std::string_view name) {
  constexpr std::string_view kWeight[] = {"wgrad", "bwdweight", "backward_weight", "wrw"};
  constexpr std::string_view kInput[] = {"dgrad", "bwddata", "backward_data"};
  if (HasAnyOfAnyCase(name, kWeight)) return GradientOf::kWeight;
  return HasAnyOfAnyCase(name, kInput) ? GradientOf::kInput : GradientOf::kUnknown;
}

std::optional<ConvolutionTiles> TilesOfKernel(std::string_view name) {
  using enum ConvolutionTiles::Algorithm;
  constexpr std::string_view kWinogradWord[] = {"winograd"};
  if (name.find("fft2d_") != std::string_view::npos) {
    return ConvolutionTiles{kFourier, name.find("16x16") != std::string_view::npos ? 16 : 32};
  }
  if (!HasAnyOfAnyCase(name, kWinogradWord)) return std::nullopt;
  const bool large =
      name.find("4x4") != std::string_view::npos && name.find("winograd_nonfused") != std::string_view::npos;
  return ConvolutionTiles{kWinograd, large ? 4 : 2};
}

bool MultipliesComplex(std::string_view name) {
  return name.find("_cf32cf32_") != std::string_view::npos || name.find("cgemm") != std::string_view::npos;
}

std::optional<bool> NamesHalfPrecision(std::string_view name) noexcept {
  if (HasAny(name, kHalfTypes)) return true;
  if (HasAny(name, kFullTypes)) return false;
  return std::nullopt;
}

std::optional<Precision> PrecisionOfKernel(std::string_view name) {
  const std::string lower = Lower(name);
  if (!HasAny(lower, kProducts)) return std::nullopt;
  if (lower.find("nvjet_") != std::string::npos) return PrecisionOfNvjet(lower);
  // The first that is found counts. "s1688" without a half type is the TF32 instruction of Ampere (PTX ISA,
  // mma.m16n8k8), "s884" and "h884" are Volta's of FP16, "d884" is that of FP64. "scudnn", "sgemm" and FFMA compute
  // on the CUDA cores.
  constexpr std::pair<std::string_view, Precision> kWords[] = {
      {"e4m3", Precision::kFp8Tensor},    {"e5m2", Precision::kFp8Tensor},      {"tf32", Precision::kTf32Tensor},
      {"bf16", Precision::kBf16Tensor},   {"bfloat16", Precision::kBf16Tensor}, {"f16", Precision::kFp16Tensor},
      {"fp16", Precision::kFp16Tensor},   {"h884", Precision::kFp16Tensor},     {"h1688", Precision::kFp16Tensor},
      {"h16816", Precision::kFp16Tensor}, {"hgemm", Precision::kFp16Tensor},    {"hcudnn", Precision::kFp16Tensor},
      {"s884", Precision::kFp16Tensor},   {"d884", Precision::kFp64Tensor},     {"s1688", Precision::kTf32Tensor},
      {"dgemm", Precision::kFp64},        {"sgemm", Precision::kFp32},          {"scudnn", Precision::kFp32},
      {"ffma", Precision::kFp32},         {"<float, float", Precision::kFp32},  {"<float,", Precision::kFp32},
      {"f32f32_f32f32", Precision::kFp32}};
  for (const auto& [word, precision] : kWords) {
    if (lower.find(word) != std::string::npos) return precision;
  }
  return std::nullopt;
}

}  // namespace rfinject
