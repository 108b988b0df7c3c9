#include "cli/profile/step_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <vector>

namespace rfinject::cli {
namespace {

constexpr double kMs = 1e6;

// A host that launches ahead of its GPU until the queue is full, as programs do that read no result.
struct Asynchronous {
  std::function<double(uint64_t)> host_ns, gpu_ns;                       // what each has to do in a step
  std::function<double(uint64_t)> data_ns = [](uint64_t) { return 0; };  // the host waits for data before it
  double counting_ns = 0;                                                // in an armed step
  std::set<uint64_t> armed = {};
  size_t steps = 150;
};

struct Simulated {
  std::vector<HostStep> host;
  std::vector<double> gpu_ns;  // from one step's end on the GPU to the next's
  double total_ns = 0;
};

Simulated Simulate(const Asynchronous& program) {
  constexpr size_t kQueue = 4;  // steps
  Simulated run;
  std::vector<double> ends;  // of the GPU's steps
  double host = 0, gpu = 0;
  for (uint64_t i = 0; i < program.steps; ++i) {
    const double before = host, gpu_before = gpu;
    host += program.data_ns(i) + program.host_ns(i);
    if (i >= kQueue) host = std::max(host, ends[i - kQueue]);
    gpu = std::max(gpu, host - program.host_ns(i)) + program.gpu_ns(i);
    if (program.armed.contains(i)) host = gpu = std::max(host, gpu) + program.counting_ns;
    gpu = std::max(gpu, host - program.host_ns(i) / 2);
    ends.push_back(gpu);
    run.gpu_ns.push_back(gpu - gpu_before);
    HostStep step{.step = i, .armed = program.armed.contains(i), .time = {}};
    step.time.wall_ns = static_cast<uint64_t>(host - before);
    step.time.data_wait_ns = static_cast<uint64_t>(program.data_ns(i));
    run.host.push_back(step);
  }
  run.total_ns = host;
  return run;
}

std::function<double(uint64_t)> Always(double ms) {
  return [ms](uint64_t) { return ms * kMs; };
}

// Two timed steps in a row at each of `first`, as windows have them.
std::vector<trace::GpuStep> Windows(const Simulated& run, const std::vector<uint64_t>& first,
                                    const std::function<double(uint64_t)>& busy_ns) {
  std::vector<trace::GpuStep> steps;
  for (const uint64_t step : first) {
    steps.push_back({.step = step, .busy_ns = static_cast<uint64_t>(busy_ns(step))});
    steps.push_back({.step = step + 1,
                     .period_ns = static_cast<uint64_t>(run.gpu_ns[step + 1]),
                     .busy_ns = static_cast<uint64_t>(busy_ns(step + 1))});
  }
  return steps;
}

TEST(StepClock, AHostThatRunsAheadSaysWhatTheGpuTakesWhereNothingDisturbsIt) {
  const Simulated run =
      Simulate({.host_ns = Always(9), .gpu_ns = Always(93), .counting_ns = 700 * kMs, .armed = {14, 19, 20, 23}});
  const StepClock clock = ReadStepClock(run.host, {}, {}, 1);
  EXPECT_FALSE(clock.by_gpu);
  EXPECT_NEAR(static_cast<double>(clock.usual_ns), 93 * kMs, 0.01 * kMs);
  EXPECT_EQ(clock.undisturbed.size(), 150 - 33 + 4u);  // of the first ones those between the full queue and step 14
  // The mean of all steps that were not armed, as it was once, is a third off.
  double sum = 0;
  for (const HostStep& one : run.host) sum += one.armed ? 0 : static_cast<double>(one.time.wall_ns);
  EXPECT_GT(std::abs(sum / 146 - 93 * kMs), 2 * kMs);
}

TEST(StepClock, WhatCountingCostIsWhatTheRunWouldNotHaveTaken) {
  const Asynchronous without{.host_ns = Always(9), .gpu_ns = Always(93)};
  for (const double each : {50.0, 700.0, 1500.0}) {
    Asynchronous with = without;
    with.counting_ns = each * kMs;
    with.armed = {30, 31, 40, 70};
    const Simulated run = Simulate(with);
    const StepClock clock = ReadStepClock(run.host, {}, {}, 1);
    const double cost = run.total_ns - Simulate(without).total_ns;
    EXPECT_GT(cost, 3.9 * each * kMs);
    EXPECT_NEAR(static_cast<double>(clock.counting_ns), cost, 0.01 * cost) << each;
    EXPECT_LE(clock.counting_steps, 8u);
  }
  const StepClock none = ReadStepClock(Simulate(without).host, {}, {}, 1);
  EXPECT_EQ(none.counting_ns, 0u);
  EXPECT_EQ(none.counting_steps, 0u);
}

// An older library opened its sessions in the steps before the one that it armed, which were timed.
TEST(StepClock, TheOpeningOfASessionIsCountingAndTimingIsNot) {
  Simulated run = Simulate({.host_ns = Always(9), .gpu_ns = Always(93)});
  run.host[39].time.wall_ns += static_cast<uint64_t>(500 * kMs);
  run.host[40].armed = true;
  const std::vector<uint64_t> timed = {20, 39, 90};
  EXPECT_NEAR(static_cast<double>(ReadStepClock(run.host, {}, timed, 1).counting_ns), 500 * kMs, kMs);
  EXPECT_EQ(ReadStepClock(run.host, {}, {}, 1).counting_ns, 0u);
  run.host[40].armed = false;
  EXPECT_EQ(ReadStepClock(run.host, {}, timed, 1).counting_ns, 0u);
}

TEST(StepClock, TheClockOfTheGpuCountsWhereThereIsOne) {
  const Simulated run = Simulate({.host_ns = Always(9), .gpu_ns = Always(93)});
  const StepClock clock = ReadStepClock(run.host, Windows(run, {20, 40, 60, 100}, Always(92)), {}, 1);
  EXPECT_TRUE(clock.by_gpu);
  EXPECT_NEAR(static_cast<double>(clock.usual_ns), 93 * kMs, 1);
  EXPECT_NEAR(static_cast<double>(clock.busy_ns), 92 * kMs, 1);
  EXPECT_FALSE(ReadStepClock(run.host, Windows(run, {20, 40}, Always(92)), {}, 1).by_gpu)
      << "two may both be accidents";
}

TEST(StepClock, AStallIsNoPartOfAUsualStep) {
  const auto stalls = [](uint64_t step) { return step == 77 ? 800 * kMs : 9 * kMs; };
  const Simulated run = Simulate({.host_ns = stalls, .gpu_ns = Always(93)});
  EXPECT_NEAR(static_cast<double>(ReadStepClock(run.host, {}, {}, 1).usual_ns), 93 * kMs, 0.01 * kMs);
}

TEST(StepClock, AHostThatIsLateSetsTheTime) {
  const Simulated run = Simulate({.host_ns = Always(30), .gpu_ns = Always(20)});
  EXPECT_NEAR(static_cast<double>(ReadStepClock(run.host, {}, {}, 1).usual_ns), 30 * kMs, 0.01 * kMs);
}

// Four workers make four batches at a time: three steps do not wait, and the fourth does.
TEST(StepClock, StepsThatWaitForDataHaveAMean) {
  const auto batches = [](uint64_t step) { return step % 4 == 0 ? 60 * kMs : 0; };
  const Simulated run = Simulate({.host_ns = Always(9), .gpu_ns = Always(12), .data_ns = batches, .steps = 410});
  const double mean = run.total_ns / 410;
  EXPECT_NEAR(static_cast<double>(ReadStepClock(run.host, {}, {}, 1).usual_ns), mean, 0.02 * mean);
}

TEST(StepClock, StepsOfAnIterationAreTakenTogether) {
  const auto gan = [](uint64_t step) { return (step % 3 == 2 ? 40 : 10) * kMs; };
  const Simulated run = Simulate({.host_ns = Always(2), .gpu_ns = gan, .steps = 151});
  // A window has two of an iteration's three steps; each place needs some.
  const StepClock few = ReadStepClock(run.host, Windows(run, {20, 41, 62, 100}, gan), {}, 3);
  EXPECT_FALSE(few.by_gpu);
  EXPECT_NEAR(static_cast<double>(few.usual_ns), 20 * kMs, 0.01 * kMs);
  const StepClock clock =
      ReadStepClock(run.host, Windows(run, {20, 30, 41, 51, 61, 71, 82, 92, 102, 120, 130}, gan), {}, 3);
  EXPECT_TRUE(clock.by_gpu);
  EXPECT_NEAR(static_cast<double>(clock.usual_ns), 20 * kMs, 0.01 * kMs);
  EXPECT_NEAR(static_cast<double>(clock.busy_ns), 20 * kMs, 0.01 * kMs);
  EXPECT_NEAR(static_cast<double>(ReadStepClock(run.host, {}, {}, 1).usual_ns), 20 * kMs, 0.4 * kMs)
      << "kinds that are not known to be an iteration's";
}

// The host reads each loss: odd steps are the GPU's, even ones the host's. Windows have as many of one kind as chance
// says; the host's clock knows all steps.
TEST(StepClock, OfKindsThatComeAndGoTheHostSaysTheMean) {
  Asynchronous program{
      .host_ns = Always(9), .gpu_ns = [](uint64_t step) { return (step % 2 == 1 ? 20 : 9) * kMs; }, .steps = 300};
  const Simulated run = Simulate(program);
  const std::vector<uint64_t> first = {21, 31, 41, 50, 61, 71, 81, 91, 100, 121, 131, 141, 151, 161, 171, 181};
  const StepClock clock = ReadStepClock(run.host, Windows(run, first, program.gpu_ns), {}, 1);
  EXPECT_FALSE(clock.by_gpu);
  EXPECT_NEAR(static_cast<double>(clock.usual_ns), 14.5 * kMs, 0.15 * kMs);
  EXPECT_NEAR(static_cast<double>(clock.busy_ns), 14.5 * kMs, 0.01 * kMs);
}

TEST(StepClock, AShortRunHasWhatThereIs) {
  const Simulated run =
      Simulate({.host_ns = Always(9), .gpu_ns = Always(5), .counting_ns = 100 * kMs, .armed = {3}, .steps = 6});
  const StepClock clock = ReadStepClock(run.host, {}, {}, 1);
  EXPECT_NEAR(static_cast<double>(clock.usual_ns), 9 * kMs, 0.01 * kMs);
  EXPECT_EQ(clock.undisturbed.size(), 5u);
  EXPECT_EQ(ReadStepClock({}, {}, {}, 1).usual_ns, 0u);
}

}  // namespace
}  // namespace rfinject::cli
