// What the schema declares is read and survives `merge`: every field of every message is changed by reflection, and
// the Profile must change with it, or be refused. A field that is declared and written but not read fails here,
// unless it stands in kNotRead with the reason.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/testing/trace_bytes.h"
#include "cli/trace/frames.h"
#include "cli/trace/read.h"
#include "proto/rfinject/v1/trace.pb.h"

namespace rfinject::cli {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

const std::map<std::string, std::string> kNotRead = {
    {"rfinject.v1.Step.start_unix_ns", "steps are kept as sums only"},
    {"rfinject.v1.End.reason", "only whether there is an end is kept; `dump` shows why"},
    {"rfinject.v1.End.unix_ns", "only whether there is an end is kept; `dump` shows when"},
};

void AddRun(bool merged, uint32_t run_id, v1::Chunk& chunk) {
  v1::Run& run = *chunk.add_run();
  run.set_id(run_id);
  run.set_source(v1::SOURCE_MEASURED);
  run.set_tier(v1::TIER_B_BACKWARD_SCOPE);
  run.set_processes(2);
  run.mutable_process()->set_host("node");
  run.mutable_policy()->set_cudnn_tf32(1);
  run.add_device()->set_name("GPU");
  if (merged) {
    v1::Merged& facts = *run.mutable_merged();
    facts.add_root("Net");
    facts.add_model(1);
    facts.add_process()->set_host("node");
    facts.add_device()->set_name("GPU");
    facts.add_pm_window()->set_step(3);
    facts.add_step_span()->set_watched(7);
  } else {  // the first step, and the constant key below
    run.set_untrained_steps(1);
    run.set_untrained_keys(1);
  }
}

void AddDefinitions(uint32_t run_id, v1::Chunk& chunk) {
  for (uint32_t id = 1; id <= 4; ++id) {
    v1::Name& name = *chunk.add_name();
    name.set_id(id);
    // The first one is a kernel of a convolution's gradient.
    name.set_text((id == 1 ? "wgrad " : "name ") + std::to_string(id));
  }
  for (uint32_t id = 1; id <= 2; ++id) {
    v1::Model& model = *chunk.add_model();
    model.set_id(id);
    model.set_class_name(id == 1 ? "Net" : "Loss");
  }
  for (uint32_t id = 1; id <= 2; ++id) {
    v1::Layer& layer = *chunk.add_layer();
    layer.set_id(id);
    layer.set_model(1);
    layer.set_parent(id - 1);
    if (id == 2) layer.set_path("conv");
  }
  v1::Metric& metric = *chunk.add_metric();
  metric.set_id(1);
  metric.set_name("rf.time");
  v1::NativeModule& module = *chunk.add_native_module();
  module.set_id(1);
  module.set_path("/bin/program");
  v1::NativeStack& stack = *chunk.add_native_stack();
  stack.set_id(1);
  stack.add_module(1);
  stack.add_offset(16);
  stack.add_function(1);
  v1::SourceLine& line = *chunk.add_source_line();
  line.set_id(1);
  line.set_file(1);
  line.set_line(41);
  line.set_function(2);
  v1::LaunchKey& key = *chunk.add_key();
  key.set_line(1);
  key.set_stack(1);
  key.set_id(2);
  key.set_kernel(1);
  key.set_node(4);
  key.set_layer(2);
  key.set_run(run_id);
}

v1::MetricStats* Fill(v1::MetricStats* sums) {
  sums->set_n(2);
  sums->set_sum(30);
  sums->set_sum_squares(500);
  sums->set_min(10);
  sums->set_max(UINT64_MAX);
  return sums;
}

void AddStatistics(bool merged, uint32_t run_id, v1::Chunk& chunk) {
  v1::KeyStats& stats = *chunk.add_stats();
  stats.set_key(2);
  stats.set_launches(5);
  Fill(stats.add_metric())->set_metric(1);
  v1::LaunchKey& constant = *chunk.add_key();
  constant.set_id(1);
  constant.set_kernel(2);
  constant.set_run(run_id);
  v1::KeyStats& same = *chunk.add_stats();
  same.set_key(1);
  same.set_launches(1);
  v1::MetricStats& value = *same.add_metric();
  value.set_metric(1);
  value.set_n(1);
  value.set_min(40);
  v1::RepeatedLaunches& repeated = *chunk.add_repeated_launches();
  repeated.add_gap(0);
  repeated.add_keys(1);
  repeated.add_launches(3);
  for (uint64_t number = 7; number <= 8; ++number) {
    v1::SampledStep& sampled = *chunk.add_sampled_step();
    sampled.set_run(run_id);
    sampled.set_step(number);
    sampled.set_metric(1);
    sampled.set_processes(2);
    if (number == 7) sampled.add_key(2);
    merged ? sampled.add_sum(5) : sampled.add_change(6);
  }
  // Two operators of the same launches, so that how often each was called matters.
  for (uint32_t op = 3; op <= 4; ++op) {
    v1::OperatorWork& work = *chunk.add_operator_work();
    work.set_run(run_id);
    work.set_op(op);
    work.set_model_flop(1000 * op);
    work.set_calls(1);
    for (uint32_t id = 1; id <= 2; ++id) {
      work.add_key(id);
      work.add_launches(1);
    }
  }
  v1::StepLaunches& launches = *chunk.add_step_launches();
  launches.set_run(run_id);
  launches.set_step(5);
  launches.add_gap(1);
  launches.add_keys(1);
  launches.add_launches(1);
}

void AddEvents(uint32_t run_id, v1::Chunk& chunk) {
  for (uint32_t i = 0; i < 6; ++i) {  // two iterations of two optimizers, and a step
    v1::Step& step = *chunk.add_step();
    step.set_index(i);
    step.set_run(run_id);
    step.set_duration_ns(5);
    step.set_measured(true);
    step.set_kind(1);
    step.set_optimizer(1 + i % 2);
    step.set_watched(7);
  }
  v1::MemoryPeak& peak = *chunk.add_memory_peak();
  peak.set_run(run_id);
  peak.set_allocated_bytes(70);
  peak.set_refused_bytes(30);
  peak.set_refused_layer(2);
  peak.set_refused_phase(v1::PHASE_BACKWARD);
  v1::MemoryPart& part = *peak.add_part();
  part.set_layer(2);
  part.set_phase(v1::PHASE_BACKWARD);
  part.set_bytes(70);
  v1::PmWindow& window = *chunk.add_pm_window();
  window.set_run(run_id);
  window.set_has_tensor(true);
  window.add_bin_dram_bytes(1);
}

void AddStepStatistics(uint32_t run_id, v1::Chunk& chunk) {
  v1::RunSteps& steps = *chunk.mutable_step_stats()->add_run();
  steps.set_run(run_id);
  Fill(steps.mutable_duration_ns());
  Fill(steps.mutable_pm_dram_bytes());
  Fill(steps.mutable_pm_duration_ns());
  Fill(steps.mutable_pm_tensor_active_ns());
  v1::RankSteps& rank = *chunk.mutable_step_stats()->add_rank();
  rank.set_run(run_id);
  for (v1::Spread* spread : {rank.mutable_wall_ns(), rank.mutable_data_wait_ns(), rank.mutable_gpu_wait_ns(),
                             rank.mutable_gpu_busy_ns(), rank.mutable_own_ns(), rank.mutable_launch_gap_ns(),
                             rank.mutable_exposed_communication_ns(), rank.mutable_period_ns()}) {
    spread->set_sum(300);
    spread->add_code(4);
    spread->add_count(2);
  }
  Fill(rank.mutable_usual_ns());
  Fill(rank.mutable_usual_busy_ns());
}

// Adds a record of each kind that is not there yet and says whose it is: those that are merely kept.
void AddKept(uint32_t run_id, v1::Chunk& chunk) {
  const Reflection& reflect = *chunk.GetReflection();
  const Descriptor* type = v1::Chunk::descriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    if (!field->is_repeated() || reflect.FieldSize(chunk, field) > 0 || field->message_type() == nullptr) continue;
    const FieldDescriptor* run = field->message_type()->FindFieldByName("run");
    if (run == nullptr) continue;
    Message* record = reflect.AddMessage(&chunk, field);
    record->GetReflection()->SetUInt32(record, run, run_id);
  }
}

// As a process writes it; `merged`: as `rfinject merge` does.
v1::Chunk Example(bool merged) {
  v1::Chunk chunk;
  chunk.add_trace_id("0123456789abcdef");
  const uint32_t run_id = merged ? 2 : 1;
  AddRun(merged, run_id, chunk);
  AddDefinitions(run_id, chunk);
  AddStatistics(merged, run_id, chunk);
  AddEvents(run_id, chunk);
  AddKept(run_id, chunk);
  AddStepStatistics(run_id, chunk);
  if (!merged) chunk.mutable_end()->set_reason("exit");
  return chunk;
}

TraceContents Read(const v1::Chunk& chunk) {
  std::vector<uint8_t> bytes = testing::EmptyTrace();
  testing::AppendFrame(bytes, 0, chunk.SerializeAsString());
  MemorySource source(bytes);
  return ReadTrace(source);
}

// Gives the field another value than it has, which no other field has.
void Change(Message* message, const FieldDescriptor* field) {
  const Reflection& reflect = *message->GetReflection();
  constexpr uint32_t kFar = 1'000'003;
  if (field->is_repeated()) {
    const int size = reflect.FieldSize(*message, field);
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (size > 0) reflect.RemoveLast(message, field);
        return;
      case FieldDescriptor::CPPTYPE_STRING:
        return reflect.AddString(message, field, "changed " + field->name());
      case FieldDescriptor::CPPTYPE_UINT32:
        return reflect.AddUInt32(message, field, static_cast<uint32_t>(size + 1));
      case FieldDescriptor::CPPTYPE_UINT64:
        return reflect.AddUInt64(message, field, static_cast<uint64_t>(size) + 1);
      default:
        FAIL() << field->full_name() << ": a repeated type that this test does not know";
    }
  }
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return reflect.ClearField(message, field);
    case FieldDescriptor::CPPTYPE_STRING:
      return reflect.SetString(message, field, "changed " + field->name());
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflect.SetUInt32(message, field, reflect.GetUInt32(*message, field) + kFar);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflect.SetUInt64(message, field, reflect.GetUInt64(*message, field) + kFar);
    case FieldDescriptor::CPPTYPE_INT64:
      return reflect.SetInt64(message, field, reflect.GetInt64(*message, field) - kFar);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflect.SetDouble(message, field, reflect.GetDouble(*message, field) + 3);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflect.SetBool(message, field, !reflect.GetBool(*message, field));
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int count = field->enum_type()->value_count();
      const int now = reflect.GetEnum(*message, field)->index();
      return reflect.SetEnum(message, field, field->enum_type()->value((now + 1) % count));
    }
    default:
      FAIL() << field->full_name() << ": a type that this test does not know";
  }
}

// The message at the end of `path`, from the first element of each field.
Message* At(Message* message, const std::vector<const FieldDescriptor*>& path) {
  for (const FieldDescriptor* field : path) {
    const Reflection& reflect = *message->GetReflection();
    message = field->is_repeated() ? reflect.MutableRepeatedMessage(message, field, 0)
                                   : reflect.MutableMessage(message, field);
  }
  return message;
}

struct Walk {
  const v1::Chunk example;
  const Profile unchanged;
  std::map<std::string, bool> read;  // by the field's name: somewhere

  explicit Walk(bool merged) : example(Example(merged)), unchanged(Read(example).profile) {
    EXPECT_TRUE(Read(example).status.ok()) << Read(example).status;
    Visit({}, v1::Chunk::descriptor());
  }

  void Visit(const std::vector<const FieldDescriptor*>& path, const Descriptor* type) {
    for (int i = 0; i < type->field_count(); ++i) {
      const FieldDescriptor* field = type->field(i);
      v1::Chunk changed = example;
      Change(At(&changed, path), field);
      const TraceContents contents = Read(changed);
      bool& read_somewhere = read[field->full_name()];
      if (!contents.status.ok() || contents.profile != unchanged) read_somewhere = true;
      if (contents.status.ok()) {
        const std::vector<uint8_t> written = testing::WrittenTrace(contents.profile);
        MemorySource again(written);
        const TraceContents second = ReadTrace(again);
        EXPECT_TRUE(second.status.ok()) << field->full_name() << ": " << second.status;
        EXPECT_EQ(second.profile, contents.profile) << field->full_name() << " is lost when a trace is written again";
      }
      if (field->message_type() == nullptr) continue;
      const Message* in = At(const_cast<v1::Chunk*>(&example), path);
      const Reflection& reflect = *in->GetReflection();
      const bool there = field->is_repeated() ? reflect.FieldSize(*in, field) > 0 : reflect.HasField(*in, field);
      if (!there) continue;
      std::vector<const FieldDescriptor*> longer = path;
      longer.push_back(field);
      Visit(longer, field->message_type());
    }
  }
};

TEST(Schema, EveryFieldIsReadAndSurvivesMerging) {
  const Walk process(/*merged=*/false), merge(/*merged=*/true);
  const google::protobuf::FileDescriptor* file = v1::Chunk::descriptor()->file();
  std::set<std::string> not_read;
  for (int i = 0; i < file->message_type_count(); ++i) {
    for (int f = 0; f < file->message_type(i)->field_count(); ++f) {
      const std::string& name = file->message_type(i)->field(f)->full_name();
      const auto in_process = process.read.find(name), in_merge = merge.read.find(name);
      EXPECT_TRUE(in_process != process.read.end() || in_merge != merge.read.end())
          << name << " is in a message that Example() lacks";
      const bool read = (in_process != process.read.end() && in_process->second) ||
                        (in_merge != merge.read.end() && in_merge->second);
      if (!read) not_read.insert(name);
    }
  }
  for (const std::string& name : not_read) {
    EXPECT_TRUE(kNotRead.contains(name)) << name << " is declared, and nothing changes when it does";
  }
  for (const auto& [name, reason] : kNotRead) {
    EXPECT_TRUE(not_read.contains(name)) << name << " is read after all: take it out of kNotRead";
  }
}

}  // namespace
}  // namespace rfinject::cli
