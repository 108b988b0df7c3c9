// File: stream_overlaps.h
//
// A stream runs one kernel after the other. One that is said to run while others of its stream begin and end (a
// profiler that lost its end says so) is taken to end where the first of these begins. The next one may begin before
// a kernel ends (programmatic dependent launch), so a mere overlap stays. It is pure.
#ifndef RFINJECT_CLI_IMPORT_STREAM_OVERLAPS_H_
#define RFINJECT_CLI_IMPORT_STREAM_OVERLAPS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace rfinject::cli {

// What ran on a stream of a GPU.
struct OnStream {
  uint64_t stream = 0;         // of all GPUs
  int64_t start = 0, end = 0;  // ns
  uint64_t index = 0;          // what the caller calls it by
  uint64_t correlation = 0;    // of the call that launched it
};

// Whether a call queues work that begins when what is in its stream has ended. A kernel that is launched with
// attributes may begin before that (CUDA C++ Programming Guide, "Programmatic Dependent Launch"), and so may a
// graph's.
bool WaitsForItsStream(std::string_view call);

using Correlations = absl::flat_hash_set<uint64_t>;

// Where those end that others show to have ended earlier, by their index. `waiting` tells which of some calls wait
// for their stream; it is asked once, where something begins early.
absl::flat_hash_map<uint64_t, int64_t> EarlierEnds(std::vector<OnStream> ran,
                                                   const std::function<Correlations(const Correlations&)>& waiting);

// What was cut off in a file.
struct LostOverlaps {
  uint64_t count = 0, ns = 0, most_ns = 0;
  std::string name;  // of the one that lost most

  void Add(uint64_t lost_ns, const std::string& of) {
    ++count;
    ns += lost_ns;
    if (lost_ns > most_ns || count == 1) name = of;
    if (lost_ns > most_ns) most_ns = lost_ns;
  }
  // "1 kernel is said to run on while others of the stream do, which cannot be: 3.00 s of that is not counted, …".
  std::string Text() const;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_STREAM_OVERLAPS_H_
