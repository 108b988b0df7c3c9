// File: coverage_verdict.h
//
// Coverage counts how many of a cell's intervals hold the truth, and tells chance from fault: whether a cell that
// keeps to its limits could have given this count.
//
// A run gives a cell several intervals (one a row), and these are not independent. So the count is weighed as if
// fewer had been drawn: by the effective number that the scatter from run to run shows, in the exact interval of a
// proportion (Clopper and Pearson, Biometrika 26, 1934; with an effective number: Korn and Graubard, Survey
// Methodology 24, 1998).
#ifndef RFINJECT_BENCH_COVERAGE_VERDICT_H_
#define RFINJECT_BENCH_COVERAGE_VERDICT_H_

#include <cstdint>

namespace rfinject::bench {

// The limits, in percent.
inline constexpr double kLeastCoverage = 93, kMostCoverage = 97;

enum class Verdict : uint8_t {
  kHolds,  // the figure is within the limits
  kDoubt,  // it is not, but that may be chance
  kFails,  // it is not, and neither is any part of its exact interval
};

class Coverage {
 public:
  // Adds a run: how many intervals were asked for, how many of them were printed, and how many of these hold the
  // truth.
  void AddRun(uint64_t intervals, uint64_t printed, uint64_t covering);

  // A cell in which fewer than one interval in five is printed counts as one that declines.
  bool prints() const { return printed_ > 0 && 5 * printed_ >= intervals_; }
  double declined_share() const;
  uint64_t covering() const { return covering_; }
  uint64_t printed() const { return printed_; }
  double percent() const { return 100.0 * static_cast<double>(covering_) / static_cast<double>(printed_); }
  // How many independent intervals would scatter as these do; at most printed().
  double effective() const;
  // `level` is the probability that a cell which keeps to the limits fails. May be called only where prints().
  Verdict Judge(double level) const;

 private:
  uint64_t intervals_ = 0, printed_ = 0, covering_ = 0, runs_ = 0;   // runs that print
  double printed_squared_ = 0, covering_squared_ = 0, product_ = 0;  // sums over runs
};

// The ends of the exact interval of a proportion, from 0 to 1, that leaves out `level` / 2 on either side; `n` need
// not be whole.
struct Proportion {
  double low = 0, high = 1;
};
Proportion ExactInterval(double share, double n, double level);

}  // namespace rfinject::bench

#endif  // RFINJECT_BENCH_COVERAGE_VERDICT_H_
