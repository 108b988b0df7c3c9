// File: facts.h
//
// The quantities of a run over which rules of advice are written: one table of names, and a collector that finds
// their values while a profile is folded. A quantity that a run does not tell has no value.
#ifndef RFINJECT_CLI_REPORT_ADVICE_FACTS_H_
#define RFINJECT_CLI_REPORT_ADVICE_FACTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "cli/model/expected.h"
#include "cli/model/roofline.h"
#include "cli/profile/profile.h"
#include "cli/report/advice/chains.h"
#include "cli/report/advice/what_if.h"
#include "cli/report/keys/quantity.h"

namespace rfinject::cli {

struct Report;

enum class Fact : uint8_t {
  kStep,
  kTraining,
  kMeasured,
  kCompiled,
  kClock,
  kIdle,
  kDataWait,
  kGpuWait,
  kHost,
  kLaunch,
  kShortLaunches,
  kShort,
  kLargerBatch,
  kOptimizer,
  kOptimizerSingleLaunches,
  kOptimizerTensors,
  kOptimizerFused,
  kFullPrecisionMatrix,
  kMatrixInTf32,
  kFullPrecision,
  kInHalf,
  kBf16,
  kFp64,
  kFp64AsFp32,
  kAttention,
  kAttentionFused,
  kConvolution,
  kConvolutionSlack,
  kCudnnBenchmark,
  kBatchNormInference,
  kUnaligned,
  kAligned,
  kTransposes,
  kRecompute,
  kRecomputeBytes,
  kMemoryBytes,
  kZeroGrad,
  kAccumulate,
  kForwards,
  kCommunication,
  kBeyondUsual,
  kGraphBreaks,
  kBreakBytes,
  kBreak,
  kChainLaunches,
  kChains,
  kChainsFused,
  kEnd,
};
inline constexpr size_t kFactCount = static_cast<size_t>(Fact::kEnd);

struct FactInfo {
  Fact id{};
  std::string_view name;  // in rules: with its unit, times in ns a step
  std::string_view meaning;
  std::string_view lacking;  // where it is not known: why, or what would tell
};
// All facts, and the one that rules call `name`; nothing where there is none.
std::span<const FactInfo, kFactCount> AllFacts();
std::optional<Fact> FactNamed(std::string_view name);

template <typename Value>
struct PerFact : std::array<Value, kFactCount> {
  using std::array<Value, kFactCount>::operator[];
  Value& operator[](Fact fact) { return (*this)[static_cast<size_t>(fact)]; }
  const Value& operator[](Fact fact) const { return (*this)[static_cast<size_t>(fact)]; }
};
using FactValues = PerFact<std::optional<double>>;

// Adds up the facts of one run, launch key by launch key.
class FactCollector {
 public:
  // All must outlive it. `model` is null where no operators are known: of what was measured before they were
  // observed, and of recordings.
  FactCollector(const Run& run, const Machine& machine, const ExpectedTimes* model);

  // `sums` are those of all steps, with their least and bound times. `key` must outlive the collector.
  void Add(const LaunchKey& key, const LaunchStats& stats, const Sums& sums);
  // Call it when all keys were added.
  void Finish();

  // `report` has its sums, steps and host time.
  FactValues Values(const Report& report) const;

 private:
  // What may be a part of attention that is spelled out, of one layer.
  struct AttentionPart {
    const LaunchKey* key;
    double ns, flop, launches;
    Precision precision;
  };
  struct Attention {
    double ns = 0, fused_ns = 0;
  };

  // What an operator of one layer and shape takes, all of its kernels, and what such work usually takes.
  struct Usual {
    double ns = 0, usual_ns = 0;
  };
  using UsualKey = std::tuple<LayerKey, Phase, std::string_view, std::string_view>;

  // The calls of one operator in one place, of all of its kernels.
  struct Calls {
    Sums sums;
    double calls = 0;
    FlopByPrecision flop{};  // of all calls, by the operator's definition
  };

  void AddOperator(const LaunchKey& key, const Sums& sums);
  void AddGraphBreaks(const Report& report, FactValues& values) const;
  void AddBeyondUsual(double steps, FactValues& values) const;
  void AddChains(double steps, FactValues& values) const;
  void AddOptimizer(std::string_view op, const Sums& sums);
  void AddPrecisions(const LaunchKey& key, std::string_view op, const Sums& sums);
  static void AddWaits(const Report& report, FactValues& values);
  Attention FindAttention() const;
  double OptimizerFusedNs() const;
  double WeightCastsNs() const;

  const Run& run_;
  const WhatIf what_if_;
  const Precision half_;  // what autocast would compute in

  PerFact<double> sums_{};                                       // of all steps
  std::map<std::string, double, std::less<>> optimizer_single_;  // launches by operator
  bool is_adam_ = false, fused_optimizer_ = false;
  double products_flop_ = 0, half_products_flop_ = 0;  // of products: all, and what is in half precision or less
  bool layer_norm_ = false;
  double residual_ns_ = 0,
         residual_half_ns_ = 0;     // additions, which are in half precision where nothing around is not
  std::set<LayerKey> cast_layers_;  // whose weights autocast would convert
  uint64_t cast_biases_ = 0;
  std::map<LayerKey, std::vector<AttentionPart>> attention_;
  std::map<UsualKey, Usual> usual_;  // of a recording
  ElementwiseChains chains_;
  std::map<LaunchKey, Calls> calls_;  // of a measured run
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_ADVICE_FACTS_H_
