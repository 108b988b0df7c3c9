#include "collector/cupti/sample_timeline.h"

namespace rfinject::cupti {

SampleTimeline::SampleTimeline(const SampleWindow& window, const std::vector<TimedKernel>& kernels,
                               uint64_t first_sample_ns)
    : window_(window), first_sample_ns_(first_sample_ns), origin_(kernels.front().start_ns) {
  std::vector<uint32_t> running;
  double now = 0;
  const auto go_to = [&](double until) {
    while (now < until) {
      double next = until;
      for (const uint32_t kernel : running) next = std::min(next, Time(kernels[kernel].end_ns));
      segments_.push_back({now, next, static_cast<uint32_t>(members_.size()), static_cast<uint32_t>(running.size())});
      members_.insert(members_.end(), running.begin(), running.end());
      now = next;
      std::erase_if(running, [&](uint32_t kernel) { return Time(kernels[kernel].end_ns) <= now; });
    }
  };
  double last = 0;
  for (uint32_t i = 0; i < kernels.size(); ++i) {
    go_to(Time(kernels[i].start_ns));
    // An end that does not lie behind the time that was come to would make a segment of no length.
    if (Time(kernels[i].end_ns) > now) running.push_back(i);
    last = std::max(last, Time(kernels[i].end_ns));
  }
  go_to(last);
}

}  // namespace rfinject::cupti
