// File: recorded_test.cc
//
// The simulated GPU behaves as the H100 that was recorded: what it costs, what it counts and what it refuses. Each
// expectation names the file of the recording. No collector is here: calls are CUPTI's own, and time is virtual, so
// that all of it is exact.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "integration_tests/simulated_gpu/testing/cupti_calls.h"
#include "integration_tests/simulated_gpu/testing/fixture.h"

namespace rfinject {
namespace {

using cupti::HostKind;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr uint64_t kMs = 1'000'000;
constexpr size_t kBuffer = size_t{256} << 20;
const std::vector<std::string> kDram = {"dram__bytes_read.sum", "dram__bytes_write.sum"};
const std::vector<std::string> kSampled = {"dram__bytes_read.sum", "dram__bytes_write.sum",
                                           "sm__pipe_tensor_cycles_active.sum", "sm__cycles_active.sum"};
const std::vector<std::string> kSass = {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
                                        "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum"};
// What the collector counted with each group of counters.
const std::vector<std::string> kBase = {"dram__bytes_read.sum",
                                        "dram__bytes_write.sum",
                                        "gpu__time_duration.sum",
                                        "gpc__cycles_elapsed.max",
                                        "lts__t_bytes.sum",
                                        "l1tex__t_bytes.sum",
                                        "sm__cycles_elapsed.avg.per_second",
                                        "dram__cycles_elapsed.avg.per_second"};

class Recorded : public ::testing::Test {
 protected:
  void SetUp() override {
    if (access(SIM_REAL_CUPTI_FOLDER "/libcupti.so.13", R_OK) != 0)
      GTEST_SKIP() << "note: no real CUPTI to plan with";
    ASSERT_NO_FATAL_FAILURE(driver_.Open("cupti13/libcupti.so.13"));
    driver_.sim_set_chip_("GH100", 9, 0);
    cupti::LoadOptions options;
    options.driver_ready = true;
    cupti::LoadResult loaded = cupti::LoadApi(options);
    ASSERT_EQ(loaded.status, cupti::LoadStatus::kOk) << loaded.error;
    api_ = loaded.api;
    RFINJECT_PARAMS(CUpti_Profiler_Initialize, initialize);
    ASSERT_EQ(api_.cuptiProfilerInitialize(&initialize), CUPTI_SUCCESS);
    int result = 0;
    ranges_host_ = MakeProfilerHost(api_, "GH100", HostKind::kRangeProfiler, {}, &result);
    samples_host_ = MakeProfilerHost(api_, "GH100", HostKind::kPmSampling, {}, &result);
    ASSERT_TRUE(ranges_host_ != nullptr && samples_host_ != nullptr);
    ranges_ = std::make_unique<RangeSession>(api_, *ranges_host_);
    sampling_ = std::make_unique<SamplingSession>(api_, *samples_host_);
    void* cupti = dlopen(SIM_FOLDER "/cupti13/libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
    timestamp_ = reinterpret_cast<decltype(timestamp_)>(dlsym(cupti, "cuptiGetTimestamp"));
    stamp_by_ = reinterpret_cast<decltype(stamp_by_)>(dlsym(cupti, "cuptiActivityRegisterTimestampCallback"));
  }

  // A kernel whose bytes are read.
  const SimKernel& Kernel(const char* name, uint64_t ns, double bytes, double ffma = 0, double hfma = 0) {
    auto& metrics = *new std::vector<SimMetric>{
        {"dram__bytes_read.sum", bytes}, {kSass[0].c_str(), ffma}, {kSass[1].c_str(), hfma}};
    return *new SimKernel{name, ns, metrics.data(), metrics.size(), nullptr};
  }
  void Launch(const SimKernel& kernel, CUstream stream = nullptr) {
    EXPECT_EQ(driver_.cuLaunchKernel_(reinterpret_cast<CUfunction>(const_cast<SimKernel*>(&kernel)), 8, 1, 1, 128, 1,
                                      1, 0, stream, nullptr, nullptr),
              CUDA_SUCCESS);
  }
  // The recorded program's step: 377 kernels, 27.1 ms.
  static constexpr int kLaunches = 377;
  void Step(int ranges = 0) {
    static const SimKernel& kernel = Kernel("kernel", 27'100'000 / kLaunches, 1000, 10);
    for (int i = 0; i < kLaunches; ++i) {
      const bool inside = i < ranges;
      int failed = inside ? ranges_->Push("r" + std::to_string(range_++)) : 0;
      Launch(kernel);
      failed += inside ? ranges_->Pop() : 0;
      EXPECT_EQ(failed, 0);
    }
  }
  // How long steps take, each, to the end of the last on the GPU, in ms.
  double StepMs(int steps, int ranges = 0) {
    driver_.cuCtxSynchronize_();
    return MsOf([&] {
             for (int i = 0; i < steps; ++i) Step(ranges);
             driver_.cuCtxSynchronize_();
           }) /
           steps;
  }
  template <typename Calls>
  double MsOf(const Calls& calls) {
    const uint64_t begin = driver_.sim_now_();
    calls();
    return static_cast<double>(driver_.sim_now_() - begin) / 1e6;
  }

  Driver driver_;
  cupti::Api api_;
  std::unique_ptr<cupti::MetricHost> ranges_host_, samples_host_;
  std::unique_ptr<RangeSession> ranges_;
  std::unique_ptr<SamplingSession> sampling_;
  decltype(&cuptiGetTimestamp) timestamp_ = nullptr;
  decltype(&cuptiActivityRegisterTimestampCallback) stamp_by_ = nullptr;
  int range_ = 0;
};

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

// calls/*.calls.gz, and pm/sessions_and_sampling.txt, D.
TEST_F(Recorded, SamplingCostsWhatItCost) {
  EXPECT_EQ(sampling_->Enable(), CUPTI_SUCCESS);
  EXPECT_NEAR(MsOf([&] { EXPECT_EQ(sampling_->Configure(kSampled, 10'000, 2000, 64 << 20), 0); }), 95 + 2.2, 6);
  EXPECT_NEAR(MsOf([&] { EXPECT_EQ(sampling_->Start(), CUPTI_SUCCESS); }), 0.55, 0.07);
  driver_.sim_spend_(10 * kMs);
  EXPECT_NEAR(MsOf([&] { EXPECT_EQ(sampling_->Stop(), CUPTI_SUCCESS); }), 1.8, 0.1);
  const double decode = MsOf([&] { EXPECT_NEAR(sampling_->Decode().samples.size(), 1040, 2); });
  // The image costs 8 us a sample of capacity; decoding 20 us a sample, evaluating 10.
  EXPECT_NEAR(decode, 2000 * 0.0078 + 1040 * (0.020 + 0.010), 1);
  EXPECT_NEAR(MsOf([&] { EXPECT_EQ(sampling_->Disable(), CUPTI_SUCCESS); }), 43, 1);
  // The same, D: 1,576 MB for 60,000 samples.
  EXPECT_NEAR(static_cast<double>(sampling_->image_bytes()) / 2000, 26'000, 500);
}

// pm/exp_samples_5000.json.gz: its first sample has the bytes of the step before Start; edges are multiples of 32 ns:
// 4992 and 5024 ns. pm/sessions_and_sampling.txt, D: sums agree at every interval, and there are no gaps.
TEST_F(Recorded, TheFirstSampleLastsFromEnableOnAndTheOthersFromEdgeToEdge) {
  const SimKernel& kernel = Kernel("kernel", 70'000, 1000);
  for (const uint64_t interval : {100'000u, 10'000u, 5'000u}) {
    EXPECT_EQ(sampling_->Enable(), CUPTI_SUCCESS);
    const uint64_t enabled = driver_.sim_now_();
    sampling_->Configure(kSampled, interval, 3000, kBuffer);
    for (int i = 0; i < 50; ++i) Launch(kernel);
    driver_.cuCtxSynchronize_();
    sampling_->Start();
    const uint64_t started = driver_.sim_now_();
    for (int window = 0; window < 2; ++window) {
      if (window != 0) sampling_->Start();
      for (int i = 0; i < 100; ++i) Launch(kernel);
      driver_.cuCtxSynchronize_();
      sampling_->Stop();
      const SamplingSession::Decoded decoded = sampling_->Decode();
      EXPECT_EQ(decoded.result, CUPTI_SUCCESS);
      ASSERT_GT(decoded.samples.size(), 70u);
      double bytes = 0;
      for (size_t i = 1; i < decoded.samples.size(); ++i) {
        const SampleOf &one = decoded.samples[i], &before = decoded.samples[i - 1];
        EXPECT_EQ(one.start, before.end);
        EXPECT_THAT(one.end - one.start, AllOf(Ge(interval - 32), Le(interval + 32)));
        EXPECT_EQ((one.end - decoded.samples[0].end) % 32, 0u);
        bytes += one.values[0];
      }
      EXPECT_NEAR(bytes, 100 * 1000, 1) << interval;
      const SampleOf& first = decoded.samples[0];
      if (window == 0) {
        EXPECT_EQ(first.start, enabled);
        EXPECT_EQ(first.end, started);
      }
      EXPECT_NEAR(first.values[0], window == 0 ? 50 * 1000 : 0, 1);
    }
    sampling_->Disable();
  }
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

// pm/sessions_and_sampling.txt, D: 27,772 samples of a window fit 256 MB, twice as many do not: decoding says 8; then
// "rc [999, 7, 8]". The next session is well.
TEST_F(Recorded, ASessionIsDeadAfterAnOverflowUntilItIsDisabled) {
  const auto window = [this](uint64_t ms) {
    const int start = sampling_->Start();
    driver_.sim_spend_(ms * kMs);
    const int stop = sampling_->Stop();
    const SamplingSession::Decoded decoded = sampling_->Decode();
    EXPECT_EQ(decoded.overflow, decoded.result != 0);
    EXPECT_EQ(decoded.samples.empty(), decoded.result != 0);
    return std::vector<int>{start, stop, decoded.result};
  };
  sampling_->Enable();
  sampling_->Configure(kSampled, 2000, 1000, kBuffer);
  EXPECT_THAT(window(55), ElementsAre(0, 0, 0));
  sampling_->Disable();
  sampling_->Enable();
  sampling_->Configure(kSampled, 1000, 1000, kBuffer);
  EXPECT_THAT(window(55), ElementsAre(0, 0, 8));
  EXPECT_THAT(window(55), ElementsAre(999, 7, 8));
  sampling_->Disable();
  sampling_->Enable();
  sampling_->Configure(kSampled, 2000, 1000, kBuffer);
  EXPECT_THAT(window(10), ElementsAre(0, 0, 0));
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

// calls/gpt.calls.gz, and README.md, 5.4: 256 samples, and nothing in the second decoding.
TEST_F(Recorded, TheDecodingAfterAFullImageIsEmpty) {
  sampling_->Enable();
  sampling_->Configure(kSampled, 100'000, 256, kBuffer);
  sampling_->Start();
  driver_.sim_spend_(60 * kMs);
  sampling_->Stop();
  SamplingSession::Decoded decoded = sampling_->Decode();
  EXPECT_THAT(decoded.samples, SizeIs(256));
  EXPECT_EQ(decoded.stop_reason, CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL);
  decoded = sampling_->Decode();
  EXPECT_EQ(decoded.result, CUPTI_SUCCESS);
  EXPECT_THAT(decoded.samples, IsEmpty());
}

// README.md, 3: which metrics fit the one pass that sampling has.
TEST_F(Recorded, OnePassHoldsAsManyMetricsAsItHeld) {
  EXPECT_EQ(samples_host_->Passes(kSampled), 1u);
  for (const char* metric : {"lts__t_bytes.sum", "l1tex__t_bytes.sum", "pcie__read_bytes.sum"}) {
    std::vector<std::string> metrics = kDram;
    metrics.emplace_back(metric);
    EXPECT_EQ(samples_host_->Passes(metrics), 1u) << metric;
  }
  EXPECT_EQ(samples_host_->Passes(std::vector<std::string>{"sm__inst_executed_pipe_tensor.sum"}), 2u);
  EXPECT_EQ(samples_host_->Passes(kSass), 0u);
}

// README.md, 4: samples and kernels have one clock. Where torch.profiler has set CUPTI's timestamp callback, both and
// cuptiGetTimestamp are ticks of the processor's counter, 2.1 a ns.
decltype(&sim_now) g_now = nullptr;
uint64_t CUPTIAPI Ticks() { return static_cast<uint64_t>(2.1 * static_cast<double>(g_now() % 1'000'000'000'000)); }

TEST_F(Recorded, SamplesKernelsAndTimestampsHaveOneClock) {
  g_now = driver_.sim_now_;
  RecordKernels(api_);
  sampling_->Enable();
  sampling_->Configure(kSampled, 5000, 4000, kBuffer);
  for (const bool ticks : {false, true}) {
    ASSERT_EQ(ticks ? stamp_by_(&Ticks) : CUPTI_SUCCESS, CUPTI_SUCCESS);
    const double rate = ticks ? 2.1 : 1;
    driver_.sim_spend_(kMs);
    uint64_t before = 0, after = 0;
    timestamp_(&before);
    sampling_->Start();
    driver_.sim_spend_(kMs);
    Launch(Kernel("kernel", kMs, 1e6));
    driver_.cuCtxSynchronize_();
    driver_.sim_spend_(kMs);
    sampling_->Stop();
    timestamp_(&after);
    const std::vector<KernelOf> kernels = FlushKernels(api_, true);
    ASSERT_THAT(kernels, SizeIs(1));
    EXPECT_NEAR(static_cast<double>(kernels[0].end - kernels[0].start), rate * kMs, 3);
    EXPECT_GT(kernels[0].start, before);
    EXPECT_LT(kernels[0].end, after);
    double inside = 0, all = 0;
    const std::vector<SampleOf> samples = sampling_->Decode().samples;
    for (const SampleOf& one : samples) {
      all += one.values[0];
      if (one.end > kernels[0].start && one.start < kernels[0].end) inside += one.values[0];
    }
    EXPECT_NEAR(all, 1e6, 1);
    EXPECT_EQ(inside, all);
  }
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

TEST_F(Recorded, TwoGpusRunAtOnceAndEachIsSampledByItself) {
  CUcontext second = nullptr;
  ASSERT_EQ(driver_.cuDevicePrimaryCtxRetain_(&second, 1), CUDA_SUCCESS);
  SamplingSession other(api_, *samples_host_, 1);
  for (SamplingSession* session : {sampling_.get(), &other}) {
    EXPECT_EQ(session->Enable(), CUPTI_SUCCESS);
    session->Configure(kSampled, 20'000, 2000, kBuffer);
  }
  for (SamplingSession* session : {sampling_.get(), &other}) EXPECT_EQ(session->Start(), CUPTI_SUCCESS);
  const double ms = MsOf([&] {
    Launch(Kernel("first", 5 * kMs, 100));
    driver_.cuCtxSetCurrent_(second);
    Launch(Kernel("second", 5 * kMs, 7));
    driver_.cuCtxSynchronize_();
    driver_.cuCtxSetCurrent_(driver_.context);
    driver_.cuCtxSynchronize_();
  });
  EXPECT_NEAR(ms, 5, 0.1);
  const auto bytes = [](SamplingSession& session) {
    EXPECT_EQ(session.Stop(), CUPTI_SUCCESS);
    double sum = 0;
    for (const SampleOf& one : session.Decode().samples) sum += one.values[0];
    return sum;
  };
  EXPECT_NEAR(bytes(*sampling_), 100, 1e-6);
  EXPECT_NEAR(bytes(other), 7, 1e-6);
}

// Whether they do on a real GPU is not recorded (README.md, 7), so that a collector must bear both.
TEST_F(Recorded, SamplingAndRangesExcludeEachOtherOrNot) {
  EXPECT_EQ(sampling_->Enable(), CUPTI_SUCCESS);
  EXPECT_EQ(ranges_->Enable(driver_.context), CUPTI_ERROR_HARDWARE_BUSY);
  driver_.sim_set_exclusive_(0);
  EXPECT_EQ(ranges_->Enable(driver_.context), CUPTI_SUCCESS);
  sampling_->Disable();
  driver_.sim_set_exclusive_(1);
  EXPECT_EQ(sampling_->Enable(), CUPTI_ERROR_HARDWARE_BUSY);
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

// What a thread of the collector's waits for does not hold the program up.
TEST_F(Recorded, ACallOnAnotherThreadDoesNotHoldTheProgramUp) {
  Launch(Kernel("kernel", 1000, 0));
  const uint64_t begin = driver_.sim_now_();
  std::thread other([this] {
    sampling_->Enable();
    sampling_->Configure(kSampled, 20'000, 2000, kBuffer);
    driver_.sim_spend_(kMs);
  });
  other.join();
  EXPECT_EQ(driver_.sim_now_(), begin);
}

// In real time the same is on the machine's clock.
TEST_F(Recorded, RealTimePassesForCallsAndKernels) {
  driver_.sim_set_time_(1, 1);
  const double ms = StepMs(5);
  EXPECT_GE(ms, 27.1);
}

}  // namespace
}  // namespace rfinject
