// File: limit.h
//
// Bounds what a report may hold, because a trace of a few megabytes can name a hundred thousand kinds of run, or a
// kernel by a text of megabytes. Outputs are bounded here, before they are made, and say what was left out.
#ifndef RFINJECT_CLI_PROFILE_LIMIT_H_
#define RFINJECT_CLI_PROFILE_LIMIT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/profile/profile.h"

namespace rfinject::cli {

// 0: no limit. The defaults are above what people's programs have (a run for each GPU, batch size and precision
// policy; template kernels of CUTLASS have names of a few kilobytes) and make pages of at most some tens of
// megabytes.
struct Limits {
  uint64_t runs = 1000;
  uint64_t rows = 100000;  // launch keys of a run, and so rows of any kind
  uint64_t name = 16384;   // bytes of one text
};

// Bounds `profile` and returns what was done, one sentence each; nothing when all was within `limits`.
//  * Of too many runs those with the most launches stay.
//  * Of too many launch keys those with the longest time stay; the others are added up, a key a phase, in no layer,
//    under an operator's name that says so. Sums of a phase and of the run stay what they are, but for rounding of
//    what was sampled.
//  * The middle of too long a text is replaced by a digest of the whole, so that different texts stay different.
// Each run that stays has the sentences that are about it among its diagnostics ("limit"), for the outputs.
std::vector<std::string> LimitProfile(const Limits& limits, Profile* profile);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PROFILE_LIMIT_H_
