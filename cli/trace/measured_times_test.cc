// What the reader makes of the steps of a run that was measured: whose clock counts for what.
#include <gtest/gtest.h>

#include <functional>

#include "cli/testing/small_trace.h"
#include "cli/trace/read.h"
#include "proto/rfinject/v1/trace.pb.h"

namespace rfinject::cli {
namespace {

using testing::Definitions;
using testing::End;
using testing::Read;
using testing::Trace;

constexpr uint64_t kMsOfTimes = 1'000'000;

struct Times {
  std::function<uint64_t(uint64_t)> host_ms, gpu_us;  // by step
  bool windows = false;                               // GpuSteps
};

// 200 steps, of which two in every ten were timed.
Run RunWith(const Times& times) {
  TraceContents contents = Read(Trace({Definitions,
                                       [&](v1::Chunk& chunk) {
                                         chunk.add_run()->set_id(1);
                                         chunk.mutable_run(0)->set_source(v1::SOURCE_MEASURED);
                                         for (uint64_t step = 10; step < 200; ++step) {
                                           if (step % 10 > 1) continue;
                                           v1::SampledStep* sampled = chunk.add_sampled_step();
                                           sampled->set_run(1);
                                           sampled->set_step(step);
                                           sampled->set_metric(1);
                                           sampled->add_key(1);
                                           sampled->add_sum(1000 * times.gpu_us(step));
                                           if (!times.windows) continue;
                                           v1::GpuStep* of_gpu = chunk.add_gpu_step();
                                           of_gpu->set_run(1);
                                           of_gpu->set_step(step);
                                           of_gpu->set_busy_ns(1000 * times.gpu_us(step));
                                           if (step % 10 == 0) of_gpu->set_period_ns(1000 * times.gpu_us(step) + 500);
                                         }
                                         for (uint64_t i = 0; i < 200; ++i) {
                                           v1::Step* step = chunk.add_step();
                                           step->set_index(i);
                                           step->set_run(1);
                                           step->set_measured(true);
                                           step->set_duration_ns(kMsOfTimes * times.host_ms(i));
                                         }
                                       },
                                       End}));
  EXPECT_TRUE(contents.status.ok()) << contents.status;
  return contents.profile.runs.begin()->second;
}

// A host that runs ahead and waits in turn, for long stretches: the GPU's times are those of one speed.
TEST(MeasuredTimes, TheHostsRhythmIsNoSpeedOfTheGpu) {
  const auto host = [](uint64_t step) { return step % 100 < 50 ? 9 : 60; };
  const cli::Run run = RunWith({.host_ms = host, .gpu_us = [](uint64_t step) { return 30'000 + step * 7 % 5; }});
  EXPECT_EQ(run.steps.two_speeds, 0u);
  EXPECT_EQ(run.steps.drifting, 0u);
  EXPECT_EQ(run.steps.slow, 0u);
  EXPECT_EQ(run.steps.of_kinds, 0u);
}

// A clock that drops by a tenth half-way, behind a host that does not show it.
TEST(MeasuredTimes, TwoSpeedsOfTheGpuAreSeenInItsTimes) {
  const auto gpu = [](uint64_t step) { return (step < 100 ? 30'000 : 33'000) + step * 7 % 5; };
  EXPECT_EQ(RunWith({.host_ms = [](uint64_t) { return 40; }, .gpu_us = gpu}).steps.two_speeds, 1u);
}

TEST(MeasuredTimes, WindowsSayWhatAStepTakes) {
  const cli::Run run = RunWith({.host_ms = [](uint64_t step) { return step % 2 == 0 ? 9 : 60; },
                                .gpu_us = [](uint64_t) { return 30'000; },
                                .windows = true});
  const StepTimes& times = run.step_times.at(0);
  EXPECT_EQ(times.usual_ns, Stat::Same(30'000'500, 1));
  EXPECT_EQ(times.usual_busy_ns, Stat::Same(30'000'000, 1));
  EXPECT_EQ(times.by_gpu_clock, 1u);
  EXPECT_EQ(times.period_ns.n(), 19u);
  EXPECT_EQ(run.steps.counting_ns, 0u);
}

}  // namespace
}  // namespace rfinject::cli
