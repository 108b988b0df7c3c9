#include "cli/import/nsys/join_times.h"

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gpus/counters.h"

namespace rfinject::cli {
namespace {

struct KernelIdentity {
  std::string name;
  std::array<uint32_t, 3> grid{}, block{};
  friend auto operator<=>(const KernelIdentity&, const KernelIdentity&) = default;
};

KernelIdentity IdentityOf(const LaunchKey& key) { return {key.kernel, key.grid, key.block}; }

}  // namespace

absl::StatusOr<Imported> JoinTimes(absl::StatusOr<Imported> counters, const absl::StatusOr<Imported>& times) {
  if (!counters.ok()) return counters;
  if (!times.ok()) return times;
  std::map<KernelIdentity, LaunchStats> by_identity;
  for (const auto& [run_key, run] : times->profile.runs) {
    for (const auto& [key, stats] : run.launches) {
      if (key.phase != Phase::kData) by_identity[IdentityOf(key)].Merge(stats);
    }
  }
  uint64_t joined = 0, counters_only = 0;
  std::set<KernelIdentity> used;
  const std::string time_name(kMetricTime);
  std::map<RunKey, Run> runs;
  for (auto& [run_key, run] : counters->profile.runs) {
    for (auto& [key, stats] : run.launches) {
      const auto found = by_identity.find(IdentityOf(key));
      if (found == by_identity.end()) {
        ++counters_only;
        continue;
      }
      used.insert(found->first);
      ++joined;
      stats.metrics.erase(std::string(kGpuTimeMetric));
      stats.metrics[time_name] = found->second.metrics.at(time_name);
    }
    Run copy = run;
    copy.key.collector = "ncu+nsys";
    runs[copy.key] = std::move(copy);
  }
  if (joined == 0) return absl::InvalidArgumentError("the ncu and the nsys file have no kernel in common");
  counters->profile.runs = std::move(runs);
  DefineMetric(kMetricTime, "ns", &counters->profile);
  counters->warnings.push_back(
      "counters are ncu's and times are nsys's: two runs. ncu flushes the caches before each kernel and locks the "
      "clocks unless told otherwise (--cache-control none --clock-control none), so its bytes are those of cold "
      "caches");
  if (counters_only > 0) {
    counters->warnings.push_back(
        absl::StrCat(counters_only, " kernels of the ncu file are not in the nsys file; they keep ncu's time"));
  }
  if (by_identity.size() > used.size()) {
    counters->warnings.push_back(absl::StrCat(by_identity.size() - used.size(),
                                              " kernels of the nsys file have no counters and were left out"));
  }
  return counters;
}

}  // namespace rfinject::cli
