// File: time_join.h
//
// Finds the launch that each of CUPTI's times belongs to. It joins the log of a step with the step's records by the
// correlation id that both carry. It is pure, and calls nothing of CUPTI.
#ifndef RFINJECT_COLLECTOR_CUPTI_TIME_JOIN_H_
#define RFINJECT_COLLECTOR_CUPTI_TIME_JOIN_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collector/cupti/captured_graphs.h"
#include "collector/cupti/kernel_times.h"
#include "collector/cupti/launch_keys.h"
#include "collector/cupti/launch_log.h"

namespace rfinject::cupti {

struct TimeJoin {
  static constexpr uint32_t kNoLaunch = UINT32_MAX;
  struct Launch {
    uint32_t key;
    uint64_t ns;
    uint64_t step = 0;
    friend bool operator==(const Launch&, const Launch&) = default;
  };
  // A record: when something ran, and for which launch. A graph that is not told apart is one launch of many.
  struct Ran {
    uint32_t launch = kNoLaunch;  // in `launches`
    bool transfer = false;
    uint32_t device = 0;
    uint64_t start_ns = 0, end_ns = 0;
    uint32_t stream = 0;
  };
  struct Key {
    uint32_t key = 0;
    double ns = 0;  // of all its launches together
    uint32_t launches = 0;
    bool in_graph = true;  // every one of them was a graph's
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
  std::vector<Ran> ran;          // by start
  uint64_t strangers = 0;        // records of no launch that was logged with a key
  std::vector<Check> checks;     // each graph once
};

// `entries` is the log of some steps, `records` what CUPTI gave for it. Where two entries have the same correlation
// id, the later one counts. What a CUDA graph runs has the id of the graph's launch. Its kernels, copies and memory
// sets are launches of their own where `graphs` tells which they are: by the numbers of its nodes, or, where records
// have none, by their order, if all that ran is what was captured. Else they are one launch together, of the graph.
TimeJoin JoinTimes(std::span<const LaunchLog::Entry> entries, std::span<const KernelTimes::Record> records,
                   const CapturedGraphs& graphs, LaunchKeys& keys);

// What a launch adds to the time that passes on the GPU: nothing ran before it began, and it ran where nothing before
// it did, in ns. `known` is false of the first of a window, before which something may have run.
struct GpuAdvance {
  uint64_t idle_ns = 0, busy_ns = 0;
  uint64_t data_idle_ns = 0;  // of idle_ns, in which the program waited for data
  bool known = true;
};
// A stretch of time, on the records' clock.
struct Stretch {
  uint64_t begin_ns = 0, end_ns = 0;
};
// Of each of the join's launches. The program waited for data in `waits`, which ascend.
std::vector<GpuAdvance> AdvancesOf(const TimeJoin& join, std::span<const Stretch> waits);

// How many of the join's kernels, copies and memory sets waited on the GPU when the host had launched the last of
// them, at `ended_ns`; what ran is not empty. Where none had begun by then, the host is further ahead than that: by
// what the GPU does, at its pace, in `lag_ns`, from the first launch to when it began.
size_t LaunchesBehind(const TimeJoin& join, uint64_t ended_ns, int64_t lag_ns);

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_TIME_JOIN_H_
