#include "gpus/kernel_names.h"

#include <algorithm>
#include <iterator>
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

// Kernels of cuDNN, cuBLAS and CUTLASS around a product, whose names have its words: what prepares its workspace,
// adds up the parts of a split sum, or turns a layout into another (of runs on an H100 and an H200).
constexpr std::string_view kAroundProducts[] = {"init_device_workspace",
                                                "execute_split_k_kernel",
                                                "splitKreduce",
                                                "ReduceSplitK",
                                                "nchwToNhwc",
                                                "nhwcToNchw",
                                                "AddPadding",
                                                "scalePackedTensor"};

// As C++, cuDNN, cuBLAS, CUTLASS and the instructions of tensor cores spell them.
constexpr std::string_view kHalfTypes[] = {
    "half",   "Half", "f16",   "fp16",   "float16", "bf16",   "BF16",  "Float16", "fp8",  "e4m3",    "e5m2",
    "Float8", "h884", "h1688", "h16816", "s884",    "s16816", "hgemm", "hcudnn",  "hmma", "nvjet_h", "nvjet_tst_h"};
constexpr std::string_view kFullTypes[] = {"float", "double", "f32", "sgemm", "dgemm", "scudnn", "ffma"};

// Only these kernels have their type in their names; templates of elementwise kernels name types of operands, too.
constexpr std::string_view kProducts[] = {"gemm",  "gemv",  "cutlass",  "xmma",   "cudnn_", "wgrad",
                                          "dgrad", "fprop", "winograd", "scudnn", "hcudnn", "implicit_convolve"};

}  // namespace

bool IsCommunicationKernel(std::string_view name) noexcept {
  if (name.starts_with("_Z")) name.remove_prefix(std::min(name.find_first_not_of("0123456789", 2), name.size()));
  if (constexpr std::string_view kStandIn = "standin_"; name.starts_with(kStandIn))
    name.remove_prefix(kStandIn.size());
  return name.starts_with("nccl") || name.starts_with("rccl") ||
         HasAny(name, std::initializer_list<std::string_view>{"ncclKernel", "ncclDevKernel"});
}

bool NamesTensorCores(std::string_view name) noexcept {
  return HasAny(name, kTensorCores) && !HasAny(name, kCudaCores) && !HasAny(name, kAroundProducts);
}

std::optional<bool> NamesHalfPrecision(std::string_view name) noexcept {
  if (HasAny(name, kHalfTypes)) return true;
  if (HasAny(name, kFullTypes)) return false;
  return std::nullopt;
}

std::optional<Precision> PrecisionOfKernel(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (!HasAny(lower, kProducts)) return std::nullopt;
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
