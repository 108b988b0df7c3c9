#include "bench/coverage_verdict.h"

#include <gtest/gtest.h>

namespace rfinject::bench {
namespace {

// 964 cells at once, one family in twenty wrong.
constexpr double kLevel = 0.05 / 964;

// Makes `runs` runs of `rows` intervals, each of which holds all or none.
Coverage AllOrNone(uint64_t covering, uint64_t runs, uint64_t rows) {
  Coverage coverage;
  for (uint64_t run = 0; run < runs; ++run) coverage.AddRun(rows, rows, run < covering ? rows : 0);
  return coverage;
}

TEST(CoverageVerdictTest, AnExactIntervalIsThatOfTheTables) {
  // Clopper and Pearson: 10 of 10 hold, 95 %: from 1 - 0.975^(1/10)…; 5 of 10: 18.7 to 81.3 %.
  EXPECT_NEAR(ExactInterval(0.5, 10, 0.05).low, 0.1871, 5e-5);
  EXPECT_NEAR(ExactInterval(0.5, 10, 0.05).high, 0.8129, 5e-5);
  EXPECT_NEAR(ExactInterval(1, 10, 0.05).low, 0.6915, 5e-5);
  EXPECT_EQ(ExactInterval(1, 10, 0.05).high, 1);
  EXPECT_NEAR(ExactInterval(0, 10, 0.05).high, 0.3085, 5e-5);
}

TEST(CoverageVerdictTest, ChanceIsDoubtAndAFaultFails) {
  EXPECT_EQ(AllOrNone(956, 1000, 1).Judge(kLevel), Verdict::kHolds);
  EXPECT_EQ(AllOrNone(974, 1000, 1).Judge(kLevel), Verdict::kDoubt) << "0.4 % of 1000 runs";
  EXPECT_EQ(AllOrNone(900, 1000, 1).Judge(kLevel), Verdict::kDoubt);
  EXPECT_EQ(AllOrNone(870, 1000, 1).Judge(kLevel), Verdict::kFails);
  EXPECT_EQ(AllOrNone(999, 1000, 1).Judge(kLevel), Verdict::kFails);
  // With four times as many runs less is left to chance.
  EXPECT_EQ(AllOrNone(3600, 4000, 1).Judge(kLevel), Verdict::kFails);
}

TEST(CoverageVerdictTest, RowsOfOneRunAreNotRunsOfTheirOwn) {
  EXPECT_NEAR(AllOrNone(900, 1000, 1).effective(), 1000, 2);
  EXPECT_NEAR(AllOrNone(900, 1000, 16).effective(), 1000, 2) << "all rows of a run fall together";
  EXPECT_EQ(AllOrNone(3600, 4000, 16).printed(), 64000u);
  Coverage independent;  // each tenth interval misses, spread over all runs
  for (int run = 0; run < 1000; ++run) independent.AddRun(10, 10, 9);
  EXPECT_EQ(independent.effective(), 1000) << "no scatter at all";
  EXPECT_EQ(AllOrNone(1000, 1000, 16).effective(), 1000);
}

TEST(CoverageVerdictTest, ACellThatSeldomPrintsDeclines) {
  Coverage coverage;
  for (int run = 0; run < 100; ++run) coverage.AddRun(1, run < 19 ? 1 : 0, run < 19 ? 1 : 0);
  EXPECT_FALSE(coverage.prints());
  EXPECT_NEAR(coverage.declined_share(), 0.81, 1e-12);
  coverage.AddRun(0, 1, 1);
  EXPECT_TRUE(coverage.prints());
  EXPECT_FALSE(Coverage().prints());
}

}  // namespace
}  // namespace rfinject::bench
