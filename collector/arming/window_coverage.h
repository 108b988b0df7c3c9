// File: window_coverage.h
//
// WindowCoverage says how good a choice of steps of a window is: how often the textbook's interval of their mean
// (Student's, with the correction for a finite population of Cochran, Sampling Techniques, 2.6) holds the mean of all
// steps of the window, where a step has something in common with those before it. It simulates that with fixed random
// numbers and with sums and products only, so that all ranks and all runs of one build find the same.
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
  // Simulates windows of `span` steps. This takes some milliseconds and, until the object is destroyed, some MB.
  explicit WindowCoverage(uint64_t span);

  // Returns by how much the coverage of `steps` (at least two numbers below the span) differs from 0.95 in the worst
  // case of processes with a memory of three, fourteen and three hundred steps; reports see a longer memory in the
  // durations and name it (docs/method/INTERVALS.md). The result is good to about 0.01. As soon as the difference is
  // `enough` or more the remaining cases are not looked at.
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
