// File: grouping.h
//
// Adds launch keys up by what rows of a grouping keep of them.
//
//   RowFolder folder(run, sampled);
//   folder.Want({.by = By::kLayer});
//   folder.Add(key, stats, quantities);  // for each launch key
//   std::vector<Row> rows = folder.Rows({.by = By::kLayer}, total_ns);
#ifndef RFINJECT_CLI_REPORT_ROWS_GROUPING_H_
#define RFINJECT_CLI_REPORT_ROWS_GROUPING_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "cli/profile/profile.h"
#include "cli/report/keys/key_quantities.h"
#include "cli/report/keys/sampled_run.h"
#include "cli/report/rows/row.h"

namespace rfinject::cli {

struct RowGrouping {
  By by = By::kLayer;
  bool split = false;  // by phase, too
  size_t depth = 0;    // layers are folded to so many parts of their names (layer_group.h); 0: not
  friend bool operator==(const RowGrouping&, const RowGrouping&) = default;
};

// What a row is of; the line of the program by its parts, so that lines stand in the order of their numbers.
struct RowKey : RowNames {
  std::string file;
  uint32_t line_number = 0;  // 0: of no line that is known

  // By the phase's name, as a reader would sort: rows that take equally long stand in this order.
  friend auto operator<=>(const RowKey& a, const RowKey& b) { return a.Texts() <=> b.Texts(); }

 private:
  std::tuple<std::string_view, std::string_view, std::string_view, std::string_view, std::string_view,
             std::string_view, std::string_view, std::string_view, std::string_view, std::string_view, uint32_t>
  Texts() const {
    return {model, PhaseName(phase), layer, group, op, kernel, signature, caller, file, function, line_number};
  }
};

struct FoldedRow {
  Sums sums;
  double time_error_squared = 0;
  double bytes_error_squared = 0;
  double shared_bytes_error = 0;
  bool shared = false;
  std::map<std::string, double> caller_ns;  // of what is in no layer
  // By the metric's name, which the profile holds: launches of kernels below estimated operators.
  absl::flat_hash_map<std::string_view, uint64_t> kernels;
  absl::flat_hash_set<std::string_view> layers;  // of a group: the paths, which the run's launch keys hold
  SampledRun::Series series;
  double launches = 0, untimed_launches = 0;
  // GPU time of keys whose times have no known spread, of those whose bytes have none, and of those whose bytes were
  // never counted.
  double unsure_ns = 0, unsure_bytes_ns = 0, uncounted_ns = 0;
  double most_bytes_per_ns = 0;  // of any of its keys

  void Add(const KeyQuantities& quantities);
};

class RowFolder {
 public:
  // Both must outlive it.
  RowFolder(const Run& run, const SampledRun& sampled) : run_(run), sampled_(sampled) {}

  // Before the first launch.
  void Want(const RowGrouping& grouping);
  // `key` and `stats` must outlive the folder.
  void Add(const LaunchKey& key, const LaunchStats& stats, const KeyQuantities& quantities);

  // Rows of By::kLayer are in the order in which the program runs the layers, those of By::kPhase in that of a
  // training step, all others by time, longest first. What is in no layer comes last.
  std::vector<Row> Rows(const RowGrouping& grouping, double total_time_ns) const;
  // The sum of all, which has no name.
  Row Total() const;

 private:
  struct RowMap {
    RowGrouping grouping;
    std::map<RowKey, FoldedRow> rows;
  };
  std::string_view GroupOf(const LaunchKey& key, size_t depth);

  const Run& run_;
  const SampledRun& sampled_;
  std::vector<RowMap> maps_;
  FoldedRow whole_;
  absl::flat_hash_map<const LayerInfo*, std::string> groups_;  // that were made already
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_ROWS_GROUPING_H_
