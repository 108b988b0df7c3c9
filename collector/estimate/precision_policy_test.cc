#include "collector/estimate/precision_policy.h"

#include <gtest/gtest.h>

namespace rfinject::estimate {
namespace {

TEST(PrecisionPolicyTest, PolicyDefaultsAreTorchs) {
  const PrecisionPolicy unknown = PolicyFrom({});
  EXPECT_TRUE(unknown.convolution_tf32);
  EXPECT_FALSE(unknown.matmul_tf32);
  const PrecisionPolicy known = PolicyFrom({.matmul_tf32 = Tristate::kOn, .cudnn_tf32 = Tristate::kOff});
  EXPECT_FALSE(known.convolution_tf32);
  EXPECT_TRUE(known.matmul_tf32);
}

}  // namespace
}  // namespace rfinject::estimate
