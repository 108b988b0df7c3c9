#include "collector/cupti/non_negative_least_squares.h"

#include <algorithm>
#include <cmath>

namespace rfinject::cupti {
namespace {

// Added to the diagonal, as a share of it: columns that cannot be told apart give large numbers instead of none.
constexpr double kRidge = 1e-9;
// A gradient below this share of the right side is rounding.
constexpr double kRounding = 1e-10;

// The lower triangle L with L L' = the rows and columns `used` of `matrix`.
std::vector<double> Factor(const SymmetricMatrix& matrix, const std::vector<size_t>& used) {
  const size_t n = used.size();
  std::vector<double> lower(n * n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      double sum = matrix.at(used[i], used[j]) * (i == j ? 1 + kRidge : 1);
      for (size_t k = 0; k < j; ++k) sum -= lower[i * n + k] * lower[j * n + k];
      // The ridge alone keeps this positive but for rounding.
      lower[i * n + j] =
          i == j ? std::sqrt(std::max(sum, matrix.at(used[i], used[i]) * kRidge * kRidge)) : sum / lower[j * n + j];
    }
  }
  return lower;
}

std::vector<double> SolveUsed(const SymmetricMatrix& matrix, const std::vector<size_t>& used,
                              const std::vector<double>& right) {
  const size_t n = used.size();
  const std::vector<double> lower = Factor(matrix, used);
  std::vector<double> x(n);
  for (size_t i = 0; i < n; ++i) {
    double sum = right[used[i]];
    for (size_t k = 0; k < i; ++k) sum -= lower[i * n + k] * x[k];
    x[i] = sum / lower[i * n + i];
  }
  for (size_t i = n; i-- > 0;) {
    double sum = x[i];
    for (size_t k = i + 1; k < n; ++k) sum -= lower[k * n + i] * x[k];
    x[i] = sum / lower[i * n + i];
  }
  return x;
}

}  // namespace

std::vector<double> SolveNonNegative(const SymmetricMatrix& normal, const std::vector<double>& right) {
  const size_t n = normal.size;
  std::vector<double> x(n);
  std::vector<size_t> used;
  double largest = 0;
  for (const double one : right) largest = std::max(largest, std::abs(one));
  // Each round adds one unknown. It ends after 3n rounds as in Lawson and Hanson's program, where rounding might go
  // round in circles.
  for (size_t round = 0; round < 3 * n; ++round) {
    size_t steepest = n;
    double most = largest * kRounding;
    for (size_t i = 0; i < n; ++i) {
      if (std::find(used.begin(), used.end(), i) != used.end()) continue;
      double gradient = right[i];
      for (const size_t k : used) gradient -= normal.at(i, k) * x[k];
      if (gradient > most) {
        most = gradient;
        steepest = i;
      }
    }
    if (steepest == n) break;
    used.push_back(steepest);
    for (;;) {
      const std::vector<double> wanted = SolveUsed(normal, used, right);
      // As far towards what is wanted as nothing becomes negative.
      double way = 1;
      for (size_t k = 0; k < used.size(); ++k) {
        if (wanted[k] <= 0) way = std::min(way, x[used[k]] / (x[used[k]] - wanted[k]));
      }
      for (size_t k = 0; k < used.size(); ++k) x[used[k]] += way * (wanted[k] - x[used[k]]);
      if (way == 1) break;
      std::erase_if(used, [&](size_t i) {
        if (x[i] > kRounding * largest / normal.at(i, i)) return false;
        x[i] = 0;
        return true;
      });
      if (used.empty()) break;
    }
  }
  return x;
}

std::vector<double> InverseDiagonal(const SymmetricMatrix& normal) {
  const size_t n = normal.size;
  std::vector<size_t> all(n);
  for (size_t i = 0; i < n; ++i) all[i] = i;
  const std::vector<double> lower = Factor(normal, all);
  std::vector<double> diagonal(n);
  std::vector<double> column(n);
  for (size_t i = 0; i < n; ++i) {
    // The i-th column of the inverse of L; its square is its part of the diagonal.
    for (size_t j = i; j < n; ++j) {
      double sum = i == j ? 1 : 0;
      for (size_t k = i; k < j; ++k) sum -= lower[j * n + k] * column[k];
      column[j] = sum / lower[j * n + j];
      diagonal[i] += column[j] * column[j];
    }
  }
  return diagonal;
}

}  // namespace rfinject::cupti
