// File: recorded_sampling_test.cc
//
// PM sampling of the simulated GPU behaves as that of the H100 that was recorded. Each expectation names the file of
// the recording.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "integration_tests/simulated_gpu/testing/recorded.h"

namespace rfinject {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::SizeIs;

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

}  // namespace
}  // namespace rfinject
