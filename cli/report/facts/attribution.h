// File: attribution.h
//
// How much of a run's work has a layer, and what the rest is.
#ifndef RFINJECT_CLI_REPORT_FACTS_ATTRIBUTION_H_
#define RFINJECT_CLI_REPORT_FACTS_ATTRIBUTION_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cli/profile/profile.h"
#include "cli/report/report.h"

namespace rfinject::cli {

// Takes the launch keys of a run one after the other.
class Attribution {
 public:
  // `tier` of the run: where it knows names only, a launch of the model itself has no layer.
  explicit Attribution(int tier) : tier_(tier) {}

  void Add(const LaunchKey& key, const LaunchStats& stats, double time_ns);

  // Writes the shares, which are of time, or of launches where no launch has a time, and what runs outside of models.
  void WriteTo(Report& report) const;

 private:
  struct Amount {
    double time_ns = 0;
    uint64_t launches = 0;
  };
  int tier_;
  Amount of_layers_, all_;                               // of forward and backward
  absl::flat_hash_map<std::string, double> outside_ns_;  // of no model and no phase, by operator
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_FACTS_ATTRIBUTION_H_
