#include "cli/import/timed_steps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

namespace rfinject::cli {

Intervals IntervalsOf(const std::vector<Interval>& list) {
  return [&list, next = size_t{0}](Interval* one) mutable {
    if (next == list.size()) return false;
    *one = list[next++];
    return true;
  };
}

Intervals Merged(Intervals a, Intervals b) {
  struct Source {
    Intervals next;
    std::optional<Interval> head;
    void Advance() {
      Interval one;
      head = next(&one) ? std::optional(one) : std::nullopt;
    }
  };
  const auto sources = std::make_shared<std::array<Source, 2>>();
  (*sources)[0].next = std::move(a);
  (*sources)[1].next = std::move(b);
  for (Source& source : *sources) source.Advance();
  return [sources](Interval* one) {
    auto& [first, second] = *sources;
    if (!first.head && !second.head) return false;
    Source& source = !second.head || (first.head && first.head->start <= second.head->start) ? first : second;
    *one = *source.head;
    source.Advance();
    return true;
  };
}

void AddOverlap(const Intervals& next, uint64_t TimedStep::*into, std::vector<TimedStep>* steps) {
  size_t first = 0;  // the steps before it have ended
  int64_t counted = INT64_MIN;
  for (Interval one; next(&one);) {
    one.start = std::max(one.start, counted);
    if (one.end <= one.start) continue;
    counted = one.end;
    while (first < steps->size() && (*steps)[first].at.end <= one.start) ++first;
    for (size_t i = first; i < steps->size() && (*steps)[i].at.start < one.end; ++i) {
      TimedStep& step = (*steps)[i];
      const int64_t from = std::max(one.start, step.at.start), to = std::min(one.end, step.at.end);
      if (to > from) step.*into += static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
    }
  }
}

std::vector<size_t> OddSteps(std::span<const uint64_t> ns) {
  constexpr size_t kLeast = 3;
  std::vector<size_t> odd;
  if (ns.size() < kLeast) return odd;
  const auto median = [](std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  };
  const double usual = median({ns.begin(), ns.end()});
  std::vector<double> apart;
  for (const uint64_t one : ns) apart.push_back(std::abs(static_cast<double>(one) - usual));
  constexpr double kShare = 0.05, kDeviations = 5, kMadToDeviation = 1.4826;  // the last of a normal distribution
  const double most = std::max(kShare * usual, kDeviations * kMadToDeviation * median(apart));
  for (size_t i = 0; i < apart.size(); ++i) {
    if (apart[i] > most) odd.push_back(i);
  }
  return odd;
}

void AddStepTimes(const std::vector<TimedStep>& steps, ShownOfSteps shown, int64_t began_unix_ns, uint32_t rank,
                  Run* run) {
  StepTimes& times = run->step_times[rank];
  for (const TimedStep& step : steps) {
    const uint64_t ns =
        step.at.end > step.at.start ? static_cast<uint64_t>(step.at.end) - static_cast<uint64_t>(step.at.start) : 0;
    const auto where = [](bool known, uint64_t value) { return known ? std::optional(value) : std::nullopt; };
    times.Add({.wall_ns = ns,
               .data_wait_ns = where(shown.data, step.data_ns),
               .gpu_wait_ns = where(shown.calls, step.gpu_wait_ns),
               .gpu_busy_ns = step.busy_ns,
               .launch_gap_ns = ns > step.busy_or_data_ns ? ns - step.busy_or_data_ns : 0,
               .exposed_communication_ns = where(shown.communication, step.busy_ns - step.working_ns)});
    int64_t start_unix_ns = 0;
    if (run->step_spans.size() >= kMostStepSpans ||
        __builtin_add_overflow(began_unix_ns, step.at.start, &start_unix_ns)) {
      continue;
    }
    run->step_spans.push_back({.index = run->step_spans.size(),
                               .start_unix_ns = start_unix_ns,
                               .duration_ns = ns,
                               .data_wait_ns = where(shown.data, step.data_ns),
                               .gpu_wait_ns = where(shown.calls, step.gpu_wait_ns),
                               .busy_ns = step.busy_ns});
  }
}

}  // namespace rfinject::cli
