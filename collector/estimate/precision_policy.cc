#include "collector/estimate/precision_policy.h"

namespace rfinject::estimate {

PrecisionPolicy PolicyFrom(const PolicyFacts& facts) noexcept {
  PrecisionPolicy policy;
  if (facts.cudnn_tf32 != Tristate::kUnknown) policy.convolution_tf32 = facts.cudnn_tf32 == Tristate::kOn;
  if (facts.matmul_tf32 != Tristate::kUnknown) policy.matmul_tf32 = facts.matmul_tf32 == Tristate::kOn;
  return policy;
}

}  // namespace rfinject::estimate
