#include "cli/report/advice/facts.h"

#include <string>

#include "cli/report/fold.h"
#include "cli/testing/sample_profile.h"
#include "gtest/gtest.h"

namespace rfinject::cli {
namespace {

constexpr uint64_t kSteps = 2;

// An estimate on an A100 of launches that the tests add.
class Facts : public ::testing::Test {
 protected:
  Facts() {
    RunKey key;
    key.source = SourceKind::kEstimated;
    key.gpu = key.estimated_gpu = "A100-SXM4-40GB";
    key.training = true;
    key.models = {"Net"};
    run_ = &profile_.runs[key];
    run_->key = key;
    run_->steps.steps = kSteps;
    profile_.metrics[std::string(kMetricTime)] = {std::string(kMetricTime), "ns", 1};
    profile_.metrics[std::string(kMetricDramBytes)] = {std::string(kMetricDramBytes), "B", 1};
    profile_.metrics[std::string(kMetricCompulsoryBytes)] = {std::string(kMetricCompulsoryBytes), "B", 1};
    for (size_t i = 0; i < kPrecisionCount; ++i) {
      profile_.metrics[std::string(kMetricFlop[i])] = {std::string(kMetricFlop[i]), "FLOP", 1};
    }
  }

  // `launches` of an operator, all alike.
  LaunchKey& Add(Phase phase, std::string layer, const std::string& op, std::string signature, uint64_t bytes,
                 uint64_t flop = 0, uint64_t launches = kSteps, Precision precision = Precision::kFp32) {
    key_ = {};
    if (!layer.empty()) key_.layer = {"Net", std::move(layer)};
    key_.phase = phase;
    key_.op = key_.kernel = op;
    key_.signature = std::move(signature);
    LaunchStats stats;
    stats.launches = launches;
    const auto add = [&](std::string_view metric, uint64_t value) {
      for (uint64_t i = 0; i < launches; ++i) stats.metrics[std::string(metric)].Add(value);
    };
    add(kMetricTime, 3000);
    add(kMetricDramBytes, bytes);
    add(kMetricCompulsoryBytes, bytes);
    if (flop > 0) add(kMetricFlop[static_cast<size_t>(precision)], flop);
    run_->launches[key_] = stats;
    return key_;
  }

  double Of(Fact fact) {
    const Report report = FoldRun(profile_, *run_, testing::SampleA100(), {});
    const std::optional<double> value = report.advice.facts[static_cast<size_t>(fact)];
    EXPECT_TRUE(value) << AllFacts()[static_cast<size_t>(fact)].name;
    return value.value_or(-1);
  }

  Profile profile_;
  cli::Run* run_ = nullptr;
  LaunchKey key_;
};

TEST_F(Facts, AModelInHalfPrecisionIsNotToldToComputeInIt) {
  Add(Phase::kForward, "fc", "aten::addmm", "f32[1024] f32[1024,1024] f32[1024,1024]", 12'000'000, 1'000'000);
  EXPECT_GT(Of(Fact::kFullPrecision), 0);
  Add(Phase::kForward, "rest", "aten::addmm", "bf16[1024] bf16[1024,1024] bf16[1024,1024]", 6'000'000, 9'000'000,
      kSteps, Precision::kBf16Tensor);
  EXPECT_EQ(Of(Fact::kFullPrecision), 0);
}

TEST_F(Facts, InHalfPrecisionTheMemoryFormatIsTheSame) {
  constexpr uint64_t kPixels = 32 * 256 * 56 * 56, kFlop = 2 * kPixels * 256 * 9;
  const auto in_half = [&](const std::string& type) {
    run_->launches.clear();
    Add(Phase::kForward, "conv", "aten::convolution", type + "[32,256,56,56] f32[256,256,3,3]", 2 * 4 * kPixels,
        kFlop, kSteps, Precision::kTf32Tensor);
    return Of(Fact::kInHalf);
  };
  EXPECT_GT(in_half("f32"), in_half("f32:nhwc") + 100e3) << "transposing 206 MB takes more than 0.1 ms";
}

TEST_F(Facts, ALargerBatchHasNoMoreChannels) {
  // Of so few channels that their blocks are what holds it back, with each batch alike.
  constexpr uint64_t kBytes = 2 * 4 * 64 * 8 * 224 * 224;
  Add(Phase::kForward, "bn", "aten::native_batch_norm", "f32[64,8,224,224] f32[8]", kBytes, 8 * kBytes / 8);
  const double now = Of(Fact::kStep), larger = Of(Fact::kLargerBatch);
  EXPECT_GT(larger, 3.5 * now);
}

TEST_F(Facts, ProductsInFp32AreFasterInTf32) {
  constexpr uint64_t kN = 4096;
  Add(Phase::kForward, "fc", "aten::mm", "f32[4096,4096] f32[4096,4096]", 3 * 4 * kN * kN, 2 * kN * kN * kN);
  EXPECT_GT(Of(Fact::kFullPrecisionMatrix), 4 * Of(Fact::kMatrixInTf32));
  run_->launches.clear();
  Add(Phase::kForward, "fc", "aten::mm", "f32[4096,4096] f32[4096,4096]", 3 * 4 * kN * kN, 2 * kN * kN * kN, kSteps,
      Precision::kTf32Tensor);
  EXPECT_EQ(Of(Fact::kFullPrecisionMatrix), 0);
}

TEST_F(Facts, ANumberOfPythonIsNoWorkInFp64) {
  Add(Phase::kForward, "scale", "aten::mul", "f32[1024] f64[]", 8192, 1024);
  EXPECT_EQ(Of(Fact::kFp64), 0);
  Add(Phase::kForward, "double", "aten::mul", "f64[1024]", 16384, 1024, kSteps, Precision::kFp64);
  EXPECT_GT(Of(Fact::kFp64), 0);
}

TEST_F(Facts, AProgramIsCompiledWhereInductorMadeAKernel) {
  Add(Phase::kForward, "scale", "aten::mul", "f32[1024]", 8192, 1024);
  EXPECT_EQ(Of(Fact::kCompiled), 0);
  Add(Phase::kForward, "scale", "triton_poi_fused_mul_0", "", 8192, 1024);
  EXPECT_EQ(Of(Fact::kCompiled), 1);
}

// In FP32 it takes three products of TF32, in halves one of theirs, which are twice as fast.
TEST_F(Facts, AttentionInHalvesIsFusedInHalves) {
  constexpr uint64_t kHeads = 1024, kScores = kHeads * 512 * 512, kHead = kHeads * 512 * 64, kFlop = 2 * kScores * 64;
  const auto fused = [&](const std::string& type, uint64_t size, Precision precision) {
    run_->launches.clear();
    Add(Phase::kForward, "attention", "aten::bmm", type + "[1024,512,64] " + type + "[1024,64,512]",
        size * (2 * kHead + kScores), kFlop, kSteps, precision);
    Add(Phase::kForward, "attention", "aten::_softmax", type + "[1,1024,512,512]", 2 * size * kScores, 3 * kScores);
    Add(Phase::kForward, "attention", "aten::bmm", type + "[1024,512,512] " + type + "[1024,512,64]",
        size * (2 * kHead + kScores), kFlop, kSteps, precision);
    return Of(Fact::kAttentionFused);
  };
  EXPECT_GT(fused("f32", 4, Precision::kFp32), 3 * fused("bf16", 2, Precision::kBf16Tensor));
}

// Two products and a softmax between, of 8 heads and 512 x 512 scores.
TEST_F(Facts, AttentionIsFoundByItsScores) {
  constexpr uint64_t kScores = 8 * 512 * 512, kHead = 8 * 512 * 64, kFlop = 2 * kScores * 64;
  Add(Phase::kForward, "attention", "aten::bmm", "f32[8,512,64] f32[8,64,512]", 4 * (2 * kHead + kScores), kFlop);
  EXPECT_EQ(Of(Fact::kAttention), 0) << "a product is no attention";
  Add(Phase::kForward, "attention", "aten::_softmax", "f32[1,8,512,512]", 8 * kScores, 3 * kScores);
  Add(Phase::kForward, "attention", "aten::bmm", "f32[8,512,512] f32[8,512,64]", 4 * (2 * kHead + kScores), kFlop);
  const double fused = Of(Fact::kAttentionFused), spelled_out = Of(Fact::kAttention);
  EXPECT_GT(fused, 0);
  EXPECT_GT(spelled_out, fused);
  // What handles scores counts, what does not is not attention's.
  Add(Phase::kForward, "attention", "aten::mul", "f32[1,8,512,512]", 8 * kScores, kScores);
  EXPECT_GT(Of(Fact::kAttention), spelled_out);
  const double with_scale = Of(Fact::kAttention);
  Add(Phase::kForward, "attention", "aten::addmm", "f32[512] f32[512,512] f32[512,512]", 4 * 3 * 512 * 512, 1);
  Add(Phase::kForward, "classifier", "aten::_softmax", "f32[1,8,512,512]", 8 * kScores, 3 * kScores);
  EXPECT_EQ(Of(Fact::kAttention), with_scale) << "a softmax without products is no attention";
}

TEST_F(Facts, AnOptimizerThatTakesOneTensorAfterTheOther) {
  Add(Phase::kOptimizer, "", "aten::mul_", "f32[100]", 800, 100, 40 * kSteps);
  Add(Phase::kOptimizer, "", "aten::add_", "f32[100]", 1200, 200, 80 * kSteps);
  EXPECT_EQ(Of(Fact::kOptimizerSingleLaunches), 120);
  EXPECT_EQ(Of(Fact::kOptimizerTensors), 40);
  run_->launches.clear();
  Add(Phase::kOptimizer, "", "aten::_foreach_add_", "40*f32{4000}", 48000, 8000);
  EXPECT_EQ(Of(Fact::kOptimizerSingleLaunches), 0);
  EXPECT_EQ(Of(Fact::kOptimizerFused), Of(Fact::kOptimizer)) << "SGD: nobody knows of what one kernel would do";
}

// On a GPU torch 2 takes lists by itself, so an estimate of CPU operators does not know what would run there.
TEST_F(Facts, TheOptimizerOfTorch2IsKnownWhereItRanForAGpu) {
  Add(Phase::kOptimizer, "", "aten::mul_", "f32[100]", 800, 100, 40 * kSteps);
  const auto known = [&] {
    const Report report = FoldRun(profile_, *run_, testing::SampleA100(), {});
    return report.advice.facts[static_cast<size_t>(Fact::kOptimizerSingleLaunches)].has_value();
  };
  run_->process_list.resize(1);
  run_->process_list[0].torch_version = "1.13.0a0";
  EXPECT_TRUE(known());
  run_->process_list[0].torch_version = "2.15.0+cu132";
  EXPECT_FALSE(known());
  run_->key.collector = kVirtualGpuCollector;
  EXPECT_TRUE(known());
}

TEST_F(Facts, WhatIsDoneOnceAStepDoesNotGrowWithTheBatch) {
  Add(Phase::kOptimizer, "", "aten::_foreach_add_", "40*f32{40000000}", 480'000'000, 80'000'000);
  EXPECT_NEAR(Of(Fact::kLargerBatch), Of(Fact::kStep), 1);
  run_->launches.clear();
  Add(Phase::kForward, "relu", "aten::relu", "f32[100000000]", 800'000'000);
  EXPECT_GT(Of(Fact::kLargerBatch), 3.5 * Of(Fact::kStep));
}

TEST_F(Facts, ChannelsAreRoundedUpOnTensorCoresOnly) {
  constexpr uint64_t kFlop = 2ull * 32 * 60 * 56 * 56 * 60 * 9;
  const std::string signature = "f16[32,60,56,56] f16[60,60,3,3]";
  Add(Phase::kForward, "conv", "aten::convolution", signature, 24'000'000, kFlop, kSteps, Precision::kFp16Tensor);
  EXPECT_GT(Of(Fact::kUnaligned), Of(Fact::kAligned));
  run_->launches.clear();
  Add(Phase::kForward, "conv", "aten::convolution", "f32[32,60,56,56] f32[60,60,3,3]", 48'000'000, kFlop);
  EXPECT_EQ(Of(Fact::kUnaligned), 0);
}

TEST_F(Facts, WhatARunDoesNotSayHasNoValue) {
  Add(Phase::kForward, "relu", "aten::relu", "f32[1000]", 8000);
  const Report report = FoldRun(profile_, *run_, testing::SampleA100(), {});
  for (const Fact fact : {Fact::kHost, Fact::kClock, Fact::kIdle, Fact::kDataWait, Fact::kGpuWait, Fact::kTransposes,
                          Fact::kMemoryBytes, Fact::kForwards}) {
    EXPECT_FALSE(report.advice.facts[static_cast<size_t>(fact)]) << AllFacts()[static_cast<size_t>(fact)].name;
    EXPECT_FALSE(AllFacts()[static_cast<size_t>(fact)].lacking.empty());
  }
}

TEST_F(Facts, WhatCrossesTheLargestGraphBreak) {
  Add(Phase::kForward, "relu", "aten::relu", "f32[1000]", 8000);
  EXPECT_EQ(Of(Fact::kGraphBreaks), 0);
  EXPECT_EQ(Of(Fact::kBreak), 0);
  run_->kept.graph_break.Add({.file = "a.py", .line = 3, .function = "", .reason = "print", .count = 1, .bytes = 0});
  Report report = FoldRun(profile_, *run_, testing::SampleA100(), {});
  EXPECT_FALSE(report.advice.facts[static_cast<size_t>(Fact::kBreakBytes)]) << "nobody said what crosses it";
  constexpr uint64_t kBytes = 100'000'000;
  run_->kept.graph_break.Add({.file = "b.py", .line = 4, .function = "f", .reason = "", .count = 2, .bytes = kBytes});
  EXPECT_EQ(Of(Fact::kGraphBreaks), 2);
  EXPECT_EQ(Of(Fact::kBreakBytes), kBytes);
  report = FoldRun(profile_, *run_, testing::SampleA100(), {});
  EXPECT_EQ(report.kept.graph_break.front().file, "b.py");
  // Written and read once in the forward, and as much in the backward.
  const double training = Of(Fact::kBreak);
  const double least = 4.0 * kBytes / testing::SampleA100().dram_bytes_per_s * 1e9;
  EXPECT_GT(training, 0.9 * least);
  run_->key.training = false;
  EXPECT_DOUBLE_EQ(Of(Fact::kBreak), training / 2);
}

// Of a recording: what is beyond the usual, of operators with all of their kernels, of a step.
TEST_F(Facts, WhatIsSlowerThanUsual) {
  Add(Phase::kForward, "a", "aten::mm", "f32[64,64] f32[64,64]", 49152, 524288);
  run_->key.source = SourceKind::kImported;
  run_->key.estimated_gpu.clear();
  EXPECT_EQ(Of(Fact::kBeyondUsual), 0);
  constexpr uint64_t kLongNs = 1'000'000;
  LaunchStats slow = run_->launches[key_];
  slow.metrics[std::string(kMetricTime)] = {};
  for (uint64_t i = 0; i < kSteps; ++i) slow.metrics[std::string(kMetricTime)].Add(kLongNs);
  key_.layer.path = "b";
  run_->launches[key_] = slow;
  const double beyond = Of(Fact::kBeyondUsual);
  EXPECT_GT(beyond, 0.9 * kLongNs);
  EXPECT_LT(beyond, kLongNs);
}

// x * sigmoid(1.7 x), spelled out.
TEST_F(Facts, ElementwiseOperatorsOfALayerAreAChain) {
  run_->models["Net"].parameters = 1;
  run_->layers[{"Net", "act"}] = {};
  const std::string shape = "f32[4096,2048]";
  constexpr uint64_t kBytes = 4 * 4096 * 2048;
  Add(Phase::kForward, "act", "aten::mul", shape + " f32[]", 2 * kBytes);
  Add(Phase::kForward, "act", "aten::sigmoid", shape, 2 * kBytes);
  Add(Phase::kForward, "act", "aten::mul", shape + " " + shape, 3 * kBytes);
  EXPECT_EQ(Of(Fact::kChainLaunches), 3);
  const double forward = Of(Fact::kChains), fused = Of(Fact::kChainsFused);
  EXPECT_NEAR(fused / forward, 2.0 / 7, 0.05);
  // A product in between, or children that may have one.
  Add(Phase::kForward, "act", "aten::addmm", "f32[8] f32[8,8] f32[8,8]", 1000);
  EXPECT_EQ(Of(Fact::kChainLaunches), 0);
  run_->launches.erase(key_);
  run_->layers[{"Net", "act.fc"}] = {};
  EXPECT_EQ(Of(Fact::kChainLaunches), 0);
}

TEST_F(Facts, OneOperatorAndALossAreNoChain) {
  run_->models["Net"].parameters = 1;
  Add(Phase::kForward, "act", "aten::relu", "f32[4096,2048]", 2 * 4 * 4096 * 2048);
  Add(Phase::kForward, "act", "aten::relu", "f32[1024,2048]", 2 * 4 * 1024 * 2048);
  EXPECT_EQ(Of(Fact::kChainLaunches), 0);
  Add(Phase::kForward, "act", "aten::neg", "f32[4096,2048]", 2 * 4 * 4096 * 2048);
  EXPECT_EQ(Of(Fact::kChainLaunches), 3);
  run_->models["Net"].parameters = 0;
  EXPECT_EQ(Of(Fact::kChainLaunches), 0);
}

}  // namespace
}  // namespace rfinject::cli
