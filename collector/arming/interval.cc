#include "collector/arming/interval.h"

#include <cmath>
#include <limits>

namespace rfinject::arming {
namespace {

// Student's t, two-sided, by degrees of freedom from 1 to 30, and the normal quantile beyond.
struct Quantiles {
  double t[30];
  double normal;
};
constexpr Quantiles k95 = {
    {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
     2.120,  2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042},
    1.959964};
constexpr Quantiles k99 = {
    {63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012, 2.977, 2.947,
     2.921,  2.898, 2.878, 2.861, 2.845, 2.831, 2.819, 2.807, 2.797, 2.787, 2.779, 2.771, 2.763, 2.756, 2.750},
    2.575829};

// Beyond the table it is the expansion of Fisher and Cornish.
double StudentT(const Quantiles& of, uint32_t degrees) {
  if (degrees <= 30) return of.t[degrees - 1];
  const double z = of.normal, z3 = z * z * z, d = degrees;
  return z + (z3 + z) / (4 * d) + (5 * z3 * z * z + 16 * z3 + 3 * z) / (96 * d * d);
}

double HalfWidth(const Moments& moments, const Quantiles& of) {
  if (moments.n < 2) return std::numeric_limits<double>::infinity();
  return StudentT(of, moments.n - 1) * std::sqrt(moments.variance() / moments.n);
}

}  // namespace

void Moments::Add(double value) noexcept {
  ++n;
  double delta = value - mean;
  mean += delta / n;
  m2 += delta * (value - mean);
}

double HalfWidth95(const Moments& moments) noexcept { return HalfWidth(moments, k95); }
double HalfWidth99(const Moments& moments) noexcept { return HalfWidth(moments, k99); }

}  // namespace rfinject::arming
