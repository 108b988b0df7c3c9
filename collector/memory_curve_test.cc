#include "collector/memory_curve.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace rfinject {
namespace {

BytesByPhase Activations(uint64_t bytes) {
  BytesByPhase all{};
  all[static_cast<size_t>(Phase::kOther)] = 1000;
  all[static_cast<size_t>(Phase::kForward)] = bytes;
  return all;
}

uint64_t SumAt(const trace::MemoryPeak& peak, size_t point) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kPhaseNames.size(); ++i) sum += peak.point_bytes[point * kPhaseNames.size() + i];
  return sum;
}

TEST(MemoryCurve, KeepsTheStepWithMostBehindTheFirst) {
  MemoryCurve curve;
  trace::MemoryPeak peak;
  EXPECT_FALSE(curve.Take(&peak));
  curve.Note(0, Phase::kForward, Activations(900));
  ASSERT_TRUE(curve.Take(&peak));
  EXPECT_EQ(peak.point_step, 0u);
  const auto run = [&](uint64_t step, uint64_t most) {
    curve.Note(step, Phase::kForward, Activations(most / 2));
    curve.Note(step, Phase::kForward, Activations(most));
    curve.Note(step, Phase::kBackward, Activations(most / 4));
    return curve.Take(&peak);
  };
  EXPECT_TRUE(run(1, 400));  // less than the first had
  EXPECT_EQ(peak.point_step, 1u);
  ASSERT_EQ(peak.point_phase.size(), 3u);
  EXPECT_EQ(SumAt(peak, 0), 1200u);
  EXPECT_EQ(SumAt(peak, 1), 1400u);
  EXPECT_EQ(SumAt(peak, 2), 1100u);
  EXPECT_EQ(peak.point_phase[2], static_cast<uint32_t>(Phase::kBackward));
  EXPECT_FALSE(run(2, 400));
  EXPECT_TRUE(run(3, 440));
  EXPECT_EQ(peak.point_step, 3u);
}

TEST(MemoryCurve, ALongStepHasFewPointsAndItsHighest) {
  MemoryCurve curve;
  constexpr uint64_t kEvents = 100'000;
  for (uint64_t i = 0; i < kEvents; ++i) {
    curve.Note(0, i < kEvents / 2 ? Phase::kForward : Phase::kBackward, Activations(i == 77'777 ? 1'000'000 : i));
  }
  trace::MemoryPeak peak;
  ASSERT_TRUE(curve.Take(&peak));
  const size_t points = peak.point_phase.size();
  EXPECT_GE(points, 128u);
  EXPECT_LE(points, 256u);
  uint64_t most = 0;
  for (size_t i = 0; i < points; ++i) most = std::max(most, SumAt(peak, i));
  EXPECT_EQ(most, 1'001'000u);
  // All but the last stand for equally many, so that the middle of the step is in the middle.
  const auto backward = std::ranges::find(peak.point_phase, static_cast<uint32_t>(Phase::kBackward));
  const auto forward = static_cast<double>(backward - peak.point_phase.begin());
  EXPECT_NEAR(forward / static_cast<double>(points), 0.5, 0.01);
}

}  // namespace
}  // namespace rfinject
