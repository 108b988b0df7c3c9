#include "cli/report/keys/sampled_run.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "cli/profile/two_clusters.h"
#include "proto/wire/sum_code.h"
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
// The deviation of a host's durations, relative to their mean, up to which they say something of the GPU.
constexpr double kQuietHost = 0.02;
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

void AddTo(std::vector<double>* sums, std::span<const double> values) {
  sums->resize(values.size());
  for (size_t i = 0; i < values.size(); ++i) (*sums)[i] += values[i];
}

double VarianceOf(std::span<const double> values) {
  double mean = 0, squares = 0;
  const double n = static_cast<double>(values.size());
  for (const double value : values) mean += value / n;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return n > 0 ? squares / n : 0;
}

// `slow`: the sampled steps, and whether they were slow. Returns whether slow ones are the first, the last or next to
// each other. Where the durations know of no slow step, the host may hide a clock that is slower there, for as long
// as nothing else is sampled.
bool MayBeALevel(const std::map<uint64_t, bool>& slow) {
  if (slow.begin()->second || slow.rbegin()->second) return true;
  return std::adjacent_find(slow.begin(), slow.end(),
                            [](const auto& a, const auto& b) { return a.second && b.second; }) != slow.end();
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
  // A recording has all of its steps, and its sums are those of the file: none stands for others.
  if (run.key.source == SourceKind::kImported && IsWhole(Sampled::kTime)) return;
  if (SetSlowStepsAside(run)) AddTotal(run);
  FindKinds();  // before they are weighed: after that, steps of both are as long in the total
  if (WeighKinds(run)) AddTotal(run);
  const auto many = [&](uint64_t of) { return static_cast<double>(of) > kFewProcesses * processes_; };
  // Times are taken for the whole run, bytes only until they are known: what drifts in the times may have changed
  // where no bytes were counted. In a short window few samples may have missed it in either.
  const auto samples_drift = [&](size_t i) {
    return !total_.values[i].empty() && SamplesDrift(metrics_[i].steps, total_.values[i]);
  };
  constexpr size_t kTime = static_cast<size_t>(Sampled::kTime), kBytes = static_cast<size_t>(Sampled::kBytes);
  const bool bytes_drift = samples_drift(kBytes);
  const bool times_drift = level_changes_ || samples_drift(kTime) || (bytes_drift && run_steps_ < kShortWindow);
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

bool SampledRun::IsWhole(Sampled what) const {
  const Metric& metric = Of(what);
  return !metric.steps.empty() && static_cast<double>(metric.steps.size()) >= run_steps_ &&
         std::ranges::all_of(metric.processes, [this](double processes) { return processes >= processes_; });
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
  double n = static_cast<double>(durations.n);
  // They are the host's. Behind a GPU that is slow the host is, too, so that a host that is quiet has seen no slow
  // step; one that is not says nothing of what the GPU took.
  const double variance =
      n > 0 ? static_cast<double>(durations.sum_squares) / n - durations.mean() * durations.mean() : 0;
  const double deviation = durations.mean() > 0 ? std::sqrt(std::max(0.0, variance)) / durations.mean() : 0;
  const bool of_kinds = run.steps.of_kinds > 0;  // which explain how they scatter
  if (run.key.source == SourceKind::kMeasured && deviation > kQuietHost && !of_kinds) n = 0;
  const bool durations_tell = n >= kDurationsThatTell * processes_;
  if (durations_tell && run.steps.slow == 0) return false;
  double least = 0;  // that a slow step is above the median, relative
  // Where the durations have slow steps, so that they are rare, or have none, more among the samples are chance.
  const bool known = run.steps.slow > 0;
  double most = known ? kMostKnownSlow : kMostSlow;
  if (!known && !durations_tell && n >= kDurationsOfADeviation && deviation > 0) {
    least = kExceptional * deviation;
    most = kMostKnownSlow;
  }
  bool any = false;
  std::map<uint64_t, bool> steps;  // all that were sampled, and whether they were slow
  for (size_t i = 0; i < kSampledCount; ++i) {
    Metric& metric = metrics_[i];
    const std::vector<bool> slow = SlowSteps(total_.values[i], least, most);
    for (size_t s = slow.size(); s-- > 0;) {
      // A step that was slow by its time is not ordinary in its bytes, of which a window has a part of the keys.
      bool& is_slow = steps[metric.steps[s]];
      is_slow = is_slow || slow[s];
      if (!is_slow) continue;
      any = true;
      ++metric.slow;
      const auto at = static_cast<std::ptrdiff_t>(s);
      metric.steps.erase(metric.steps.begin() + at);
      metric.processes.erase(metric.processes.begin() + at);
    }
  }
  level_changes_ = !known && any && MayBeALevel(steps);
  return any;
}

// Where the durations of all steps are of two kinds that come and go, as with every fifth step longer, few samples
// say little of either kind: they may all be of one. In a short window, which has few steps of either, the interval
// holds the mean or not as whole steps happen to fall, and is 95 % of nothing. Kinds that differ by the keys that run
// in them are known by their launches (Add).
bool SampledRun::MissesAKind(const Run& run, size_t metric) const {
  constexpr double kLeastOfAKind = 2.5;
  constexpr double kRarer = 0.35;  // of fewer it is clear which samples are of them, if any are
  const double all = static_cast<double>(run.steps.of_kinds);
  const std::vector<double>& values = total_.values[metric];
  const double n = static_cast<double>(values.size());
  if (!(all > 0) || metrics_[metric].slow > 0 || !metrics_[metric].longer.empty()) return false;
  const double share = static_cast<double>(run.steps.rarer_kind) / all;
  if (run_steps_ >= kShortWindow && share > kRarer && n * share >= kLeastOfAKind) return false;
  const double left = VarianceOf(values), before = VarianceOf(raw_total_[metric]);
  constexpr double kExplained = 0.1;
  return !(left < kExplained * before);
}

// Kinds of steps that run the same launches, as where every fourth takes longer, are in the samples with the share
// that chance gave them; the durations of all steps say what share they have in the run. So each kind's samples have
// that share (post-stratification: Cochran, "Sampling Techniques", 5A.9), and what is uncertain is how steps of a
// kind differ. Only where it is clear which samples are of which kind, and not in a short window: there the kind of
// the few steps in which other things were collected weighs too much. Returns whether there are such kinds.
bool SampledRun::WeighKinds(const Run& run) {
  constexpr double kClearly = 3.3;  // deviations; one in a thousand
  if (run.steps.of_kinds == 0 || run_steps_ < kShortWindow) return false;
  double sampled = 0, longer = 0;
  std::set<uint64_t> counted;
  std::array<std::optional<TwoClusters>, kSampledCount> kinds;
  for (size_t i = 0; i < kSampledCount; ++i) {
    if (metrics_[i].slow > 0) return false;
    kinds[i] = FindTwoClusters(total_.values[i], /*least=*/1);
    if (!kinds[i]) continue;
    // Times and bytes may be of the same steps, which count once.
    for (size_t s = 0; s < metrics_[i].steps.size(); ++s) {
      if (!counted.insert(metrics_[i].steps[s]).second) continue;
      sampled += 1;
      longer += total_.values[i][s] > kinds[i]->cut;
    }
  }
  const double all = static_cast<double>(run.steps.of_kinds);
  if (!(sampled > 0)) return false;
  const double rarer = static_cast<double>(run.steps.rarer_kind) / all;
  const double deviation = std::sqrt(sampled * rarer * (1 - rarer));
  const double from_rarer = std::fabs(longer - sampled * rarer),
               from_usual = std::fabs(longer - sampled * (1 - rarer));
  if (std::max(from_rarer, from_usual) < kClearly * deviation) return false;
  if (std::min(from_rarer, from_usual) > kClearly * deviation) return false;
  const double share = from_rarer < from_usual ? rarer : 1 - rarer;
  in_rhythm_ = run.steps.in_rhythm == run.steps.of_kinds;
  // The durations are of the steps in which nothing was sampled.
  const double known = all + sampled * processes_;
  longer_share_ = in_rhythm_ ? share : (share * all + longer * processes_) / known;
  unknown_kind_ = std::max(0.0, run_steps_ - known / processes_);
  for (size_t i = 0; i < kSampledCount; ++i) {
    if (!kinds[i]) continue;
    for (const double value : total_.values[i]) metrics_[i].longer.push_back(value > kinds[i]->cut);
  }
  return true;
}

void SampledRun::FindKinds() {
  constexpr size_t kTime = static_cast<size_t>(Sampled::kTime);
  constexpr double kApart = 0.05;  // what is closer moves no other bytes that would matter
  const std::optional<TwoClusters> kinds = FindTwoClusters(total_.values[kTime]);
  if (!kinds || kinds->apart < kApart * kinds->cut) return;
  for (size_t s = 0; s < metrics_[kTime].steps.size(); ++s) {
    is_longer_[metrics_[kTime].steps[s]] = total_.values[kTime][s] > kinds->cut;
  }
}

// Bytes are sampled in parts of steps, so that a row's may be of the steps of one kind only by chance, while the row
// ran in both.
bool SampledRun::LacksAKind(const Series& series) const {
  const auto has_both = [&](Sampled what) {
    std::array<bool, 2> has{};
    const std::vector<bool>& present = series.present[static_cast<size_t>(what)];
    for (size_t s = 0; s < present.size(); ++s) {
      const auto found = is_longer_.find(Of(what).steps[s]);
      if (present[s] && found != is_longer_.end()) has[found->second ? 1 : 0] = true;
    }
    return has[0] && has[1];
  };
  return has_both(Sampled::kTime) && !has_both(Sampled::kBytes);
}

// The launches of a mean step of the run, over those of a mean step in which the key was sampled; 0: not known.
double SampledRun::LaunchedOverSampled(size_t metric, const LaunchStats& stats) const {
  const std::vector<StepSum>* const sums = SumsOf(stats, metric);
  const auto of_key = stats.metrics.find(std::string(kMetrics[metric]));
  if (sums == nullptr || sums->empty() || of_key == stats.metrics.end() || of_key->second.n == 0) return 0;
  const double sampled = static_cast<double>(of_key->second.n) / static_cast<double>(sums->size());
  return run_steps_ > 0 ? static_cast<double>(stats.launches) / (run_steps_ * processes_) / sampled : 0;
}

// Whether a key runs in all steps alike, and was sampled in steps of both of two kinds. Of keys that were sampled in
// so few that many miss the rarer kind by chance, those that have it must not be taken alone: the others lack it.
bool SampledRun::IsOfBothKinds(size_t metric, const LaunchStats& stats, const KeySamples& sampled) const {
  const std::vector<bool>& longer = metrics_[metric].longer;
  if (longer.empty()) return false;
  if (sampled.size() != longer.size()) {          // it ran in some steps only, or was looked at in some only
    constexpr double kAlike = 0.01, kOfBoth = 6;  // to be expected; one key in 400 lacks them then
    const double rarer = std::min(longer_share_, 1 - longer_share_);
    if (rarer * static_cast<double>(sampled.size()) < kOfBoth) return false;
    if (std::fabs(LaunchedOverSampled(metric, stats) - 1) > kAlike) return false;
  }
  const auto of_longer = std::ranges::count_if(sampled, [&](const auto& one) { return longer[one.first]; });
  return of_longer > 0 && static_cast<size_t>(of_longer) < sampled.size();
}

// Adds a key of which that is so. How much steps of a kind differ, relative to their mean, is taken to be the same
// for both: of the rarer there may be one sample.
void SampledRun::AddByKind(const Metric& metric, const KeySamples& sampled, size_t index, Series* series) const {
  const double own = static_cast<double>(sampled.size()), n = static_cast<double>(metric.steps.size());
  struct Kind {
    double n = 0, share = 0, mean = 0;
  };
  std::array<Kind, 2> kinds;
  for (const auto& [step, value] : sampled) {
    Kind& kind = kinds[metric.longer[step]];
    kind.n += 1;
    kind.mean += value;
  }
  kinds[0].share = 1 - longer_share_;
  kinds[1].share = longer_share_;
  double mean = 0, squares = 0;
  for (Kind& kind : kinds) {
    kind.mean /= kind.n;
    mean += kind.share * kind.mean;
    squares += kind.share * kind.mean * kind.share * kind.mean / kind.n;
  }
  // So that the variance of a mean of n values is that of the sum of both kinds' shares.
  const double scale = own > 2 ? std::sqrt(squares * n * (n - 1) / (own - 2)) : 0;
  std::vector<double>& values = series->values[index];
  for (double& value : values) value += mean;
  std::vector<uint32_t> places;
  std::vector<double> residuals;
  for (const auto& [step, value] : sampled) {
    const double of_kind = kinds[metric.longer[step]].mean;
    places.push_back(static_cast<uint32_t>(step));
    residuals.push_back(of_kind > 0 ? scale * (value / of_kind - 1) : 0);
    values[step] += residuals.back();
  }
  if (sampled.size() < values.size()) AddTo(&series->parts[index][std::move(places)], residuals);
  series->between[index] += kinds[1].mean - kinds[0].mean;
}

SampledRun::KeySamples SampledRun::SamplesOf(size_t index, std::span<const StepSum> sums) const {
  const Metric& metric = metrics_[index];
  KeySamples sampled;
  ForEachSampled(metric.steps, sums, [&](size_t at, const StepSum& one) {
    sampled.emplace_back(at, metric.weight * static_cast<double>(one.sum) / metric.processes[at]);
  });
  return sampled;
}

double SampledRun::Ordinary(Sampled what, const LaunchStats& stats) const {
  const auto index = static_cast<size_t>(what);
  const Metric& metric = metrics_[index];
  const bool of_ordinary = metric.slow > 0, by_kind = !metric.longer.empty();
  const std::vector<StepSum>* const sums = of_ordinary || by_kind ? SumsOf(stats, index) : nullptr;
  if (sums == nullptr) return 1;
  std::array<double, 2> weights = {1, 1};  // of a step of either kind, so that each has its share of the run
  if (by_kind) {
    const KeySamples sampled = SamplesOf(index, *sums);
    if (!IsOfBothKinds(index, stats, sampled))
      return 1;  // keys that run in some of the steps are known by their launches
    const double own = static_cast<double>(sampled.size());
    const auto longer = static_cast<double>(
        std::ranges::count_if(sampled, [&](const auto& one) { return metric.longer[one.first]; }));
    weights = {(1 - longer_share_) * own / (own - longer), longer_share_ * own / longer};
  }
  double all = 0, ordinary = 0, all_processes = 0, ordinary_processes = 0;
  for (const StepSum& sum : *sums) {
    const auto known = metric.all.find(sum.step);
    if (known == metric.all.end()) continue;
    all += static_cast<double>(sum.sum);
    all_processes += known->second;
    const auto at = std::lower_bound(metric.steps.begin(), metric.steps.end(), sum.step);
    if (at == metric.steps.end() || *at != sum.step) continue;
    const double weight = by_kind ? weights[metric.longer[static_cast<size_t>(at - metric.steps.begin())]] : 1;
    ordinary += weight * static_cast<double>(sum.sum);
    ordinary_processes += weight * known->second;
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
    const KeySamples sampled = SamplesOf(i, *sums);
    double sum = 0;
    for (const auto& [step, value] : sampled) {
      sum += value;
      present[step] = true;
    }
    if (IsOfBothKinds(i, stats, sampled)) {
      AddByKind(metric, sampled, i, series);
      continue;
    }
    if (sampled.size() == values.size() || sampled.empty()) {
      for (const auto& [step, value] : sampled) values[step] += value;
      continue;
    }
    const double n = static_cast<double>(values.size()), own = static_cast<double>(sampled.size());
    const double mean = sum / own;
    // The launches of a mean step of the run, over those of a mean sampled step.
    const double launched = LaunchedOverSampled(i, stats) * n / own;
    const double weight = launched > 0 ? launched : 1;
    for (double& value : values) value += weight * sum / n;
    // The residuals of few values are too small, as in the variance of a sample; what all values lack by that, the
    // interval makes up for.
    const double unbiased = own > 1 ? std::sqrt(own / (own - 1) * (n - 1) / n) : 0;
    std::vector<uint32_t> places;
    std::vector<double> residuals;
    for (const auto& [step, value] : sampled) {
      places.push_back(static_cast<uint32_t>(step));
      residuals.push_back(weight * unbiased * (value - mean));
      values[step] += residuals.back();
    }
    AddTo(&series->parts[i][std::move(places)], residuals);
  }
}

size_t SampledRun::StepsOf(Sampled what, const LaunchStats& stats) const {
  const std::vector<StepSum>* const sums = SumsOf(stats, static_cast<size_t>(what));
  if (sums == nullptr) return 0;
  const Metric& metric = Of(what);
  return static_cast<size_t>(std::ranges::count_if(
      *sums, [&](const StepSum& sum) { return std::ranges::binary_search(metric.steps, sum.step); }));
}

namespace {

double SquaresOf(std::span<const double> values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return squares;
}

// The degrees of freedom of a row some of whose keys ran in some of the steps only (Satterthwaite): a variance that
// comes from five steps of one kind and five of another is known as well as from five to nine.
double DegreesOf(const SampledRun::Series& series, size_t metric) {
  std::vector<double> rest = series.values[metric];  // of the keys that ran in all steps
  double mean = 0;
  for (const double value : rest) mean += value / static_cast<double>(rest.size());
  for (double& value : rest) value -= mean;
  double variance = 0, of_it = 0;
  const auto add = [&](std::span<const double> part) {
    if (part.size() < 2) return;
    const double squares = SquaresOf(part);
    variance += squares;
    of_it += squares * squares / static_cast<double>(part.size() - 1);
  };
  for (const auto& [places, part] : series.parts[metric]) {
    for (size_t i = 0; i < places.size(); ++i) rest[places[i]] -= part[i];
    add(part);
  }
  add(rest);
  return of_it > 0 ? variance * variance / of_it : static_cast<double>(rest.size()) - 1;
}

// In a rhythm it is known to a step how many are of the longer kind, and another run has the same share.
void AddShareOfRhythm(double between, double run_steps, StepInterval* interval) {
  if (interval->half_width > 0) interval->half_width = std::hypot(interval->half_width, between / run_steps);
}

// Else it is known but for a few steps, and another run may have other shares.
void AddShareOfKinds(double between, double share, double unknown, double run_steps, StepInterval* interval) {
  const double of_a_step = between * between * share * (1 - share);
  if (!(of_a_step > 0) || !(run_steps > 0)) return;
  if (interval->half_width > 0) {
    interval->half_width = std::hypot(interval->half_width, 1.96 * std::sqrt(of_a_step * unknown) / run_steps);
  }
  interval->uncertainty.variance += of_a_step / run_steps;
  interval->least.variance += of_a_step / run_steps;
}

// A mean of some of the steps is taken from their sums, which a trace rounds (wire/sum_code.h): all of them alike
// where they differ little, so that they seem to be exact.
void AddRounding(StepInterval* interval) {
  constexpr double kMost = 1.0 / (4 << wire::kSumCodeBits);  // relative
  const double deviation = kMost / std::sqrt(3.0) * interval->mean;
  if (HasInterval(interval->trust)) interval->half_width = std::hypot(interval->half_width, 1.96 * deviation);
  interval->uncertainty.variance += deviation * deviation;
  interval->least.variance += deviation * deviation;
}

}  // namespace

StepInterval SampledRun::IntervalOf(Sampled what, const Series& series) const {
  const auto index = static_cast<size_t>(what);
  const Metric& metric = metrics_[index];
  std::vector<uint64_t> own;
  for (size_t s = 0; s < series.present[index].size(); ++s) {
    if (series.present[index][s]) own.push_back(metric.steps[s]);
  }
  StepInterval interval =
      cli::IntervalOf(metric.steps, series.values[index], run_steps_, own, DegreesOf(series, index));
  if (metric.slow > 0 || !metric.longer.empty()) AddRounding(&interval);
  if (in_rhythm_) {
    AddShareOfRhythm(series.between[index], run_steps_, &interval);
  } else {
    AddShareOfKinds(series.between[index], longer_share_, unknown_kind_, run_steps_, &interval);
  }
  const bool lacks = what == Sampled::kBytes && !is_longer_.empty() && LacksAKind(series);
  if (series.values[index].empty() || (metric.trust == Trust::kByStep && !lacks)) return interval;
  // That the run drifts is also true where there are few steps, and says more.
  interval.trust = metric.trust == Trust::kByStep ? Trust::kFewSteps : metric.trust;
  interval.half_width = 0;
  interval.uncertainty = {.known = false};
  interval.least = {.known = false};
  return interval;
}

}  // namespace rfinject::cli
