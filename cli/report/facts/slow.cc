#include "cli/report/facts/slow.h"

#include <algorithm>
#include <array>

#include "cli/text/units.h"

namespace rfinject::cli {
namespace {

constexpr auto kSlowFacts = std::to_array<FactOf<Slow>>({
    {CountColumn("slow_steps", "Steps that took much longer than the others; no sum has them.").Additive(),
     [](const Slow& slow) { return Cell{slow.steps}; }},
});

}  // namespace

std::span<const FactOf<Slow>> SlowFacts() { return kSlowFacts; }

Slow SlowStepsOf(const Run& run, const SampledRun& sampled) {
  if (run.key.source == SourceKind::kEstimated) return {};
  return {.sampled = sampled.steps(Sampled::kTime).size(),
          .set_aside = std::max(sampled.slow(Sampled::kTime), sampled.slow(Sampled::kBytes)),
          .steps = run.steps.slow,
          .timed = run.steps.duration_ns.n,
          .extra_ns = static_cast<double>(run.steps.slow_extra_ns)};
}

std::string SlowStepsText(const Slow& slow) {
  if (slow.steps == 0 && slow.set_aside == 0) return {};
  std::string line = "Times and bytes are those of ordinary steps: ";
  if (slow.steps > 0) {
    line += Counted(slow.steps, "step", "steps") + " took much longer, by " + Duration(slow.extra_ns) + " together";
  }
  if (slow.set_aside > 0) {
    line += (slow.steps > 0 ? "; " : "") + Counted(slow.set_aside, "sampled step that was longer is left out",
                                                   "sampled steps that were longer are left out");
  }
  return line;
}

}  // namespace rfinject::cli
