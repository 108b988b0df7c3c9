#include "cli/profile/accumulator.h"

#include <algorithm>
#include <iterator>

namespace rfinject::cli {

void Accumulator::LaunchSum::AddMetric(Text name, const Stat& stat) {
  if (next_ >= metrics_.size() || metrics_[next_].first != name) {
    const auto place = std::lower_bound(metrics_.begin(), metrics_.end(), name,
                                        [](const auto& metric, Text text) { return metric.first < text; });
    next_ = static_cast<size_t>(place - metrics_.begin());
    if (place == metrics_.end() || place->first != name) metrics_.emplace(place, name, Stat{});
  }
  metrics_[next_++].second.Merge(stat);
}

void Accumulator::RunSum::AddLayer(const Layer& key, const LayerInfo& info) {
  const auto [known, is_new] = layers_.try_emplace(key, info);
  if (!is_new) known->second.Merge(info);
}

Accumulator::LaunchSum& Accumulator::RunSum::Of(const Launch& key) {
  LaunchSum*& sum = index_[key];
  if (sum == nullptr) sum = &launches_.emplace_back();
  return *sum;
}

void Accumulator::RunSum::AddStepSums(LaunchSum* launch, LaunchStats sampled) {
  launch->stats_.Merge(sampled);
  for (auto& [metric, sums] : launch->stats_.step_sums) {
    const auto steps = facts_.sampled_steps.find(metric);
    if (steps != facts_.sampled_steps.end()) DropStepsAfter(steps->second.rbegin()->first, &sums);
  }
}

Accumulator::Text Accumulator::NumberOf(std::string_view text) {
  const auto known = numbers_.find(text);
  if (known != numbers_.end()) return known->second;
  const std::string& kept = texts_.emplace_back(text);
  const auto number = static_cast<Text>(texts_.size() - 1);
  numbers_.emplace(kept, number);
  return number;
}

Accumulator::RunSum& Accumulator::Add(Run run) {
  const auto [known, is_new] = runs_.try_emplace(run.key);
  RunSum& sum = known->second;
  if (is_new) {
    sum.facts_ = std::move(run);
  } else {
    sum.facts_.Merge(std::move(run));
  }
  return sum;
}

Profile Accumulator::Take() && {
  Profile profile;
  profile.trace_ids = std::move(trace_ids_);
  profile.metrics = std::move(metrics_);
  for (auto& [run_key, sum] : runs_) {
    Run run = std::move(sum.facts_);
    for (auto& [key, info] : sum.layers_) {
      run.layers.emplace(LayerKey{texts_[key.model], texts_[key.path]}, std::move(info));
    }
    for (auto& [key, launch] : sum.index_) {
      LaunchStats& stats = launch->stats_;
      for (const auto& [metric, stat] : launch->metrics_) stats.metrics.emplace(texts_[metric], stat);
      // What was added before the last of the steps that are kept was known.
      for (auto sums = stats.step_sums.begin(); sums != stats.step_sums.end();) {
        const auto steps = run.sampled_steps.find(sums->first);
        if (steps != run.sampled_steps.end()) DropStepsAfter(steps->second.rbegin()->first, &sums->second);
        sums = sums->second.empty() ? stats.step_sums.erase(sums) : std::next(sums);
      }
      run.launches.emplace(LaunchKey{{texts_[key.layer.model], texts_[key.layer.path]},
                                     static_cast<Phase>(key.phase),
                                     texts_[key.op],
                                     texts_[key.kernel],
                                     texts_[key.signature],
                                     texts_[key.node],
                                     key.grid,
                                     key.block,
                                     key.dynamic_shared_bytes,
                                     key.device},
                           std::move(stats));
    }
    profile.runs.emplace(run_key, std::move(run));
  }
  return profile;
}

}  // namespace rfinject::cli
