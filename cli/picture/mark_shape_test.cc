#include "cli/picture/mark_shape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "proto/wire/vocabulary.h"

namespace rfinject::cli {
namespace {

TEST(MarkPath, HasTheAreaOfTheCircleForEveryPhase) {
  for (int phase = 0; phase < static_cast<int>(kPhaseNames.size()); ++phase) {
    // The circle itself; validation is forward work.
    if (phase == static_cast<int>(Phase::kForward) || phase == static_cast<int>(Phase::kEval)) continue;
    std::string path = MarkPath(phase, {0, 0}, 100);
    std::replace_if(
        path.begin(), path.end(), [](char c) { return c == 'M' || c == 'L' || c == 'Z'; }, ' ');
    std::istringstream in(path);
    const std::vector<double> v{std::istream_iterator<double>(in), {}};
    double twice = 0;
    for (size_t i = 0; i < v.size(); i += 2) {
      const size_t j = (i + 2) % v.size();
      twice += v[i] * v[j + 1] - v[j] * v[i + 1];
    }
    EXPECT_NEAR(std::fabs(twice) / 2, M_PI * 1e4, M_PI * 100) << kPhaseNames[static_cast<size_t>(phase)];
  }
}

TEST(MarkExtent, IsTheBoxOfTheOutline) {
  for (int phase = -1; phase < static_cast<int>(kPhaseNames.size()); ++phase) {
    const Box box = MarkExtent(phase, 10);
    EXPECT_LT(box.x, -8) << phase;
    EXPECT_GT(box.right(), 8) << phase;
    EXPECT_LE(box.width, 30) << phase;
    EXPECT_GE(box.height, 17) << phase;
  }
  EXPECT_DOUBLE_EQ(MarkExtent(static_cast<int>(Phase::kOptimizer), 10).bottom(), 12.53);
  EXPECT_DOUBLE_EQ(MarkExtent(static_cast<int>(Phase::kRecompute), 10).y, -15.55);
}

}  // namespace
}  // namespace rfinject::cli
