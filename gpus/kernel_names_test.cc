#include "gpus/kernel_names.h"

#include <gtest/gtest.h>

namespace rfinject {
namespace {

// Names as they stand in recordings of real GPUs.
TEST(KernelNamesTest, NamesTellTheUnit) {
  const std::pair<const char*, Precision> kernels[] = {
      {"volta_sgemm_64x64_tn", Precision::kFp32},
      {"volta_scudnn_128x64_relu_medium_nn_v1", Precision::kFp32},
      {"volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", Precision::kFp16Tensor},
      {"void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4>(cutlass…::Params)",
       Precision::kTf32Tensor},
      {"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x64_64x6_tn_align8>(…)",
       Precision::kBf16Tensor},
      {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute",
       Precision::kBf16Tensor},
      {"sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw", Precision::kTf32Tensor},
      {"ampere_sgemm_128x64_nn", Precision::kFp32},
      {"void gemmSN_TN_kernel<float, 128, 16, 2, 4, 8, 9, false>", Precision::kFp32},
  };
  for (const auto& [name, precision] : kernels) EXPECT_EQ(PrecisionOfKernel(name), precision) << name;
  EXPECT_EQ(PrecisionOfKernel("void at::native::vectorized_elementwise_kernel<4, at::native::BFloat16…>"),
            std::nullopt);
  EXPECT_EQ(PrecisionOfKernel("nvjet_tst_128x64_64x8_1x2_h_bz_TNT"), std::nullopt);
}

TEST(KernelNamesTest, TensorCores) {
  EXPECT_TRUE(NamesTensorCores("sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw"));
  EXPECT_FALSE(NamesTensorCores("sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwckrsc_nchw_simt"));
  EXPECT_FALSE(NamesTensorCores("ampere_sgemm_128x64_nn"));
}

TEST(KernelNamesTest, Communication) {
  EXPECT_TRUE(IsCommunicationKernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"));
  EXPECT_TRUE(IsCommunicationKernel("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"));
  EXPECT_TRUE(
      IsCommunicationKernel("_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE"));
  EXPECT_TRUE(IsCommunicationKernel("standin_ncclDevKernel_AllReduce"));
  EXPECT_FALSE(IsCommunicationKernel("volta_sgemm_64x64_tn"));
  EXPECT_FALSE(IsCommunicationKernel("_ZN2at6native4nccl6kernelEv"));
}

}  // namespace
}  // namespace rfinject
