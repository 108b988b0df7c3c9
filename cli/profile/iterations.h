// File: iterations.h
//
// What one iteration of a training loop is, where it has several steps: a GAN steps its discriminator's optimizer and
// its generator's. The sequence of kinds of step (Step.kind) repeats with the loop, and its period is the iteration.
#ifndef RFINJECT_CLI_PROFILE_ITERATIONS_H_
#define RFINJECT_CLI_PROFILE_ITERATIONS_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace rfinject::cli {

// A loop is recognised long before, and its thousandth repetition says nothing new.
inline constexpr size_t kMostStepsLookedAt = 4096;

// The steps of an iteration: the shortest period that nine of ten steps keep to and that was seen twice (the last
// steps of an epoch, or a loss scale that was too large, may break it). 1 where there is none, or where a kind is 0.
size_t StepsOfIteration(std::span<const uint32_t> kinds);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PROFILE_ITERATIONS_H_
