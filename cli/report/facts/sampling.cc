#include "cli/report/facts/sampling.h"

#include <array>

#include "cli/text/units.h"

namespace rfinject::cli {
namespace {

Cell OfWindows(const PmSampling& sampling, Cell value) { return sampling.windows > 0 ? value : Cell{}; }

// A point in a name: a member of an object in JSON.
constexpr auto kSamplingFacts = std::to_array<FactOf<PmSampling>>({
    {CountColumn("pm_sampling.steps", "Steps that PM sampling saw whole."),
     [](const PmSampling& of) { return KnownCount(of.windows); }},
    {UnitColumn("pm_sampling.dram_bytes_per_step", "B", "DRAM bytes of a step by PM sampling, of the whole device."),
     [](const PmSampling& of) { return OfWindows(of, of.dram_bytes); }},
    {UnitColumn("pm_sampling.kernel_dram_bytes_per_step", "B", "The same by the counters of kernels."),
     [](const PmSampling& of) { return OfWindows(of, KnownCell(of.kernel_dram_bytes)); }},
    {ShareColumn("pm_sampling.tensor_active_share", "Part of the time in which tensor pipes are active."),
     [](const PmSampling& of) { return OfWindows(of, of.tensor_share >= 0 ? Cell{of.tensor_share} : Cell{}); }},
});

}  // namespace

std::span<const FactOf<PmSampling>> SamplingFacts() { return kSamplingFacts; }

PmSampling PmSamplingOf(const Run& run) {
  const StepSums& steps = run.steps;
  PmSampling sampling{.windows = steps.pm_dram_bytes.n, .dram_bytes = steps.pm_dram_bytes.mean()};
  if (steps.pm_tensor_active_ns.n > 0 && steps.pm_duration_ns.sum > 0) {
    sampling.tensor_share = steps.pm_tensor_active_ns.mean() / steps.pm_duration_ns.mean();
  }
  return sampling;
}

std::string PmSamplingText(const PmSampling& sampling) {
  if (sampling.windows == 0) return {};
  std::string line = "DRAM bytes a step by PM sampling " + WithPrefix(sampling.dram_bytes, "B") + " (" +
                     Counted(sampling.windows, "step", "steps") + ")";
  if (sampling.kernel_dram_bytes > 0) {
    line += ", by kernels " + WithPrefix(sampling.kernel_dram_bytes, "B");
  }
  if (sampling.tensor_share >= 0) {
    line += "; tensor pipes active " + Percent(sampling.tensor_share) + " of the time";
  }
  return line;
}

}  // namespace rfinject::cli
