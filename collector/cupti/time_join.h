// File: time_join.h
//
// Finds the launch that each of CUPTI's times belongs to. It joins the log of a step with the step's records by the
// correlation id that both carry. It is pure, and calls nothing of CUPTI.
#ifndef RFINJECT_COLLECTOR_CUPTI_TIME_JOIN_H_
#define RFINJECT_COLLECTOR_CUPTI_TIME_JOIN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "collector/cupti/captured_graphs.h"
#include "collector/cupti/kernel_times.h"
#include "collector/cupti/launch_keys.h"
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
  // What was found out about a graph whose nodes have no numbers.
  struct Check {
    uint32_t number = 0;  // the recorder's
    bool as_captured = false;
    friend bool operator==(const Check&, const Check&) = default;
  };
  std::vector<Launch> launches;  // in the order of the records; those of graphs come after all others
  std::vector<Key> keys;         // each key once, in the order in which it first has a launch
  uint64_t strangers = 0;        // records of no launch that was logged with a key
  std::vector<Check> checks;     // each graph once
};

// For how long at least one of `records` ran, in ns: kernels that run at the same time count once.
uint64_t BusyNs(std::span<const KernelTimes::Record> records);

// `entries` is the log of the step, `records` what CUPTI gave for it. Where two entries have the same correlation id,
// the later one counts. What a CUDA graph runs has the id of the graph's launch. Its kernels, copies and memory sets
// are launches of their own where `graphs` tells which they are: by the numbers of its nodes, or, where records have
// none, by their order, if all that ran is what was captured. Else they are one launch together, of the graph.
TimeJoin JoinTimes(std::span<const LaunchLog::Entry> entries, std::span<const KernelTimes::Record> records,
                   const CapturedGraphs& graphs, LaunchKeys& keys);

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_TIME_JOIN_H_
