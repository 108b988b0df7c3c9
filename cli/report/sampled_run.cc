#include "cli/report/sampled_run.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "proto/wire/vocabulary.h"

namespace rfinject::cli {
namespace {

constexpr std::array<std::string_view, kSampledCount> kMetrics = {kMetricTime, kMetricDramBytes};
// Of a merged run's processes, this share may drift before all that was measured counts as drifting.
constexpr double kFewProcesses = 0.05;

// Fewer durations of steps say nothing of how rare a slow one is.
constexpr double kDurationsThatTell = 200;

const std::vector<StepSum>* SumsOf(const LaunchStats& stats, size_t metric) {
  if (stats.step_sums.empty()) return nullptr;
  const auto found = stats.step_sums.find(std::string(kMetrics[metric]));
  return found == stats.step_sums.end() ? nullptr : &found->second;
}

}  // namespace

SampledRun::SampledRun(const Profile& profile, const Run& run) {
  const double processes = static_cast<double>(std::max<uint64_t>(run.processes, 1));
  run_steps_ = static_cast<double>(run.steps.steps) / processes;
  const auto many = [&](uint64_t of) { return static_cast<double>(of) > kFewProcesses * processes; };
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
  // Slow steps are found in the total, which has the least noise of its own, and set aside in every row. A few
  // samples cannot tell exceptions from a rhythm, in which every fifth step is longer; the durations of all steps
  // can.
  const bool durations_tell = static_cast<double>(run.steps.duration_ns.n) >= kDurationsThatTell * processes;
  const bool exceptions = !durations_tell || run.steps.slow > 0;
  for (size_t i = 0; i < kSampledCount; ++i) {
    Metric& metric = metrics_[i];
    std::vector<double>& values = total_.values[i];
    const std::vector<bool> slow = exceptions ? SlowSteps(values) : std::vector<bool>(values.size(), false);
    for (size_t s = values.size(); s-- > 0;) {
      if (!slow[s]) continue;
      ++metric.slow;
      const auto at = static_cast<std::ptrdiff_t>(s);
      metric.steps.erase(metric.steps.begin() + at);
      metric.processes.erase(metric.processes.begin() + at);
      values.erase(values.begin() + at);
    }
    if (many(run.steps.two_speeds)) {
      metric.trust = Trust::kTwoSpeeds;
    } else if (many(run.steps.drifting) || (!values.empty() && SamplesDrift(metric.steps, values))) {
      metric.trust = Trust::kDrifting;
    }
  }
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

void SampledRun::Add(const LaunchStats& stats, Series* series) const {
  for (size_t i = 0; i < kSampledCount; ++i) {
    const std::vector<StepSum>* const sums = SumsOf(stats, i);
    if (sums == nullptr) continue;
    const Metric& metric = metrics_[i];
    std::vector<double>& values = series->values[i];
    values.resize(metric.steps.size());
    size_t at = 0;
    for (const StepSum& sum : *sums) {
      while (at < metric.steps.size() && metric.steps[at] < sum.step) ++at;
      if (at == metric.steps.size()) break;
      if (metric.steps[at] == sum.step) {
        values[at] += metric.weight * static_cast<double>(sum.sum) / metric.processes[at];
      }
    }
  }
}

StepInterval SampledRun::IntervalOf(Sampled what, const Series& series) const {
  const auto index = static_cast<size_t>(what);
  const Metric& metric = metrics_[index];
  StepInterval interval = cli::IntervalOf(metric.steps, series.values[index], run_steps_);
  if (series.values[index].empty() || metric.trust == Trust::kByStep) return interval;
  // That the run drifts is also true where there are few steps, and says more.
  interval.trust = metric.trust;
  interval.half_width = 0;
  interval.uncertainty = {.known = false};
  interval.least = {.known = false};
  return interval;
}

}  // namespace rfinject::cli
