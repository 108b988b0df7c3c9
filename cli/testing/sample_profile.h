// File: sample_profile.h
//
// Profiles for tests: a ResNet-18 training run as the estimator would see it, and random ones.
#ifndef RFINJECT_CLI_TESTING_SAMPLE_PROFILE_H_
#define RFINJECT_CLI_TESTING_SAMPLE_PROFILE_H_

#include <cstdint>

#include "cli/model/roofline.h"
#include "cli/profile/profile.h"

namespace rfinject::cli::testing {

Machine SampleV100();
Machine SampleA100();

// ResNet-18, batch 8, `steps` training steps with SGD: every convolution, normalisation, activation and the rest,
// forward and backward, the optimizer and the copies of the input. Model FLOP are the exact ones; times are the
// roofs' least times plus a launch floor. Convolutions run in TF32 where the machine has it.
Profile SampleResNet18(const Machine& machine, uint64_t steps = 10);

// The same run as hardware would report it: times and bytes from a sample of the launches with some spread, some
// kernels without counters, one layer not attributed.
Profile SampleMeasured(const Machine& machine, uint64_t steps = 10);

// A measured run of one launch key. Its metrics are rf.time in ns, rf.dram_bytes in units of 32 bytes, and
// rf.flop.fp32.
Profile OneKey(const LaunchKey& key, const LaunchStats& stats);

// Profiles with few distinct keys, so that merging them finds many in common, and with numbers near every limit.
Profile RandomProfile(uint64_t seed);

}  // namespace rfinject::cli::testing

#endif  // RFINJECT_CLI_TESTING_SAMPLE_PROFILE_H_
