// File: time_join.h
//
// Finds the launch that each of CUPTI's times belongs to. It joins the log of a step with the step's records by the
// correlation id that both carry. It is pure, and calls nothing of CUPTI.
#ifndef RFINJECT_COLLECTOR_CUPTI_TIME_JOIN_H_
#define RFINJECT_COLLECTOR_CUPTI_TIME_JOIN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "collector/cupti/kernel_times.h"
#include "collector/cupti/launch_log.h"

namespace rfinject::cupti {

struct TimeJoin {
  struct Launch {
    uint32_t key;
    uint64_t ns;
    friend bool operator==(const Launch&, const Launch&) = default;
  };
  struct Key {
    uint32_t key = 0;
    double ns = 0;  // of all its launches together
    uint32_t launches = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  std::vector<Launch> launches;  // in the order of the records; a graph is one launch, after all others
  std::vector<Key> keys;         // each key once, in the order in which it first has a launch
  uint64_t strangers = 0;        // records of no launch that was logged with a key
};

// For how long at least one of `records` ran, in ns: kernels that run at the same time count once.
uint64_t BusyNs(std::span<const KernelTimes::Record> records);

// `entries` is the log of the step, `records` what CUPTI gave for it. Where two entries have the same correlation id,
// the later one counts. The kernels of a CUDA graph all carry the id of the graph's launch, which takes as long as
// they do together.
TimeJoin JoinTimes(std::span<const LaunchLog::Entry> entries, std::span<const KernelTimes::Record> records);

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_TIME_JOIN_H_
