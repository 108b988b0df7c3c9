#include "collector/trace_encoder.h"

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "proto/rfinject/v1/trace.pb.h"

// Every field that the library writes, held against the same field set by name through the schema's generated code.

namespace rfinject {
namespace {

using ::google::protobuf::util::MessageDifferencer;

class TraceEncoderTest : public ::testing::Test {
 protected:
  void ExpectWritten() {
    v1::Chunk written;
    ASSERT_TRUE(out_.ok());
    ASSERT_TRUE(written.ParseFromArray(out_.data(), static_cast<int>(out_.size())));
    std::string difference;
    MessageDifferencer differencer;
    differencer.ReportDifferencesToString(&difference);
    EXPECT_TRUE(differencer.Compare(wanted_, written)) << difference;
  }
  wire::Encoder out_{1 << 20};
  v1::Chunk wanted_;
};

TEST_F(TraceEncoderTest, Definitions) {
  EncodeName(3, "aten::add", &out_);
  auto* name = wanted_.add_name();
  name->set_id(3);
  name->set_text("aten::add");

  EncodeModel(2, {"ResNet", 10, 40, 9}, &out_);
  auto* model = wanted_.add_model();
  model->set_id(2);
  model->set_class_name("ResNet");
  model->set_parameters(10);
  model->set_parameter_bytes(40);
  model->set_trainable_parameters(9);

  EncodeLayer(5, {{2, 4, "layer1.0", "Conv2d", 7, 28, true}, "f32[1]", "f16[2]", 2}, &out_);
  auto* layer = wanted_.add_layer();
  layer->set_id(5);
  layer->set_model(2);
  layer->set_parent(4);
  layer->set_path("layer1.0");
  layer->set_class_name("Conv2d");
  layer->set_parameters(7);
  layer->set_parameter_bytes(28);
  layer->set_training(true);
  layer->set_input_shape("f32[1]");
  layer->set_output_shape("f16[2]");

  EncodeMetric(13, {"dram__bytes.sum", "byte", 32}, &out_);
  auto* metric = wanted_.add_metric();
  metric->set_id(13);
  metric->set_name("dram__bytes.sum");
  metric->set_unit("byte");
  metric->set_scale(32);

  LaunchIdentity identity;
  identity.kernel = 1;
  identity.signature = 2;
  identity.site = {.layer = 3, .op = 4, .node = 5, .phase = Phase::kRecompute};
  identity.grid = {6, 0, 8};
  identity.block = {0, 10, 11};
  identity.dynamic_shared_bytes = 12;
  identity.device = 13;
  EncodeLaunchKey(9, identity, 0, &out_);
  auto* key = wanted_.add_key();
  key->set_id(9);
  key->set_kernel(1);
  key->set_signature(2);
  key->set_layer(3);
  key->set_op(4);
  key->set_node(5);
  key->set_phase(v1::PHASE_RECOMPUTE);
  for (uint32_t n : {6, 0, 8}) key->add_grid(n);
  for (uint32_t n : {0, 10, 11}) key->add_block(n);
  key->set_dynamic_shared_bytes(12);
  key->set_device(13);
  key->set_run(1);
  ExpectWritten();
}

TEST_F(TraceEncoderTest, Statistics) {
  MetricSum sum;
  sum.metric = 4;
  sum.n = 5;
  sum.sum = Uint128{6} << 64 | 7;
  sum.sum_squares = Uint128{8} << 64 | 9;
  sum.min = 10;
  sum.max = 11;
  sum.shared_sums = 12;
  EncodeKeyStats(
      2, 3, [&](auto each) { each(sum); }, &out_);
  auto* stats = wanted_.add_stats();
  stats->set_key(2);
  stats->set_launches(3);
  auto* metric = stats->add_metric();
  metric->set_metric(4);
  metric->set_n(5);
  metric->set_sum(7);
  metric->set_sum_high(6);
  metric->set_sum_squares(9);
  metric->set_sum_squares_high(8);
  metric->set_min(10);
  metric->set_max(11);
  metric->set_shared_sums(12);

  EncodeStep({.index = 1,
              .start_unix_ns = 2,
              .duration_ns = 3,
              .samples = 4,
              .measured = true,
              .armed_group = 5,
              .memory_bytes = 6,
              .memory_peak_bytes = 7},
             &out_);
  auto* step = wanted_.add_step();
  step->set_index(1);
  step->set_start_unix_ns(2);
  step->set_duration_ns(3);
  step->set_samples(4);
  step->set_measured(true);
  step->set_run(1);
  step->set_armed_group(5);
  step->set_memory_bytes(6);
  step->set_memory_peak_bytes(7);

  EncodePmWindow({.step = 2,
                  .start_unix_ns = 3,
                  .duration_ns = 4,
                  .samples = 5,
                  .dram_read_bytes = 6,
                  .dram_write_bytes = 7,
                  .has_tensor = true,
                  .tensor_active_ns = 8,
                  .bin_ns = 9,
                  .bin_dram_bytes = {10, uint64_t{1} << 40},
                  .bin_tensor_permille = {11, 0}},
                 &out_);
  auto* pm = wanted_.add_pm_window();
  pm->set_run(1);
  pm->set_step(2);
  pm->set_start_unix_ns(3);
  pm->set_duration_ns(4);
  pm->set_samples(5);
  pm->set_dram_read_bytes(6);
  pm->set_dram_write_bytes(7);
  pm->set_has_tensor(true);
  pm->set_tensor_active_ns(8);
  pm->set_bin_ns(9);
  pm->add_bin_dram_bytes(10);
  pm->add_bin_dram_bytes(uint64_t{1} << 40);
  pm->add_bin_tensor_permille(11);
  pm->add_bin_tensor_permille(0);

  EncodeDiagnostic({Severity::kError, "id", "text", "remedy", 5, true}, &out_);
  auto* diagnostic = wanted_.add_diagnostic();
  diagnostic->set_severity(v1::SEVERITY_ERROR);
  diagnostic->set_id("id");
  diagnostic->set_text("text");
  diagnostic->set_remedy("remedy");
  diagnostic->set_unix_ns(5);
  diagnostic->set_run(1);

  EncodeDrop("launches: ring full", 6, &out_);
  auto* drop = wanted_.add_drop();
  drop->set_what("launches: ring full");
  drop->set_count(6);
  drop->set_run(1);

  EncodeEnd("exit", 7, &out_);
  wanted_.mutable_end()->set_reason("exit");
  wanted_.mutable_end()->set_unix_ns(7);
  ExpectWritten();
}

TEST_F(TraceEncoderTest, Process) {
  ProcessFacts facts;
  facts.host = "node7";
  facts.pid = 1;
  facts.argv = {"python3", "", "main.py"};
  facts.os = "Linux";
  facts.cpu = "a CPU";
  facts.cpus = 2;
  facts.memory_bytes = 3;
  facts.has_rank = true;
  facts.rank = 0;  // rank 0 is a rank
  facts.local_rank = 5;
  facts.world_size = 6;
  facts.job_id = "job";
  EncodeProcess(facts, -7, &out_);
  auto* run = wanted_.add_run();
  run->set_id(1);
  run->add_rank(0);
  auto* process = run->mutable_process();
  process->set_rfinject_version(RFINJECT_VERSION);
  process->set_host("node7");
  process->set_pid(1);
  for (const char* argument : {"python3", "", "main.py"}) process->add_argv(argument);
  process->set_start_unix_ns(-7);
  process->set_local_rank(5);
  process->set_world_size(6);
  process->set_job_id("job");
  process->set_os("Linux");
  process->set_cpu("a CPU");
  process->set_cpus(2);
  process->set_memory_bytes(3);
  ExpectWritten();
}

RunFacts AllFacts() {
  RunFacts facts;
  facts.source = SourceKind::kMeasured;
  facts.tier = Tier::kCallSlots;
  facts.tier_reason = "why";
  facts.batch_size = 256;
  facts.estimated_gpu = "A100-SXM4-40GB";
  facts.collector = "estimator";
  facts.collector_version = "3";
  facts.python_version = "3.11.2";
  facts.python_executable = "/usr/bin/python3";
  facts.torch_version = "1.13.1";
  facts.torchvision_version = "0.14";
  facts.cuda_version = "12.4";
  facts.cudnn_version = "9.1";
  facts.driver_version = "550";
  facts.cupti_version = "24";
  facts.cupti_path = "/lib/libcupti.so";
  facts.devices = {{.index = 0,
                    .name = "A100",
                    .chip = "GA100",
                    .cc_major = 8,
                    .cc_minor = 0,
                    .sm_count = 108,
                    .sm_clock_khz = 1'410'000,
                    .memory_clock_khz = 1'215'000,
                    .memory_bus_bits = 5120,
                    .memory_bytes = 1,
                    .l2_bytes = 2,
                    .uuid = "GPU-1",
                    .mig = true}};
  facts.policy = {Tristate::kOff, Tristate::kOn, Tristate::kOff, Tristate::kOn, "float16"};
  return facts;
}

TEST_F(TraceEncoderTest, AllFacts) {
  EXPECT_TRUE(EncodeFactChanges(RunFacts{}, AllFacts(), &out_));
  auto* run = wanted_.add_run();
  run->set_id(1);
  run->set_source(v1::SOURCE_MEASURED);
  run->set_tier(v1::TIER_C_CALL_SLOTS);
  run->set_batch_size(256);
  run->set_estimated_gpu("A100-SXM4-40GB");
  run->set_collector("estimator");
  run->set_collector_version("3");
  auto* process = run->mutable_process();
  process->set_tier_reason("why");
  process->set_python_version("3.11.2");
  process->set_python_executable("/usr/bin/python3");
  process->set_torch_version("1.13.1");
  process->set_torchvision_version("0.14");
  process->set_cuda_version("12.4");
  process->set_cudnn_version("9.1");
  process->set_driver_version("550");
  process->set_cupti_version("24");
  process->set_cupti_path("/lib/libcupti.so");
  auto* device = run->add_device();
  device->set_name("A100");
  device->set_chip("GA100");
  device->set_cc_major(8);
  device->set_sm_count(108);
  device->set_sm_clock_khz(1'410'000);
  device->set_memory_clock_khz(1'215'000);
  device->set_memory_bus_bits(5120);
  device->set_memory_bytes(1);
  device->set_l2_bytes(2);
  device->set_uuid("GPU-1");
  device->set_mig(true);
  auto* policy = run->mutable_policy();
  policy->set_matmul_tf32(1);
  policy->set_cudnn_tf32(2);
  policy->set_cudnn_benchmark(1);
  policy->set_cudnn_deterministic(2);
  policy->set_autocast_dtype("float16");
  ExpectWritten();
}

TEST_F(TraceEncoderTest, OnlyChangedFactsAreWritten) {
  EXPECT_FALSE(EncodeFactChanges(AllFacts(), AllFacts(), &out_));
  EXPECT_EQ(out_.size(), 0u);
  RunFacts changed = AllFacts();
  changed.policy.matmul_tf32 = Tristate::kOn;
  EXPECT_TRUE(EncodeFactChanges(AllFacts(), changed, &out_));
  wanted_.add_run()->set_id(1);
  wanted_.mutable_run(0)->mutable_policy()->set_matmul_tf32(2);
  ExpectWritten();
}

// Each fact alone is seen to differ: a field that the comparison forgets would never reach the trace.
TEST_F(TraceEncoderTest, EveryFactIsCompared) {
  const RunFacts all = AllFacts();
  std::vector<RunFacts> ones(27);
  ones[0].source = all.source;
  ones[1].tier = all.tier;
  ones[2].tier_reason = all.tier_reason;
  ones[3].batch_size = all.batch_size;
  ones[4].estimated_gpu = all.estimated_gpu;
  ones[5].collector = all.collector;
  ones[6].collector_version = all.collector_version;
  ones[7].python_version = all.python_version;
  ones[8].python_executable = all.python_executable;
  ones[9].torch_version = all.torch_version;
  ones[10].torchvision_version = all.torchvision_version;
  ones[11].cuda_version = all.cuda_version;
  ones[12].cudnn_version = all.cudnn_version;
  ones[13].driver_version = all.driver_version;
  ones[14].cupti_version = all.cupti_version;
  ones[15].cupti_path = all.cupti_path;
  ones[16].devices = all.devices;
  ones[17].policy.matmul_tf32 = Tristate::kOn;
  ones[18].policy.cudnn_tf32 = Tristate::kOn;
  ones[19].policy.cudnn_benchmark = Tristate::kOn;
  ones[20].policy.cudnn_deterministic = Tristate::kOn;
  ones[21].policy.autocast_dtype = "float16";
  ones[22].devices = {{.mig = true}};
  ones[23].devices = {{.uuid = "u"}};
  ones[24].devices = {{.l2_bytes = 1}};
  ones[25].devices = {{.memory_bus_bits = 1}};
  ones[26].devices = {{.index = 1}};
  for (size_t i = 0; i < ones.size(); ++i) {
    out_.Clear();
    EXPECT_TRUE(EncodeFactChanges(RunFacts{}, ones[i], &out_)) << i;
    EXPECT_GT(out_.size(), 4u) << i;
    RunFacts merged;
    MergeFacts(ones[i], &merged);
    out_.Clear();
    EXPECT_FALSE(EncodeFactChanges(ones[i], merged, &out_)) << "MergeFacts forgets fact " << i;
  }
}

TEST(MergeFacts, SetFieldsWin) {
  RunFacts into = AllFacts();
  MergeFacts(RunFacts{}, &into);
  wire::Encoder out(1 << 16);
  EXPECT_FALSE(EncodeFactChanges(AllFacts(), into, &out)) << "unset fields change nothing";
  RunFacts from;
  from.torch_version = "2.6";
  from.policy.autocast_dtype = "bfloat16";
  from.devices = {{.index = 0, .name = "other"}, {.index = 1, .name = "second"}};
  MergeFacts(from, &into);
  MergeFacts(from, &into);
  EXPECT_EQ(into.torch_version, "2.6");
  EXPECT_EQ(into.policy.autocast_dtype, "bfloat16+float16");
  ASSERT_EQ(into.devices.size(), 2u);
  EXPECT_EQ(into.devices[0].name, "other");
  EXPECT_EQ(into.devices[0].chip, "GA100");
}

}  // namespace
}  // namespace rfinject
