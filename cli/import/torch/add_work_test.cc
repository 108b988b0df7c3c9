#include "cli/import/torch/add_work.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "cli/import/torch/testing/made_recording.h"
#include "cli/import/torch/torch_profiler.h"

namespace rfinject::cli {
namespace {

constexpr char kAnA100[] = "NVIDIA A100-SXM4-40GB", kAnH100[] = "NVIDIA H100 80GB HBM3";
constexpr char kConvolutionTypes[] =
    R"(["c10::Half","c10::Half","c10::Half","","ScalarList","ScalarList","ScalarList","Scalar","ScalarList","Scalar",""])";

struct Found {
  cli::Run run;
  uint64_t Sum(std::string_view metric, const std::string& kernel = "", const std::string& op = "") const {
    Uint128 sum = 0;
    for (const auto& [key, stats] : run.launches) {
      const auto found = stats.metrics.find(std::string(metric));
      const bool wanted = (kernel.empty() || key.kernel == kernel) && (op.empty() || key.op == op);
      if (wanted && found != stats.metrics.end()) sum += found->second.sum;
    }
    return static_cast<uint64_t>(sum);
  }
  uint64_t Flop(Precision precision, const std::string& kernel = "") const {
    return Sum(kMetricFlop[static_cast<size_t>(precision)], kernel);
  }
};

Found ImportMade(const MadeRecording& made) {
  absl::StatusOr<Imported> imported = ImportTorchProfilerBytes(made.Json(), "file", {});
  EXPECT_TRUE(imported.ok()) << imported.status();
  return {imported.ok() ? imported->profile.runs.begin()->second : cli::Run{}};
}

Found ImportProduct(const std::string& gpu, int major, int minor, const std::string& type,
                    const std::string& kernel) {
  MadeRecording made(gpu, major, minor);
  made.Operator("aten::mm", "[[4096,4096],[4096,4096]]", "[\"" + type + "\",\"" + type + "\"]", 100, 20);
  made.Kernel(kernel, 105, 12000);
  return ImportMade(made);
}

constexpr uint64_t kSquareProduct = 2ULL * 4096 * 4096 * 4096;

// What the operands are decides, where a type has one unit; the name where it has several; and never a unit that the
// GPU has not.
TEST(AddWorkTest, TypesOfOperandsDecideTheUnit) {
  const struct {
    const char* gpu;
    int major, minor;
    const char *type, *kernel;
    Precision unit;
  } kCases[] = {
      {kAnH100, 9, 0, "c10::BFloat16", "nvjet_sm90_tst_192x128_64x5_1x2_h_bz_coopB_TNT", Precision::kBf16Tensor},
      {kAnH100, 9, 0, "c10::BFloat16", "void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128>",
       Precision::kBf16Tensor},
      {kAnH100, 9, 0, "c10::BFloat16", "a_name_that_says_nothing", Precision::kBf16Tensor},
      {kAnA100, 8, 0, "c10::Half", "ampere_h16816gemm_128x128_nn", Precision::kFp16Tensor},
      {kAnA100, 8, 0, "float", "ampere_sgemm_128x64_nn", Precision::kFp32},
      {kAnA100, 8, 0, "float", "cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4", Precision::kTf32Tensor},
      {kAnH100, 9, 0, "float", "nvjet_sm90_sss_tf32_128x128_32x4_h_bz_TNT", Precision::kTf32Tensor},
      {"Tesla V100-SXM2-32GB", 7, 0, "c10::BFloat16", "volta_bf16gemm_128x128_nn", Precision::kFp32},
      {"Tesla V100-SXM2-32GB", 7, 0, "float", "gemm_that_says_tf32", Precision::kFp32},
      {"Tesla V100-SXM2-32GB", 7, 0, "c10::Half", "volta_fp16_s884gemm_fp16_128x128", Precision::kFp16Tensor},
  };
  for (const auto& one : kCases) {
    const Found found = ImportProduct(one.gpu, one.major, one.minor, one.type, one.kernel);
    for (size_t i = 0; i < kPrecisionCount; ++i) {
      const auto precision = static_cast<Precision>(i);
      EXPECT_EQ(found.Flop(precision), precision == one.unit ? kSquareProduct : 0)
          << one.gpu << ' ' << one.kernel << ' ' << i;
    }
  }
}

// convolution_backward over 8 images of 64 channels, 16 x 16, 3 x 3 filters: a gradient is 2 * 8 * 64 * 256 * 64 * 9.
constexpr uint64_t kGradient = 2ULL * 8 * 64 * 256 * 64 * 9;
MadeRecording ConvolutionBackward() {
  MadeRecording made(kAnA100, 8, 0);
  made.Operator("aten::convolution_backward", "[[8,64,16,16],[8,64,16,16],[64,64,3,3],[],[],[],[],[],[],[],[]]",
                kConvolutionTypes, 100, 90,
                R"(["","","","[0]","[1, 1]","[1, 1]","[1, 1]","False","[0, 0]","1","[True, True, False]"])");
  return made;
}

TEST(AddWorkTest, TwoGradientsHaveHalfOfTheFlopEach) {
  MadeRecording made = ConvolutionBackward();
  made.Kernel("nvjet_sm90_hsh_64x512_64x2_1x2_h_bz_coopB_NNT", 105, 300);
  made.Kernel("void nhwcAddPaddingKernel<__half, __half, float, true>(int)", 110, 900);
  made.Kernel("sm90_xmma_wgrad_indexed_implicit_gemm_f16f16_f16f32_f32_nhwckrsc", 115, 100);
  made.Kernel("void cask_plugin__5x_cudnn::xmma__5x_cudnn::init_device_workspace_kernel<xmma>", 120, 50);
  const Found found = ImportMade(made);
  EXPECT_EQ(found.Flop(Precision::kFp16Tensor), 2 * kGradient);
  EXPECT_EQ(found.Flop(Precision::kFp16Tensor, "nvjet_sm90_hsh_64x512_64x2_1x2_h_bz_coopB_NNT"), kGradient);
  EXPECT_EQ(found.Flop(Precision::kFp16Tensor, "sm90_xmma_wgrad_indexed_implicit_gemm_f16f16_f16f32_f32_nhwckrsc"),
            kGradient);
  // What helps has a time, and neither FLOP nor bytes that anything counted.
  for (const auto& [key, stats] : found.run.launches) {
    const bool helps = key.kernel.find("nvjet") != 0 && key.kernel.find("sm90") != 0;
    EXPECT_EQ(stats.metrics.contains(std::string(kMetricDramBytes)), !helps) << key.kernel;
    EXPECT_TRUE(stats.metrics.contains(std::string(kMetricTime)));
  }
}

TEST(AddWorkTest, SplitKSharesByTimeAndItsReductionHasNone) {
  MadeRecording made(kAnH100, 9, 0);
  made.Operator("aten::mm", "[[4096,4096],[4096,4096]]", R"(["c10::Half","c10::Half"])", 100, 20);
  made.Kernel("nvjet_sm90_hsh_64x64_64x13_1x2_h_bz_splitK_NTT", 105, 100);
  made.Kernel("void cublasLt::splitKreduce_kernel<32, 16, int, float, __half>", 110, 400);
  made.Kernel("nvjet_sm90_hsh_64x128_64x8_2x1_v_bz_splitK_NTN", 115, 300);
  const Found found = ImportMade(made);
  EXPECT_EQ(found.Flop(Precision::kFp16Tensor, "nvjet_sm90_hsh_64x64_64x13_1x2_h_bz_splitK_NTT"), kSquareProduct / 4);
  EXPECT_EQ(found.Flop(Precision::kFp16Tensor, "nvjet_sm90_hsh_64x128_64x8_2x1_v_bz_splitK_NTN"),
            kSquareProduct / 4 * 3);
  EXPECT_EQ(found.Sum(kMetricModelFlop), kSquareProduct);
  EXPECT_EQ(found.Sum(kMetricCallPart), kWholeCall);
}

// Winograd's algorithm over tiles of 4 x 4 executes 36 of 144 multiplications; Fourier's of 16 x 16 executes, for 14
// x 14 results of 3 x 3 filters, 4 * 16 * 9 of 196 * 9.
TEST(AddWorkTest, FastConvolutionsExecuteFewerFlop) {
  MadeRecording made = ConvolutionBackward();
  made.Kernel("void cudnn::winograd_nonfused::winogradWgradData4x4<float, float>(int)", 105, 100);
  made.Kernel("sm80_xmma_gemm_f32f32_f32f32_f32_nt_n_tilesize32x32x8", 106, 100);
  made.Kernel("sm80_xmma_dgrad_implicit_gemm_f32f32_f32f32_f32_nhwckrsc", 107, 700);
  const Found winograd = ImportMade(made);
  EXPECT_EQ(winograd.Flop(Precision::kFp16Tensor, "sm80_xmma_gemm_f32f32_f32f32_f32_nt_n_tilesize32x32x8"),
            kGradient / 4);
  EXPECT_EQ(winograd.Flop(Precision::kFp16Tensor, "sm80_xmma_dgrad_implicit_gemm_f32f32_f32f32_f32_nhwckrsc"),
            kGradient);
  EXPECT_EQ(winograd.Sum(kMetricModelFlop), 2 * kGradient);

  MadeRecording fourier(kAnA100, 8, 0);
  fourier.Operator("aten::convolution", "[[8,64,14,14],[64,64,3,3],[],[],[],[],[],[],[]]",
                   R"(["float","float","","ScalarList","ScalarList","ScalarList","Scalar","ScalarList","Scalar"])",
                   100, 90, R"(["","","","[1, 1]","[1, 1]","[1, 1]","False","[0, 0]","1"])");
  fourier.Kernel("void fft2d_r2c_16x16<float>(float2*)", 105, 10);
  fourier.Kernel("sm80_xmma_gemm_cf32cf32_f32f32_cf32_tn_n_tilesize64x64x8", 106, 100);
  const Found found = ImportMade(fourier);
  const uint64_t defined = 2ULL * 8 * 64 * 196 * 64 * 9;
  EXPECT_EQ(found.Sum(kMetricModelFlop), defined);
  EXPECT_EQ(found.Flop(Precision::kFp32), defined * (4 * 16 * 9) / (196 * 9));
}

TEST(AddWorkTest, ACopyInsideOfAProductIsACopy) {
  MadeRecording made(kAnA100, 8, 0);
  made.Operator("aten::addmm", "[[256],[2097152,128],[128,256],[],[]]",
                R"(["c10::BFloat16","c10::BFloat16","c10::BFloat16","Scalar","Scalar"])", 100, 80,
                R"(["","","","1","1"])");
  made.Operator("aten::copy_", "[[2097152,256],[2097152,256],[]]", R"(["c10::BFloat16","c10::BFloat16","Scalar"])",
                105, 20);
  made.Kernel("void at::native::elementwise_kernel<128, 4, at::native::direct_copy_kernel_cuda>", 110, 1500);
  made.Kernel("ampere_bf16_s1688gemm_bf16_128x128_ldg8_f2f_stages_32x1_tn", 150, 1043);
  const Found found = ImportMade(made);
  EXPECT_EQ(found.Sum(kMetricDramBytes, "", "aten::copy_"), 2ULL * 2 * 2097152 * 256);
  EXPECT_EQ(found.Sum(kMetricModelFlop, "", "aten::copy_"), 0u);
  EXPECT_EQ(found.Sum(kMetricModelFlop, "ampere_bf16_s1688gemm_bf16_128x128_ldg8_f2f_stages_32x1_tn", "aten::addmm"),
            2ULL * 2097152 * 128 * 256);
  EXPECT_EQ(found.Sum(kMetricTime, "", "aten::addmm"), 1'043'000u);
}

// A wrapper (a tensor's subclass makes them) is called without tensors, and calls the same operator with them.
TEST(AddWorkTest, AWrapperWithoutTensorsDoesNotHideTheOperator) {
  MadeRecording made(kAnA100, 8, 0);
  made.Operator("aten::gelu", "[[],[]]", R"(["",""])", 100, 50);
  made.Operator("aten::gelu", "[[512,64,128,128],[]]", R"(["c10::BFloat16",""])", 110, 30);
  made.Kernel("void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl>", 115, 1632);
  made.Operator(
      "aten::convolution", "[[],[256,64,2,2],[64],[],[],[],[],[],[]]",
      R"(["","c10::BFloat16","c10::BFloat16","ScalarList","ScalarList","ScalarList","Scalar","ScalarList","Scalar"])",
      4000, 90, R"(["","","","[2, 2]","[0, 0]","[1, 1]","True","[0, 0]","1"])");
  made.Operator(
      "aten::cudnn_convolution_transpose", "[[512,256,64,64],[256,64,2,2],[],[],[],[],[],[],[],[]]",
      R"(["c10::BFloat16","c10::BFloat16","ScalarList","ScalarList","ScalarList","ScalarList","Scalar","Scalar","Scalar","Scalar"])",
      4010, 50, R"(["","","[0, 0]","[0, 0]","[2, 2]","[1, 1]","1","False","False","True"])");
  made.Kernel("ampere_bf16_s1688gemm_bf16_128x128_ldg8_f2f_stages_32x1_tn", 4015, 5000);
  const Found found = ImportMade(made);
  EXPECT_EQ(found.Sum(kMetricCompulsoryBytes, "", "aten::gelu"), 2ULL * 2 * 512 * 64 * 128 * 128);
  // Each element of the input is multiplied with 64 filters of 2 x 2.
  EXPECT_EQ(found.Flop(Precision::kBf16Tensor), 2ULL * 512 * 256 * 64 * 64 * 64 * 4);
  EXPECT_EQ(found.Sum(kMetricCompulsoryBytes, "", "aten::cudnn_convolution_transpose"),
            2ULL * (512ULL * 256 * 64 * 64 + 256 * 64 * 4 + 512ULL * 64 * 128 * 128));
}

// The lengths of sequences that lie one behind the other are numbers in a tensor, which no recording has: what an
// attention of them multiplies is not known, and said to be so. One of sequences of one length is counted.
TEST(AddWorkTest, AttentionOfUnknownLengthsHasNoFlop) {
  MadeRecording made(kAnH100, 9, 0);
  const char* const types = R"(["c10::BFloat16","c10::BFloat16","c10::BFloat16","int","int"])";
  made.Operator("flash_attn::_flash_attn_varlen_forward", "[[8192,32,128],[8192,8,128],[8192,8,128],[5],[5]]", types,
                100, 20);
  made.Kernel("void flash::flash_fwd_kernel<a>", 105, 30);
  made.Operator("aten::_flash_attention_forward", "[[8192,32,128],[8192,32,128],[8192,32,128],[5],[5]]", types, 200,
                20);
  made.Kernel("void flash::flash_fwd_kernel<b>", 205, 30);
  made.Operator("aten::_flash_attention_forward", "[[4,2048,32,128],[4,2048,32,128],[4,2048,32,128],[],[]]",
                R"(["c10::BFloat16","c10::BFloat16","c10::BFloat16","",""])", 300, 20);
  made.Kernel("void flash::flash_fwd_kernel<c>", 305, 30);
  const Found found = ImportMade(made);
  EXPECT_EQ(found.Sum(kMetricModelFlop, "void flash::flash_fwd_kernel<a>"), 0u);
  EXPECT_EQ(found.Sum(kMetricModelFlop, "void flash::flash_fwd_kernel<b>"), 0u);
  EXPECT_GE(found.Sum(kMetricModelFlop, "void flash::flash_fwd_kernel<c>"), 4ULL * 4 * 32 * 2048 * 2048 * 128);
  std::string said;
  for (const trace::Diagnostic& one : found.run.kept.diagnostic) said += one.id == "work-not-known" ? one.text : "";
  EXPECT_NE(said.find("flash_attn::_flash_attn_varlen_forward: the file has no lengths of its sequences"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("aten::_flash_attention_forward: the file has no lengths"), std::string::npos) << said;
}

// 64 MiB in 10 us would be 6.7 TB/s: on a GPU of 1.56 TB/s most of it lay in the L2 cache.
TEST(AddWorkTest, MemoryMovesNoMoreThanItCan) {
  MadeRecording made(kAnA100, 8, 0);
  made.Operator("aten::relu", "[[8388608]]", R"(["float"])", 100, 20);
  made.Kernel("void at::native::vectorized_elementwise_kernel<4, relu>", 105, 10);
  const Found found = ImportMade(made);
  EXPECT_EQ(found.Sum(kMetricCompulsoryBytes), 2u * 4 * 8388608);
  EXPECT_EQ(found.Sum(kMetricDramBytes), 15'550'000u);
}

TEST(AddWorkTest, PartsAddUpWhateverTheTimesAre) {
  OperatorWork work;
  work.flop = {.model = 1000003, .matrix = 1000003};
  work.bytes = 77;
  for (uint64_t seed = 1; seed < 200; ++seed) {
    std::vector<KernelOfCall> kernels;
    for (uint64_t i = 0; i < 1 + seed % 7; ++i) {
      const uint64_t ns = seed * 7919 * (i + 1) % 1013;
      kernels.push_back({i % 3 == 2 ? "splitKreduce_kernel" : i % 2 == 0 ? "sgemm_128" : "x", ns});
    }
    uint64_t flop = 0, bytes = 0;
    for (const WorkPart& part : PartsOf(work.Shape(), kernels)) {
      flop += part.Of(work.flop.matrix);
      bytes += part.Of(work.bytes);
    }
    EXPECT_EQ(flop, work.flop.matrix);
    EXPECT_EQ(bytes, work.bytes);
  }
}

}  // namespace
}  // namespace rfinject::cli
