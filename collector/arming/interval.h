// File: interval.h
//
// Mean, variance and Student's interval of samples that come one at a time. They follow Welford's recurrence
// (Technometrics 4(3), 1962), which keeps no sum of squares, so that nothing cancels when the spread is small beside
// the mean.
#ifndef RFINJECT_COLLECTOR_ARMING_INTERVAL_H_
#define RFINJECT_COLLECTOR_ARMING_INTERVAL_H_

#include <cstdint>

namespace rfinject::arming {

struct Moments {
  uint32_t n = 0;
  double mean = 0;
  double m2 = 0;  // sum of squared deviations from the mean

  void Add(double value) noexcept;
  double variance() const noexcept { return n < 2 ? 0 : m2 / (n - 1); }
};

// Half the width of the mean's two-sided interval, absolute; infinity below 2 samples. Student's t in it is exact to
// three decimals.
double HalfWidth95(const Moments& moments) noexcept;
double HalfWidth99(const Moments& moments) noexcept;

}  // namespace rfinject::arming

#endif  // RFINJECT_COLLECTOR_ARMING_INTERVAL_H_
