// File: processes_test.cc
//
// fork, exit, a source that was stopped, and a step that never ends.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "integration_tests/simulated_gpu/testing/fixture.h"

namespace rfinject {
namespace {

TEST_F(SimulatedV100, AForkedChildTouchesNothingOfTheLegacyProfiler) {
  while (driver_.sim_calls_("cuptiProfilerBeginSession") == driver_.sim_calls_("cuptiProfilerEndSession")) Step();
  const pid_t child = fork();
  if (child == 0) {
    source_->OnStepEnd(step_);
    source_->Stop();
    _exit(driver_.sim_calls_("cuptiProfilerDisableProfiling") + 1 == driver_.sim_calls_("cuptiProfilerBeginSession")
              ? 0
              : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  Run(20);
  CheckSamples();
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

TEST_F(SimulatedGpu, AForkedChildTouchesNothing) {
  while (driver_.sim_calls_("cuptiRangeProfilerStart") == driver_.sim_calls_("cuptiRangeProfilerStop")) Step();
  const pid_t child = fork();
  if (child == 0) {
    const uint64_t before = driver_.sim_calls_("cuptiRangeProfilerStop");
    source_->OnStepEnd(step_);
    source_->Stop();
    _exit(driver_.sim_calls_("cuptiRangeProfilerStop") == before ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  Run(20);
  CheckSamples();
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

TEST_F(SimulatedGpu, StoppingInAnArmedStepAndLaunchesAfterItAreHarmless) {
  while (driver_.sim_calls_("cuptiRangeProfilerStart") == driver_.sim_calls_("cuptiRangeProfilerStop")) Step();
  source_->Stop();
  const size_t records = recorder_.records().size();
  EXPECT_EQ(Launch(kernels_[0], 1, Phase::kForward), CUDA_SUCCESS);
  source_->OnStepEnd(step_++);
  source_->Stop();
  EXPECT_EQ(recorder_.records().size(), records);
}

// exit() from a thread that is not the main one, in a step with counters, while another thread goes on launching, and
// a handler of the program that runs after ours launches too.
TEST_F(SimulatedGpu, ExitFromAThreadAndLaunchesDuringExitAreHarmless) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  static decltype(this) self;
  static std::atomic<uint64_t> launches{0};
  static std::atomic<bool> over{false};
  self = this;
  const auto program = [this] {
    while (driver_.sim_calls_("cuptiRangeProfilerStart") == driver_.sim_calls_("cuptiRangeProfilerStop")) Step();
    auto launch_on = [] {
      self->driver_.cuCtxSetCurrent_(self->driver_.context);
      while (!over) {
        if (self->Launch(self->kernels_[0], 1, Phase::kBackward) == CUDA_SUCCESS) ++launches;
      }
    };
    std::thread(launch_on).detach();
    while (launches == 0) {
    }
    // Handlers run in the reverse order: ours, as the injector has it, then the program's.
    std::atexit([] {
      const uint64_t before = launches;
      self->driver_.cuCtxSetCurrent_(self->driver_.context);
      const bool works = self->Launch(self->kernels_[2], 0, Phase::kOther) == CUDA_SUCCESS;
      while (launches < before + 100) {
      }
      over = true;
      if (!works) _exit(11);
      if (self->driver_.sim_violations_()[0] != '\0') _exit(12);
    });
    std::atexit([] { self->source_->Stop(); });
    std::thread([] { std::exit(7); }).join();
  };
  EXPECT_EXIT(program(), ::testing::ExitedWithCode(7), "");
}

TEST_F(SimulatedGpu, AnArmedStepWithoutProgressIsSaidAtOnceAndDisarmsForGood) {
  g_stall_ns = 1'000'000;
  while (driver_.sim_calls_("cuptiRangeProfilerStart") == driver_.sim_calls_("cuptiRangeProfilerStop")) Step();
  const uint64_t started = driver_.sim_calls_("cuptiRangeProfilerStart");
  const auto stalled = [&] { return recorder_.HasDiagnostic("stalled"); };
  // Nothing is launched. It is said although the step has not ended.
  for (int i = 0; i < 6000 && !stalled(); ++i) usleep(10'000);
  ASSERT_TRUE(stalled());
  Run(2000);
  EXPECT_EQ(driver_.sim_calls_("cuptiRangeProfilerStart"), started);
  EXPECT_STREQ(driver_.sim_violations_(), "");
  auto counts = CheckSamples();
  EXPECT_GE((counts[{"conv", 1, Phase::kForward}][kTime]), 3u);
}

}  // namespace
}  // namespace rfinject
