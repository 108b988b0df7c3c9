#include "cli/report/facts/steps.h"

#include <algorithm>
#include <array>

#include "cli/text/units.h"

namespace rfinject::cli {
namespace {

constexpr auto kStepFacts = std::to_array<FactOf<Steps>>({
    {CountColumn("steps", "Measured steps; of inference, batches.", "Steps").Additive(),
     [](const Steps& steps) { return Cell{steps.count}; }},
    {CountColumn("samples", "Samples of all steps; 0 where an input does not tell its batch.", "Samples").Additive(),
     [](const Steps& steps) { return Cell{steps.samples}; }},
});

}  // namespace

std::span<const FactOf<Steps>> StepFacts() { return kStepFacts; }

Steps StepsOf(const Run& run, StepBy by) {
  const auto validates = [](const auto& launch) { return launch.first.phase == Phase::kEval; };
  return {.count = StepCount(run.steps, by),
          .samples = run.steps.samples,
          .optimizer = run.steps.steps,
          .by = by,
          .validation = std::ranges::any_of(run.launches, validates)};
}

uint64_t StepCount(const StepSums& steps, StepBy by) {
  switch (by) {
    case StepBy::kIteration:
      if (steps.iterations > 0) return steps.iterations;
      break;
    case StepBy::kForward:
      if (steps.calls > 0) return steps.calls;
      break;
    case StepBy::kOptimizer:
      break;
  }
  return steps.steps;
}

std::string StepsText(const Steps& steps) {
  if (steps.validation) return Counted(steps.count, "batch", "batches") + " of validation";
  if (steps.by == StepBy::kForward) return Counted(steps.count, "call", "calls");
  if (steps.by == StepBy::kOptimizer || steps.count == 0 || steps.optimizer < 2 * steps.count) {
    return Counted(steps.count, "step", "steps");
  }
  return Counted(steps.count, "iteration", "iterations") + " of " +
         Counted(steps.optimizer / steps.count, "optimizer step", "optimizer steps");
}

}  // namespace rfinject::cli
