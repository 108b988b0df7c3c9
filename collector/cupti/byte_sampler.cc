#include "collector/cupti/byte_sampler.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "gpus/counters.h"

namespace rfinject::cupti {
namespace {

// Two of the sampled metrics are DRAM bytes, read and written.
constexpr size_t kDramMetrics = 2;
// An interval is a sixth of the usual kernel's time, but not so short that a window has no step's tenth in it, or
// seldom the longest kernel as a whole, or so long that little can be told apart. In ns.
constexpr uint64_t kSamplesOfKernel = 6, kLongestKernels = 3, kShortestInterval = 5'000, kLongestInterval = 20'000;
// After overflows that are not so many windows apart, a window fills a smaller part of the buffer, to a quarter; and
// after so many without one a larger part again.
constexpr uint32_t kSeldom = 8, kSmallestPart = 4;
constexpr uint32_t kWindowsToSolve = 8, kFewestToSolve = 4;
// How far the clocks of samples and records may be apart that are one.
constexpr double kNearClocksNs = 2e3;
// How far they may be apart once they are aligned.
constexpr double kClockErrorNs = 500;
// Clocks and times are not exact: no kernel moves more than this times what memory can.
constexpr double kMostOfMemory = 1.05;
// Of a key that has as many launches with bytes of their own nothing is solved.
constexpr uint32_t kEnoughOwn = 8;
// A key with fewer launches in a step is sampled in whole steps only.
constexpr uint32_t kSpread = 4;
// Of a graph's launch, so many records are told from one another.
constexpr uint32_t kPlaceBits = 10, kPlaces = (1u << kPlaceBits) - 1;

enum Dropped : uint32_t { kUsed, kTooFew, kNoFit, kOverflow, kRefused };
constexpr double kNeverWithoutBytesNs = 10'000;

// The samples of the time in which `kernels` ran, on a clock that is `ahead_ns` ahead: a window that is ended late,
// as by a thread of low priority, has samples of steps that were not timed.
SampleWindow Of(const SampleWindow& window, const std::vector<TimedKernel>& kernels, int64_t ahead_ns) {
  uint64_t last = 0;
  for (const TimedKernel& kernel : kernels) last = std::max(last, kernel.end_ns);
  const auto begin = static_cast<double>(kernels.front().start_ns) - kNearClocksNs;
  const auto end = static_cast<double>(last) + kNearClocksNs;
  SampleWindow of{.metrics = window.metrics};
  for (size_t i = 0; i < window.size(); ++i) {
    const auto ahead = static_cast<uint64_t>(ahead_ns);
    const auto sample_begin = static_cast<double>(window.begin[i] + ahead);
    if (static_cast<double>(window.end[i] + ahead) < begin || sample_begin > end) continue;
    of.begin.push_back(window.begin[i]);
    of.end.push_back(window.end[i]);
    const auto values = window.values.begin() + static_cast<std::ptrdiff_t>(i * window.metrics);
    of.values.insert(of.values.end(), values, values + static_cast<std::ptrdiff_t>(window.metrics));
  }
  return of;
}

// Which part of the time from the first to the last of the kernels at least one ran.
double BusyShare(const std::vector<TimedKernel>& kernels) {
  uint64_t busy = 0, until = kernels.front().start_ns;
  for (const TimedKernel& kernel : kernels) {
    if (kernel.end_ns > until) busy += kernel.end_ns - std::max(kernel.start_ns, until);
    until = std::max(until, kernel.end_ns);
  }
  return static_cast<double>(busy) / static_cast<double>(std::max<uint64_t>(1, until - kernels.front().start_ns));
}

size_t PlaceOf(const std::vector<std::string>& names, std::string_view name) {
  return static_cast<size_t>(std::ranges::find(names, name) - names.begin());
}

uint64_t Rounded(double value) { return value > 0 ? static_cast<uint64_t>(std::llround(std::min(value, 9e18))) : 0; }

}  // namespace

ByteSampler::ByteSampler(std::unique_ptr<PmSampler> sampler, uint32_t device, double dram_bytes_per_ns,
                         LaunchKeys& keys, Recorder& recorder)
    : sampler_(std::move(sampler)),
      device_(device),
      dram_bytes_per_ns_(dram_bytes_per_ns),
      keys_(keys),
      recorder_(recorder),
      samples_(recorder, keys),
      solver_(sampler_->metrics().size()),
      tensor_metric_(PlaceOf(sampler_->metrics(), kTensorCyclesMetric)),
      timeline_(device, tensor_metric_, keys) {
  const std::vector<std::string>& names = sampler_->metrics();
  for (size_t i = kDramMetrics; i < names.size(); ++i) {
    metrics_.push_back(recorder_.DefineMetric(names[i], i == tensor_metric_ ? "cycle" : "byte", 1));
  }
}

int ByteSampler::Open(uint64_t kernel_ns, uint64_t longest_ns) {
  if (sampler_->is_open()) return CUPTI_SUCCESS;
  const uint64_t before = sampler_->interval_ns();
  const uint64_t of_longest = (kLongestKernels * longest_ns + kLateNs) / PmSampler::kSamples;
  uint64_t interval =
      std::clamp(std::max(kernel_ns / kSamplesOfKernel, of_longest), kShortestInterval, kLongestInterval);
  if (before != 0) interval = before;
  // Now and then our thread wakes up late. Where that is often so, as in a program that uses all processors, windows
  // are shorter. Only where that does not help samples are taken more slowly, which tells less apart.
  if (std::exchange(overflow_, false) && since_overflow_ < kSeldom) {
    part_ < kSmallestPart ? part_ *= 2 : interval *= 2;
  }
  since_overflow_ = 0;
  return sampler_->Open(interval);
}

int ByteSampler::Stop() {
  const int result = sampler_->Stop();
  has_window_ = result == CUPTI_SUCCESS;
  return result;
}

void ByteSampler::Drop(trace::SampledWindow* window, uint32_t why) {
  window->dropped = why;
  recorder_.Keep(*window);
}

int ByteSampler::Join(const TimeJoin& join, uint64_t step) {
  if (!std::exchange(has_window_, false)) return CUPTI_SUCCESS;
  if (const int result = sampler_->Decode(&window_, &overflow_); result != CUPTI_SUCCESS) return result;
  // After an overflow the session is dead until it is closed.
  if (overflow_) sampler_->Close();
  if (!overflow_ && ++since_overflow_ >= kSeldom && part_ > 1) {
    part_ /= 2;
    since_overflow_ = 0;
  }
  AddWindow(join, step);
  return CUPTI_SUCCESS;
}

void ByteSampler::AddWindow(const TimeJoin& join, uint64_t step) {
  ++windows_;
  trace::SampledWindow window;
  window.device = device_;
  window.step = step;
  window.interval_ns = sampler_->interval_ns();
  window.samples = window_.size();
  window.gpu_clock_khz = static_cast<uint32_t>(std::llround(std::min(sampler_->clock_hz() / 1e3, 1e8)));
  if (overflow_) return Drop(&window, kOverflow);
  if (window_.size() == 0 || join.ran.empty()) return Drop(&window, kTooFew);
  window.start_unix_ns = static_cast<int64_t>(window_.begin.front());
  for (size_t i = 0; i < window_.size(); ++i) window.duration_ns += window_.end[i] - window_.begin[i];

  std::vector<TimedKernel> kernels;
  std::vector<uint32_t> launch_of;
  std::vector<uint32_t> records(join.launches.size());  // of each launch
  for (const TimeJoin::Ran& ran : join.ran) {
    if (ran.device != device_) continue;
    const bool known = ran.launch != TimeJoin::kNoLaunch;
    // What is of a graph that is not told apart is alike only at the same place in it.
    const uint32_t place = known ? records[ran.launch]++ : 0;
    const uint32_t group = !known       ? LaunchKeys::kNoKey
                           : place == 0 ? join.launches[ran.launch].key
                                        : ~(join.launches[ran.launch].key << kPlaceBits | std::min(place, kPlaces));
    kernels.push_back({group, ran.start_ns, ran.end_ns});
    launch_of.push_back(ran.transfer ? TimeJoin::kNoLaunch : ran.launch);
  }
  // Samples and records have one clock, in ns: a program that gives CUPTI another one is left alone
  // (kernel_window.h). Where that does not explain the samples, they are looked for further away, and several windows
  // must agree.
  if (kernels.empty()) return Drop(&window, kTooFew);
  const SampleWindow timed = Of(window_, kernels, clock_offset_ns_);
  JoinOptions options = {.fitted_metrics = kDramMetrics, .offset_tolerance_ns = kNearClocksNs};
  const auto ahead = static_cast<uint64_t>(clock_offset_ns_);
  if (timed.size() > 0) options.first_sample_ns = timed.begin.front() + ahead;
  const Joined joined = JoinSamples(timed, kernels, options);
  // Samples in which kernels have less than half of their share by time are of another time, or of counters that
  // somebody else holds.
  const double least = BusyShare(kernels) / 2;
  const bool zero = std::ranges::all_of(window_.values, [](double value) { return value == 0; });
  zero_windows_ = zero ? zero_windows_ + 1 : 0;
  const bool fits =
      !zero && joined.fits() && joined.share_in_kernels >= least && std::fabs(joined.offset_ns) <= kNearClocksNs;
  if (!fits && !zero) {
    options.first_sample_ns = window_.begin.front() + ahead;
    options.offset_tolerance_ns = JoinOptions{}.offset_tolerance_ns;
    const Joined other = JoinSamples(window_, kernels, options);
    if (other.verdict == JoinVerdict::kFits && other.share_in_kernels >= least) LookElsewhere(other.offset_ns);
  }
  if (!fits) return Drop(&window, joined.verdict == JoinVerdict::kTooFew ? kTooFew : kNoFit);
  const uint64_t first = kernels.front().start_ns, last = kernels.back().end_ns;
  double bytes = 0;
  for (size_t i = 0; i < timed.size(); ++i) {
    const double begin = static_cast<double>(timed.begin[i] + ahead) + joined.offset_ns;
    if (begin < static_cast<double>(first) || begin > static_cast<double>(last)) continue;
    for (size_t m = 0; m < kDramMetrics; ++m) bytes += timed.values[i * timed.metrics + m];
  }
  window.dram_bytes = Rounded(bytes);
  window.kernel_bytes = Rounded(bytes * joined.share_in_kernels);
  AddLaunches(join, joined, kernels, launch_of, &window);
  NoteTensor(timed, static_cast<double>(clock_offset_ns_) + joined.offset_ns, kernels, joined);
  timeline_.Add(join, timed, static_cast<double>(clock_offset_ns_) + joined.offset_ns);
  timeline_.Tell(recorder_);
  solver_.Add(joined, kernels);
  recorder_.Keep(window);
  ++used_windows_;
  if (++windows_of_solver_ >= kWindowsToSolve) Solve();
}

// A kernel has no tensor FLOP if the pipes rested in the samples well inside it, or, where these are not most of it,
// in all samples that it touches. What ran beside it can only make it look as if it had some, and it is counted then.
void ByteSampler::NoteTensor(const SampleWindow& timed, double ahead_ns, const std::vector<TimedKernel>& kernels,
                             const Joined& joined) {
  if (tensor_metric_ >= timed.metrics) return;
  std::vector<double> begin, end;
  for (size_t i = 0; i < timed.size(); ++i) {
    begin.push_back(static_cast<double>(timed.begin[i]) + ahead_ns);
    end.push_back(static_cast<double>(timed.end[i]) + ahead_ns);
  }
  for (size_t k = 0; k < kernels.size(); ++k) {
    if (!joined.kernels[k].whole || kernels[k].group >= keys_.size()) continue;
    const auto from = static_cast<double>(kernels[k].start_ns), to = static_cast<double>(kernels[k].end_ns);
    double inside_ns = 0, inside = 0, touching = 0;
    auto i = static_cast<size_t>(std::lower_bound(end.begin(), end.end(), from - kClockErrorNs) - end.begin());
    for (; i < begin.size() && begin[i] < to + kClockErrorNs; ++i) {
      const double cycles = timed.values[i * timed.metrics + tensor_metric_];
      touching += cycles;
      if (begin[i] < from + kClockErrorNs || end[i] > to - kClockErrorNs) continue;
      inside += cycles;
      inside_ns += end[i] - begin[i];
    }
    if ((2 * inside_ns >= to - from ? inside : touching) == 0) no_tensor_.insert(kernels[k].group);
  }
}

void ByteSampler::LookElsewhere(double offset_ns) {
  constexpr uint32_t kThatAgree = 3;
  if (std::fabs(offset_ns - elsewhere_ns_) > kNearClocksNs) {
    elsewhere_ns_ = offset_ns;
    agree_ = 0;
  }
  if (++agree_ < kThatAgree) return;
  clock_offset_ns_ += static_cast<int64_t>(offset_ns);
  elsewhere_ns_ = 0;
  agree_ = 0;
}

// A launch has bytes of its own if all that it ran was wholly inside the sampled time, alone. A key is sampled in a
// step if all its launches of that step are: so the sums by step are those of whole steps. Keys whose launches are
// spread over more of a step than a window holds are sampled launch by launch.
void ByteSampler::AddLaunches(const TimeJoin& join, const Joined& joined, const std::vector<TimedKernel>& kernels,
                              const std::vector<uint32_t>& launch_of, trace::SampledWindow* window) {
  struct Launch {
    uint32_t records = 0;
    bool whole = true;
    double ns = 0, alone_ns = 0;
    // A graph's launch has its kernels next to each other: what these share stays within it.
    bool own() const { return whole && (records > 1 ? 2 * alone_ns >= ns : alone_ns == ns); }
    std::vector<double> values;
  };
  std::vector<Launch> launches(join.launches.size());
  for (size_t i = 0; i < launch_of.size(); ++i) {
    if (launch_of[i] == TimeJoin::kNoLaunch) continue;
    Launch& launch = launches[launch_of[i]];
    ++launch.records;
    launch.whole = launch.whole && joined.kernels[i].whole;
    const double ns = static_cast<double>(kernels[i].end_ns - kernels[i].start_ns);
    launch.ns += ns;
    if (joined.kernels[i].alone) launch.alone_ns += ns;
    launch.values.resize(joined.metrics);
    for (size_t m = 0; m < joined.metrics; ++m) launch.values[m] += joined.value(i, m);
  }
  struct OfStep {
    uint32_t all = 0;
    std::vector<const Launch*> own;
  };
  std::map<std::pair<uint64_t, uint32_t>, OfStep> of_step;
  for (size_t i = 0; i < launches.size(); ++i) {
    const TimeJoin::Launch& launch = join.launches[i];
    if (launches[i].records == 0 || keys_.Identity(launch.key).device != device_) continue;
    OfStep& of = of_step[{launch.step, launch.key}];
    ++of.all;
    if (!launches[i].whole) continue;
    ++(launches[i].own() ? window->launches : window->shared_launches);
    if (launches[i].own()) of.own.push_back(&launches[i]);
  }
  for (const auto& [place, of] : of_step) {
    const auto [in_step, key] = place;
    const bool complete = of.own.size() == of.all;
    if (!complete && (own_[key] != 0 || of.all < kSpread)) continue;
    if (complete) own_[key] += of.all;
    for (const Launch* launch : of.own) {
      // So long a kernel moves something; what stays zero was not counted.
      if (launch->ns > kNeverWithoutBytesNs && launch->values[0] + launch->values[1] == 0) continue;
      samples_.AddSample(key, complete ? in_step : Recorder::kOfNoStep, kDramBytes,
                         Rounded(launch->values[0] + launch->values[1]));
      for (size_t m = kDramMetrics; m < launch->values.size(); ++m) {
        samples_.AddSample(key, Recorder::kOfNoStep, metrics_[m - kDramMetrics], Rounded(launch->values[m]));
      }
    }
  }
}

void ByteSampler::Solve() {
  if (windows_of_solver_ < kFewestToSolve) return;
  windows_of_solver_ = 0;
  for (const OverlapSolver::Solution& solution :
       std::exchange(solver_, OverlapSolver(sampler_->metrics().size()))
           .Solve(dram_bytes_per_ns_ > 0 ? kDramMetrics : 0, kMostOfMemory * dram_bytes_per_ns_)) {
    if (solution.group >= keys_.size() || !solution.told_apart || own_[solution.group] >= kEnoughOwn) continue;
    samples_.AddSample(solution.group, Recorder::kOfNoStep, kDramBytes,
                       Rounded(solution.values[0] + solution.values[1]));
  }
}

}  // namespace rfinject::cupti
