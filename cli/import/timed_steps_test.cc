#include "cli/import/timed_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace rfinject::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(OddStepsTest, AreUnlikeTheOthersEitherWay) {
  EXPECT_THAT(OddSteps(std::vector<uint64_t>{100, 101, 300, 99, 100, 20}), ElementsAre(2, 5));
  EXPECT_THAT(OddSteps(std::vector<uint64_t>{100, 100, 100, 100}), IsEmpty());
  // Less than 5 %, however alike the others are; and steps that differ as much from one another.
  EXPECT_THAT(OddSteps(std::vector<uint64_t>{100, 100, 104, 100}), IsEmpty());
  EXPECT_THAT(OddSteps(std::vector<uint64_t>{60, 80, 100, 120, 140}), IsEmpty());
  EXPECT_THAT(OddSteps(std::vector<uint64_t>{1, 100}), IsEmpty());
  EXPECT_THAT(OddSteps(std::vector<uint64_t>{}), IsEmpty());
}

}  // namespace
}  // namespace rfinject::cli
