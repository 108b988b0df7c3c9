// File: counter_samples.h
//
// CounterSamples turns rows of counter values into samples of launch keys: bytes and FLOP by what they mean,
// everything else under CUPTI's name. It is used by the thread that ends the steps.
#ifndef RFINJECT_COLLECTOR_CUPTI_COUNTER_SAMPLES_H_
#define RFINJECT_COLLECTOR_CUPTI_COUNTER_SAMPLES_H_

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "collector/cupti/counter_backend.h"
#include "collector/cupti/launch_keys.h"
#include "collector/recorder.h"

namespace rfinject::cupti {

class CounterSamples {
 public:
  CounterSamples(Recorder& recorder, LaunchKeys& keys) : recorder_(recorder), keys_(keys) {}

  // Learns what the columns of the backend's groups mean, and defines their metrics. Forgets what it knew before.
  void Describe(const CounterBackend& backend);

  // Adds one launch's values in `group`, one for each metric.
  void AddLaunch(size_t group, uint32_t key, const double* row);
  // Adds the values of a range: what the launches of `keys`, which are sorted, did together. Each launch gets an
  // equal share of each sum, the remainder too, so that the shares add up to the sum, and the samples are marked as
  // such; launches of one key get the key's mean. What is no sum (a maximum, a rate) is left out unless the range has
  // one launch.
  void AddRange(size_t group, const std::vector<uint32_t>& keys, const double* row);
  // Adds the values of `launches` launches of a graph, which are counted as one range: `whole`, its own key, gets
  // what they have beyond what its kernels, whose keys are `keys`, were counted with outside of graphs. Values that
  // are no sums are left out.
  void AddRest(size_t group, uint32_t whole, uint64_t launches, const std::vector<uint32_t>& keys, const double* row);
  void AddTime(uint32_t key, uint64_t ns);
  // Records the samples that are held back.
  void Flush();

  // What a row says: whether the group counts DRAM bytes, how many were read and written, whether sparse tensor
  // instructions ran.
  bool HasDramBytes(size_t group) const;
  double DramBytes(size_t group, const double* row) const;
  bool IsSparse(size_t group, const double* row) const;

 private:
  struct Column {
    uint32_t metric = 0;  // recorder's id; 0: folded into another
    bool dram = false;
    bool sparse = false;
    bool sum = false;      // adds up over launches
    int flop_metric = -1;  // index into flop_metrics_
  };
  struct FlopMetricState {
    Precision precision;
    uint32_t flop;
  };

  static constexpr size_t kMaxMixes = 4096;
  static constexpr size_t kMaxKnown = size_t{1} << 18;  // some 12 MB
  // What was counted of a key and a metric outside of graphs.
  struct Known {
    double sum = 0;
    uint64_t samples = 0;
  };

  // Calls `add(metric id, value, is a sum)` for what a row says. `last` holds the last value of each flop metric.
  template <typename Add>
  void Read(size_t group, const double* row, std::vector<double>* last, Add add);
  void AddSample(uint32_t key, uint32_t metric, uint64_t value);
  void NoteCounted(size_t group, uint32_t key);
  void NoteKnown(uint32_t key, uint32_t metric, uint64_t value);
  double KnownMean(uint32_t key, uint32_t metric) const;

  Recorder& recorder_;
  LaunchKeys& keys_;
  std::vector<std::vector<Column>> columns_;  // by group
  std::vector<FlopMetricState> flop_metrics_;
  std::vector<std::vector<int>> flop_metrics_of_;                // by precision
  std::unordered_map<uint32_t, std::vector<double>> last_flop_;  // by key, then by flop metric; negative: not known
  std::unordered_map<uint64_t, std::vector<double>> last_mix_flop_;  // the same, by the keys of a range
  std::unordered_map<uint64_t, Known> known_;                        // by key and metric
  std::unordered_map<uint32_t, uint32_t> counted_;  // by key: the groups that LaunchKeys was told of, as bits
  LaunchRecord pending_;
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_COUNTER_SAMPLES_H_
