#include "cli/profile/iterations.h"

#include <algorithm>

namespace rfinject::cli {

namespace {

// 0 where there is none.
template <typename Same>
size_t ShortestPeriod(std::span<const StepKind> kinds, Same same_kind) {
  constexpr double kKeepToIt = 0.9;
  for (size_t period = 1; period <= kMostStepsOfIteration && 2 * period <= kinds.size(); ++period) {
    size_t same = 0;
    for (size_t i = period; i < kinds.size(); ++i) same += same_kind(kinds[i], kinds[i - period]);
    if (static_cast<double>(same) >= kKeepToIt * static_cast<double>(kinds.size() - period)) return period;
  }
  return 0;
}

}  // namespace

size_t StepsOfIteration(std::span<const StepKind> kinds) {
  kinds = kinds.first(std::min(kinds.size(), kMostStepsLookedAt));
  if (std::any_of(kinds.begin(), kinds.end(), [](const StepKind& kind) { return kind.calls == 0; })) return 1;
  const auto same_calls = [](const StepKind& a, const StepKind& b) { return a.calls == b.calls; };
  const auto same = [&](const StepKind& a, const StepKind& b) {
    return same_calls(a, b) && a.optimizer == b.optimizer;
  };
  if (const size_t period = ShortestPeriod(kinds, same); period != 0) return period;
  return std::max<size_t>(1, ShortestPeriod(kinds, same_calls));
}

}  // namespace rfinject::cli
