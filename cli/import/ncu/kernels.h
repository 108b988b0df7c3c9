// File: kernels.h
//
// The launches of a file of Nsight Compute, summed up by what they are launches of, and the Profile made of the sums.
// Memory is bounded by the number of distinct launches, not by the file.
#ifndef RFINJECT_CLI_IMPORT_NCU_KERNELS_H_
#define RFINJECT_CLI_IMPORT_NCU_KERNELS_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cli/import/ncu/metrics.h"
#include "cli/import/run_builder.h"
#include "cli/model/statistics.h"
#include "cli/profile/profile.h"

namespace rfinject::cli {

// What the lines of one launch say.
struct NcuKernel {
  std::string name, process_name, layer, op;
  std::array<uint32_t, 3> grid{}, block{};
  uint32_t device = 0;
  std::string compute_capability;
  std::vector<std::pair<int, uint64_t>> values;  // index into NcuMetrics, the Profile's integer
};

// All launches of one kernel, in one place, of one size.
struct NcuKernelSum {
  NcuKernel kernel;    // the first of them
  uint64_t order = 0;  // of its first launch among the kinds, from 1
  uint64_t launches = 0;
  std::vector<std::pair<int, Stat>> stats;
};

class NcuKernels {
 public:
  explicit NcuKernels(const NcuMetrics& metrics) : metrics_(metrics) {}

  // Returns the sum of launches like `kernel`. The reference stays valid.
  NcuKernelSum& SumOf(const NcuKernel& kernel);
  // Adds a launch with these values to `sum`.
  void AddLaunch(std::vector<std::pair<int, uint64_t>>& values, NcuKernelSum& sum);

  // Says on which board the kernels ran, as the raw page has it.
  void SetBoard(std::string_view name, std::optional<double> memory_bytes, std::optional<double> sms);

  uint64_t launches() const { return launches_; }
  // Whether traffic was computed from a rate and a time, because the bytes were not counted.
  bool derived_traffic() const { return derived_traffic_; }
  bool several_gpus() const { return compute_capabilities_.size() > 1; }

  // Adds all of them, and what they ran on. An ncu file does not tell steps apart: all of it is one.
  void AddTo(const ImportOptions& options, RunBuilder* builder) const;

 private:
  void DeriveTraffic(std::vector<std::pair<int, uint64_t>>& values);

  const NcuMetrics& metrics_;
  absl::flat_hash_map<std::string, std::unique_ptr<NcuKernelSum>> sums_;
  std::string key_;  // of sums_, kept for its memory
  uint64_t launches_ = 0;
  std::set<std::string> process_names_, compute_capabilities_;
  bool derived_traffic_ = false;
  DeviceInfo board_;  // without a name where the file does not say it
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_NCU_KERNELS_H_
