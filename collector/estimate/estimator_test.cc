#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "collector/source.h"
#include "collector/testing/fake_recorder.h"
#include "operators/cost.h"
#include "operators/testing/op_text.h"

namespace rfinject {
namespace {

using testing::FakeRecorder;
using ::testing::HasSubstr;
using testing::OpText;

std::unique_ptr<Source> Make(const std::string& gpu, FakeRecorder& recorder) {
  Settings settings;
  settings.estimate = gpu;
  return std::unique_ptr<Source>(MakeEstimator(settings, recorder));
}

void Feed(Source& source, const std::string& text, const Site& site = {}) {
  const OpText op(text);
  source.OnOp(op.call(), site);
}

constexpr const char* kConv =
    "aten::convolution ( f32[8,3,224,224] f32[64,3,7,7] _ I2,2 I3,3 I1,1 b0 I0,0 i1 ) -> ( f32[8,64,112,112] )";

TEST(EstimatorTest, TellsWhatIsEstimated) {
  FakeRecorder recorder;
  const auto source = Make("v100-sxm2-16gb", recorder);
  ASSERT_NE(source, nullptr);
  EXPECT_TRUE(source->wants_ops());
  ASSERT_EQ(recorder.facts().size(), 1u);
  const RunFacts& facts = recorder.facts()[0];
  EXPECT_EQ(facts.source, SourceKind::kEstimated);
  EXPECT_EQ(facts.estimated_gpu, "V100-SXM2-16GB") << "the table's spelling, not the user's";
  EXPECT_EQ(facts.collector, "estimator");
  ASSERT_EQ(facts.device.size(), 1u);
  EXPECT_EQ(facts.device[0].name, "V100-SXM2-16GB");
  EXPECT_EQ(facts.device[0].chip, "GV100");
  EXPECT_EQ(facts.device[0].cc_major, 7u);
  EXPECT_EQ(facts.device[0].sm_count, 80u);
  EXPECT_EQ(facts.device[0].sm_clock_khz, 1530000u);
  EXPECT_EQ(facts.device[0].l2_bytes, 6u << 20);
}

TEST(EstimatorTest, UnknownGpuNamesTheNearest) {
  FakeRecorder recorder;
  EXPECT_EQ(Make("A100", recorder), nullptr);
  ASSERT_EQ(recorder.diagnostics().size(), 1u);
  EXPECT_EQ(recorder.diagnostics()[0].severity, Severity::kError);
  EXPECT_THAT(recorder.diagnostics()[0].text, HasSubstr("\"A100\""));
  EXPECT_THAT(recorder.diagnostics()[0].text, HasSubstr("A100-SXM4-40GB, A100-SXM4-80GB"));
  EXPECT_THAT(recorder.diagnostics()[0].remedy, HasSubstr("rfinject gpus"));
  EXPECT_TRUE(recorder.facts().empty());
}

TEST(EstimatorTest, RecordsAKernel) {
  FakeRecorder recorder;
  const auto source = Make("V100-SXM2-16GB", recorder);
  const Site site = {.layer = 7, .op = recorder.Intern("aten::conv2d"), .node = 3, .phase = Phase::kForward};
  Feed(*source, kConv, site);
  ASSERT_EQ(recorder.records().size(), 1u);
  const LaunchRecord& record = recorder.records()[0];
  EXPECT_EQ(record.launches, 1u);
  EXPECT_EQ(recorder.Name(record.identity.kernel), "aten::convolution");
  EXPECT_EQ(recorder.Name(record.identity.signature), "f32[8,3,224,224] f32[64,3,7,7]");
  EXPECT_EQ(record.identity.site, site);
  EXPECT_EQ(record.identity.device, 0u);
  EXPECT_EQ(record.sample_count, 6u);
  EXPECT_EQ(FakeRecorder::Value(record, kProductFlop), 8u * 236027904);
  EXPECT_EQ(FakeRecorder::Value(record, kModelFlop), 8u * 236027904);
  EXPECT_EQ(FakeRecorder::Value(record, kFlopFirst + uint32_t(Precision::kFp32)), 8u * 236027904);
  EXPECT_EQ(FakeRecorder::Value(record, kCompulsoryBytes),
            4u * (8 * 3 * 224 * 224 + 64 * 3 * 49 + 8 * 64 * 112 * 112));
  EXPECT_EQ(FakeRecorder::Value(record, kDramBytes), FakeRecorder::Value(record, kCompulsoryBytes));
  EXPECT_EQ(FakeRecorder::Value(record, kTime), 120269u);
}

TEST(EstimatorTest, TheOperatorIsItsOwnSiteWhereNoneIsKnown) {
  FakeRecorder recorder;
  const auto source = Make("V100-SXM2-16GB", recorder);
  Feed(*source, kConv, {.phase = Phase::kForward});
  ASSERT_EQ(recorder.records().size(), 1u);
  EXPECT_EQ(recorder.Name(recorder.records()[0].identity.site.op), "aten::convolution");
}

TEST(EstimatorTest, PolicyTakesEffect) {
  FakeRecorder recorder;
  const auto source = Make("A100-SXM4-40GB", recorder);
  const uint32_t tf32 = kFlopFirst + uint32_t(Precision::kTf32Tensor);
  const uint32_t fp32 = kFlopFirst + uint32_t(Precision::kFp32);
  Feed(*source, kConv);
  source->OnPolicy({.cudnn_tf32 = Tristate::kOff});
  Feed(*source, kConv);
  source->OnPolicy({.matmul_tf32 = Tristate::kOn, .cudnn_tf32 = Tristate::kOn});
  const std::string product = "aten::mm ( f32[256,256] f32[256,256] ) -> ( f32[256,256] )";
  Feed(*source, product);
  // Torch's defaults hold where its flags are not known.
  source->OnPolicy({});
  Feed(*source, kConv);
  Feed(*source, product);
  ASSERT_EQ(recorder.records().size(), 5u);
  EXPECT_NE(FakeRecorder::Value(recorder.records()[0], tf32), 0u);
  EXPECT_EQ(FakeRecorder::Value(recorder.records()[1], tf32), 0u);
  EXPECT_NE(FakeRecorder::Value(recorder.records()[1], fp32), 0u);
  EXPECT_NE(FakeRecorder::Value(recorder.records()[2], tf32), 0u);
  EXPECT_NE(FakeRecorder::Value(recorder.records()[3], tf32), 0u);
  EXPECT_EQ(FakeRecorder::Value(recorder.records()[4], tf32), 0u);
}

TEST(EstimatorTest, NamesAreFormattedOnce) {
  FakeRecorder recorder;
  const auto source = Make("V100-SXM2-16GB", recorder);
  Feed(*source, kConv);
  const uint64_t calls = recorder.intern_calls();
  for (int i = 0; i < 10; ++i) Feed(*source, kConv);
  EXPECT_EQ(recorder.intern_calls(), calls);
  EXPECT_EQ(recorder.records().size(), 11u);
  EXPECT_EQ(recorder.records()[10].identity, recorder.records()[0].identity);
}

TEST(EstimatorTest, StepCountersOfOptimizersStayOnTheHost) {
  FakeRecorder recorder;
  const auto source = Make("V100-SXM2-16GB", recorder);
  const Site optimizer = {.phase = Phase::kOptimizer};
  Feed(*source, "aten::add_ ( f32[]@1 f32[] i1 ) -> ( f32[]@1 )", optimizer);
  Feed(*source, "aten::_foreach_add_ ( { f32[] f32[] } i1 ) -> ( )", optimizer);
  EXPECT_TRUE(recorder.records().empty());
  // A parameter of one element, and a loss elsewhere, are kernels.
  Feed(*source, "aten::add_ ( f32[1]@1 f32[] i1 ) -> ( f32[1]@1 )", optimizer);
  Feed(*source, "aten::add_ ( f32[]@1 f32[] i1 ) -> ( f32[]@1 )", {.phase = Phase::kForward});
  EXPECT_EQ(recorder.records().size(), 2u);
}

TEST(EstimatorTest, OperatorsWithoutARuleAreNamedOncePerStep) {
  FakeRecorder recorder;
  const auto source = Make("V100-SXM2-16GB", recorder);
  for (int i = 0; i < 3; ++i) {
    Feed(*source, "mine::op ( f32[10] ) -> ( f32[10] )");
    Feed(*source, "mine::other ( f32[10] ) -> ( f32[10] )");
    Feed(*source, "mine::integers ( i64[10] ) -> ( i64[10] )");
    Feed(*source, "mine::view ( f32[10]@1 ) -> ( f32[5]@1 )");
    Feed(*source, kConv);
  }
  EXPECT_TRUE(recorder.diagnostics().empty());
  source->OnStepEnd(0);
  ASSERT_EQ(recorder.diagnostics().size(), 1u);
  EXPECT_EQ(recorder.diagnostics()[0].severity, Severity::kInfo);
  EXPECT_EQ(recorder.diagnostics()[0].id, "op-without-rule");
  EXPECT_THAT(recorder.diagnostics()[0].text, HasSubstr("no FLOP rule for mine::op, mine::other:"));
  Feed(*source, "mine::op ( f32[10] ) -> ( f32[10] )");
  source->OnStepEnd(1);
  EXPECT_EQ(recorder.diagnostics().size(), 1u);
  Feed(*source, "mine::late ( f32[10] ) -> ( f32[10] )");
  source->Stop();
  ASSERT_EQ(recorder.diagnostics().size(), 2u);
  EXPECT_THAT(recorder.diagnostics()[1].text, HasSubstr("mine::late"));
  EXPECT_NE(recorder.diagnostics()[1].id, recorder.diagnostics()[0].id);
}

TEST(EstimatorTest, WhatIsComputedAgainIsAskedForOnce) {
  FakeRecorder recorder;
  const auto source = Make("V100-SXM2-16GB", recorder);
  Feed(*source, kConv, {.phase = Phase::kForward});
  Feed(*source, kConv, {.phase = Phase::kRecompute});
  const auto value = [&](size_t record, uint32_t metric) {
    for (const Sample& sample : recorder.records()[record].samples) {
      if (sample.metric == metric) return sample.value;
    }
    return UINT64_MAX;
  };
  EXPECT_GT(value(0, kModelFlop), 0u);
  EXPECT_EQ(value(1, kModelFlop), 0u);
  const uint32_t fp32 = kFlopFirst + static_cast<uint32_t>(Precision::kFp32);
  EXPECT_EQ(value(1, fp32), value(0, fp32));
}

TEST(EstimatorTest, TellsWhatIsCounted) {
  FakeRecorder recorder;
  const auto source = Make("V100-SXM2-16GB", recorder);
  const auto counted = [&](const std::string& text, bool children, bool launched) {
    const OpText op(text);
    OpCall call = op.call();
    call.children_counted = children;
    call.launched = launched;
    return source->OnOp(call, {});
  };
  EXPECT_TRUE(counted("mine::op ( f32[10] ) -> ( f32[10] )", false, false));
  EXPECT_FALSE(counted("aten::reshape ( f32[10]@1 I2,5 ) -> ( f32[2,5]@1 )", false, false));
  EXPECT_FALSE(counted("mine::op ( f32[10] ) -> ( f32[10] )", true, false));
  // Kernels of its own beside an operator inside, and those of an operator that returns nothing or takes nothing.
  EXPECT_TRUE(counted("mine::op ( f32[10] ) -> ( f32[10] )", true, true));
  EXPECT_TRUE(counted("mine::update ( f32[10] ) -> ( )", false, true));
  EXPECT_TRUE(counted("mine::noise ( i10 ) -> ( )", false, true));
  EXPECT_EQ(recorder.records().size(), 4u);
  source->OnStepEnd(0);
  ASSERT_EQ(recorder.diagnostics().size(), 1u);
  EXPECT_THAT(recorder.diagnostics()[0].text, HasSubstr("no FLOP rule for mine::op, mine::update:"));
}

TEST(EstimatorTest, RecordsNothingAfterStop) {
  FakeRecorder recorder;
  const auto source = Make("V100-SXM2-16GB", recorder);
  source->Stop();
  Feed(*source, kConv);
  EXPECT_TRUE(recorder.records().empty());
}

TEST(EstimatorTest, ThreadsShareTheNames) {
  FakeRecorder recorder;
  const auto source = Make("V100-SXM2-16GB", recorder);
  constexpr int kThreads = 4, kShapes = 300;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < 3; ++round) {
        for (int i = 1; i <= kShapes; ++i) {
          const std::string shape = "f32[" + std::to_string(i) + "]";
          Feed(*source, "aten::mul ( " + shape + " " + shape + " ) -> ( " + shape + " )");
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(recorder.records().size(), size_t{kThreads} * 3 * kShapes);
  // Every record's name belongs to its size, whichever thread interned it.
  for (const LaunchRecord& record : recorder.records()) {
    const uint64_t elements = FakeRecorder::Value(record, kModelFlop);
    const std::string shape = "f32[" + std::to_string(elements) + "]";
    ASSERT_EQ(recorder.Name(record.identity.signature), shape + " " + shape);
  }
}

// A recorded training step of ResNet-18 (SGD, batch 2), through the same gate as the injector's observer.
TEST(EstimatorTest, RecordedTrainingStep) {
  std::ifstream file(RFINJECT_OPERATORS_TESTDATA "/resnet18_step.ops");
  ASSERT_TRUE(file);
  const auto ops = testing::ReadOps(file);
  ASSERT_GT(ops.size(), 100u);
  FakeRecorder recorder;
  const auto source = Make("A100-SXM4-40GB", recorder);
  testing::Replay(ops, [&](const OpCall& call) { source->OnOp(call, {}); });
  std::map<std::string, uint64_t> flop, launches;
  for (const LaunchRecord& record : recorder.records()) {
    const std::string name = recorder.Name(record.identity.kernel);
    flop[name] += FakeRecorder::Value(record, kModelFlop);
    ++launches[name];
  }
  EXPECT_EQ(flop["aten::convolution"] + flop["aten::addmm"], 2 * uint64_t{3628146688});
  EXPECT_EQ(flop["aten::convolution_backward"] + flop["aten::mm"], 2 * uint64_t{7020265472});
  EXPECT_EQ(launches["aten::convolution"], 20u);
  EXPECT_EQ(launches["aten::native_batch_norm"], 20u);
  EXPECT_EQ(launches["aten::native_batch_norm_backward"], 20u);
  EXPECT_EQ(launches["aten::relu_"], 17u);
  EXPECT_EQ(launches["aten::threshold_backward"], 17u);
  EXPECT_EQ(launches["aten::max_pool2d_with_indices"], 1u);
  // What is inside an atomic operator, and views, never show.
  for (const char* name : {"aten::mkldnn_convolution", "aten::clamp_min_", "aten::view", "aten::t", "aten::conv2d",
                           "aten::batch_norm", "aten::copy_"}) {
    EXPECT_EQ(launches.count(name), 0u) << name;
  }
  EXPECT_TRUE(recorder.diagnostics().empty());
  source->Stop();
  EXPECT_TRUE(recorder.diagnostics().empty()) << recorder.diagnostics()[0].text;
}

}  // namespace
}  // namespace rfinject
