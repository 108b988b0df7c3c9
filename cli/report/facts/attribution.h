// File: attribution.h
//
// How much of a run's work has a layer, a time and counters, and what the rest is.
#ifndef RFINJECT_CLI_REPORT_FACTS_ATTRIBUTION_H_
#define RFINJECT_CLI_REPORT_FACTS_ATTRIBUTION_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cli/profile/profile.h"
#include "cli/report/facts/fact.h"
#include "cli/report/keys/key_quantities.h"

namespace rfinject::cli {

struct Attribution {
  // Forward and backward launches that have a layer, of all forward and backward ones: by time, or by number where no
  // launch has a time.
  double share = 0;
  uint64_t without_layer = 0;  // forward or backward launches
  double counters_share = 0;   // time_with_counters / time, of the launches whose time is known
  // Launches of a measured run that were never sampled, so that their time is in no sum, and how many launch keys
  // they are of.
  uint64_t untimed_launches = 0, untimed_keys = 0;
  // Of the launches in no model and no phase, the three operators that take longest, or what these are for ("loss").
  std::vector<std::string> outside_ops;
  bool compiled = false;  // torch.compile made some of the kernels
  bool pinned = false;    // copies between host and GPU are mostly of pinned memory, as their names say
  // What was counted as FLOP in half precision, and is none (KeyQuantities).
  double constant_moves = 0;
};

std::span<const FactOf<Attribution>> AttributionFacts();

// Takes the launch keys of a run one after the other.
class AttributionCollector {
 public:
  explicit AttributionCollector(const Run& run) : run_(run) {}

  void Add(const LaunchKey& key, const LaunchStats& stats, const KeyQuantities& quantities);

  // `total`: the sums of all.
  Attribution Found(const Sums& total) const;

 private:
  struct Amount {
    double time_ns = 0;
    uint64_t launches = 0;
  };
  const Run& run_;
  Amount of_layers_, all_;                               // of forward and backward
  absl::flat_hash_map<std::string, double> outside_ns_;  // of no model and no phase, by operator
  uint64_t untimed_launches_ = 0, untimed_keys_ = 0;
  bool compiled_ = false;
  double pinned_ns_ = 0, pageable_ns_ = 0;  // of copies, by the kind of the host's memory
  double constant_moves_ = 0;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_FACTS_ATTRIBUTION_H_
