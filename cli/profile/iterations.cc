#include "cli/profile/iterations.h"

#include <algorithm>

namespace rfinject::cli {

size_t StepsOfIteration(std::span<const uint32_t> kinds) {
  constexpr size_t kMostSteps = 64;
  constexpr double kKeepToIt = 0.9;
  kinds = kinds.first(std::min(kinds.size(), kMostStepsLookedAt));
  if (std::find(kinds.begin(), kinds.end(), 0u) != kinds.end()) return 1;
  for (size_t period = 1; period <= kMostSteps && 2 * period <= kinds.size(); ++period) {
    size_t same = 0;
    for (size_t i = period; i < kinds.size(); ++i) same += kinds[i] == kinds[i - period];
    if (static_cast<double>(same) >= kKeepToIt * static_cast<double>(kinds.size() - period)) return period;
  }
  return 1;
}

}  // namespace rfinject::cli
