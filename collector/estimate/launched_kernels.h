// File: launched_kernels.h
//
// LaunchedKernels counts the kernels that a program launches on the virtual GPU below each operator, by name.
#ifndef RFINJECT_COLLECTOR_ESTIMATE_LAUNCHED_KERNELS_H_
#define RFINJECT_COLLECTOR_ESTIMATE_LAUNCHED_KERNELS_H_

#include <atomic>
#include <cstdint>

#include "collector/estimate/name_cache.h"
#include "collector/recorder.h"

namespace rfinject::estimate {

class LaunchedKernels {
 public:
  explicit LaunchedKernels(Recorder& recorder) : recorder_(recorder) {}

  // Counts a kernel that this thread launches; `name` lives as long as the process. What is launched outside of
  // operators has a row of its own, or none.
  void Note(const char* name) noexcept;
  // Moves what was launched below the operator that ends into its record, as far as that has room for more samples,
  // which is mostly all of it.
  void AddTo(LaunchRecord* record) noexcept;
  // Records what is left, for the operator that was recorded as `identity`.
  void RecordRest(const LaunchIdentity& identity) noexcept;

 private:
  // The metric that counts a kernel, found by its name's address; 0 where memory ran out.
  uint32_t MetricOf(const char* name) noexcept;

  Recorder& recorder_;
  NameCache metrics_;
  // Threads that meet a new name add to it. Relaxed: it only bounds their number.
  std::atomic<uint32_t> metric_count_{0};
};

}  // namespace rfinject::estimate

#endif  // RFINJECT_COLLECTOR_ESTIMATE_LAUNCHED_KERNELS_H_
