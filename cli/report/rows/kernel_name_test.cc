#include "cli/report/rows/kernel_name.h"

#include <gtest/gtest.h>

namespace rfinject::cli {
namespace {

TEST(ShortKernelName, SaysTheFunctionAndWhatItApplies) {
  EXPECT_EQ(ShortKernelName("void at::native::copy_kernel<4, float>(int)"), "copy_kernel");
  EXPECT_EQ(ShortKernelName("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
                            "std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)"),
            "vectorized_elementwise_kernel<FillFunctor>");
  EXPECT_EQ(
      ShortKernelName("void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<"
                      "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#1}::operator()() "
                      "const::{lambda(float)#1}>(at::TensorIteratorBase&)::{lambda(int)#1}>(int)"),
      "elementwise_kernel<direct_copy_kernel_cuda>");
  EXPECT_EQ(ShortKernelName("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
                            "at::native::MeanOps<float> > >(at::native::ReduceOp<float>)"),
            "reduce_kernel<ReduceOp>");
}

TEST(ShortKernelName, DropsNamespacesAlsoThoseWithoutAName) {
  EXPECT_EQ(ShortKernelName("void at::native::(anonymous namespace)::layer_norm<float, float>(int, float)"),
            "layer_norm");
  EXPECT_EQ(ShortKernelName("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
}

TEST(ShortKernelName, LeavesWhatIsNoFunctionOfCpp) {
  for (const char* name : {"ampere_sgemm_128x64_nn", "triton_poi_fused_relu_0", "(CUDA graph)", "<lambda>", "", "<",
                           "a::", "aten::convolution"}) {
    EXPECT_EQ(ShortKernelName(name), name);
  }
}

}  // namespace
}  // namespace rfinject::cli
