#include "cli/import/torch/kernel_precision.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "cli/import/torch/words.h"

namespace rfinject::cli {

std::optional<Precision> PrecisionOfKernel(std::string_view name) {
  const std::string lower = absl::AsciiStrToLower(std::string(name));
  // Only these kernels have their type in their names; templates of elementwise kernels name types of operands, too.
  constexpr std::array<std::string_view, 9> kMatrixKernels = {"gemm",  "gemv",  "cutlass", "xmma",    "cudnn_",
                                                              "wgrad", "dgrad", "fprop",   "winograd"};
  constexpr std::array<std::string_view, 3> kOlder = {"scudnn", "hcudnn", "implicit_convolve"};
  const auto has = [&lower](std::string_view word) { return Contains(lower, word); };
  if (std::none_of(kMatrixKernels.begin(), kMatrixKernels.end(), has) &&
      std::none_of(kOlder.begin(), kOlder.end(), has)) {
    return std::nullopt;
  }
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
    if (has(word)) return precision;
  }
  return std::nullopt;
}

bool IsCommunicationKernel(std::string_view name) {
  return name.starts_with("nccl") || name.starts_with("rccl") || Contains(name, "ncclKernel") ||
         Contains(name, "ncclDevKernel");
}

}  // namespace rfinject::cli
