// File: metrics.h
//
// Says which of Nsight Compute's metrics are kept, and as what. The names are those of gpus/counters.h and
// gpus/chips.h, so a counter that the collector can ask for is also kept from ncu's files; here are ncu's other names
// for them.
#ifndef RFINJECT_CLI_IMPORT_NCU_METRICS_H_
#define RFINJECT_CLI_IMPORT_NCU_METRICS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cli/import/numbers.h"

namespace rfinject::cli {

struct KeptMetric {
  std::string name;  // in the Profile
  Dimension dimension = Dimension::kCount;
  std::string unit;       // in the Profile
  double to_integer = 1;  // base unit (bytes, seconds, count) -> the Profile's integer
};

class NcuMetrics {
 public:
  // The one table, made at the first call.
  static const NcuMetrics& Get();

  // Index of the kept metric that a column or row of this section and name means; -1 for one that is not kept.
  int Find(std::string_view section, std::string_view name) const;

  const KeptMetric& operator[](int i) const { return metrics_[static_cast<size_t>(i)]; }
  size_t size() const { return metrics_.size(); }

  // What a value of metric `i` in `unit` is to be multiplied with to give the Profile's integer; nullopt when the
  // unit is not known or does not fit the metric. `assume_base`: an empty unit is ncu's base unit.
  std::optional<double> Factor(int i, std::string_view unit, bool assume_base) const;

  // Those that a kernel's traffic is told by, or made of.
  int gpu_time() const { return gpu_time_; }
  int dram_rate() const { return dram_rate_; }
  int dram_total() const { return dram_total_; }
  bool IsDramBytes(int i) const;

 private:
  NcuMetrics();
  void Add(KeptMetric metric);

  std::vector<KeptMetric> metrics_;
  absl::flat_hash_map<std::string, int> index_;
  int gpu_time_ = -1, dram_rate_ = -1, dram_total_ = -1;
  std::vector<int> dram_bytes_;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_NCU_METRICS_H_
