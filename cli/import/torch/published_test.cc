// Recordings that others published, of GPUs and dialects that no recording of ours has.
#include "cli/import/testing/published.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <string>

#include "cli/import/torch/torch_profiler.h"

namespace rfinject::cli {
namespace {

class PublishedTest : public testing::Test {
 protected:
  void SetUp() override {
    if (Published("README.md").empty()) GTEST_SKIP() << kNotPublishedHere;
  }
  static cli::Run Import(const std::string& name) {
    const absl::StatusOr<Imported> imported =
        ImportTorchProfiler(Published("pytorch_profiler/" + name + ".json.gz"), {});
    EXPECT_TRUE(imported.ok()) << imported.status();
    return imported.ok() ? imported->profile.runs.begin()->second : cli::Run();
  }
};

uint64_t SumOf(const cli::Run& run, std::string_view metric, const std::function<bool(const LaunchKey&)>& wanted) {
  Uint128 sum = 0;
  for (const auto& [key, stats] : run.launches) {
    const auto found = stats.metrics.find(std::string(metric));
    if (found != stats.metrics.end() && wanted(key)) sum += found->second.sum;
  }
  return static_cast<uint64_t>(sum);
}
std::function<bool(const LaunchKey&)> InPhase(Phase phase, const std::string& op) {
  return [phase, op](const LaunchKey& key) { return key.phase == phase && key.op == op; };
}

// Six steps of ResNet-50 on a V100 in the dialect of 2021: no strides, no values, no modules. 4,087,136,256
// multiply-adds an image in the convolutions; 118,013,952 of them are conv1's, whose input needs no gradient;
// batch 32.
TEST_F(PublishedTest, ResNet50OnAV100HasTheFlopOfItsClosedForm) {
  const cli::Run run = Import("v100_resnet50_1623143089861.pt.trace");
  constexpr uint64_t kForward = 2 * 32 * 4'087'136'256ULL, kFirst = 2 * 32 * 118'013'952ULL;
  const uint64_t steps = run.steps.steps;
  EXPECT_GE(steps, 5u);
  EXPECT_EQ(SumOf(run, kMetricModelFlop, InPhase(Phase::kForward, "aten::convolution")) / steps, kForward);
  EXPECT_EQ(SumOf(run, kMetricModelFlop, InPhase(Phase::kBackward, "aten::convolution_backward")) / steps,
            2 * kForward - kFirst);
  EXPECT_EQ(SumOf(run, kMetricModelFlop, InPhase(Phase::kForward, "aten::addmm")) / steps, 2u * 32 * 2048 * 1000);
}

TEST_F(PublishedTest, BertOnAnH100HasItsModulesAndProducts) {
  const cli::Run run = Import("h100_bert_small");
  EXPECT_THAT(run.key.models, testing::ElementsAre("BertLMHeadModel"));
  const auto layer = run.layers.find({"BertLMHeadModel", "BertModel_0.BertEmbeddings_0.LayerNorm_0"});
  ASSERT_NE(layer, run.layers.end());
  EXPECT_EQ(layer->second.class_name, "LayerNorm");
  for (const auto& [key, stats] : run.launches) EXPECT_EQ(key.layer.model, "BertLMHeadModel") << key.kernel;
  // Products ran on the tensor cores in BF16, and nowhere else; each has 2 M N K, whatever adds the bias.
  const auto products = [](const LaunchKey& key) { return key.op == "aten::addmm" || key.op == "aten::mm"; };
  const auto bf16 = kMetricFlop[static_cast<size_t>(Precision::kBf16Tensor)];
  EXPECT_GT(SumOf(run, bf16, products), 0u);
  EXPECT_EQ(SumOf(run, bf16, products), SumOf(run, kMetricModelFlop, products));
  size_t found = 0;
  for (const auto& [key, stats] : run.launches) {
    uint64_t bias = 0, m = 0, k = 0, k2 = 0, n = 0;
    if (key.op != "aten::addmm" ||
        std::sscanf(key.signature.c_str(), "bf16[%lu] bf16[%lu,%lu] bf16[%lu,%lu]", &bias, &m, &k, &k2, &n) != 5) {
      continue;
    }
    const Stat& flop = stats.metrics.at(std::string(kMetricModelFlop));
    if (flop.max == 0) continue;  // a kernel beside the main one
    EXPECT_EQ(flop.max, 2 * m * n * k) << key.signature;
    ++found;
  }
  EXPECT_GE(found, 4u);
}

TEST_F(PublishedTest, ARankOfDlrmCommunicatesForMostOfItsTime) {
  const cli::Run run = Import("v100_dlrm_rank0");
  ASSERT_EQ(run.process_list.size(), 1u);
  EXPECT_EQ(run.process_list[0].world_size, 8u);
  const auto all = [](const LaunchKey&) { return true; };
  EXPECT_GT(SumOf(run, kMetricTime, [](const LaunchKey& key) { return key.phase == Phase::kCommunication; }),
            SumOf(run, kMetricTime, all) / 2);
}

// fc6 multiplies [128,9216] by [9216,4096], fc7 by [4096,4096], fc8 by [4096,1000].
TEST_F(PublishedTest, CountersOfAlexNetAreThoseOfItsShapes) {
  const cli::Run run = Import("a100_alexnet_counters");
  Stat products;
  for (const auto& [key, stats] : run.launches) {
    if (key.op != "aten::addmm" || !key.kernel.starts_with("ampere_sgemm")) continue;
    products = stats.metrics.at("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum");
  }
  ASSERT_GT(products.n, 0u);
  EXPECT_EQ(products.n % 3, 0u);
  EXPECT_EQ(2 * products.max, 9'663'676'416u);
  EXPECT_EQ(2 * products.sum / (products.n / 3), Uint128{9'663'676'416u + 4'294'967'296u + 1'108'606'976u});
}

// An MLP on an RTX 2080 Ti: its recording has no shapes, its execution trace has one step. [512,1024] by [1024,1024],
// of 21 layers, and twice backward but for the first input.
TEST_F(PublishedTest, AnExecutionTraceGivesARecordingItsShapes) {
  ImportOptions options;
  options.execution_trace = Published("execution_trace/rtx2080ti_linear.json.gz");
  const absl::StatusOr<Imported> joined =
      ImportTorchProfiler(Published("pytorch_profiler/rtx2080ti_linear.json.gz"), options);
  ASSERT_TRUE(joined.ok()) << joined.status();
  const cli::Run& run = joined->profile.runs.begin()->second;
  constexpr uint64_t kProduct = 2ULL * 512 * 1024 * 1024;
  EXPECT_EQ(SumOf(run, kMetricModelFlop, InPhase(Phase::kForward, "aten::addmm")), run.steps.steps * 21 * kProduct);
  EXPECT_EQ(SumOf(run, kMetricModelFlop, InPhase(Phase::kBackward, "aten::mm")), run.steps.steps * 41 * kProduct);
}

}  // namespace
}  // namespace rfinject::cli
