#include "collector/cupti/overlap_solver.h"

#include <gtest/gtest.h>

#include <vector>

#include "collector/cupti/non_negative_least_squares.h"

namespace rfinject::cupti {
namespace {

SymmetricMatrix NormalOf(const std::vector<std::vector<double>>& rows) {
  SymmetricMatrix normal(rows.front().size());
  for (const std::vector<double>& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      for (size_t j = 0; j < row.size(); ++j) normal.at(i, j) += row[i] * row[j];
    }
  }
  return normal;
}

std::vector<double> RightOf(const std::vector<std::vector<double>>& rows, const std::vector<double>& b) {
  std::vector<double> right(rows.front().size());
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t i = 0; i < right.size(); ++i) right[i] += rows[r][i] * b[r];
  }
  return right;
}

TEST(NonNegativeLeastSquares, WhatIsPositiveAnywayIsTheOrdinarySolution) {
  const std::vector<std::vector<double>> rows = {{1, 0, 2}, {0, 3, 1}, {2, 1, 0}, {1, 1, 1}};
  const std::vector<double> b = {1 + 2 * 3, 3 * 2 + 3, 2 + 2, 6};  // of x = (1, 2, 3)
  const std::vector<double> x = SolveNonNegative(NormalOf(rows), RightOf(rows, b));
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(x[i], static_cast<double>(i) + 1, 1e-6);
}

// Without the bound x is (3, -1); with it the best is the projection on the first column alone, 6/3.
TEST(NonNegativeLeastSquares, WhatWouldBeNegativeIsZeroAndTheRestFitsAnew) {
  const std::vector<std::vector<double>> rows = {{1, 1}, {1, 1}, {1, 1}, {0, 0.1}};
  const std::vector<double> b = {2, 2, 2, -0.1};
  const std::vector<double> x = SolveNonNegative(NormalOf(rows), RightOf(rows, b));
  EXPECT_NEAR(x[0], 2, 1e-6);
  EXPECT_EQ(x[1], 0);
}

TEST(NonNegativeLeastSquares, TheInverseTellsWhatCannotBeToldApart) {
  const std::vector<double> apart = InverseDiagonal(NormalOf({{2, 0}, {0, 4}}));
  EXPECT_NEAR(apart[0], 0.25, 1e-6);
  EXPECT_NEAR(apart[1], 0.0625, 1e-6);
  EXPECT_GT(InverseDiagonal(NormalOf({{1, 1, 0}, {2, 2, 0}, {0, 0, 1}}))[0], 1e6);
}

// A window of one sample a row: which share of which kernel it holds, and what it says.
struct Row {
  std::vector<Joined::Part> parts;
  double value;
};

Joined WindowOf(const std::vector<Row>& rows) {
  Joined joined;
  joined.verdict = JoinVerdict::kFits;
  joined.metrics = 1;
  for (const Row& row : rows) {
    joined.shared.push_back({static_cast<uint32_t>(joined.parts.size()), static_cast<uint32_t>(row.parts.size())});
    joined.parts.insert(joined.parts.end(), row.parts.begin(), row.parts.end());
    joined.rest.push_back(row.value);
  }
  return joined;
}

// Kernels 0 and 1 are launches of group 10, kernel 2 is of group 20, 3 of 30.
const std::vector<TimedKernel> kKernels = {{10, 0, 1}, {10, 2, 3}, {20, 4, 5}, {30, 6, 7}};

TEST(OverlapSolver, SeveralWindowsTellKernelsApart) {
  OverlapSolver solver(1);
  // Group 10 moves 100 a launch, group 20 moves 7. One window alone has one sample of both.
  solver.Add(WindowOf({{{{0, 0.5}, {2, 0.5}}, 53.5}}), kKernels);
  EXPECT_FALSE(solver.Solve()[0].told_apart);
  solver.Add(WindowOf({{{{1, 1.0}, {2, 0.25}}, 101.75}}), kKernels);
  solver.Add(WindowOf({{{{0, 0.2}, {2, 1.0}}, 27}}), kKernels);
  const std::vector<OverlapSolver::Solution> solutions = solver.Solve();
  ASSERT_EQ(solutions.size(), 2u);
  EXPECT_EQ(solutions[0].group, 10u);
  ASSERT_TRUE(solutions[0].told_apart && solutions[1].told_apart);
  EXPECT_NEAR(solutions[0].values[0], 100, 1e-3);
  EXPECT_NEAR(solutions[1].values[0], 7, 1e-3);
  EXPECT_NEAR(solutions[1].errors[0], 0, 1e-2);
}

// On an H200 a memory set of 0.3 us was given 130 % of what its memory moves.
TEST(OverlapSolver, WhatNoMemoryMovesIsNotToldApart) {
  OverlapSolver solver(1);
  solver.Add(WindowOf({{{{0, 0.5}, {2, 0.5}}, 53.5}}), kKernels);
  solver.Add(WindowOf({{{{1, 1.0}, {2, 0.25}}, 101.75}}), kKernels);
  solver.Add(WindowOf({{{{0, 0.2}, {2, 1.0}}, 27}}), kKernels);
  const std::vector<OverlapSolver::Solution> solutions = solver.Solve(1, 50);
  EXPECT_FALSE(solutions[0].told_apart);  // 100 in 1 ns
  EXPECT_TRUE(solutions[0].values.empty());
  EXPECT_TRUE(solutions[1].told_apart);
}

TEST(OverlapSolver, KernelsThatAlwaysRunTogetherAreNotToldApartAndHinderNoOther) {
  OverlapSolver solver(1);
  for (const double share : {0.2, 0.5, 0.9, 1.0}) {
    solver.Add(WindowOf({{{{0, share}, {2, share}}, 30 * share}, {{{3, share}}, 5 * share}}), kKernels);
  }
  for (const OverlapSolver::Solution& solution : solver.Solve()) {
    EXPECT_EQ(solution.told_apart, solution.group == 30) << solution.group;
    if (!solution.told_apart) continue;
    EXPECT_NEAR(solution.values[0], 5, 1e-6);
  }
}

TEST(OverlapSolver, NoiseIsInTheError) {
  OverlapSolver solver(1);
  for (int i = 0; i < 400; ++i) solver.Add(WindowOf({{{{0, 1.0}}, i % 2 == 0 ? 90.0 : 110.0}}), kKernels);
  const OverlapSolver::Solution solution = solver.Solve().front();
  EXPECT_NEAR(solution.values[0], 100, 1e-6);
  EXPECT_NEAR(solution.errors[0], 10 / 20.0, 0.01);  // standard deviation 10, 400 samples
}

TEST(OverlapSolver, MemoryIsBounded) {
  OverlapSolver solver(1, /*most_pairs=*/3);
  solver.Add(WindowOf({{{{0, 0.5}, {2, 0.5}}, 1}, {{{2, 0.5}, {3, 0.5}}, 1}}), kKernels);
  EXPECT_EQ(solver.samples(), 1u);
  EXPECT_EQ(solver.dropped(), 1u);
  EXPECT_EQ(solver.Solve().size(), 2u);
}

}  // namespace
}  // namespace rfinject::cupti
