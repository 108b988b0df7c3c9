// File: recorded_test.cc
//
// The simulated GPU behaves as the H100 that was recorded: its queue, its ranges, what calls cost and what is
// refused. Each expectation names the file of the recording.
#include "integration_tests/simulated_gpu/testing/recorded.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace rfinject {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;

// pm/ranges.txt: a plain step takes 27.1 ms of the clock, and 22.4 ms of the host, which waits in a full queue; it
// could do it in 9.5 ms.
TEST_F(Recorded, TheHostRunsAheadOfTheGpuAndThenWaitsInAFullQueue) {
  EXPECT_NEAR(StepMs(15), 27.1, 0.7);
  std::vector<double> host;
  for (int i = 0; i < 8; ++i) host.push_back(MsOf([&] { Step(); }));
  for (int i = 0; i < 2; ++i) EXPECT_NEAR(host[i], 9.5, 0.2) << i;
  for (int i = 5; i < 8; ++i) EXPECT_NEAR(host[i], 27.1, 0.2) << i;
  // 1,024 launches are ahead of the GPU.
  EXPECT_NEAR(MsOf([&] { driver_.cuCtxSynchronize_(); }), 1024 * 27.1 / kLaunches, 0.2);
}

// exp_pm_*.json.gz: cuDNN's weight gradients run on four streams at once.
TEST_F(Recorded, StreamsRunAtOnceAndEachInOrder) {
  const SimKernel &a = Kernel("a", 5 * kMs, 0), &b = Kernel("b", 3 * kMs, 0);
  auto* const other = reinterpret_cast<CUstream>(16);
  RecordKernels(api_);
  Launch(a);
  Launch(b, other);
  Launch(b);
  driver_.cuStreamSynchronize_(other);
  std::vector<KernelOf> kernels = FlushKernels(api_, false);
  ASSERT_THAT(kernels, SizeIs(1));
  EXPECT_EQ(kernels[0].name, "b");
  driver_.cuCtxSynchronize_();
  for (KernelOf& one : FlushKernels(api_, false)) kernels.push_back(one);
  ASSERT_THAT(kernels, SizeIs(3));
  EXPECT_LT(kernels[0].start, kernels[1].end);  // at once
  EXPECT_EQ(kernels[2].start, kernels[1].end);  // in order
  EXPECT_EQ(kernels[1].end - kernels[1].start, 5 * kMs);
}

// reference/cupti.md, 4: a forced flush hands back what runs, without an end, and loses it.
TEST_F(Recorded, AForcedFlushLosesTheKernelThatRuns) {
  RecordKernels(api_);
  for (int i = 0; i < 3; ++i) Launch(Kernel("kernel", kMs, 0));
  driver_.sim_spend_(kMs);
  EXPECT_THAT(FlushKernels(api_, false), SizeIs(1));
  const std::vector<KernelOf> forced = FlushKernels(api_, true);
  ASSERT_THAT(forced, SizeIs(1));
  EXPECT_EQ(forced[0].end, 0u);
  driver_.cuCtxSynchronize_();
  EXPECT_THAT(FlushKernels(api_, true), SizeIs(1));
}

struct StartCost {
  size_t ranges;
  double start_ms, disable_ms;
};
// pm/ranges.txt, A.
TEST_F(Recorded, StartingASessionCostsWhatItsRangesCost) {
  for (const StartCost& one : {StartCost{4, 155.4, 12.2}, {64, 215.2, 24.7}, {512, 608.6, 106.0}}) {
    ASSERT_EQ(ranges_->Enable(driver_.context), CUPTI_SUCCESS);
    ASSERT_EQ(ranges_->Configure(kDram, one.ranges), CUPTI_SUCCESS);
    EXPECT_NEAR(MsOf([&] { ranges_->Start(); }) / one.start_ms, 1, 0.07) << one.ranges;
    EXPECT_NEAR(StepMs(4), 27.2, 0.3);
    EXPECT_NEAR(MsOf([&] { ranges_->Stop(); }), 6.4, 0.3);
    EXPECT_NEAR(MsOf([&] { ranges_->Disable(); }) / one.disable_ms, 1, 0.15) << one.ranges;
  }
}

// pm/sessions_and_sampling.txt, B: a step of an open session with 0, 1, 4, 16 and 40 ranges of two metrics.
TEST_F(Recorded, ARangeOfTwoMetricsCostsFiftyMicroseconds) {
  ranges_->Enable(driver_.context);
  ranges_->Configure(kDram, 2048);
  ranges_->Start();
  const std::map<int, double> recorded = {{0, 27.15}, {1, 27.29}, {4, 27.49}, {16, 28.04}, {40, 29.17}};
  for (const auto& [count, ms] : recorded) EXPECT_NEAR(StepMs(6, count), ms, 0.25) << count;
}

// calls/r18-user.calls.gz: Push 0.41 and Pop 0.52 ms; README.md, 2: 1.15 ms together, with a session's whole base.
TEST_F(Recorded, ARangeOfTheWholeBaseCostsAMillisecondOfTheHost) {
  ranges_->Enable(driver_.context);
  ranges_->Configure(kBase, 64);
  ranges_->Start();
  const double push = MsOf([&] { ranges_->Push("r"); }), pop = MsOf([&] { ranges_->Pop(); });
  EXPECT_NEAR(push + pop, 1.15, 0.2);
}

// pm/ranges.txt, A, user 0: a step whose 377 launches are ranges of two metrics takes 44.8 ms;
// calls/r18-range.calls.gz: with the whole base 1.19 ms a launch, with SASS metrics 1.45 ms.
TEST_F(Recorded, AnAutomaticRangeWaitsForItsKernel) {
  const auto step_ms = [this](const std::vector<std::string>& metrics) {
    ranges_->Enable(driver_.context);
    ranges_->Configure(metrics, 512, true);
    ranges_->Start();
    const double ms = StepMs(1);
    ranges_->Stop();
    EXPECT_THAT(ranges_->Values(), SizeIs(kLaunches));
    ranges_->Disable();
    return ms;
  };
  EXPECT_NEAR(step_ms(kDram), 44.8, 1);
  EXPECT_NEAR(step_ms(kBase) / kLaunches, 1.19, 0.15);
  EXPECT_NEAR(step_ms(kSass) / kLaunches, 1.45, 0.3);
}

// pm/sass_ranges.txt, B: 5 us of the host and 2.5 to 4 ms of the GPU; 27.1 ms where no range is open.
TEST_F(Recorded, ARangeWithSassMetricsSlowsItsKernelsDown) {
  ranges_->Enable(driver_.context);
  ranges_->Configure(kSass, 64);
  ranges_->Start();
  EXPECT_NEAR(StepMs(6), 27.1, 0.3);
  driver_.cuCtxSynchronize_();
  ranges_->Push("r");
  EXPECT_LT(MsOf([&] { Launch(Kernel("kernel", 300'000, 0)); }), 0.1);
  ranges_->Pop();
  const double gpu = MsOf([&] { driver_.cuCtxSynchronize_(); });
  EXPECT_GE(gpu, 2.5);
  EXPECT_LE(gpu, 4);
}

// README.md, 1: a range begins when the kernels before it have ended; and what is launched outside is not counted.
TEST_F(Recorded, ARangeCountsWhatIsLaunchedInsideOfIt) {
  ranges_->Enable(driver_.context);
  ranges_->Configure(kDram, 16);
  ranges_->Start();
  const SimKernel &before = Kernel("before", 5 * kMs, 1), &inside = Kernel("inside", 5 * kMs, 10),
                  &after = Kernel("after", 5 * kMs, 100);
  Launch(before);
  ranges_->Push("r");
  Launch(inside);
  Launch(inside, reinterpret_cast<CUstream>(16));
  ranges_->Pop();
  Launch(after);
  driver_.cuCtxSynchronize_();
  ranges_->Stop();
  EXPECT_THAT(ranges_->Values(), ElementsAre(Pair("r", ElementsAre(20, 0))));
}
TEST_F(Recorded, NothingRunsWhileARangeBeginsOrEnds) {
  ranges_->Enable(driver_.context);
  ranges_->Configure(kDram, 16);
  ranges_->Start();
  auto* const other = reinterpret_cast<CUstream>(16);
  const double ms = MsOf([&] {
    Launch(Kernel("before", 5 * kMs, 1), other);
    ranges_->Push("r");
    Launch(Kernel("inside", 3 * kMs, 1));
    ranges_->Pop();
    Launch(Kernel("after", 2 * kMs, 1), other);
    driver_.cuCtxSynchronize_();
  });
  EXPECT_NEAR(ms, 10.08, 0.02);
}

// pm/sessions_and_sampling.txt, B and C: ranges of one name are one; again without Disable costs 6 ms, the values are
// right, and the image goes on; a new image begins anew.
TEST_F(Recorded, RangesOfOneNameAreOneAndASessionGoesOn) {
  ranges_->Enable(driver_.context);
  ranges_->Configure(kDram, 64);
  ranges_->Start();
  const auto range = [this](const char* name, double bytes) {
    ranges_->Push(name);
    Launch(Kernel("kernel", 1000, bytes));
    ranges_->Pop();
  };
  range("r", 1);
  range("r", 20);
  ranges_->Stop();
  EXPECT_THAT(ranges_->Values(), ElementsAre(Pair("r", ElementsAre(21, 0))));
  EXPECT_NEAR(MsOf([&] { EXPECT_EQ(ranges_->Start(), CUPTI_SUCCESS); }), 6, 0.2);
  range("z", 300);
  ranges_->Stop();
  EXPECT_THAT(ranges_->Values(), ElementsAre(Pair("r", ElementsAre(21, 0)), Pair("z", ElementsAre(300, 0))));
  ranges_->Configure(kDram, 64);
  EXPECT_NEAR(MsOf([&] { EXPECT_EQ(ranges_->Start(), CUPTI_SUCCESS); }), 6, 0.2);
  range("z", 4000);
  ranges_->Stop();
  EXPECT_THAT(ranges_->Values(), ElementsAre(Pair("z", ElementsAre(4000, 0))));
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

// probe/session.txt: "VALUES anew …", "VALUES kept … -nan … -nan".
TEST_F(Recorded, OtherMetricsInASessionThatIsNotDisabledAreNotANumber) {
  const auto value = [this](const std::vector<std::string>& metrics) {
    ranges_->Configure(metrics, 4);
    ranges_->Start();
    ranges_->Push("r");
    Launch(Kernel("kernel", 1000, 7, 9));
    ranges_->Pop();
    ranges_->Stop();
    return ranges_->Values()["r"][0];
  };
  ranges_->Enable(driver_.context);
  EXPECT_EQ(value(kDram), 7);
  EXPECT_TRUE(std::isnan(value(kSass)));
  EXPECT_EQ(value(kDram), 7);
  EXPECT_TRUE(std::isnan(value(kSass)));
  ranges_->Disable();
  ranges_->Enable(driver_.context);
  EXPECT_EQ(value(kSass), 9);
}

// README.md, 5.5: HFMA2 is how the compiler moves constants, so that kernels of float have some, too.
TEST_F(Recorded, AKernelOfFloatMayCountHalfInstructions) {
  ranges_->Enable(driver_.context);
  ranges_->Configure(kSass, 4);
  ranges_->Start();
  ranges_->Push("r");
  Launch(Kernel("splitKreduce", 1000, 7, 9000, 32));
  ranges_->Pop();
  ranges_->Stop();
  EXPECT_THAT(ranges_->Values(), ElementsAre(Pair("r", ElementsAre(9000, 32))));
}

// A communication kernel waits for one on another stream that is launched later. A range that begins or ends before
// that would wait for the communication, and so for ever.
TEST_F(Recorded, ARangeMustNotHoldACommunicationKernel) {
  const SimKernel& work = Kernel("work", 3 * kMs, 0);
  auto* const other = reinterpret_cast<CUstream>(16);
  SimKernel nccl = Kernel("ncclDevKernel_AllReduce", kMs, 0);
  nccl.waits_for = &work;
  RecordKernels(api_);
  Launch(nccl, other);
  Launch(work);
  driver_.cuCtxSynchronize_();
  const std::vector<KernelOf> kernels = FlushKernels(api_, false);
  ASSERT_THAT(kernels, SizeIs(2));
  EXPECT_EQ(kernels[0].name, "ncclDevKernel_AllReduce");
  EXPECT_EQ(kernels[0].end, kernels[1].end);
  EXPECT_STREQ(driver_.sim_violations_(), "");
  api_.cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  ranges_->Enable(driver_.context);
  ranges_->Configure(kDram, 16);
  ranges_->Start();
  Launch(nccl, other);
  ranges_->Push("r");
  EXPECT_THAT(driver_.sim_violations_(), HasSubstr("hangs: ncclDevKernel_AllReduce"));
}

// A graph's kernels run one after another, from one place in the queue, and are one range.
TEST_F(Recorded, AGraphIsOneLaunchWhoseKernelsRunInOrder) {
  SimNode nodes[3] = {};
  for (SimNode& node : nodes) node.kernel = &Kernel("node", kMs, 10);
  const SimGraph graph = {nodes, 3};
  const auto launch = [&] {
    EXPECT_EQ(driver_.cuGraphLaunch_(reinterpret_cast<CUgraphExec>(const_cast<SimGraph*>(&graph)), nullptr),
              CUDA_SUCCESS);
  };
  RecordKernels(api_);
  launch();
  driver_.cuCtxSynchronize_();
  const std::vector<KernelOf> kernels = FlushKernels(api_, false);
  ASSERT_THAT(kernels, SizeIs(3));
  EXPECT_EQ(kernels[1].start, kernels[0].end);
  EXPECT_EQ(kernels[2].start, kernels[1].end);
  api_.cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  EXPECT_LT(MsOf([&] {
              for (int i = 0; i < 1000; ++i) launch();
            }),
            1000 * 0.03);
  ranges_->Enable(driver_.context);
  ranges_->Configure(kDram, 16);
  ranges_->Start();
  ranges_->Push("graph");
  launch();
  ranges_->Pop();
  ranges_->Stop();
  EXPECT_THAT(ranges_->Values(), ElementsAre(Pair("graph", ElementsAre(30, 0))));
}

// docs/measurements/h200/README.md, 2: launches wait while a session of ranges is started on any thread, and go on
// while samples are configured.
TEST_F(Recorded, StartingRangesHoldsLaunchesAndConfiguringSamplesDoesNot) {
  const SimKernel& kernel = Kernel("kernel", 1000, 0);
  Launch(kernel);
  const auto launch_beside = [&](auto call) {
    std::thread other([&] {
      driver_.cuCtxSetCurrent_(driver_.context);
      call();
    });
    other.join();
    return MsOf([&] { Launch(kernel); });
  };
  EXPECT_LT(launch_beside([this] {
              sampling_->Enable();
              sampling_->Configure(kSampled, 20'000, 2000, kBuffer);
              sampling_->Disable();
            }),
            0.1);
  ranges_->Enable(driver_.context);
  ranges_->Configure(kBase, 128);
  EXPECT_GT(launch_beside([this] { ranges_->Start(); }), 200);
  EXPECT_GT(launch_beside([this] {
              ranges_->Stop();
              ranges_->Disable();
            }),
            25);
}

// In real time the same is on the machine's clock.
TEST_F(Recorded, RealTimePassesForCallsAndKernels) {
  driver_.sim_set_time_(1, 1);
  const double ms = StepMs(5);
  EXPECT_GE(ms, 27.1);
}

}  // namespace
}  // namespace rfinject
