#include "collector/record/step_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/wire/sum_code.h"

namespace rfinject {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(SumCode, KeepsSmallSumsAndIsCloseForOthers) {
  for (uint64_t sum = 0; sum < 4096; ++sum) ASSERT_EQ(wire::SumOfCode(wire::SumCode(sum)), sum);
  for (uint64_t sum = 4096; sum < UINT64_MAX / 3; sum = sum * 3 / 2 + 1) {
    const auto back = static_cast<double>(wire::SumOfCode(wire::SumCode(sum)));
    EXPECT_NEAR(back / static_cast<double>(sum), 1, 1.0 / 4096) << sum;
    EXPECT_LE(wire::SumCode(sum), wire::SumCode(sum + sum / 100));
    EXPECT_EQ(wire::SumCode(wire::SumOfCode(wire::SumCode(sum))), wire::SumCode(sum));
  }
  EXPECT_EQ(wire::SumCode(1'000'000), 20290u);
  EXPECT_EQ(wire::SumOfCode(20290), 1'000'064u);
  EXPECT_EQ(wire::SumCode(UINT64_MAX), 110'591u);
  EXPECT_EQ(wire::SumOfCode(UINT32_MAX), UINT64_MAX);
}

TEST(SumCode, FoldsSigns) {
  for (int32_t value : {0, 1, -1, 63, -64, 110'591, -110'591}) {
    EXPECT_EQ(wire::UnfoldSign(wire::FoldSign(value)), value);
  }
  EXPECT_LT(wire::FoldSign(-64), 128u);
}

TEST(StepSums, AddsUpTheSamplesOfAStepByKeyAndMetric) {
  StepSums sums;
  sums.Add(7, 3, {kTime, 100});
  sums.Add(7, 1, {kTime, 10});
  sums.Add(7, 3, {kTime, 200});
  sums.Add(7, 3, {kDramBytes, 5});
  sums.Add(7, 3, {kModelFlop, 5});  // not sampled by step
  EXPECT_THAT(sums.complete(), IsEmpty());
  sums.Add(8, 3, {kTime, 1});
  EXPECT_THAT(sums.complete(), SizeIs(1));  // more bytes may come
  sums.Add(9, 3, {kDramBytes, 5});
  sums.Add(7, 3, {kTime, 100});  // late
  ASSERT_EQ(sums.complete().size(), 2u);
  const SampledStep& time = sums.complete()[0];
  EXPECT_EQ(time.step, 7u);
  EXPECT_EQ(time.metric, kTime);
  EXPECT_THAT(time.key, ElementsAre(1, 2));
  EXPECT_THAT(time.change, ElementsAre(wire::FoldSign(10), wire::FoldSign(300)));
  EXPECT_THAT(sums.complete()[1].key, ElementsAre(3));
}

TEST(StepSums, SaysWhatChangedAndTheKeysOnlyWhereTheyAreOthers) {
  StepSums sums;
  sums.Add(7, 1, {kTime, 10});
  sums.Add(7, 2, {kTime, 20});
  sums.Add(9, 2, {kTime, 25});
  sums.Add(9, 1, {kTime, 7});
  sums.Add(11, 2, {kTime, 25});
  sums.CompleteAll();
  ASSERT_EQ(sums.complete().size(), 3u);
  EXPECT_THAT(sums.complete()[1].key, IsEmpty());
  EXPECT_THAT(sums.complete()[1].change, ElementsAre(wire::FoldSign(-3), wire::FoldSign(5)));
  EXPECT_THAT(sums.complete()[2].key, ElementsAre(2));
  EXPECT_THAT(sums.complete()[2].change, ElementsAre(0));
}

TEST(StepSums, StopsAtItsBound) {
  StepSums sums;
  for (uint64_t step = 0; step < 2 * StepSums::kMaxSteps; ++step) sums.Add(step, 1, {kTime, 10});
  sums.CompleteAll();
  EXPECT_EQ(sums.complete().size(), StepSums::kMaxSteps);
}

}  // namespace
}  // namespace rfinject
