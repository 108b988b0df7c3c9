#include "cli/report/facts/gpu_idle.h"

#include <algorithm>
#include <map>
#include <utility>

#include "proto/wire/vocabulary.h"

namespace rfinject::cli {

std::vector<IdleBefore> IdleByLayer(const Run& run, double idle_ns) {
  std::map<std::pair<LayerKey, Phase>, double> sums;
  double all = 0;
  for (const auto& [key, stats] : run.launches) {
    const auto stat = stats.metrics.find(std::string(kMetricIdleBefore));
    if (stat == stats.metrics.end() || stat->second.sum == 0) continue;
    const double ns = stat->second.mean() * static_cast<double>(stats.launches);
    sums[{key.layer, key.phase}] += ns;
    all += ns;
  }
  std::vector<IdleBefore> idle;
  // The windows say how the idle time is divided, and the clock of the step how much there is.
  for (const auto& [place, ns] : sums) idle.push_back({place.first, place.second, ns / all * idle_ns});
  std::stable_sort(idle.begin(), idle.end(), [](const auto& a, const auto& b) { return a.ns > b.ns; });
  return idle;
}

}  // namespace rfinject::cli
