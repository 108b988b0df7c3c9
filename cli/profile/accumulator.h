// File: accumulator.h
//
// An Accumulator is a Profile that is being added up from many traces, whose ranks repeat the same names, layers and
// launch keys. A text is looked up once for each trace and is a number from then on, so that adding a trace costs a
// look-up for each of its keys, and no copy of what is known already.
//
//   Accumulator sum;
//   for (each trace) std::move(applier).AddTo(&sum);       (cli/trace/apply/apply.h)
//   Profile profile = std::move(sum).Take();
//
// The result is what Profile::Merge makes of a Profile for each trace, in any order.
#ifndef RFINJECT_CLI_PROFILE_ACCUMULATOR_H_
#define RFINJECT_CLI_PROFILE_ACCUMULATOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cli/profile/profile.h"

namespace rfinject::cli {

class Accumulator {
 public:
  // The number of a text; 0 is the empty one's.
  using Text = uint32_t;

  // A LayerKey and a LaunchKey, with numbers for texts.
  struct Layer {
    Text model = 0, path = 0;
    friend bool operator==(const Layer&, const Layer&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Layer& layer) {
      return H::combine(std::move(h), layer.model, layer.path);
    }
  };
  struct Launch {
    Layer layer;
    Text op = 0, kernel = 0, signature = 0, node = 0;
    std::array<uint32_t, 3> grid{}, block{};
    uint32_t dynamic_shared_bytes = 0, device = 0;
    uint32_t phase = 0;
    friend bool operator==(const Launch&, const Launch&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Launch& launch) {
      static_assert(std::has_unique_object_representations_v<Launch>);
      return H::combine_contiguous(std::move(h), reinterpret_cast<const unsigned char*>(&launch), sizeof launch);
    }
  };

  // What the launches of one key add up to.
  class LaunchSum {
   public:
    LaunchStats& stats() { return stats_; }  // all but the metrics
    void AddMetric(Text name, const Stat& stat);

   private:
    friend class Accumulator;
    LaunchStats stats_;
    std::vector<std::pair<Text, Stat>> metrics_;  // ascending by name's number
    size_t next_ = 0;                             // where the next one probably lies
  };

  // One kind of run.
  class RunSum {
   public:
    void AddLayer(const Layer& key, const LayerInfo& info);
    // The reference stays valid.
    LaunchSum& Of(const Launch& key);
    // Adds what was sampled of a key. Call it after the run's sampled steps have been added.
    void AddStepSums(LaunchSum* launch, LaunchStats sampled);

   private:
    friend class Accumulator;
    Run facts_;  // without layers and launches
    absl::flat_hash_map<Layer, LayerInfo> layers_;
    absl::flat_hash_map<Launch, LaunchSum*> index_;
    std::deque<LaunchSum> launches_;
  };

  Accumulator() = default;
  Accumulator(const Accumulator&) = delete;
  Accumulator& operator=(const Accumulator&) = delete;

  Text NumberOf(std::string_view text);
  void AddTraceIds(std::set<std::string> ids) { trace_ids_.merge(ids); }
  // Metrics of one name agree in all that is added (Profile::Merge says why); the caller has seen to it.
  void AddMetric(const MetricInfo& metric) { metrics_.try_emplace(metric.name, metric); }
  // Adds what `run` says beside its layers and launches, which it must not have. The reference stays valid.
  RunSum& Add(Run run);

  Profile Take() &&;

 private:
  std::set<std::string> trace_ids_;
  std::map<std::string, MetricInfo> metrics_;
  std::map<RunKey, RunSum> runs_;
  std::deque<std::string> texts_{std::string()};                  // by number
  absl::flat_hash_map<std::string_view, Text> numbers_{{{}, 0}};  // the views are of texts_
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PROFILE_ACCUMULATOR_H_
