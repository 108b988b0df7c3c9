#include "collector/cupti/sample_join.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace rfinject::cupti {
namespace {

constexpr uint64_t kStartNs = 1'795'746'921'653'570'049;  // as CUPTI's timestamps: ns since the epoch
constexpr uint64_t kIntervalNs = 5000;

// A kernel of the program that is sampled, in ns from its start.
struct Ran {
  uint32_t group;
  double begin, end;
  double bytes;
};

std::vector<TimedKernel> KernelsOf(const std::vector<Ran>& runs) {
  std::vector<TimedKernel> kernels;
  for (const Ran& run : runs) {
    kernels.push_back(
        {run.group, kStartNs + static_cast<uint64_t>(run.begin), kStartNs + static_cast<uint64_t>(run.end)});
  }
  return kernels;
}

// What is sampled of `runs` from `from` to `until`, each sample one interval long, on a clock that starts at 0.
SampleWindow Sample(const std::vector<Ran>& runs, double from, double until, double ticks_per_ns = 1) {
  SampleWindow window;
  window.metrics = 1;
  for (double at = from; at + kIntervalNs <= until; at += kIntervalNs) {
    double bytes = 0;
    for (const Ran& run : runs) {
      const double both = std::min(run.end, at + kIntervalNs) - std::max(run.begin, at);
      if (both > 0) bytes += run.bytes * both / (run.end - run.begin);
    }
    window.begin.push_back(static_cast<uint64_t>((at - from) * ticks_per_ns));
    window.end.push_back(static_cast<uint64_t>((at - from + kIntervalNs) * ticks_per_ns));
    window.values.push_back(bytes);
  }
  return window;
}

// Steps of three kernels, none of which is a multiple of the interval.
std::vector<Ran> Steps(int steps) {
  std::vector<Ran> runs;
  double now = 0;
  for (int i = 0; i < steps; ++i) {
    for (const Ran& one : {Ran{1, 0, 91'300, 2e8}, Ran{2, 0, 33'700, 1e7}, Ran{3, 0, 62'900, 6e7}}) {
      runs.push_back({one.group, now, now + one.end, one.bytes});
      now += one.end + 1'700;
    }
  }
  return runs;
}

TEST(SampleJoin, EachKernelHasItsBytesAlthoughTheClocksAreApart) {
  const std::vector<Ran> runs = Steps(10);
  for (const double off_ns : {0.0, 43210.0, -31234.0}) {
    const SampleWindow window = Sample(runs, 0, runs.back().end);
    const Joined joined = JoinSamples(
        window, KernelsOf(runs), {.first_sample_ns = kStartNs + static_cast<uint64_t>(static_cast<int64_t>(off_ns))});
    ASSERT_EQ(joined.verdict, JoinVerdict::kFits);
    EXPECT_NEAR(joined.offset_ns, -off_ns, 100);
    for (size_t i = 0; i < runs.size(); ++i) {
      // A ninth of the kernel is in the samples at its ends; its neighbour moves up to seven times as much there.
      if (!joined.kernels[i].whole) continue;
      EXPECT_NEAR(joined.value(i, 0) / runs[i].bytes, 1, 0.03) << i;
    }
    EXPECT_GT(joined.share_in_kernels, 0.98);
  }
}

TEST(SampleJoin, TicksOfAnotherLength) {
  const std::vector<Ran> runs = Steps(10);
  const Joined joined = JoinSamples(Sample(runs, 0, runs.back().end, 2.1), KernelsOf(runs),
                                    {.ticks_per_ns = 2.0985, .ticks_tolerance = 1e-3, .first_sample_ns = kStartNs});
  ASSERT_EQ(joined.verdict, JoinVerdict::kFits);
  EXPECT_NEAR(joined.ticks_per_ns, 2.1, 2e-4);
  EXPECT_NEAR(joined.value(3, 0) / runs[3].bytes, 1, 0.02);
}

TEST(SampleJoin, NothingIsAddedOrLost) {
  const std::vector<Ran> runs = Steps(10);
  const SampleWindow window = Sample(runs, 0, runs.back().end);
  const Joined joined = JoinSamples(window, KernelsOf(runs), {.first_sample_ns = kStartNs});
  const double sampled = std::accumulate(window.values.begin(), window.values.end(), 0.0);
  EXPECT_NEAR(std::accumulate(joined.values.begin(), joined.values.end(), 0.0) / sampled, 1, 1e-3);
}

TEST(SampleJoin, KernelsAtTheEdgesOfTheWindowAreNotWhole) {
  const std::vector<Ran> runs = Steps(10);
  const Joined joined = JoinSamples(Sample(runs, 50'000, runs.back().begin + 10'000), KernelsOf(runs),
                                    {.first_sample_ns = kStartNs + 50'000});
  ASSERT_EQ(joined.verdict, JoinVerdict::kFits);
  EXPECT_FALSE(joined.kernels.front().whole);
  EXPECT_FALSE(joined.kernels.back().whole);
  EXPECT_TRUE(joined.kernels[1].whole);
}

TEST(SampleJoin, ALevelRateTellsNoOffset) {
  std::vector<Ran> runs;
  for (int i = 0; i < 20; ++i) runs.push_back({1, i * 40'000.0, (i + 1) * 40'000.0, 8e7});
  const Joined joined = JoinSamples(Sample(runs, 0, runs.back().end), KernelsOf(runs), {.first_sample_ns = kStartNs});
  EXPECT_EQ(joined.verdict, JoinVerdict::kAsExpected);
  EXPECT_EQ(joined.offset_ns, 0);
  EXPECT_NEAR(joined.value(5, 0), 8e7, 1);
}

TEST(SampleJoin, KernelsOfAnotherProgramAreRefused) {
  const std::vector<Ran> runs = Steps(10);
  std::vector<Ran> others;
  for (double now = 0; now < runs.back().end; now += 79'000) others.push_back({7, now, now + 78'000, 0});
  const Joined joined =
      JoinSamples(Sample(runs, 0, runs.back().end), KernelsOf(others), {.first_sample_ns = kStartNs});
  EXPECT_EQ(joined.verdict, JoinVerdict::kDoesNotFit);
}

TEST(SampleJoin, AFewSamplesAreTooFew) {
  const std::vector<Ran> runs = Steps(1);
  EXPECT_EQ(JoinSamples(Sample(runs, 0, 100'000), KernelsOf(runs), {}).verdict, JoinVerdict::kTooFew);
  EXPECT_EQ(JoinSamples({}, KernelsOf(runs), {}).verdict, JoinVerdict::kTooFew);
  EXPECT_EQ(JoinSamples(Sample(runs, 0, 100'000), {}, {}).verdict, JoinVerdict::kTooFew);
}

}  // namespace
}  // namespace rfinject::cupti
