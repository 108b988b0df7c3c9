#include "collector/trace_encoder.h"

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "proto/rfinject/v1/trace.pb.h"
#include "proto/wire/framing.h"

// The tests hold every field that the library writes against the same field set by name through protoc's generated
// code.

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

  EncodeRecord(
      2, ModelDefinition{.class_name = "ResNet", .parameters = 10, .parameter_bytes = 40, .trainable_parameters = 9},
      &out_);
  auto* model = wanted_.add_model();
  model->set_id(2);
  model->set_class_name("ResNet");
  model->set_parameters(10);
  model->set_parameter_bytes(40);
  model->set_trainable_parameters(9);

  EncodeRecord(5,
               LayerDefinition{.model = 2,
                               .path = "layer1.0",
                               .class_name = "Conv2d",
                               .parameters = 7,
                               .parameter_bytes = 28,
                               .input_shape = "f32[1]",
                               .output_shape = "f16[2]",
                               .parent = 4,
                               .training = true},
               &out_);
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

  EncodeRecord(13, MetricDefinition{.name = "dram__bytes.sum", .unit = "byte", .scale = 32}, &out_);
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
  EncodeLaunchKey(9, identity, 0, 0, &out_);
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

  // Of samples that are all the same, the value once.
  sum.n = 3;
  sum.sum = 30;
  sum.sum_squares = 300;
  sum.max = sum.min;
  EncodeKeyStats(
      2, 3, [&](auto each) { each(sum); }, &out_);
  stats = wanted_.add_stats();
  stats->set_key(2);
  stats->set_launches(3);
  metric = stats->add_metric();
  metric->set_metric(4);
  metric->set_n(3);
  metric->set_min(10);
  metric->set_shared_sums(12);
  ExpectWritten();
}

TEST_F(TraceEncoderTest, StepsAndWindows) {
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

  EncodeRecord(kRunId,
               trace::PmWindow{.step = 2,
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
  ExpectWritten();
}

TEST_F(TraceEncoderTest, WhatIsSaidAndTheEnd) {
  const trace::Diagnostic said{
      .severity = Severity::kError, .id = "id", .text = "text", .remedy = "remedy", .unix_ns = 5};
  EncodeRecord(kRunId, said, &out_);
  auto* diagnostic = wanted_.add_diagnostic();
  diagnostic->set_severity(v1::SEVERITY_ERROR);
  diagnostic->set_id("id");
  diagnostic->set_text("text");
  diagnostic->set_remedy("remedy");
  diagnostic->set_unix_ns(5);
  diagnostic->set_run(1);

  EncodeRecord(kRunId, trace::Drop{.what = "launches: ring full", .count = 6}, &out_);
  auto* drop = wanted_.add_drop();
  drop->set_what("launches: ring full");
  drop->set_count(6);
  drop->set_run(1);

  EncodeEnd("exit", 7, &out_);
  wanted_.mutable_end()->set_reason("exit");
  wanted_.mutable_end()->set_unix_ns(7);
  ExpectWritten();
}

TEST_F(TraceEncoderTest, RepeatedKeysAreRanges) {
  RepeatedKeys keys;
  keys.Encode(&out_);
  EXPECT_EQ(out_.size(), 0u);
  for (const uint32_t id : {9, 4, 3, 5, 7, 6}) EXPECT_TRUE(keys.Add(id, id == 6 ? 2 : 1));
  keys.Encode(&out_);
  EXPECT_TRUE(keys.empty());
  auto* repeated = wanted_.add_repeated_launches();
  for (const uint32_t gap : {2, 0, 0, 1}) repeated->add_gap(gap);
  for (const uint32_t count : {3, 1, 1, 1}) repeated->add_keys(count);
  for (const uint64_t launches : {1, 2, 1, 1}) repeated->add_launches(launches);
  // A long range is several.
  for (uint32_t id = 2 * wire::kMostKeysInARange + 1; id > 1; --id) EXPECT_TRUE(keys.Add(id, 300));
  keys.Encode(&out_);
  repeated = wanted_.add_repeated_launches();
  for (const uint32_t gap : {1, 0}) {
    repeated->add_gap(gap);
    repeated->add_keys(wire::kMostKeysInARange);
    repeated->add_launches(300);
  }
  ExpectWritten();
  uint32_t id = 0;
  while (keys.Add(++id, 1)) {
  }
  EXPECT_TRUE(keys.full());
  EXPECT_GT(id, 1000u);
}

// What bench/trace_growth measures of the real thing: a day of an estimated ResNet-18 stays below 50 MB.
TEST_F(TraceEncoderTest, ADayOfAnEstimate) {
  constexpr uint32_t kKeys = 261, kChunksOfADay = 2172;
  constexpr uint32_t kMetrics = 5;
  constexpr uint64_t kLaunches = 60 * 20;  // a minute of 20 steps a second
  for (uint32_t key = 1; key <= kKeys; ++key) {
    EncodeKeyStats(
        key, kLaunches,
        [](auto each) {
          for (uint32_t metric = 1; metric <= kMetrics; ++metric) {
            MetricSum sum;
            sum.metric = metric;
            sum.Add(5'000'000'000);  // more than any operator's FLOP there
            sum.n = kLaunches;
            sum.sum *= kLaunches;
            sum.sum_squares *= kLaunches;
            each(sum);
          }
        },
        &out_);
  }
  ASSERT_TRUE(out_.ok());
  EXPECT_LT(out_.size() * kChunksOfADay, 50'000'000u);
}

TEST_F(TraceEncoderTest, Process) {
  RunFacts own;
  own.rank = {0};  // rank 0 is a rank
  ProcessFacts& facts = own.process;
  facts.rfinject_version = RFINJECT_VERSION;
  facts.start_unix_ns = -7;
  facts.host = "node7";
  facts.pid = 1;
  facts.argv = {"python3", "", "main.py"};
  facts.os = "Linux";
  facts.cpu = "a CPU";
  facts.cpus = 2;
  facts.memory_bytes = 3;
  facts.local_rank = 5;
  facts.world_size = 6;
  facts.job_id = "job";
  EXPECT_TRUE(EncodeFactChanges(RunFacts{}, own, &out_));
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

// A value that no other field and no other `seed` has, by the schema's descriptors. Repeated fields get two.
void Fill(google::protobuf::Message* message, const google::protobuf::FieldDescriptor* field, uint32_t seed) {
  using google::protobuf::FieldDescriptor;
  const auto* reflection = message->GetReflection();
  const uint32_t value = 1000 * seed + static_cast<uint32_t>(field->number());
  for (uint32_t i = 0; i < (field->is_repeated() ? 2u : 1u); ++i) {
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        field->is_repeated() ? reflection->AddString(message, field, std::to_string(value + i))
                             : reflection->SetString(message, field, std::to_string(value));
        break;
      case FieldDescriptor::CPPTYPE_UINT32:
        field->is_repeated() ? reflection->AddUInt32(message, field, value + i)
                             : reflection->SetUInt32(message, field, value);
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        field->is_repeated() ? reflection->AddUInt64(message, field, value + i)
                             : reflection->SetUInt64(message, field, value);
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        reflection->SetInt64(message, field, -static_cast<int64_t>(value));
        break;
      case FieldDescriptor::CPPTYPE_BOOL:
        reflection->SetBool(message, field, true);
        break;
      case FieldDescriptor::CPPTYPE_ENUM:
        reflection->SetEnumValue(message, field, 1 + static_cast<int>(seed % 2));
        break;
      default:
        FAIL() << field->full_name();
    }
  }
}

// Every field of Run and of the messages in it, alone in a Run of its own, and then all together in the last.
// Run.merged is left out, because only the command writes it.
std::vector<v1::Run> EachFact(uint32_t seed) {
  std::vector<v1::Run> runs;
  v1::Run all;
  const auto add = [&](auto one, auto in_all, const google::protobuf::FieldDescriptor* field) {
    v1::Run& run = runs.emplace_back();
    Fill(one(run), field, seed);
    Fill(in_all(), field, seed);
  };
  const auto* run = v1::Run::descriptor();
  v1::Device* device = nullptr;
  for (int i = 0; i < run->field_count(); ++i) {
    const auto* field = run->field(i);
    if (field->name() == "id" || field->name() == "merged") continue;
    if (field->message_type() == nullptr) {
      add([](v1::Run& one) { return &one; }, [&] { return &all; }, field);
      continue;
    }
    for (int j = 0; j < field->message_type()->field_count(); ++j) {
      const auto* inner = field->message_type()->field(j);
      if (field->name() == "process") {
        add([](v1::Run& one) { return one.mutable_process(); }, [&] { return all.mutable_process(); }, inner);
      } else if (field->name() == "policy") {
        add([](v1::Run& one) { return one.mutable_policy(); }, [&] { return all.mutable_policy(); }, inner);
      } else if (field->name() == "device") {
        if (device == nullptr) device = all.add_device();
        add([](v1::Run& one) { return one.add_device(); }, [&] { return device; }, inner);
      } else {
        ADD_FAILURE() << field->full_name() << " is a message that this test does not know";
      }
    }
  }
  runs.push_back(all);
  return runs;
}

RunFacts FactsOf(const v1::Run& run) {
  RunFacts facts;
  EXPECT_EQ(trace::Read(run, &facts), nullptr);
  return facts;
}

// No list of fields stands here: what the schema declares as a fact is compared, written and merged.
TEST_F(TraceEncoderTest, EveryFactIsWrittenAndMerged) {
  for (const v1::Run& run : EachFact(1)) {
    out_.Clear();
    wanted_.Clear();
    *wanted_.add_run() = run;
    wanted_.mutable_run(0)->set_id(1);
    EXPECT_TRUE(EncodeFactChanges(RunFacts{}, FactsOf(run), &out_)) << run.ShortDebugString();
    ExpectWritten();
    RunFacts merged;
    MergeFacts(FactsOf(run), &merged);
    EXPECT_EQ(merged, FactsOf(run)) << "MergeFacts loses " << run.ShortDebugString();
    out_.Clear();
    EncodeFactChanges(RunFacts{}, merged, &out_);
    ExpectWritten();
  }
}

TEST_F(TraceEncoderTest, OnlyChangedFactsAreWritten) {
  const RunFacts all = FactsOf(EachFact(1).back());
  EXPECT_FALSE(EncodeFactChanges(all, all, &out_));
  EXPECT_EQ(out_.size(), 0u);
  RunFacts changed = all;
  changed.policy.matmul_tf32 = Tristate::kOn;
  EXPECT_TRUE(EncodeFactChanges(all, changed, &out_));
  wanted_.add_run()->set_id(1);
  wanted_.mutable_run(0)->mutable_policy()->set_matmul_tf32(2);
  ExpectWritten();
}

TEST(MergeFacts, SetFieldsWin) {
  const RunFacts all = FactsOf(EachFact(1).back());
  RunFacts into = all;
  MergeFacts(RunFacts{}, &into);
  EXPECT_EQ(into, all) << "unset fields change nothing";
  std::string unchanged;
  for (const v1::Run& later : EachFact(2)) {
    RunFacts from = FactsOf(later);
    if (!from.device.empty()) from.device[0].index = all.device[0].index;
    from.policy.autocast_dtype.clear();
    into = all;
    MergeFacts(from, &into);
    RunFacts twice = into;
    MergeFacts(from, &twice);
    EXPECT_EQ(into, twice);
    if (from != RunFacts{} && into == all) unchanged += later.ShortDebugString() + "; ";
  }
  // A device with nothing but its index, and a switch that is on already, are nothing new.
  EXPECT_EQ(unchanged, "device { index: 2001 }; device { mig: true }; ");
}

TEST(MergeFacts, AutocastTypesAreUnitedAndDevicesAreMatchedByIndex) {
  RunFacts into;
  into.policy.autocast_dtype = "float16";
  into.device = {{.index = 0, .name = "A100", .chip = "GA100"}};
  RunFacts from;
  from.policy.autocast_dtype = "bfloat16";
  from.device = {{.index = 0, .name = "other"}, {.index = 1, .name = "second"}};
  MergeFacts(from, &into);
  MergeFacts(from, &into);
  EXPECT_EQ(into.policy.autocast_dtype, "bfloat16+float16");
  ASSERT_EQ(into.device.size(), 2u);
  EXPECT_EQ(into.device[0].name, "other");
  EXPECT_EQ(into.device[0].chip, "GA100");
}

}  // namespace
}  // namespace rfinject
