#include "cli/profile/step_clock.h"

#include <algorithm>
#include <optional>

#include "cli/profile/nearest.h"
#include "cli/profile/two_clusters.h"

namespace rfinject::cli {
namespace {

// Behind an armed step the queue of launches fills again within so many: it holds 1,024 launches, which are four
// steps of a small network, and one step that the host hurries through may follow another.
constexpr uint64_t kFilling = 10;
// A program's first steps, in which it makes plans and allocates, and the queue fills for the first time.
constexpr uint64_t kFirstSteps = 10;
// An older library opened its sessions within so many steps before the step that it armed.
constexpr uint64_t kOpening = 2;
// Fewer undisturbed steps may all be odd ones.
constexpr size_t kLeastUndisturbed = 16;
// Fewer periods may all be of one accident.
constexpr size_t kLeastPeriods = 3;
// So many undisturbed steps say by the host's clock what a mean step takes, and better than the few that windows
// hold.
constexpr size_t kLongSpan = 64;
// A program that waits for data for so much of its time has steps as different as its waits, and their mean counts.
constexpr double kWaitsForData = 0.05;
// Of two kinds of steps that come and go, the rarer must be more than accidents are.
constexpr size_t kLeastOfKinds = 16;
constexpr double kRarerKind = 0.15;
// A step that counting made longer by less may be longer by itself.
constexpr double kMuchLonger = 1.1;

double MedianOf(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// 0 of none.
double MeanOf(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

// The usual one of `values`, which are not empty. A host that hurries after a stall makes steps shorter, and a stall
// makes one longer: neither moves the median. Where all differ, as kinds of steps that come and go do, the mean
// counts.
double Usual(const std::vector<double>& values, bool all_differ) {
  return all_differ ? MeanOf(values) : MedianOf(values);
}

// Values of single steps, by the step's place in its iteration.
using ByPlace = std::vector<std::vector<double>>;

// The mean over an iteration of what is usual at each place; nothing where one has fewer than `least` values.
std::optional<double> UsualOf(const ByPlace& places, bool all_differ, size_t least) {
  double sum = 0;
  for (const std::vector<double>& values : places) {
    if (values.size() < std::max<size_t>(least, 1)) return std::nullopt;
    sum += Usual(values, all_differ);
  }
  return sum / static_cast<double>(places.size());
}

std::vector<double> Joined(const ByPlace& places) {
  std::vector<double> all;
  for (const std::vector<double>& values : places) all.insert(all.end(), values.begin(), values.end());
  return all;
}

bool AreOfTwoKinds(const std::vector<double>& values) {
  const auto least = static_cast<size_t>(kRarerKind * static_cast<double>(values.size()));
  return values.size() >= kLeastOfKinds && FindTwoClusters(values, least).has_value();
}

// The steps that counting touches itself: those that are armed, and those in which an older library opened sessions.
std::vector<uint64_t> Touched(std::span<const HostStep> steps, std::span<const uint64_t> timed, bool gpu_steps) {
  std::vector<uint64_t> touched;
  for (const HostStep& one : steps) {
    if (one.armed) touched.push_back(one.step);
  }
  if (gpu_steps || touched.empty()) return touched;
  const size_t armed = touched.size();
  for (const uint64_t step : timed) {
    const auto next = std::lower_bound(touched.begin(), touched.begin() + static_cast<std::ptrdiff_t>(armed), step);
    const bool opens = next != touched.begin() + static_cast<std::ptrdiff_t>(armed) && *next - step <= kOpening;
    if (opens) touched.push_back(step);
  }
  std::sort(touched.begin(), touched.end());
  return touched;
}

// Which of the steps are touched, or follow one that is before the queue is full again.
std::vector<bool> Disturbed(std::span<const HostStep> steps, std::span<const uint64_t> touched) {
  std::vector<bool> disturbed;
  auto next = touched.begin();
  std::optional<uint64_t> last;
  for (const HostStep& one : steps) {
    while (next != touched.end() && *next <= one.step) last = *next++;
    disturbed.push_back(last && one.step - *last < kFilling);
  }
  return disturbed;
}

std::vector<size_t> Undisturbed(std::span<const HostStep> steps, const std::vector<bool>& disturbed) {
  std::vector<size_t> calm, others;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].armed) continue;
    others.push_back(i);
    if (!disturbed[i] && steps[i].step >= kFirstSteps) calm.push_back(i);
  }
  return calm.size() >= kLeastUndisturbed ? calm : others;
}

// The durations of undisturbed steps, or the means of iterations where these have several.
std::vector<double> DurationsOf(std::span<const HostStep> steps, std::span<const size_t> places, size_t period) {
  std::vector<double> values;
  double sum = 0;
  size_t in_a_row = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    const auto ns = [&](size_t at) { return static_cast<double>(steps[places[at]].time.wall_ns); };
    const bool follows = i > 0 && steps[places[i]].step == steps[places[i - 1]].step + 1;
    if (!follows) sum = 0, in_a_row = 0;
    sum += ns(i);
    ++in_a_row;
    if (in_a_row > period) sum -= ns(i - period);
    if (in_a_row >= period) values.push_back(sum / static_cast<double>(period));
  }
  return values;
}

bool WaitsForData(std::span<const HostStep> steps, std::span<const size_t> places) {
  double data = 0, all = 0;
  for (const size_t place : places) {
    data += static_cast<double>(steps[place].time.data_wait_ns.value_or(0));
    all += static_cast<double>(steps[place].time.wall_ns);
  }
  return data > kWaitsForData * all;
}

void AddCost(std::span<const HostStep> steps, const std::vector<bool>& disturbed, double usual_ns, StepClock* clock) {
  double longer = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!disturbed[i]) continue;
    const double ns = static_cast<double>(steps[i].time.wall_ns);
    longer += ns - usual_ns;
    clock->counting_steps += ns > kMuchLonger * usual_ns;
  }
  clock->counting_ns = Nearest(std::max(0.0, longer));
}

}  // namespace

StepClock ReadStepClock(std::span<const HostStep> steps, std::span<const trace::GpuStep> gpu_steps,
                        std::span<const uint64_t> timed, size_t period) {
  StepClock clock;
  const std::vector<bool> disturbed = Disturbed(steps, Touched(steps, timed, !gpu_steps.empty()));
  clock.undisturbed = Undisturbed(steps, disturbed);
  std::vector<double> durations = DurationsOf(steps, clock.undisturbed, period);
  if (durations.empty()) durations = DurationsOf(steps, clock.undisturbed, 1);
  ByPlace periods(period), busy(period);
  const auto add = [period](uint64_t step, uint64_t ns, ByPlace* places) {
    if (ns > 0) (*places)[step % period].push_back(static_cast<double>(ns));
  };
  for (const trace::GpuStep& one : gpu_steps) {
    add(one.step, one.period_ns, &periods);
    add(one.step, one.busy_ns, &busy);
  }
  for (const HostStep& one : gpu_steps.empty() ? steps : std::span<const HostStep>()) {
    add(one.step, one.time.gpu_busy_ns.value_or(0), &busy);
  }
  // What the GPU has to do tells kinds of steps; a period may have waited for the host, too.
  const bool kinds = period == 1 && AreOfTwoKinds(busy[0]);
  const bool differ = WaitsForData(steps, clock.undisturbed);
  const double by_host = durations.empty() ? 0 : Usual(durations, differ || AreOfTwoKinds(durations));
  if (by_host > 0) AddCost(steps, disturbed, by_host, &clock);
  const std::optional<double> by_gpu = UsualOf(periods, differ || kinds, kLeastPeriods);
  // Chance says how many steps of each kind are in windows.
  const bool of_long_span = (differ || kinds) && clock.undisturbed.size() >= kLongSpan;
  clock.by_gpu = by_gpu && !of_long_span;
  clock.usual_ns = Nearest(clock.by_gpu ? *by_gpu : of_long_span ? MeanOf(durations) : by_host);
  clock.busy_ns = Nearest(UsualOf(busy, kinds, 1).value_or(MeanOf(Joined(busy))));
  return clock;
}

}  // namespace rfinject::cli
