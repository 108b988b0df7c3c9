// File: interval.cc
#include "collector/arming/interval.h"

#include <cmath>
#include <limits>

namespace rfinject::arming {
namespace {

constexpr double kT95[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                           2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                           2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
constexpr double kT99[] = {63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169,
                           3.106,  3.055, 3.012, 2.977, 2.947, 2.921, 2.898, 2.878, 2.861, 2.845,
                           2.831,  2.819, 2.807, 2.797, 2.787, 2.779, 2.771, 2.763, 2.756, 2.750};

double Expansion(double z, double degrees) {
  double z3 = z * z * z;
  return z + (z3 + z) / (4 * degrees) + (5 * z3 * z * z + 16 * z3 + 3 * z) / (96 * degrees * degrees);
}

double HalfWidth(const Moments& moments, double t) { return t * std::sqrt(moments.variance() / moments.n); }

}  // namespace

void Moments::Add(double value) noexcept {
  ++n;
  double delta = value - mean;
  mean += delta / n;
  m2 += delta * (value - mean);
}

double StudentT95(uint32_t degrees) noexcept {
  return degrees <= 30 ? kT95[degrees - 1] : Expansion(1.959964, degrees);
}

double StudentT99(uint32_t degrees) noexcept {
  return degrees <= 30 ? kT99[degrees - 1] : Expansion(2.575829, degrees);
}

double HalfWidth95(const Moments& moments) noexcept {
  return moments.n < 2 ? std::numeric_limits<double>::infinity() : HalfWidth(moments, StudentT95(moments.n - 1));
}

double HalfWidth99(const Moments& moments) noexcept {
  return moments.n < 2 ? std::numeric_limits<double>::infinity() : HalfWidth(moments, StudentT99(moments.n - 1));
}

}  // namespace rfinject::arming
