#include "cli/report/facts/clock.h"

#include <algorithm>
#include <array>

#include "cli/text/units.h"

namespace rfinject::cli {
namespace {

Cell OfMeasured(const Clock& clock, Cell value) {
  return clock.measured && clock.counting.all_ns > 0 ? value : Cell{};
}

constexpr auto kClockFacts = std::to_array<FactOf<Clock>>({
    {UnitColumn("step_wall_ns", "ns", "A step by the clock that step_clock names.", "Wall time a step"),
     [](const Clock& clock) { return KnownCell(clock.wall_ns); },
     "an estimate's clock is that of the machine that ran the program, not the GPU's"},
    {UnitColumn("step_gpu_ns", "ns", "GPU time of a step; of an estimate the expected one.", "GPU time a step"),
     [](const Clock& clock) { return KnownCell(clock.gpu_ns); }, "nothing was timed, or no step ended"},
    {TextColumn(
         "step_clock",
         "Whose clock that is, of a measured run: GPU; host, undisturbed (steps that counting does not touch).",
         "Clock of a step"),
     [](const Clock& clock) {
       const bool known = clock.measured && clock.wall_ns > 0;
       return known ? Cell{std::string(StepClockName(clock.of))} : Cell{};
     },
     "nothing was measured"},
    {UnitColumn("step_busy_ns", "ns", "Of a measured step: something runs on the GPU.", "GPU busy, a step"),
     [](const Clock& clock) { return KnownCell(clock.busy_ns); }, "nothing was timed"},
    {UnitColumn("counting_ns", "ns", "What counting made the steps of the run longer by, together.", "Counting took")
         .Additive(),
     [](const Clock& clock) { return OfMeasured(clock, Cell{clock.counting.ns}); }, "nothing was measured"},
    {CountColumn("counting_steps", "Steps that counting made much longer.", "Steps longer by counting").Additive(),
     [](const Clock& clock) { return OfMeasured(clock, Cell{clock.counting.steps}); }, "nothing was measured"},
    {UnitColumn("all_steps_ns", "ns", "What all measured steps took by the host's clock, with what counting cost.",
                "All steps took")
         .Additive(),
     [](const Clock& clock) { return OfMeasured(clock, Cell{clock.counting.all_ns}); }, "nothing was measured"},
});

}  // namespace

std::span<const FactOf<Clock>> ClockFacts() { return kClockFacts; }

Clock ClockOf(const Run& run, const Steps& steps, const StepWaits& waits) {
  Clock clock{.of = waits.clock, .measured = run.key.source == SourceKind::kMeasured};
  if (run.key.source == SourceKind::kEstimated) return clock;
  double each = 1;
  if (steps.count > 0) each = static_cast<double>(run.steps.steps) / static_cast<double>(steps.count);
  const bool usual = waits.clock != StepClockOf::kHost;
  clock.wall_ns = (usual ? waits.wall.mean_ns.value_or(0) : run.steps.duration_ns.mean()) * each;
  if (usual) clock.busy_ns = waits.gpu_busy.mean_ns.value_or(0) * each;
  clock.counting = {.ns = static_cast<double>(run.steps.counting_ns),
                    .all_ns = static_cast<double>(run.steps.all_ns),
                    .steps = run.steps.counting_steps,
                    .other_steps = run.steps.steps - std::min(run.steps.steps, run.steps.counting_steps)};
  return clock;
}

std::string CountingText(const Clock& clock) {
  const CountingSum& counting = clock.counting;
  if (!clock.measured || counting.steps == 0 || !(counting.ns > 0)) return {};
  return "Counting took " + Duration(counting.ns) + " of this run's " + Duration(counting.all_ns) + ", in " +
         Counted(counting.steps, "step", "steps") + "; the other " + Grouped(counting.other_steps) +
         " ran as without it";
}

}  // namespace rfinject::cli
