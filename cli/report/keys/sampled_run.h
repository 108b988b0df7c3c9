// File: sampled_run.h
//
// The sampled steps of a run, from which follows how well its rows are known. A row's values by step are the sums of
// its launch keys', so they include whatever these have in common within a step. The formulas are
// cli/model/step_interval.h's; docs/method/INTERVALS.md explains them.
//
//   SampledRun sampled(profile, run);
//   SampledRun::Series row;
//   for (const LaunchStats* stats : keys of the row) sampled.Add(*stats, &row);
//   StepInterval interval = sampled.IntervalOf(Sampled::kTime, row);
#ifndef RFINJECT_CLI_REPORT_KEYS_SAMPLED_RUN_H_
#define RFINJECT_CLI_REPORT_KEYS_SAMPLED_RUN_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "cli/model/step_interval.h"
#include "cli/profile/profile.h"

namespace rfinject::cli {

// What is sampled step by step.
enum class Sampled : uint8_t { kTime, kBytes };
inline constexpr size_t kSampledCount = 2;

class SampledRun {
 public:
  // A row's values by step: one each of steps(), nothing where the row was not sampled at all.
  struct Series {
    std::array<std::vector<double>, kSampledCount> values;  // ns, bytes; means over the processes
    std::array<std::vector<bool>, kSampledCount> present;   // in which of the steps a key of the row was sampled
    // The residuals of keys that ran in some of the steps only, added up over keys that ran in the same ones, by the
    // places of these steps.
    std::array<std::map<std::vector<uint32_t>, std::vector<double>>, kSampledCount> parts;
    // By how much its mean in the longer kind of steps is above that in the others, where there are two kinds.
    std::array<double, kSampledCount> between{};
  };

  SampledRun(const Profile& profile, const Run& run);

  // Whether the trace has sums by step; without them intervals are by launch.
  bool has(Sampled what) const { return !Of(what).steps.empty(); }
  // The sampled steps that count: those that were slow are not among them.
  std::span<const uint64_t> steps(Sampled what) const { return Of(what).steps; }
  // How many sampled steps were slow, and set aside.
  size_t slow(Sampled what) const { return Of(what).slow; }

  // The factor that makes a key's mean over all samples that of the ordinary steps, each kind with its share of the
  // run; 1 where no sampled step was slow and there are no two kinds.
  double Ordinary(Sampled what, const LaunchStats& stats) const;

  // Adds a key's values, in a step in which the key did not run, too: what a step is worth as a sample of the mean
  // step.
  void Add(const LaunchStats& stats, Series* series) const;
  // In how many of the steps that count the key was sampled.
  size_t StepsOf(Sampled what, const LaunchStats& stats) const;

  // The interval of a row, or of all rows (`total`).
  StepInterval IntervalOf(Sampled what, const Series& series) const;
  const Series& total() const { return total_; }

 private:
  struct Metric {
    std::vector<uint64_t> steps;
    std::vector<double> processes;   // that sampled each of them
    std::map<uint64_t, double> all;  // every sampled step, the slow ones too, and its processes
    size_t slow = 0;
    double weight = 1;             // value = weight * integer
    Trust trust = Trust::kByStep;  // of any interval: kDrifting, kTwoSpeeds
    // Whether each of `steps` is of the longer kind. Empty where there are no two kinds.
    std::vector<bool> longer;
  };
  bool IsWhole(Sampled what) const;  // whether every step of every process is among the sampled ones
  bool SetSlowStepsAside(const Run& run);
  void AddTotal(const Run& run);
  bool MissesAKind(const Run& run, size_t metric) const;
  bool WeighKinds(const Run& run);
  void FindKinds();
  bool LacksAKind(const Series& series) const;
  // A key's sampled steps: the place in Metric::steps, and the value.
  using KeySamples = std::vector<std::pair<size_t, double>>;
  KeySamples SamplesOf(size_t metric, std::span<const StepSum> sums) const;
  bool IsOfBothKinds(size_t metric, const LaunchStats& stats, const KeySamples& sampled) const;
  void AddByKind(const Metric& metric, const KeySamples& sampled, size_t index, Series* series) const;
  double LaunchedOverSampled(size_t metric, const LaunchStats& stats) const;
  const Metric& Of(Sampled what) const { return metrics_[static_cast<size_t>(what)]; }

  std::array<Metric, kSampledCount> metrics_;
  double run_steps_ = 0;                        // of one process
  double longer_share_ = 0, unknown_kind_ = 0;  // of steps of two kinds; and how many of the run's are of neither
  bool in_rhythm_ = false;                      // the kinds are
  double processes_ = 1;
  std::map<uint64_t, bool>
      is_longer_;               // of timed steps, where their times are of two kinds that run the same launches
  bool level_changes_ = false;  // what seem to be slow steps may be the only ones that are seen of another clock
  Series total_;
  std::array<std::vector<double>, kSampledCount> raw_total_;  // what was sampled in each step, as it is
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_KEYS_SAMPLED_RUN_H_
