#include "cli/profile/nearest.h"

#include <gtest/gtest.h>

#include <limits>

namespace rfinject::cli {
namespace {

TEST(Nearest, Rounds) {
  EXPECT_EQ(Nearest(0.4), 0u);
  EXPECT_EQ(Nearest(0.5), 1u);
  EXPECT_EQ(Nearest(9007199254740992.0), 9007199254740992u);
}

TEST(Nearest, StaysWithinWhatThereIs) {
  EXPECT_EQ(Nearest(-1), 0u);
  EXPECT_EQ(Nearest(18446744073709549568.0), 18446744073709549568u);  // the last one below 2^64
  EXPECT_EQ(Nearest(18446744073709551616.0), UINT64_MAX);
  EXPECT_EQ(Nearest(std::numeric_limits<double>::infinity()), UINT64_MAX);
  EXPECT_EQ(Nearest(std::numeric_limits<double>::quiet_NaN()), 0u);
}

}  // namespace
}  // namespace rfinject::cli
