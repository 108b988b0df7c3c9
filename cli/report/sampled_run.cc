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

// Fewer durations of steps say nothing of how rare a slow one is.
constexpr double kDurationsThatTell = 200, kDurationsOfADeviation = 16;
// Deviations of the steps' durations. One step in ten that is longer is as far above the others; one in five is not.
constexpr double kExceptional = 3;

const std::vector<StepSum>* SumsOf(const LaunchStats& stats, size_t metric) {
  if (stats.step_sums.empty()) return nullptr;
  const auto found = stats.step_sums.find(std::string(kMetrics[metric]));
  return found == stats.step_sums.end() ? nullptr : &found->second;
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
  for (const auto& [key, stats] : run.launches) Add(stats, &total_);
  if (SetSlowStepsAside(run)) {
    total_ = {};
    for (const auto& [key, stats] : run.launches) Add(stats, &total_);
  }
  const auto many = [&](uint64_t of) { return static_cast<double>(of) > kFewProcesses * processes_; };
  for (size_t i = 0; i < kSampledCount; ++i) {
    Metric& metric = metrics_[i];
    const std::vector<double>& values = total_.values[i];
    if (many(run.steps.two_speeds)) {
      metric.trust = Trust::kTwoSpeeds;
    } else if (many(run.steps.drifting) || (!values.empty() && SamplesDrift(metric.steps, values))) {
      metric.trust = Trust::kDrifting;
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
  if (!durations_tell && n >= kDurationsOfADeviation && durations.mean() > 0) {
    const double variance = static_cast<double>(durations.sum_squares) / n - durations.mean() * durations.mean();
    least = kExceptional * std::sqrt(std::max(0.0, variance)) / durations.mean();
  }
  bool any = false;
  for (size_t i = 0; i < kSampledCount; ++i) {
    Metric& metric = metrics_[i];
    const std::vector<bool> slow = SlowSteps(total_.values[i], least);
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
    size_t at = 0;
    for (const StepSum& one : *sums) {
      while (at < metric.steps.size() && metric.steps[at] < one.step) ++at;
      if (at == metric.steps.size()) break;
      if (metric.steps[at] != one.step) continue;
      const double value = metric.weight * static_cast<double>(one.sum) / metric.processes[at];
      sampled.emplace_back(at, value);
      sum += value;
      present[at] = true;
    }
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
