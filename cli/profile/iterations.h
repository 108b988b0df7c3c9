// File: iterations.h
//
// Finds what one iteration of a training loop is, where it has several steps: a GAN steps its discriminator's
// optimizer and its generator's. The sequence of kinds of step repeats with the loop, and its period is the
// iteration.
#ifndef RFINJECT_CLI_PROFILE_ITERATIONS_H_
#define RFINJECT_CLI_PROFILE_ITERATIONS_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace rfinject::cli {

// A loop is recognised long before so many steps, and its thousandth repetition adds nothing.
inline constexpr size_t kMostStepsLookedAt = 4096;

inline constexpr size_t kMostStepsOfIteration = 64;

// What tells a step from others of its iteration.
struct StepKind {
  uint32_t calls = 0;      // Step.kind: which roots were called, and which class of optimizer stepped; 0 unknown
  uint32_t optimizer = 0;  // Step.optimizer: which one of that class; 0 unknown
};

// Returns how many steps an iteration has: the shortest period that nine of ten steps keep to and that was seen twice
// (the last steps of an epoch, or a loss scale that was too large, may break it). The period is that of calls and
// optimizers together or, where these have none, of calls alone, since a program may make a new optimizer for every
// iteration. It is 1 where there is no period, or where calls are unknown.
size_t StepsOfIteration(std::span<const StepKind> kinds);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PROFILE_ITERATIONS_H_
