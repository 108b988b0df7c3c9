// File: counted_context.h
//
// CountedContext: one CUDA context that launches, with what counts its kernels, the log of its launches in a step
// with counters, and what is known of its size. A process that trains on several GPUs has several, each with a
// profiler of its own, so that launches on one device are never matched with the counters of another.
#ifndef RFINJECT_COLLECTOR_CUPTI_COUNTED_CONTEXT_H_
#define RFINJECT_COLLECTOR_CUPTI_COUNTED_CONTEXT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collector/cupti/captured_graphs.h"
#include "collector/cupti/counter_backend.h"
#include "collector/cupti/counter_mode.h"
#include "collector/cupti/counter_samples.h"
#include "collector/cupti/launch_keys.h"
#include "collector/cupti/launch_log.h"
#include "collector/recorder.h"

namespace rfinject::cupti {

// Returns who owns the range that a launch belongs to when counting layer by layer: its layer and phase. A graph has
// a range of its own, since all of it is one launch.
uint64_t OwnerOf(const LaunchIdentity& identity, bool graph);
inline bool OwnerIsGraph(uint64_t owner) { return (owner & 1) != 0; }
// The owner of what a graph launches that has a number of the recorder's (captured_graphs.h), and that number; 0 for
// all other owners.
inline uint64_t OwnerOfGraph(uint32_t number) { return uint64_t{1} << 63 | uint64_t{number} << 1 | 1; }
inline uint32_t GraphOfOwner(uint64_t owner) { return owner >> 63 != 0 ? static_cast<uint32_t>(owner >> 1) : 0; }

class CountedContext {
 public:
  CountedContext(const void* context, uint32_t device, Recorder& recorder, LaunchKeys& keys)
      : device_(device), context_(context), recorder_(recorder), samples_(recorder, keys) {}

  uint32_t device() const { return device_; }
  // The CUcontext; null once it was destroyed.
  const void* context() const noexcept { return context_.load(std::memory_order_acquire); }
  void ForgetContext() noexcept { context_.store(nullptr, std::memory_order_release); }
  LaunchLog& log() { return log_; }

  // What counts, or null. `Lose` leaks it, because a launch that is stuck in the driver on another thread may be in
  // it.
  CounterBackend* backend() const { return backend_.get(); }
  void SetBackend(std::unique_ptr<CounterBackend> backend);
  void Lose() noexcept;

  // All of the following functions are called between steps, with the context current. This one begins to count the
  // launches of the step that begins. Returns a CUptiResult.
  int Start(CounterMode mode, size_t group);
  bool started() const { return started_; }

  struct KeyCount {
    uint32_t key;
    double bytes;  // of DRAM, mean of its launches
  };
  struct Outcome {
    bool valid = false;            // the samples could be used, and were handed to the recorder
    int result = 0;                // CUptiResult; not 0: counting is over
    const char* call = "";         // that returned it
    std::string mismatch;          // not empty: ranges and launches do not agree
    bool sparse = false;           // sparse tensor instructions ran
    bool has_bytes = false;        // the group counts DRAM bytes
    std::vector<KeyCount> counts;  // a key each
  };
  // Ends counting. If `usable` is false, the counts are thrown away. `graphs` knows what was launched as a graph.
  Outcome Stop(bool usable, const CapturedGraphs& graphs);
  // Ends counting without reading the counts.
  void Abandon();

  // Tells how many launches a step with times had, from which follows how much room a log needs.
  void NoteLaunches(size_t launches) { last_launches_ = launches > last_launches_ ? launches : last_launches_; }
  size_t expected_launches() const { return last_launches_ + last_launches_ / 4; }

 private:
  void ReadKernels(const std::vector<LaunchLog::Entry>& entries, const std::vector<double>& values, Outcome* outcome);
  void ReadLayers(const std::vector<LaunchLog::Entry>& entries, const std::vector<double>& values,
                  const CapturedGraphs& graphs, Outcome* outcome);
  void ReadGraph(const CapturedGraphs::Contents& graph, uint64_t launches, const double* row, Outcome* outcome);
  static bool NextRange(void* self, size_t ordinal) noexcept;

  const uint32_t device_;
  std::atomic<const void*> context_;
  Recorder& recorder_;
  CounterSamples samples_;
  LaunchLog log_;
  std::unique_ptr<CounterBackend> backend_;
  CounterBackend* range_backend_ = nullptr;  // for NextRange; never dangles
  std::atomic<int> range_result_{0};         // why a range could not be opened

  bool started_ = false;
  CounterMode mode_ = CounterMode::kNone;
  size_t group_ = 0;
  size_t last_launches_ = 0;
  size_t last_ranges_ = 0;  // layer by layer
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_COUNTED_CONTEXT_H_
