// File: window_coverage.h
//
// How good a choice of steps of a window is: how often the textbook's interval of their mean (Student's, with the
// finite population of Cochran, Sampling Techniques, 2.6) holds the mean of all steps of the window, where a step has
// something in common with those before it. By simulation with fixed random numbers and in sums and products only, so
// that all ranks and all runs of one build find the same.
//
//   const WindowCoverage coverage(50);
//   if (coverage.WorstError({3, 9, 21, 40}) < 0.02) ...
#ifndef RFINJECT_COLLECTOR_ARMING_WINDOW_COVERAGE_H_
#define RFINJECT_COLLECTOR_ARMING_WINDOW_COVERAGE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rfinject::arming {

class WindowCoverage {
 public:
  // Of windows of `span` steps. Takes some milliseconds and, until it is destroyed, some MB.
  explicit WindowCoverage(uint64_t span);

  // The largest distance from 0.95 of the coverage of `steps` (below the span, at least 2) over memories of three,
  // fourteen and three hundred steps; a longer one is seen in the durations and named (docs/INTERVALS.md). Known to
  // about 0.01. Where it is `enough` or more the rest is not looked at.
  double WorstError(const std::vector<uint64_t>& steps, double enough = 1) const;

 private:
  struct Windows {
    std::vector<float> steps;  // of all windows, one after the other
    std::vector<float> means;  // of each
  };

  uint64_t span_;
  size_t count_;
  std::array<Windows, 3> windows_;  // by memory
};

}  // namespace rfinject::arming

#endif  // RFINJECT_COLLECTOR_ARMING_WINDOW_COVERAGE_H_
