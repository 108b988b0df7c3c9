// File: sampling.h
//
// PM sampling: device-wide means over a few steps that it saw whole, a cross-check of what the kernels' counters say.
#ifndef RFINJECT_CLI_REPORT_FACTS_SAMPLING_H_
#define RFINJECT_CLI_REPORT_FACTS_SAMPLING_H_

#include <cstdint>
#include <span>
#include <string>

#include "cli/profile/profile.h"
#include "cli/report/facts/fact.h"

namespace rfinject::cli {

struct PmSampling {
  uint64_t windows = 0;          // steps
  double dram_bytes = 0;         // a step
  double tensor_share = -1;      // of the time; negative: unknown
  double kernel_dram_bytes = 0;  // a step by the kernels, what dram_bytes is held against; 0: unknown
};

PmSampling PmSamplingOf(const Run& run);
// Two ways to the same number: what the whole device moved, and the sum over the kernels. Empty where nothing was
// sampled.
std::string PmSamplingText(const PmSampling& sampling);
std::span<const FactOf<PmSampling>> SamplingFacts();

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_FACTS_SAMPLING_H_
