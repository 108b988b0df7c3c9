#include "collector/kernel_name.h"

#include <gtest/gtest.h>

namespace rfinject {
namespace {

TEST(ReadableKernelName, ReadsWhatTheCompilerWrote) {
  EXPECT_EQ(
      ReadableKernelName("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEE"
                         "viT0_T1_"),
      "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> "
      ">(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)");
  EXPECT_EQ(ReadableKernelName("_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE"),
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)");
}

TEST(ReadableKernelName, LeavesOtherNamesAlone) {
  for (const char* name : {"", "f", "triton_poi_fused_relu_0", "(CUDA graph)", "_Z", "_Zzz", "ampere_sgemm_128x64_nn",
                           "void at::native::copy<4>(int)"}) {
    EXPECT_EQ(ReadableKernelName(name), name);
  }
}

}  // namespace
}  // namespace rfinject
