// File: precision_policy.h
//
// Reads from torch's flags which arithmetic it allows.
#ifndef RFINJECT_COLLECTOR_ESTIMATE_PRECISION_POLICY_H_
#define RFINJECT_COLLECTOR_ESTIMATE_PRECISION_POLICY_H_

#include "collector/run_facts.h"
#include "operators/precision.h"

namespace rfinject::estimate {

// What torch's flags say; torch's defaults where they are not known.
PrecisionPolicy PolicyFrom(const PolicyFacts& facts) noexcept;

}  // namespace rfinject::estimate

#endif  // RFINJECT_COLLECTOR_ESTIMATE_PRECISION_POLICY_H_
