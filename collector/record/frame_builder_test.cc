#include "collector/record/frame_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "collector/process_facts.h"
#include "collector/record/testing/recorder_fixture.h"

namespace rfinject {
namespace {

using ::rfinject::testing::MetricTotal;
using ::rfinject::testing::TraceContent;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST_F(TraceRecorderTest, WritesDefinitionsAndStatistics) {
  Recorder& r = recorder();
  r.Activate();
  ASSERT_TRUE(r.active());
  const uint32_t model = r.DefineModel({.class_name = "ResNet",
                                        .parameters = 11'689'512,
                                        .parameter_bytes = 46'758'048,
                                        .trainable_parameters = 11'689'512});
  const uint32_t root = r.DefineLayer({.model = model, .class_name = "ResNet", .training = true});
  const uint32_t layer = r.DefineLayer({.model = model,
                                        .path = "layer1.0.conv2",
                                        .class_name = "Conv2d",
                                        .parameters = 36864,
                                        .parameter_bytes = 147456,
                                        .parent = root,
                                        .training = true});
  r.SetLayerShapes(layer, "f32[8,64,56,56]", "f32[8,64,56,56]");
  r.SetLayerShapes(layer, "f32[1]", "f32[1]");  // only the first call's are kept
  LaunchRecord record = MakeRecord(r.Intern("cudnn_kernel"), 1000, 77);
  record.identity.signature = r.Intern("f32[8,64,56,56]");
  record.identity.site = {.layer = layer,
                          .op = r.Intern("aten::convolution"),
                          .node = r.Intern("ConvolutionBackward0"),
                          .phase = Phase::kBackward};
  record.identity.grid = {7, 1, 2};
  record.identity.block = {256, 1, 1};
  record.identity.dynamic_shared_bytes = 49152;
  record.identity.device = 1;
  r.Record(record);
  record.samples[0].value = 3000;
  r.Record(record);
  r.EndStep(8);

  const TraceContent t = FinishedTrace();
  ASSERT_THAT(t.keys, SizeIs(1));
  const auto& [id, key] = *t.keys.begin();
  EXPECT_EQ(t.names.at(key.key.kernel()), "cudnn_kernel");
  EXPECT_EQ(t.names.at(key.key.op()), "aten::convolution");
  EXPECT_EQ(t.names.at(key.key.node()), "ConvolutionBackward0");
  EXPECT_EQ(t.names.at(key.key.signature()), "f32[8,64,56,56]");
  EXPECT_THAT(key.key.grid(), ElementsAre(7, 1, 2));
  EXPECT_THAT(key.key.block(), ElementsAre(256, 1, 1));
  EXPECT_EQ(key.key.dynamic_shared_bytes(), 49152u);
  EXPECT_EQ(key.key.device(), 1u);
  EXPECT_EQ(key.key.phase(), v1::PHASE_BACKWARD);
  EXPECT_EQ(key.launches, 2u);
  EXPECT_EQ(key.metrics.at("rf.time"), (MetricTotal{2, 4000, 10'000'000, 1000, 3000}));
  EXPECT_EQ(key.metrics.at("rf.model_flop"), (MetricTotal{2, 154, 2 * 77 * 77, 77, 77}));
  const v1::Layer& read = t.layers.at(key.key.layer());
  EXPECT_EQ(read.path(), "layer1.0.conv2");
  EXPECT_EQ(read.class_name(), "Conv2d");
  EXPECT_EQ(read.input_shape(), "f32[8,64,56,56]");
  EXPECT_EQ(read.parameters(), 36864u);
  EXPECT_EQ(t.layers.at(read.parent()).path(), "");
  EXPECT_EQ(t.models.at(read.model()).class_name(), "ResNet");
  EXPECT_EQ(t.models.at(read.model()).trainable_parameters(), 11'689'512u);
  ASSERT_THAT(t.steps, SizeIs(1));
  EXPECT_EQ(t.steps[0].samples(), 8u);
  EXPECT_TRUE(t.steps[0].measured());
  EXPECT_THAT(t.drops, IsEmpty());
}

TEST_F(TraceRecorderTest, ProcessFactsAreInTheTrace) {
  recorder().Activate();
  RunFacts facts;
  facts.source = SourceKind::kEstimated;
  facts.process.torch_version = "1.13.1";
  facts.policy.autocast_dtype = "float16";
  facts.device.push_back({.index = 0, .name = "V100", .sm_count = 80});
  recorder().UpdateFacts(facts);
  RunFacts more;
  more.tier = Tier::kBBackwardScope;
  more.policy.autocast_dtype = "bfloat16";
  more.policy.cudnn_tf32 = Tristate::kOn;
  more.device.push_back({.index = 1, .name = "V100"});
  more.device.push_back({.index = 0, .chip = "GV100"});
  recorder().UpdateFacts(more);
  const TraceContent t = FinishedTrace();
  EXPECT_EQ(t.run.process().pid(), static_cast<uint32_t>(getpid()));
  EXPECT_THAT(t.run.process().argv(0), HasSubstr("collector_test"));
  EXPECT_GT(t.run.process().memory_bytes(), 1u << 20);
  EXPECT_GT(t.run.process().cpus(), 0u);
  EXPECT_GT(t.run.process().start_unix_ns(), int64_t{1'700'000'000'000'000'000});
  EXPECT_THAT(t.run.process().os(), StartsWith("Linux "));
  EXPECT_EQ(t.run.source(), v1::SOURCE_ESTIMATED);
  EXPECT_EQ(t.run.tier(), v1::TIER_B_BACKWARD_SCOPE);
  EXPECT_EQ(t.run.process().torch_version(), "1.13.1");
  EXPECT_EQ(t.run.policy().autocast_dtype(), "bfloat16+float16");
  EXPECT_EQ(t.run.policy().cudnn_tf32(), 2u);
  ASSERT_EQ(t.run.device_size(), 2);
  EXPECT_EQ(t.run.device(0).chip(), "GV100");
  EXPECT_EQ(t.run.device(0).sm_count(), 80u);
}

TEST_F(TraceRecorderTest, TheSameTextGivesTheSameId) {
  Recorder& r = recorder();
  const uint32_t a = r.Intern("a");
  EXPECT_NE(a, 0u);
  EXPECT_NE(r.Intern("b"), a);
  EXPECT_EQ(r.Intern("a"), a);
  EXPECT_EQ(r.DefineMetric("rf.time", "ns", 1), static_cast<uint32_t>(kTime));
  EXPECT_EQ(r.DefineMetric(kMetricFlop[3], "FLOP", 1), static_cast<uint32_t>(kFlopFirst) + 3);
  const uint32_t metric = r.DefineMetric("dram__bytes_read.sum", "byte", 1);
  EXPECT_EQ(metric, static_cast<uint32_t>(kFirstFreeMetric));
  EXPECT_EQ(r.DefineMetric("dram__bytes_read.sum", "byte", 1), metric);
  const uint32_t model = r.DefineModel({.class_name = "M"});
  EXPECT_NE(r.DefineModel({.class_name = "M"}), model);
  const uint32_t layer = r.DefineLayer({.model = model, .path = "fc", .class_name = "Linear", .training = true});
  EXPECT_EQ(r.DefineLayer({.model = model, .path = "fc", .class_name = "Linear", .training = true}), layer);
}

TEST_F(TraceRecorderTest, TheWriterWritesByItselfAndOnlyWhatIsNew) {
  Recorder& r = recorder();
  r.Activate();
  const uint32_t kernel = r.Intern("k");
  r.Record(MakeRecord(kernel, 1));
  ASSERT_TRUE(WaitForTrace(settings().output, [](const TraceContent& t) { return t.Launches() == 1; }));
  r.Record(MakeRecord(kernel, 1));
  ASSERT_TRUE(WaitForTrace(settings().output, [](const TraceContent& t) { return t.Launches() == 2; }));
  const TraceContent t = FinishedTrace();  // refuses ids that are defined twice
  EXPECT_EQ(t.Launches(), 2u);
  EXPECT_THAT(t.keys, SizeIs(1));
}

TEST_F(TraceRecorderTest, MuchAtOnceBecomesManyFrames) {
  Recorder& r = recorder();
  r.Activate();
  for (int i = 0; i < 30'000; ++i) {
    r.Add(MakeRecord(r.Intern("a kernel with a long name, as templates make them " + std::to_string(i)), 1));
  }
  const TraceContent t = FinishedTrace();
  EXPECT_EQ(t.Launches(), 30'000u);
  EXPECT_GT(t.chunks.size(), 4u);
  for (const v1::Chunk& chunk : t.chunks) {
    // What is added up is not divided: a thirtieth of a megabyte here for each thousand keys.
    EXPECT_LT(chunk.ByteSizeLong(), chunk.stats_size() == 0 ? 512u << 10 : 2u << 20);
  }
}

}  // namespace
}  // namespace rfinject
