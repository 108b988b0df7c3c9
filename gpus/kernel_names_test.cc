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
      // What is read decides, by public listings of kernels whose operands are known.
      {"nvjet_sm90_hsh_128x256_64x4_2x1_v_ssched_bz_coopA_TNN", Precision::kFp16Tensor},
      {"nvjet_hss_64x8_64x16_4x1_v_bz_TNN", Precision::kFp16Tensor},
      {"nvjet_sm90_tst_192x128_64x5_1x2_h_bz_coopB_TNT", Precision::kBf16Tensor},
      {"nvjet_tss_128x64_64x8_1x2_h_bz_TNT", Precision::kBf16Tensor},
      {"nvjet_sm100_qqtst_128x128_128x5_2x1_2cta_h_bz_TNT", Precision::kFp8Tensor},
      {"nvjet_qqhsh_128x128_128x5_2x1_h_bz_TNT", Precision::kFp8Tensor},
      {"nvjet_sm90_sss_tf32_128x128_32x4_h_bz_TNT", Precision::kTf32Tensor},
  };
  for (const auto& [name, precision] : kernels) EXPECT_EQ(PrecisionOfKernel(name), precision) << name;
  EXPECT_EQ(PrecisionOfKernel("void at::native::vectorized_elementwise_kernel<4, at::native::BFloat16…>"),
            std::nullopt);
  for (const char* name :
       {"nvjet_", "nvjet_sm90", "nvjet_sm90_", "nvjet_sm90_xyz_128x64", "nvjet_t", "nvjet_sss_128x64"})
    EXPECT_EQ(PrecisionOfKernel(name), std::nullopt) << name;
}

// Kernels of operators with several, from recordings of cuDNN and cuBLAS.
TEST(KernelNamesTest, OnlySomeKernelsOfAnOperatorMultiply) {
  for (const char* name :
       {"nvjet_sm90_hsh_64x128_64x8_2x1_v_bz_splitK_NTN", "volta_sgemm_64x64_tn",
        "sm90_xmma_wgrad_indexed_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x64",
        "void wgrad_alg0_engine<float, 128, 5, 5, 3, 3, 3, false, 512>(int, int, int, float const*)",
        "void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>(int, int, int, float const*)",
        "void cudnn::winograd::maxwell_scudnn_winograd_128x128_ldg1_ldg4_tile148n_nt",
        "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 64>>",
        "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel)"}) {
    EXPECT_EQ(RoleOfKernel(name), KernelRole::kMultiplies) << name;
  }
  for (const char* name :
       {"void cublasLt::splitKreduce_kernel<32, 16, int, float, __half, float, __half, false, float>",
        "void cudnn::winograd_nonfused::winogradWgradDelta4x4<float, float>(…)",
        "void cutlass::reduce_split_k_kernel<__half>(…)",
        "void cudnn::engines_precompiled::nchwToNhwcKernel<float, float, float, false, true>(…)",
        "void nhwcAddPaddingKernel<__half, __half, float, true, (cudnnKernelDataType_t)0>(…)",
        "void fft2d_r2c_32x32<float, false, 0u, false>(…)", "void flip_filter<float, float>(…)",
        "void cask_plugin__5x_cudnn::xmma__5x_cudnn::init_device_workspace_kernel<xmma__5x_cudnn::implicit_gemm>",
        "void pytorch_flash::flash_bwd_dot_do_o_kernel<true, Flash_bwd_kernel_traits<64>>"}) {
    EXPECT_EQ(RoleOfKernel(name), KernelRole::kHelps) << name;
    EXPECT_FALSE(NamesTensorCores(name)) << name;
  }
  EXPECT_EQ(RoleOfKernel("void at::native::reduce_kernel<512, 1>(…)"), KernelRole::kUnknown);
  EXPECT_EQ(GradientOfKernel("sm80_xmma_wgrad_implicit_gemm_indexed_f32f32_f32f32_f32"), GradientOf::kWeight);
  EXPECT_EQ(GradientOfKernel("void cudnn::detail::dgrad_engine<float, 512>"), GradientOf::kInput);
  EXPECT_EQ(GradientOfKernel("nvjet_sm90_hsh_64x128_64x8"), GradientOf::kUnknown);
}

TEST(KernelNamesTest, TilesOfConvolutions) {
  using enum ConvolutionTiles::Algorithm;
  const auto tiles = TilesOfKernel("void cudnn::winograd_nonfused::winogradWgradData4x4<float, float>(…)");
  ASSERT_TRUE(tiles);
  EXPECT_EQ(tiles->algorithm, kWinograd);
  EXPECT_EQ(tiles->size, 4);
  EXPECT_EQ(TilesOfKernel("maxwell_scudnn_winograd_128x128_ldg1_ldg4_tile148n_nt")->size, 2);
  EXPECT_EQ(TilesOfKernel("void fft2d_r2c_32x32<float, false, 0u, false>(…)")->algorithm, kFourier);
  EXPECT_EQ(TilesOfKernel("void fft2d_c2r_16x16<float, false>(…)")->size, 16);
  EXPECT_FALSE(TilesOfKernel("volta_scudnn_128x64_relu_medium_nn_v1"));
  EXPECT_TRUE(MultipliesComplex("sm80_xmma_gemm_cf32cf32_f32f32_cf32_nt_n_tilesize64x64x8"));
  EXPECT_FALSE(MultipliesComplex("sm80_xmma_gemm_f32f32_f32f32_f32_nt_n_tilesize64x64x8"));
}

TEST(KernelNamesTest, TensorCores) {
  EXPECT_TRUE(NamesTensorCores("sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw"));
  EXPECT_FALSE(NamesTensorCores("sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwckrsc_nchw_simt"));
  EXPECT_FALSE(NamesTensorCores("ampere_sgemm_128x64_nn"));
  // What stands around a product names the product, and multiplies nothing.
  EXPECT_TRUE(NamesTensorCores(
      "sm90_xmma_wgrad_indexed_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_warpgroupsize1x1x1_g1_"
      "execute_segment_k_on_kernel__5x_cudnn"));
  EXPECT_FALSE(NamesTensorCores(
      "sm90_xmma_wgrad_indexed_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_warpgroupsize1x1x1_g1_"
      "execute_split_k_kernel__5x_cudnn"));
  EXPECT_FALSE(NamesTensorCores(
      "void cask_plugin__5x_cudnn::xmma__5x_cudnn::init_device_workspace_kernel<xmma__5x_cudnn::implicit_gemm::fprop::"
      "Warp_specialized_params_non_template<xmma__5x_cudnn::Grid_constant_params> >(…)"));
  EXPECT_FALSE(NamesTensorCores("void cudnn::engines_precompiled::nchwToNhwcKernel<bf16f32, …>(…)"));
}

TEST(KernelNamesTest, HalfPrecision) {
  for (const char* half :
       {"void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::Half>, …>(…)",
        "void at::native::elementwise_kernel<…{lambda(c10::BFloat16)#1}…>(…)",
        "void cublasLt::splitKreduce_kernel<32, 16, int, float, __half, float, …>(…)",
        "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_cga1x1x1_kernel0_0"}) {
    EXPECT_EQ(NamesHalfPrecision(half), true) << half;
  }
  for (const char* full : {"void cublasLt::splitKreduce_kernel<32, 16, int, float, float, float, float, …>(…)",
                           "void flip_filter<float, float>(float*, float const*, int, int, int, int)",
                           "sm80_xmma_gemm_f32f32_f32f32_f32_nt_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_execute",
                           "sm90_xmma_dgrad_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x32"}) {
    EXPECT_EQ(NamesHalfPrecision(full), false) << full;
  }
  EXPECT_EQ(NamesHalfPrecision("triton_poi_fused_add_0"), std::nullopt);
  EXPECT_EQ(NamesHalfPrecision("void cudnn::cnn::kern_precompute_indices<false>(int*, int, int, int)"), std::nullopt);
}

TEST(KernelNamesTest, Communication) {
  EXPECT_TRUE(IsCommunicationKernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"));
  EXPECT_TRUE(IsCommunicationKernel("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"));
  EXPECT_TRUE(
      IsCommunicationKernel("_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE"));
  EXPECT_TRUE(IsCommunicationKernel("standin_ncclDevKernel_AllReduce"));
  for (const char* name :
       {"void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*)",
        "void c10d::symmetric_memory::multimem_all_reduce_kernel<16>(c10::BFloat16*)", "two_shot_all_reduce_kernel",
        "void one_shot_all_reduce_kernel<8>()", "nvshmemi_transfer_rma_kernel",
        "void deep_ep::intranode::dispatch<8, 768, 8192>(int4*)", "void deep_ep::internode_ll::combine<true>(void*)",
        "mscclKernel_Sum_half_Simple", "void mscclpp::allreduce7<int>(…)",
        "void tensorrt_llm::kernels::twoShotAllReduceKernel<__half, 4>(…)",
        "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<…>(…)",
        "void tensorrt_llm::kernels::mnnvl::oneshotAllreduceFusionKernel<…>(…)", "moeAlltoAllKernel<4>(…)",
        "multimem_reduce_scatter_kernel", "void pplx::a2a_kernels::a2a_dispatch_send_kernel<…>(…)",
        "void userbuffers_fp16_sum_inplace_gpu_rr_rs<4>(int)"}) {
    EXPECT_TRUE(IsCommunicationKernel(name)) << name;
  }
  for (const char* name :
       {"void deep_ep::layout::get_dispatch_layout<256>(…)", "void at::native::reduce_kernel<512, 1>",
        "void moe::all_tokens_kernel<8>()", "triton_poi_fused_add_all_reduce_wait_tensor_0", ""}) {
    EXPECT_FALSE(IsCommunicationKernel(name)) << name;
  }
  EXPECT_FALSE(IsCommunicationKernel("volta_sgemm_64x64_tn"));
  EXPECT_FALSE(IsCommunicationKernel("_ZN2at6native4nccl6kernelEv"));
}

}  // namespace
}  // namespace rfinject
