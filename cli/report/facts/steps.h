// File: steps.h
//
// What a step of the run is, and how many there were.
#ifndef RFINJECT_CLI_REPORT_FACTS_STEPS_H_
#define RFINJECT_CLI_REPORT_FACTS_STEPS_H_

#include <cstdint>
#include <span>
#include <string>

#include "cli/profile/profile.h"
#include "cli/report/facts/fact.h"

namespace rfinject::cli {

// What counts as a step: what the training loop repeats, what ends with an optimizer's step, or a call of a root.
enum class StepBy : uint8_t { kIteration, kOptimizer, kForward };

struct Steps {
  uint64_t count = 0, samples = 0;
  uint64_t optimizer = 0;  // optimizer's steps that `count` are made of, and what did not make a whole one
  StepBy by = StepBy::kIteration;
  bool validation = false;  // of a model that also trains: its steps are batches

  // Optimizer's steps in one of `count`; 1 where either is not known.
  double optimizer_per_step() const {
    return count == 0 || optimizer == 0 ? 1 : static_cast<double>(optimizer) / static_cast<double>(count);
  }
  // By what a sum over all of them is divided: 1 where they are not known.
  double divisor() const { return count > 0 ? static_cast<double>(count) : 1; }
};

Steps StepsOf(const Run& run, StepBy by);
// Returns by how many steps sums are divided; optimizer steps where the trace, one of an older version, does not have
// what is asked for.
uint64_t StepCount(const StepSums& steps, StepBy by);

// "10 steps", "5 iterations of 2 optimizer steps", "20 calls", "5 batches of validation".
std::string StepsText(const Steps& steps);

std::span<const FactOf<Steps>> StepFacts();

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_FACTS_STEPS_H_
