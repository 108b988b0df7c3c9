#include "cli/report/facts/mfu.h"

#include <algorithm>
#include <array>

#include "cli/report/report.h"
#include "cli/text/units.h"

namespace rfinject::cli {

Mfu MfuOf(const Report& report) {
  const Sums& total = report.total.sums;
  const FlopByPrecision executed = total.flop();
  const auto most = std::ranges::max_element(executed);
  Mfu mfu;
  mfu.precision = static_cast<Precision>(most - executed.begin());
  mfu.peak_flop_per_s = report.machine.peak[static_cast<size_t>(mfu.precision)];
  const double gpu_ns = total.time_ns() / report.steps.divisor(), measured_ns = report.clock.measured_wall_ns();
  // Kernels that overlap add up to more than a step; another tool's clock may be of other steps.
  const double other_ns = report.run.source == SourceKind::kEstimated ? 0 : report.clock.wall_ns;
  mfu.ns = measured_ns > 0 ? measured_ns : std::max(gpu_ns, other_ns);
  if (*most <= 0 || mfu.peak_flop_per_s <= 0 || mfu.ns <= 0) return mfu;
  const auto products = report.total.sums[Quantity::kProductFlop] > 0 ? Quantity::kProductFlop : Quantity::kModelFlop;
  for (const Row& row : report.phases) {
    if (row.phase != Phase::kForward && row.phase != Phase::kBackward && row.phase != Phase::kEval) continue;
    mfu.flop += row.sums[products] / report.steps.divisor();
    mfu.useful_flop += (row.sums[products] - row.sums[Quantity::kHiddenFlop]) / report.steps.divisor();
  }
  return mfu;
}

std::string MfuText(const Report& report) {
  const Mfu mfu = MfuOf(report);
  if (mfu.flop <= 0) return {};
  const std::string useful =
      mfu.useful_flop < mfu.flop ? " (useful " + Percent(mfu.useful_share()) + ")" : std::string();
  return "MFU " + Percent(mfu.share()) + useful + " of " + WithPrefix(mfu.peak_flop_per_s, "FLOP/s") + " (" +
         std::string(kPrecisionTitles[static_cast<size_t>(mfu.precision)]) + ")";
}

std::span<const FactOf<Report>> MfuFacts() {
  static constexpr auto kFacts = std::to_array<FactOf<Report>>({
      {ShareColumn(
           "mfu",
           "Model FLOP utilization: FLOP of the model's products in forward and backward, over what the peak of the "
           "precision in which most FLOP are executed does in a step's time. Of attention all scores count.",
           "MFU"),
       [](const Report& report) {
         const Mfu mfu = MfuOf(report);
         return mfu.flop > 0 ? Cell{mfu.share()} : Cell{};
       }},
      {UnitColumn("mfu_peak_flop_per_s", "FLOP/s", "The peak that `mfu` is a share of.", "MFU's peak"),
       [](const Report& report) {
         const Mfu mfu = MfuOf(report);
         return mfu.flop > 0 ? Cell{mfu.peak_flop_per_s} : Cell{};
       }},
      {ShareColumn("mfu_useful", "`mfu` without the scores that a mask hides, as of causal attention.", "Useful MFU"),
       [](const Report& report) {
         const Mfu mfu = MfuOf(report);
         return mfu.flop > 0 ? Cell{mfu.useful_share()} : Cell{};
       }},
      {UnitColumn("mfu_flop_per_step", "FLOP", "The FLOP of a step that `mfu` counts.", "MFU's FLOP, a step"),
       [](const Report& report) {
         const Mfu mfu = MfuOf(report);
         return mfu.flop > 0 ? Cell{mfu.flop} : Cell{};
       }},
  });
  return kFacts;
}

}  // namespace rfinject::cli
