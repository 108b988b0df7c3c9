#include "collector/cupti/step_timeline.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace rfinject::cupti {
namespace {

// A step of which less is found again is not the one that is shown: the program does something else now.
constexpr double kFoundAgain = 0.9;
// Worth telling: so much more of the step.
constexpr double kWorthTelling = 0.1, kWhole = 0.98;

}  // namespace

// Takes the first step of the window from its first kernel to that of the next one.
bool StepTimeline::Begin(const TimeJoin& join) {
  std::map<uint64_t, uint64_t> begins;
  for (const TimeJoin::Ran& ran : join.ran) {
    if (ran.launch == TimeJoin::kNoLaunch || ran.device != device_) continue;
    begins.try_emplace(join.launches[ran.launch].step, ran.start_ns);
  }
  const auto first = std::ranges::find_if(begins, [&](const auto& one) { return begins.contains(one.first + 1); });
  if (first == begins.end()) return false;
  const uint64_t begin = first->second, end = begins.at(first->first + 1);
  if (end <= begin) return false;
  kernels_.clear();
  kernel_at_.clear();
  std::unordered_map<uint32_t, uint32_t> launches;
  for (const TimeJoin::Ran& ran : join.ran) {
    if (ran.launch == TimeJoin::kNoLaunch || ran.device != device_) continue;
    const TimeJoin::Launch& launch = join.launches[ran.launch];
    if (launch.step != first->first) continue;
    if (kernels_.size() == kMaxKernels) {
      kernels_.clear();
      return false;
    }
    kernel_at_.emplace(Place(launch.key, launches[launch.key]++), kernels_.size());
    kernels_.push_back({launch.key, ran.start_ns - begin, ran.end_ns - begin, ran.stream});
  }
  step_ = first->first;
  period_ns_ = end - begin;
  bin_ns_ = static_cast<double>(period_ns_) / kBins;
  bins_.assign(kBins, {});
  windows_ = 0;
  told_ = 0;
  return !kernels_.empty();
}

void StepTimeline::Put(const Kernel& kernel, double from, double to, double bytes_per_ns, double cycles_per_ns) {
  const auto start = static_cast<double>(kernel.start_ns), length = static_cast<double>(kernel.end_ns) - start;
  const double begin = start + from * length;
  const double end = std::min(start + to * length, static_cast<double>(period_ns_));
  for (auto i = static_cast<size_t>(begin / bin_ns_); i < kBins; ++i) {
    const double bin_begin = static_cast<double>(i) * bin_ns_;
    const double ns = std::min(end, bin_begin + bin_ns_) - std::max(begin, bin_begin);
    if (!(ns > 0)) break;
    bins_[i].ns += ns;
    bins_[i].bytes += bytes_per_ns * ns;
    bins_[i].cycles += cycles_per_ns * ns;
  }
}

void StepTimeline::Add(const TimeJoin& join, const SampleWindow& window, double ahead_ns) {
  if (kernels_.empty() && !Begin(join)) return;
  struct Now {
    size_t kernel;
    double begin, end;
  };
  std::vector<Now> ran;
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> launches;
  size_t all = 0;
  for (const TimeJoin::Ran& one : join.ran) {
    if (one.launch == TimeJoin::kNoLaunch || one.device != device_) continue;
    const TimeJoin::Launch& launch = join.launches[one.launch];
    ++all;
    const auto known = kernel_at_.find(Place(launch.key, launches[{launch.step, launch.key}]++));
    if (known == kernel_at_.end() || one.end_ns <= one.start_ns) continue;
    ran.push_back({known->second, static_cast<double>(one.start_ns), static_cast<double>(one.end_ns)});
  }
  if (static_cast<double>(ran.size()) < kFoundAgain * static_cast<double>(all)) {
    kernels_.clear();  // the next window begins anew
    return;
  }
  ++windows_;
  const bool has_tensor = tensor_metric_ < window.metrics;
  size_t first = 0;
  for (size_t i = 0; i < window.size(); ++i) {
    const double begin = static_cast<double>(window.begin[i]) + ahead_ns;
    const double end = static_cast<double>(window.end[i]) + ahead_ns, length = end - begin;
    if (!(length > 0)) continue;
    const double* const values = &window.values[i * window.metrics];
    const double bytes = (values[0] + values[1]) / length;
    const double cycles = has_tensor ? values[tensor_metric_] / length : 0;
    // Kernels of several streams may end in another order than they began.
    while (first < ran.size() && ran[first].end <= begin) ++first;
    for (size_t k = first; k < ran.size() && ran[k].begin < end; ++k) {
      const double from = std::max(begin, ran[k].begin), to = std::min(end, ran[k].end);
      if (!(to > from)) continue;
      const double ns = ran[k].end - ran[k].begin;
      Put(kernels_[ran[k].kernel], (from - ran[k].begin) / ns, (to - ran[k].begin) / ns, bytes, cycles);
    }
  }
}

double StepTimeline::Sampled() const {
  size_t busy = 0, sampled = 0;
  size_t covered = 0;
  for (const Kernel& kernel : kernels_) {
    const auto end = std::min(kBins, static_cast<size_t>(std::ceil(static_cast<double>(kernel.end_ns) / bin_ns_)));
    for (auto i = std::max(covered, static_cast<size_t>(static_cast<double>(kernel.start_ns) / bin_ns_)); i < end;
         ++i) {
      ++busy;
      sampled += bins_[i].ns > 0 ? 1 : 0;
    }
    covered = std::max(covered, end);
  }
  return busy == 0 ? 0 : static_cast<double>(sampled) / static_cast<double>(busy);
}

void StepTimeline::Tell(Recorder& recorder) {
  if (kernels_.empty()) return;
  const double sampled = Sampled();
  if (sampled < told_ + kWorthTelling && !(sampled >= kWhole && told_ < kWhole)) return;
  told_ = sampled;
  Timeline told;
  trace::StepTimeline& timeline = told.timeline;
  timeline.device = device_;
  timeline.step = step_;
  timeline.period_ns = period_ns_;
  timeline.windows = windows_;
  for (const Bin& bin : bins_) {
    const bool known = bin.ns > 0;
    timeline.sampled_ns.push_back(static_cast<uint64_t>(std::llround(std::min(bin.ns, 1e15))));
    // A byte a ns is a GB/s.
    timeline.dram_mb_per_s.push_back(known ? static_cast<uint64_t>(std::llround(1e3 * bin.bytes / bin.ns)) : 0);
    timeline.tensor_cycles_per_us.push_back(known ? static_cast<uint64_t>(std::llround(1e3 * bin.cycles / bin.ns))
                                                  : 0);
  }
  for (const Kernel& kernel : kernels_) {
    timeline.start_ns.push_back(kernel.start_ns);
    timeline.duration_ns.push_back(kernel.end_ns - kernel.start_ns);
    timeline.stream.push_back(kernel.stream);
    told.launched.push_back(keys_.Identity(kernel.key));
  }
  recorder.NoteTimeline(std::move(told));
}

}  // namespace rfinject::cupti
