// File: counter_samples.h
//
// CounterSamples turns rows of counter values into samples of launch keys: bytes and FLOP by what they mean,
// everything else under CUPTI's name. It is used by our own thread.
#ifndef RFINJECT_COLLECTOR_CUPTI_COUNTER_SAMPLES_H_
#define RFINJECT_COLLECTOR_CUPTI_COUNTER_SAMPLES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "collector/cupti/counter_backend.h"
#include "collector/cupti/launch_keys.h"
#include "collector/recorder.h"

namespace rfinject::cupti {

class CounterSamples {
 public:
  CounterSamples(Recorder& recorder, LaunchKeys& keys) : recorder_(recorder), keys_(keys) {}

  // Learns what the columns of the backend's groups mean, and defines their metrics.
  void Describe(const CounterBackend& backend);

  // Adds what a range around a launch of `key` counted with `group`: a value for each metric. `twins` are all keys
  // that do the same work: they get the same samples. Returns the sum of what was counted, tensor cycles apart.
  double AddLaunch(size_t group, uint32_t key, std::span<const uint32_t> twins, std::span<const double> row);
  // Adds the values of a graph's launch, which is counted as one range: `whole`, its own key, gets what they have
  // beyond what its kernels, whose keys are `keys`, were counted with outside of graphs. Returns the sum of what was
  // counted.
  double AddRest(size_t group, uint32_t whole, std::span<const uint32_t> keys, std::span<const double> row);
  // Adds a sample of a launch in `step` (Recorder::AddSamples).
  void AddSample(uint32_t key, uint64_t step, uint32_t metric, uint64_t value);

  bool IsSparse(size_t group, std::span<const double> row) const;
  // Whether the row says that the tensor pipes rested: there are no tensor FLOP, in other groups either.
  bool TensorRested(size_t group, std::span<const double> row) const;

 private:
  struct Column {
    uint32_t metric = 0;  // recorder's id; 0: folded into another
    bool dram = false;
    bool sparse = false;
    bool tensor_activity = false;
    int flop_metric = -1;  // index into flop_metrics_
  };
  struct FlopMetricState {
    Precision precision;
    uint32_t flop;
    bool half_fma = false;
  };

  // Calls `add(metric id, value)` for what a row says of `key`.
  double SumOf(size_t group, std::span<const double> row) const;
  template <typename Add>
  void Read(size_t group, std::span<const double> row, uint32_t key, Add add);

  Recorder& recorder_;
  LaunchKeys& keys_;
  std::vector<std::vector<Column>> columns_;  // by group
  std::vector<FlopMetricState> flop_metrics_;
  std::vector<std::vector<int>> flop_metrics_of_;                // by precision
  uint32_t half_fma_ = 0;                                        // recorder's id of kMetricHalfFma
  std::unordered_map<uint32_t, std::vector<double>> last_flop_;  // by key, then by flop metric; negative: not known
  std::unordered_map<uint64_t, double> known_;                   // by key and metric: the last value
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_COUNTER_SAMPLES_H_
