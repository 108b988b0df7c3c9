// File: turns.h
//
// Sessions of samples and of ranges exclude each other, so they take turns. Samples come first: they cost the program
// next to nothing, and show which kernels need no range. Ranges have their turn while something lacks FLOP, and then
// it is the samples' for good, but for checks. It is pure.
#ifndef RFINJECT_COLLECTOR_ARMING_TURNS_H_
#define RFINJECT_COLLECTOR_ARMING_TURNS_H_

#include <algorithm>
#include <cstdint>

namespace rfinject::arming {

class Turns {
 public:
  // A turn of samples that ranges wait for ends with so many windows that gave bytes, or after so many steps; one of
  // ranges that never know all FLOP, since shapes are always new, after so many.
  static constexpr uint32_t kWindows = 5;
  static constexpr uint64_t kLongestSamples = 64, kLongestRanges = 512;

  // `run_steps`: that the user asked for; 0: all.
  explicit Turns(uint64_t run_steps) noexcept
      : longest_samples_(run_steps != 0 ? std::min(kLongestSamples, run_steps / 3) : kLongestSamples) {}

  // The first turn begins with `step`.
  void Begin(uint64_t step) noexcept { since_step_ = step; }
  // Whether it is the ranges' turn in `step`. `windows`: that have given bytes so far. `can_sample`: there is a
  // device that can be sampled. `wanted`: ranges lack something.
  bool IsRanges(uint64_t step, uint32_t windows, bool can_sample, bool wanted) noexcept {
    const uint64_t steps = step - since_step_;
    const bool next =
        !can_sample || (wanted && (ranges_ ? steps < kLongestRanges
                                           : windows - since_windows_ >= kWindows || steps >= longest_samples_));
    if (next != ranges_) {
      ranges_ = next;
      since_step_ = step;
      since_windows_ = windows;
    }
    return ranges_;
  }
  bool IsRanges() const noexcept { return ranges_; }

 private:
  const uint64_t longest_samples_;
  bool ranges_ = false;
  uint64_t since_step_ = 0;
  uint32_t since_windows_ = 0;
};

}  // namespace rfinject::arming

#endif  // RFINJECT_COLLECTOR_ARMING_TURNS_H_
