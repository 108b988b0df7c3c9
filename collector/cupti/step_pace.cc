#include "collector/cupti/step_pace.h"

#include <algorithm>
#include <utility>

#include "collector/sync.h"

namespace rfinject::cupti {
namespace {

// How many steps later the GPU may do what the host has launched; and in how many the host runs ahead again where the
// GPU had nothing left to do.
constexpr uint32_t kStepsBehind = 4, kStepsToRunAhead = 8;
// The first steps make plans and allocate.
constexpr uint64_t kFirstSteps = 2;

}  // namespace

void StepPace::Begin() noexcept { step_began_ns_ = MonotonicNs(); }

void StepPace::EndStep(const Ours& ours) noexcept {
  const int64_t now = MonotonicNs();
  const auto duration = static_cast<uint64_t>(now - std::exchange(step_began_ns_, now));
  const auto usual = static_cast<int64_t>(std::max(step_ns(), gpu_step_ns_.load(std::memory_order_relaxed)));
  since_call_ = ours.called ? 0 : since_call_ + 1;
  if (ours.ranges_ns > 0 && since_call_ > kStepsToRunAhead && usual > 0) {
    ranges_expected_ns_.fetch_add(ours.ranges_ns, std::memory_order_relaxed);
    // A checkpoint that falls into such a step is not the ranges'.
    const int64_t longer = std::clamp(static_cast<int64_t>(duration) - usual, -usual, usual);
    ranges_longer_ns_.fetch_add(longer, std::memory_order_relaxed);
  }
  if (ours.counted) steps_behind_ = kStepsBehind + 1;
  if (steps_behind_ > 0 && usual > 0) {
    stretch_ns_ += static_cast<int64_t>(duration) - usual;
    if (--steps_behind_ == 0) {
      longer_ns_.fetch_add(static_cast<uint64_t>(std::max<int64_t>(0, stretch_ns_)), std::memory_order_relaxed);
      stretch_ns_ = 0;
    }
  }
  if (ours.counted || steps_++ < kFirstSteps) return;
  durations_[duration_count_++ % kDurations] = duration;
  std::array<uint64_t, kDurations> sorted = durations_;
  const size_t count = std::min<size_t>(duration_count_, kDurations);
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(count / 2);
  std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<std::ptrdiff_t>(count));
  step_ns_.store(*middle, std::memory_order_relaxed);
}

}  // namespace rfinject::cupti
