// File: processes_test.cc
//
// fork, exit, and a source that was stopped.
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
  ASSERT_TRUE(RunUntil([this] { return driver_.sim_calls_("cuptiProfilerPushRange") > 0; }));
  const pid_t child = fork();
  if (child == 0) {
    const uint64_t before = driver_.sim_calls_("cuptiProfilerDisableProfiling");
    source_->OnStepEnd(step_);
    source_->Stop();
    _exit(driver_.sim_calls_("cuptiProfilerDisableProfiling") == before ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  Run(20);
  CheckSamples();
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

TEST_F(SimulatedGpu, AForkedChildTouchesNothing) {
  ASSERT_TRUE(RunUntil([this] { return driver_.sim_calls_("cuptiRangeProfilerPushRange") > 0; }));
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

TEST_F(SimulatedGpu, StoppingWhileItCountsAndLaunchesAfterItAreHarmless) {
  ASSERT_TRUE(RunUntil([this] { return driver_.sim_calls_("cuptiRangeProfilerPushRange") > 0; }));
  source_->Stop();
  const size_t records = recorder_.CopyRecords().size();
  EXPECT_EQ(Launch(kernels_[0], 1, Phase::kForward), CUDA_SUCCESS);
  source_->OnStepEnd(step_++);
  source_->Stop();
  EXPECT_EQ(recorder_.CopyRecords().size(), records);
}

// exit() from a thread that is not the main one, while kernels are counted and another thread goes on launching, and
// a handler of the program that runs after ours launches too.
TEST_F(SimulatedGpu, ExitFromAThreadAndLaunchesDuringExitAreHarmless) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  static decltype(this) self;
  static std::atomic<uint64_t> launches{0};
  static std::atomic<bool> over{false};
  self = this;
  const auto program = [this] {
    RunUntil([this] { return driver_.sim_calls_("cuptiRangeProfilerPushRange") > 0; });
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

}  // namespace
}  // namespace rfinject
