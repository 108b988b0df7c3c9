// Writes traces for tests.
//
//   make_trace KIND FILE      KIND: v100 | a100 | measured | random:SEED | rank:RANK | waits:RANK | tiny | newer |
//   nothing | garbage | hostile
//   make_trace corpus FOLDER  the seeds of trace_fuzz, as checked in under
//   integration_tests/corpus/trace_fuzz
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "cli/testing/sample_profile.h"
#include "cli/testing/trace_bytes.h"
#include "cli/trace/frames.h"
#include "proto/rfinject/v1/trace.pb.h"

namespace {

using namespace rfinject::cli;           // NOLINT: a tool of one file
using namespace rfinject::cli::testing;  // NOLINT
using Bytes = std::vector<uint8_t>;
namespace v1 = rfinject::v1;

// `id` > 0: the trace has this one, and tells another process from those with other ids.
v1::Chunk DefinitionsOf(uint32_t id) {
  v1::Chunk first;
  if (id > 0) first.add_trace_id("trace-" + std::to_string(id));
  v1::Run* run = first.add_run();
  run->set_id(1);
  run->set_source(v1::SOURCE_MEASURED);
  run->set_tier(v1::TIER_A_CURRENT_NODE);
  run->mutable_process()->set_host("node1");
  run->mutable_process()->set_pid(77 + id);
  run->mutable_process()->add_argv("train.py");
  run->mutable_process()->set_world_size(2);
  v1::Device* device = run->add_device();
  device->set_name("NVIDIA A100-SXM4-40GB");
  device->set_memory_bytes(42298834944);
  run->mutable_policy()->set_cudnn_tf32(2);
  run->add_rank(1);
  const char* names[] = {"aten::convolution", "void implicit_gemm<float>(float*)", "ConvolutionBackward0",
                         "f32[2,3]"};
  for (uint32_t i = 0; i < 4; ++i) {
    v1::Name* name = first.add_name();
    name->set_id(i + 1);
    name->set_text(names[i]);
  }
  v1::Model* model = first.add_model();
  model->set_id(1);
  model->set_class_name("Net");
  model->set_parameters(10);
  for (uint32_t i = 1; i <= 2; ++i) {
    v1::Layer* layer = first.add_layer();
    layer->set_id(i);
    layer->set_model(1);
    layer->set_parent(i - 1);
    layer->set_path(i == 1 ? "" : "conv");
    layer->set_class_name(i == 1 ? "Net" : "Conv2d");
    layer->set_input_shape("f32[2,3]");
  }
  const char* metrics[] = {"rf.time", "dram__bytes_read.sum", "rf.flop.tf32_tc"};
  for (uint32_t i = 0; i < 3; ++i) {
    v1::Metric* metric = first.add_metric();
    metric->set_id(i + 1);
    metric->set_name(metrics[i]);
    metric->set_unit("unit");
    metric->set_scale(i == 1 ? 0.5 : 0);
  }
  v1::LaunchKey* key = first.add_key();
  key->set_id(1);
  key->set_kernel(2);
  key->set_op(1);
  key->set_node(3);
  key->set_signature(4);
  key->set_layer(2);
  key->set_phase(v1::PHASE_BACKWARD);
  for (uint32_t i = 1; i <= 3; ++i) {
    key->add_grid(i);
    key->add_block(2 * i);
  }
  return first;
}

v1::Chunk SomeStatistics() {
  v1::Chunk second;
  v1::KeyStats* stats = second.add_stats();
  stats->set_key(1);
  stats->set_launches(5);
  for (uint32_t i = 1; i <= 3; ++i) {
    v1::MetricStats* metric = stats->add_metric();
    metric->set_metric(i);
    metric->set_n(2);
    metric->set_sum(2000 * i);
    metric->set_sum_squares(2000000 * i * i);
    metric->set_min(1000 * i);
    metric->set_max(1000 * i);
  }
  v1::Step* step = second.add_step();
  step->set_duration_ns(12345678);
  step->set_measured(true);
  step->set_samples(2);
  v1::Diagnostic* diagnostic = second.add_diagnostic();
  diagnostic->set_severity(v1::SEVERITY_WARNING);
  diagnostic->set_id("some-id");
  diagnostic->set_text("what and why");
  v1::Drop* drop = second.add_drop();
  drop->set_what("launches");
  drop->set_count(3);
  return second;
}

// As a process writes it, in three chunks: definitions, statistics, end. Every kind of record is in it.
std::vector<std::string> ProcessChunks(uint32_t id) {
  v1::Chunk end;
  end.mutable_end()->set_reason("exit");
  return {DefinitionsOf(id).SerializeAsString(), SomeStatistics().SerializeAsString(), end.SerializeAsString()};
}

Bytes ProcessTrace(uint32_t id = 0) {
  Bytes trace = EmptyTrace();
  uint32_t sequence = 0;
  for (const std::string& chunk : ProcessChunks(id)) AppendFrame(trace, sequence++, chunk);
  return trace;
}

// A rank of a job that began a moment ago: what it is, nine steps of a chunk each, the end.
Bytes RankTrace(uint32_t rank, bool waits = false) {
  const std::vector<std::string> process = ProcessChunks(rank + 1);
  v1::Chunk chunk;
  chunk.ParseFromString(process[0]);
  v1::Run* run = chunk.mutable_run(0);
  run->clear_rank();
  run->add_rank(rank);
  run->mutable_process()->set_job_id("job");
  run->mutable_process()->set_rank(rank);
  run->mutable_process()->set_start_unix_ns(absl::GetCurrentTimeNanos());
  Bytes trace = EmptyTrace();
  uint32_t sequence = 0;
  AppendFrame(trace, sequence++, chunk.SerializeAsString());
  chunk.ParseFromString(process[1]);
  chunk.clear_diagnostic();
  chunk.clear_drop();
  for (uint32_t step = 0; step < 9; ++step) {
    chunk.mutable_step(0)->set_index(step);
    v1::Step& one = *chunk.mutable_step(0);
    one.set_duration_ns((10 + rank) * 1'000'000);
    if (waits) {  // of the 6 ms in which nothing runs, the loader explains 2 to 4
      one.set_watched(7);
      one.set_gpu_busy_ns((4 + rank) * 1'000'000);
      one.set_data_wait_ns((2 + step % 3) * 1'000'000);
      one.set_gpu_wait_ns(1'000'000);
    }
    AppendFrame(trace, sequence++, chunk.SerializeAsString());
  }
  AppendFrame(trace, sequence, process[2]);
  return trace;
}

// A program on the CPU, without an estimate: steps and no launch.
Bytes WithoutLaunches() {
  Profile profile = SampleMeasured(SampleA100());
  Run run = std::move(profile.runs.begin()->second);
  profile.runs.clear();
  run.key = {.source = SourceKind::kNone};
  run.devices.clear();
  run.launches.clear();
  run.steps.memory_peak_bytes = 0;
  run.kept = {};
  run.kept.diagnostic.Add({.id = "no-source", .text = "no driver is here", .remedy = "rfinject --estimate GPU"});
  profile.runs.emplace(run.key, std::move(run));
  return WrittenTrace(profile);
}

// A network with a layer, an operator and a kernel of each of these names.
Bytes WithNames(std::initializer_list<const char*> names) {
  Profile profile = SampleResNet18(SampleA100(), 1);
  Run& run = profile.runs.begin()->second;
  for (const char* name : names) {
    run.layers[{"ResNet", name}] = {{.class_name = name, .order = 1}};
    LaunchKey key{.layer = {"ResNet", name}, .phase = rfinject::Phase::kForward, .op = name, .kernel = name};
    LaunchStats& stats = run.launches[key];
    stats.launches = 1;
    stats.metrics["rf.time"].Add(10000000);
  }
  return WrittenTrace(profile);
}

std::optional<Bytes> Make(const std::string& kind) {
  if (kind == "v100") return WrittenTrace(SampleResNet18(SampleV100()));
  if (kind == "a100") return WrittenTrace(SampleResNet18(SampleA100()));
  if (kind == "measured") return WrittenTrace(SampleMeasured(SampleA100()));
  if (kind == "tiny") return ProcessTrace();
  if (kind == "nothing") return WithoutLaunches();
  if (kind.rfind("runs:", 0) == 0) {  // so many kinds of run, one launch each
    Profile profile = SampleMeasured(SampleA100());
    Run one = std::move(profile.runs.begin()->second);
    one.launches.erase(std::next(one.launches.begin()), one.launches.end());
    profile.runs.clear();
    for (int i = std::atoi(kind.c_str() + 5); i > 0; --i) {
      one.key.batch_size = static_cast<uint64_t>(i);
      profile.runs.emplace(one.key, one);
    }
    return WrittenTrace(profile);
  }
  if (kind.rfind("name:", 0) == 0) {  // a name of so many bytes
    return WithNames({std::string(static_cast<size_t>(std::atoi(kind.c_str() + 5)), 'x').c_str()});
  }
  if (kind.rfind("process:", 0) == 0) return ProcessTrace(static_cast<uint32_t>(std::atoi(kind.c_str() + 8)));
  if (kind.rfind("rank:", 0) == 0) return RankTrace(static_cast<uint32_t>(std::atoi(kind.c_str() + 5)));
  if (kind.rfind("waits:", 0) == 0) return RankTrace(static_cast<uint32_t>(std::atoi(kind.c_str() + 6)), true);
  if (kind.rfind("random:", 0) == 0) return WrittenTrace(RandomProfile(std::strtoull(kind.c_str() + 7, nullptr, 10)));
  if (kind == "newer") {
    Bytes trace = EmptyTrace();
    trace[8] = 9;
    const uint32_t crc = rfinject::wire::Crc32c(trace.data(), 12);
    for (size_t i = 0; i < 4; ++i) trace[12 + i] = static_cast<uint8_t>(crc >> (8 * i));
    return trace;
  }
  if (kind == "hostile") {  // names that would steer a terminal, leave a cell, or end a string
    return WithNames({"\033[2Jcleared",
                      "\xC2\x9B"
                      "31m",
                      "a\"b,c\nd", "</script><b>",
                      "\xE2\x80\xAE"
                      "gnp.exe"});
  }
  if (kind == "formulas") {  // names that a spreadsheet would take for formulas, and some that it would not
    return WithNames(
        {"=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "\t=1", "\r=1", " =1", "=a,\"b\"", "＝1", "'=1", "a=1"});
  }
  if (kind == "garbage") return Bytes(4096, 'x');
  return std::nullopt;
}

bool Save(const std::string& path, const Bytes& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return file.good();
}

// The payloads of a trace in trace_fuzz's second form.
Bytes AsPayloads(const Bytes& trace) {
  Bytes result = {1};
  MemorySource source(trace);
  FrameReader frames(source);
  while (frames.Next()) {
    const size_t length = frames.payload().size();
    result.push_back(static_cast<uint8_t>(length));
    result.push_back(static_cast<uint8_t>(length >> 8));
    result.insert(result.end(), frames.payload().begin(), frames.payload().end());
  }
  return result;
}

bool MakeCorpus(const std::string& folder) {
  std::filesystem::create_directories(folder);
  const auto save = [&](const std::string& name, const Bytes& trace) {
    Bytes file = {0};
    file.insert(file.end(), trace.begin(), trace.end());
    return Save(folder + "/" + name + ".file", file) && Save(folder + "/" + name + ".payloads", AsPayloads(trace));
  };
  return save("process", ProcessTrace()) && save("empty", EmptyTrace()) && save("newer", *Make("newer")) &&
         save("merged1", *Make("random:1")) && save("merged2", *Make("random:12"));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: make_trace KIND FILE | make_trace corpus FOLDER\n");
    return 2;
  }
  const std::string kind = argv[1];
  if (kind == "corpus") return MakeCorpus(argv[2]) ? 0 : 1;
  const std::optional<Bytes> bytes = Make(kind);
  if (!bytes) {
    std::fprintf(stderr, "make_trace: no kind %s\n", kind.c_str());
    return 2;
  }
  return Save(argv[2], *bytes) ? 0 : 1;
}
