// File: non_negative_least_squares.h
//
// Least squares without negative numbers, of a small dense problem that is given by its normal equations.
#ifndef RFINJECT_COLLECTOR_CUPTI_NON_NEGATIVE_LEAST_SQUARES_H_
#define RFINJECT_COLLECTOR_CUPTI_NON_NEGATIVE_LEAST_SQUARES_H_

#include <cstddef>
#include <vector>

namespace rfinject::cupti {

// A symmetric matrix, row by row.
struct SymmetricMatrix {
  explicit SymmetricMatrix(size_t n) : size(n), values(n * n) {}
  double& at(size_t row, size_t column) { return values[row * size + column]; }
  double at(size_t row, size_t column) const { return values[row * size + column]; }

  size_t size;
  std::vector<double> values;
};

// The x >= 0 with the least |Ax - b|, where `normal` is A'A, with a positive diagonal, and `right` is A'b. Lawson and
// Hanson, Solving Least Squares Problems (1974), chapter 23; takes time in proportion to the fourth power of the size
// where all of x is positive.
std::vector<double> SolveNonNegative(const SymmetricMatrix& normal, const std::vector<double>& right);

// The diagonal of the inverse of `normal`, which has a positive diagonal; where a column is a combination of others,
// a very large number. Times the variance of a residual it is the variance of an unknown.
std::vector<double> InverseDiagonal(const SymmetricMatrix& normal);

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_NON_NEGATIVE_LEAST_SQUARES_H_
