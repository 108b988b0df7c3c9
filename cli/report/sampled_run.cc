#include "cli/report/sampled_run.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "proto/wire/vocabulary.h"

namespace rfinject::cli {
namespace {

constexpr std::array<std::string_view, kSampledCount> kMetrics = {kMetricTime, kMetricDramBytes};
// Of a merged run's processes, this share may drift before all that was measured counts as drifting.
constexpr double kFewProcesses = 0.05;

// In such a run the sampled steps are a good part of all, and few.
constexpr double kShortWindow = 200;
// Fewer durations of steps say nothing of how rare a slow one is.
constexpr double kDurationsThatTell = 200, kDurationsOfADeviation = 16;
// Deviations of the steps' durations. One step in ten that is longer is as far above the others; one in five is not.
constexpr double kExceptional = 3;
// The share of sampled steps that may be slow.
constexpr double kMostKnownSlow = 0.4;

const std::vector<StepSum>* SumsOf(const LaunchStats& stats, size_t metric) {
  if (stats.step_sums.empty()) return nullptr;
  const auto found = stats.step_sums.find(std::string(kMetrics[metric]));
  return found == stats.step_sums.end() ? nullptr : &found->second;
}

// Calls `tell` with the place in `steps` of each sum whose step is there; both ascend.
template <typename Tell>
void ForEachSampled(std::span<const uint64_t> steps, std::span<const StepSum> sums, Tell tell) {
  size_t at = 0;
  for (const StepSum& one : sums) {
    while (at < steps.size() && steps[at] < one.step) ++at;
    if (at == steps.size()) return;
    if (steps[at] == one.step) tell(at, one);
  }
}

double VarianceOf(std::span<const double> values) {
  double mean = 0, squares = 0;
  const double n = static_cast<double>(values.size());
  for (const double value : values) mean += value / n;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return n > 0 ? squares / n : 0;
}

}  // namespace

SampledRun::SampledRun(const Profile& profile, const Run& run) {
  processes_ = static_cast<double>(std::max<uint64_t>(run.processes, 1));
  run_steps_ = static_cast<double>(run.steps.steps) / processes_;
  for (size_t i = 0; i < kSampledCount; ++i) {
    Metric& metric = metrics_[i];
    const auto info = profile.metrics.find(std::string(kMetrics[i]));
    if (info != profile.metrics.end()) metric.weight = info->second.scale;
    const auto sampled = run.sampled_steps.find(std::string(kMetrics[i]));
    if (sampled == run.sampled_steps.end()) continue;
    for (const auto& [step, count] : sampled->second) {
      metric.all.emplace_hint(metric.all.end(), step, static_cast<double>(count));
      metric.steps.push_back(step);
      metric.processes.push_back(static_cast<double>(count));
    }
  }
  AddTotal(run);
  if (SetSlowStepsAside(run)) AddTotal(run);
  const auto many = [&](uint64_t of) { return static_cast<double>(of) > kFewProcesses * processes_; };
  // Times are taken for the whole run, bytes only until they are known: what drifts in the times may have changed
  // where no bytes were counted. In a short window few samples may have missed it in either.
  const auto samples_drift = [&](size_t i) {
    return !total_.values[i].empty() && SamplesDrift(metrics_[i].steps, total_.values[i]);
  };
  constexpr size_t kTime = static_cast<size_t>(Sampled::kTime), kBytes = static_cast<size_t>(Sampled::kBytes);
  const bool bytes_drift = samples_drift(kBytes);
  const bool times_drift = samples_drift(kTime) || (bytes_drift && run_steps_ < kShortWindow);
  for (size_t i = 0; i < kSampledCount; ++i) {
    Metric& metric = metrics_[i];
    const bool drifts = times_drift || (i == kBytes && bytes_drift);
    if (many(run.steps.two_speeds)) {
      metric.trust = Trust::kTwoSpeeds;
    } else if (many(run.steps.drifting) || drifts) {
      metric.trust = Trust::kDrifting;
    } else if (MissesAKind(run, i)) {
      metric.trust = Trust::kFewSteps;
    }
  }
}

void SampledRun::AddTotal(const Run& run) {
  total_ = {};
  for (size_t i = 0; i < kSampledCount; ++i) raw_total_[i].assign(metrics_[i].steps.size(), 0);
  for (const auto& [key, stats] : run.launches) {
    Add(stats, &total_);
    for (size_t i = 0; i < kSampledCount; ++i) {
      const std::vector<StepSum>* const sums = SumsOf(stats, i);
      if (sums == nullptr) continue;
      ForEachSampled(metrics_[i].steps, *sums, [&](size_t at, const StepSum& one) {
        raw_total_[i][at] += metrics_[i].weight * static_cast<double>(one.sum) / metrics_[i].processes[at];
      });
    }
  }
}

// Slow steps are found in the total, which has the least noise of its own, and set aside in every row. A few samples
// cannot tell exceptions from a rhythm, in which every fifth step is longer; the durations of all steps can, by how
// many were slow, or, where there are not many, by their deviation. Returns whether there are any.
bool SampledRun::SetSlowStepsAside(const Run& run) {
  const Stat& durations = run.steps.duration_ns;
  const double n = static_cast<double>(durations.n);
  const bool durations_tell = n >= kDurationsThatTell * processes_;
  if (durations_tell && run.steps.slow == 0) return false;
  double least = 0;  // that a slow step is above the median, relative
  // Where the durations have slow steps, so that they are rare, more among the samples are chance.
  const bool known = run.steps.slow > 0;
  const double most = known ? kMostKnownSlow : kMostSlow;
  if (!known && !durations_tell && n >= kDurationsOfADeviation && durations.mean() > 0) {
    const double variance = static_cast<double>(durations.sum_squares) / n - durations.mean() * durations.mean();
    least = kExceptional * std::sqrt(std::max(0.0, variance)) / durations.mean();
  }
  bool any = false;
  for (size_t i = 0; i < kSampledCount; ++i) {
    Metric& metric = metrics_[i];
    const std::vector<bool> slow = SlowSteps(total_.values[i], least, most);
    for (size_t s = slow.size(); s-- > 0;) {
      if (!slow[s]) continue;
      any = true;
      ++metric.slow;
      const auto at = static_cast<std::ptrdiff_t>(s);
      metric.steps.erase(metric.steps.begin() + at);
      metric.processes.erase(metric.processes.begin() + at);
    }
  }
  return any;
}

// Where the durations of all steps are of two kinds that come and go, as with every fifth step longer, few samples
// say little of either kind: they may all be of one. In a short window, which has few steps of either, the interval
// holds the mean or not as whole steps happen to fall, and is 95 % of nothing. Kinds that differ by the keys that run
// in them are known by their launches (Add).
bool SampledRun::MissesAKind(const Run& run, size_t metric) const {
  constexpr double kLeastOfAKind = 2.5;
  const double all = static_cast<double>(run.steps.of_kinds);
  const std::vector<double>& values = total_.values[metric];
  const double n = static_cast<double>(values.size());
  if (!(all > 0) || metrics_[metric].slow > 0) return false;
  const double expected = n * static_cast<double>(run.steps.rarer_kind) / all;
  if (run_steps_ >= kShortWindow && expected >= kLeastOfAKind) return false;
  const double left = VarianceOf(values), before = VarianceOf(raw_total_[metric]);
  constexpr double kExplained = 0.1;
  return !(left < kExplained * before);
}

double SampledRun::Ordinary(Sampled what, const LaunchStats& stats) const {
  const auto index = static_cast<size_t>(what);
  const Metric& metric = metrics_[index];
  const std::vector<StepSum>* const sums = metric.slow > 0 ? SumsOf(stats, index) : nullptr;
  if (sums == nullptr) return 1;
  double all = 0, ordinary = 0, all_processes = 0, ordinary_processes = 0;
  for (const StepSum& sum : *sums) {
    const auto known = metric.all.find(sum.step);
    if (known == metric.all.end()) continue;
    all += static_cast<double>(sum.sum);
    all_processes += known->second;
    if (!std::binary_search(metric.steps.begin(), metric.steps.end(), sum.step)) continue;
    ordinary += static_cast<double>(sum.sum);
    ordinary_processes += known->second;
  }
  if (!(all > 0) || !(ordinary > 0)) return 1;
  return ordinary / ordinary_processes / (all / all_processes);
}

// Steps may be of several kinds (the two optimizers of a GAN in turn, a penalty in every sixteenth step), and the
// sampled steps have a share of each kind that chance gave them. How often a key was launched is known exactly, so a
// row's value is the sum over its keys of launches times a mean launch, and what is uncertain of it is only how a
// key's launches differ where it ran: the residuals of a ratio estimator (Cochran, "Sampling Techniques", 6.3 and
// 5A.8). The value of a step is thus the estimate of the mean step plus the residuals of the keys that were sampled
// in it. For keys that run equally often in all steps this is what was sampled.
void SampledRun::Add(const LaunchStats& stats, Series* series) const {
  for (size_t i = 0; i < kSampledCount; ++i) {
    const std::vector<StepSum>* const sums = SumsOf(stats, i);
    if (sums == nullptr) continue;
    const Metric& metric = metrics_[i];
    std::vector<double>& values = series->values[i];
    std::vector<bool>& present = series->present[i];
    values.resize(metric.steps.size());
    present.resize(metric.steps.size());
    std::vector<std::pair<size_t, double>> sampled;  // index of the step, value
    double sum = 0;
    ForEachSampled(metric.steps, *sums, [&](size_t at, const StepSum& one) {
      const double value = metric.weight * static_cast<double>(one.sum) / metric.processes[at];
      sampled.emplace_back(at, value);
      sum += value;
      present[at] = true;
    });
    if (sampled.size() == values.size() || sampled.empty()) {
      for (const auto& [step, value] : sampled) values[step] += value;
      continue;
    }
    const double n = static_cast<double>(values.size()), own = static_cast<double>(sampled.size());
    const double mean = sum / own;
    // The launches of a mean step of the run, over those of a mean sampled step.
    const auto metric_of_key = stats.metrics.find(std::string(kMetrics[i]));
    const double samples = metric_of_key == stats.metrics.end() ? 0 : static_cast<double>(metric_of_key->second.n);
    const double launched = run_steps_ > 0 ? static_cast<double>(stats.launches) / (run_steps_ * processes_) : 0;
    const double sampled_launches = samples / static_cast<double>(sums->size()) * own / n;
    const double weight = launched > 0 && sampled_launches > 0 ? launched / sampled_launches : 1;
    for (double& value : values) value += weight * sum / n;
    // The residuals of few values are too small by this, as in the variance of a sample.
    const double unbiased = own > 1 ? std::sqrt(own / (own - 1)) : 0;
    for (const auto& [step, value] : sampled) values[step] += weight * unbiased * (value - mean);
  }
}

size_t SampledRun::StepsOf(Sampled what, const LaunchStats& stats) const {
  const std::vector<StepSum>* const sums = SumsOf(stats, static_cast<size_t>(what));
  if (sums == nullptr) return 0;
  const Metric& metric = Of(what);
  return static_cast<size_t>(std::ranges::count_if(
      *sums, [&](const StepSum& sum) { return std::ranges::binary_search(metric.steps, sum.step); }));
}

StepInterval SampledRun::IntervalOf(Sampled what, const Series& series) const {
  const auto index = static_cast<size_t>(what);
  const Metric& metric = metrics_[index];
  std::vector<uint64_t> own;
  for (size_t s = 0; s < series.present[index].size(); ++s) {
    if (series.present[index][s]) own.push_back(metric.steps[s]);
  }
  StepInterval interval = cli::IntervalOf(metric.steps, series.values[index], run_steps_, own);
  if (series.values[index].empty() || metric.trust == Trust::kByStep) return interval;
  // That the run drifts is also true where there are few steps, and says more.
  interval.trust = metric.trust;
  interval.half_width = 0;
  interval.uncertainty = {.known = false};
  interval.least = {.known = false};
  return interval;
}

}  // namespace rfinject::cli
