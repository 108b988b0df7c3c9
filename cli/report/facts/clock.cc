#include "cli/report/facts/clock.h"

#include <array>

namespace rfinject::cli {
namespace {

constexpr auto kClockFacts = std::to_array<FactOf<Clock>>({
    {UnitColumn("step_wall_ns", "ns", "A step by the clock.", "Wall time a step"),
     [](const Clock& clock) { return KnownCell(clock.wall_ns); },
     "an estimate's clock is that of the machine that ran the program, not the GPU's"},
    {UnitColumn("step_gpu_ns", "ns", "GPU time of a step; of an estimate the expected one.", "GPU time a step"),
     [](const Clock& clock) { return KnownCell(clock.gpu_ns); }, "nothing was timed, or no step ended"},
});

}  // namespace

std::span<const FactOf<Clock>> ClockFacts() { return kClockFacts; }

Clock ClockOf(const Run& run, const Steps& steps) {
  Clock clock{.measured = run.key.source == SourceKind::kMeasured};
  if (run.key.source == SourceKind::kEstimated) return clock;
  clock.wall_ns = run.steps.duration_ns.mean();
  if (steps.count > 0) clock.wall_ns *= static_cast<double>(run.steps.steps) / static_cast<double>(steps.count);
  return clock;
}

}  // namespace rfinject::cli
