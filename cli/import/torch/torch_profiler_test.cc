#include "cli/import/torch/torch_profiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cli/import/formats.h"
#include "cli/import/torch/byte_stream.h"
#include "cli/import/torch/recording.h"

namespace rfinject::cli {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

Imported ImportData(const std::string& name) {
  absl::StatusOr<Imported> imported = ImportTorchProfiler(RFINJECT_IMPORT_TESTDATA "/" + name, {});
  EXPECT_TRUE(imported.ok()) << imported.status();
  return imported.ok() ? *std::move(imported) : Imported{};
}

absl::StatusOr<Imported> ImportText(const std::string& text) { return ImportTorchProfilerBytes(text, "file", {}); }

const cli::Run& OnlyRun(const Imported& imported) {
  EXPECT_EQ(imported.profile.runs.size(), 1u);
  return imported.profile.runs.begin()->second;
}

// What a metric adds up to over the launches that `wanted` chooses.
uint64_t Sum(const cli::Run& run, std::string_view metric, const std::function<bool(const LaunchKey&)>& wanted) {
  Uint128 sum = 0;
  for (const auto& [key, stats] : run.launches) {
    const auto found = stats.metrics.find(std::string(metric));
    if (found != stats.metrics.end() && wanted(key)) sum += found->second.sum;
  }
  return static_cast<uint64_t>(sum);
}
uint64_t Sum(const cli::Run& run, std::string_view metric) {
  return Sum(run, metric, [](const LaunchKey&) { return true; });
}
std::function<bool(const LaunchKey&)> Of(Phase phase, const std::string& op) {
  return [phase, op](const LaunchKey& key) { return key.phase == phase && key.op == op; };
}

std::vector<std::string> Diagnostics(const cli::Run& run) {
  std::vector<std::string> ids;
  for (const DiagnosticInfo& diagnostic : run.kept.diagnostic) ids.push_back(diagnostic.id);
  return ids;
}

// --- Recordings of the tree: one step of a real H100, and small ones of each dialect that were made by hand.

// One step of ResNet-18 on an H100, batch 256, FP32. The FLOP of its convolutions and of its linear layer are those
// of the closed form: 1,813,561,344 multiply-adds an image in the convolutions; 118,013,952 of them are conv1's,
// whose input needs no gradient.
TEST(TorchProfilerTest, ResNet18HasTheFlopOfItsClosedForm) {
  const Imported imported = ImportData("h100_resnet18_step.json.gz");
  const cli::Run& run = OnlyRun(imported);
  constexpr uint64_t kBatch = 256, kForward = 2 * kBatch * 1'813'561'344ULL, kFirst = 2 * kBatch * 118'013'952ULL;
  EXPECT_EQ(Sum(run, kMetricModelFlop, Of(Phase::kForward, "aten::convolution")), kForward);
  EXPECT_EQ(Sum(run, kMetricModelFlop, Of(Phase::kBackward, "aten::convolution_backward")), 2 * kForward - kFirst);
  EXPECT_EQ(Sum(run, kMetricModelFlop, Of(Phase::kForward, "aten::addmm")), 2 * kBatch * 512 * 1000);
  EXPECT_EQ(Sum(run, kMetricModelFlop, Of(Phase::kBackward, "aten::mm")), 2 * 2 * kBatch * 512 * 1000);
  EXPECT_EQ(run.steps.steps, 1u);
  EXPECT_TRUE(run.key.training);
  EXPECT_EQ(run.key.gpu, "NVIDIA H100 80GB HBM3");
  EXPECT_GT(Sum(run, kMetricTime, [](const LaunchKey& key) { return key.phase == Phase::kOptimizer; }), 0u);
  for (const auto& [key, stats] : run.launches) EXPECT_FALSE(key.op.empty()) << key.kernel;
}

TEST(TorchProfilerTest, EveryNanosecondIsThere) {
  const std::map<std::string, std::pair<uint64_t, uint64_t>> files = {
      // launches and ns, counted by summing "dur" of the events of the GPU
      {"h100_resnet18_step.json.gz", {348, 94'262'014}},
      {"dialect_2021.json", {10, 1'730'000}},
      {"job_rank0.json", {3, 162'000}},
      {"perceptron.json", {18, 116'000}},
      {"rocm.json", {2, 64'625}},
  };
  for (const auto& [name, expected] : files) {
    const Imported imported = ImportData(name);
    const cli::Run& run = OnlyRun(imported);
    uint64_t launches = 0;
    for (const auto& [key, stats] : run.launches) launches += stats.launches;
    EXPECT_EQ(launches, expected.first) << name;
    EXPECT_EQ(Sum(run, kMetricTime), expected.second) << name;
  }
}

TEST(TorchProfilerTest, ModulesAreLayers) {
  const Imported imported = ImportData("h100_resnet18_step.json.gz");
  const cli::Run& run = OnlyRun(imported);
  EXPECT_THAT(run.key.models, testing::ElementsAre("ResNet", "CrossEntropyLoss"));
  const auto layer = run.layers.find({"ResNet", "Sequential_0.BasicBlock_0.Conv2d_1"});
  ASSERT_NE(layer, run.layers.end());
  EXPECT_EQ(layer->second.class_name, "Conv2d");
  EXPECT_EQ(layer->second.parent_path, "Sequential_0.BasicBlock_0");
  // Each of the 20 convolutions stands at its module, backward too.
  std::set<std::string> forward, backward;
  for (const auto& [key, stats] : run.launches) {
    if (key.op == "aten::convolution") forward.insert(key.layer.path);
    if (key.op == "aten::convolution_backward") backward.insert(key.layer.path);
  }
  EXPECT_EQ(forward.size(), 20u);
  EXPECT_EQ(backward, forward);
}

// The dialect of 2021: "Operator" and "Kernel", threads as texts, steps and the loader among the operators, a
// backward of two operators inside of a node without the engine's span, no strides and no values.
TEST(TorchProfilerTest, TheDialectOf2021IsRead) {
  const Imported imported = ImportData("dialect_2021.json");
  const cli::Run& run = OnlyRun(imported);
  constexpr uint64_t kConvolution = 2ULL * 8 * 16 * 32 * 32 * 3 * 3 * 3;
  EXPECT_EQ(run.steps.steps, 2u);
  EXPECT_EQ(run.key.gpu, "Tesla V100-DGXS-32GB");
  EXPECT_EQ(Sum(run, kMetricModelFlop, Of(Phase::kForward, "aten::convolution")), 2 * kConvolution);
  EXPECT_EQ(Sum(run, kMetricModelFlop, Of(Phase::kBackward, "aten::convolution_backward")), 2 * kConvolution);
  const auto time = [&run](Phase phase) {
    return Sum(run, kMetricTime, [phase](const LaunchKey& key) { return key.phase == phase; });
  };
  EXPECT_EQ(time(Phase::kForward), 2 * 320'000u);
  EXPECT_EQ(time(Phase::kBackward), 2 * 500'000u);
  EXPECT_EQ(time(Phase::kOptimizer), 2 * 5'000u);
  EXPECT_EQ(time(Phase::kData), 2 * 40'000u);
  EXPECT_EQ(static_cast<uint64_t>(run.step_times.at(0).data_wait_ns.sum()), 2 * 4'000'000u);
}

TEST(TorchProfilerTest, CommunicationIsAPhaseAndRanksAreKnown) {
  const Imported imported = ImportData("job_rank0.json");
  const cli::Run& run = OnlyRun(imported);
  EXPECT_EQ(run.ranks, std::set<uint32_t>{0});
  ASSERT_EQ(run.process_list.size(), 1u);
  EXPECT_EQ(run.process_list[0].world_size, 2u);
  EXPECT_EQ(Sum(run, kMetricTime, [](const LaunchKey& key) { return key.phase == Phase::kCommunication; }), 60'000u);
  ASSERT_EQ(run.kept.collective.size(), 1u);
  EXPECT_EQ(run.kept.collective.begin()->kernel, "ncclDevKernel_AllReduce_Sum_f32_RING_LL of default_pg");
  EXPECT_EQ(run.kept.collective.begin()->duration_ns, 60'000u);
  // By stream, as "dur" of the file adds up.
  std::string streams;
  for (const DiagnosticInfo& diagnostic : run.kept.diagnostic)
    streams += diagnostic.id == "streams" ? diagnostic.text : "";
  EXPECT_EQ(
      streams,
      "the GPU's time is 100000 ns on stream 7 of GPU 0, 60000 ns on stream 20 of GPU 0, 2000 ns on stream 22 of "
      "GPU 0");
  EXPECT_EQ(static_cast<uint64_t>(run.step_times.at(0).exposed_communication_ns.sum()), 30'000u);
}

// HIP's calls, and a GPU that is numbered by its place in the machine.
TEST(TorchProfilerTest, RocmIsADialect) {
  const Imported imported = ImportData("rocm.json");
  const cli::Run& run = OnlyRun(imported);
  EXPECT_EQ(Sum(run, kMetricModelFlop, Of(Phase::kForward, "aten::mm")) +
                Sum(run, kMetricModelFlop, Of(Phase::kOther, "aten::mm")),
            2ULL * 256 * 512 * 1024);
  EXPECT_EQ(Sum(run, kMetricTime, [](const LaunchKey& key) { return key.phase == Phase::kData; }), 4'125u);
  ASSERT_EQ(run.devices.size(), 1u);
  EXPECT_EQ(run.devices[0].index, 2u);
  EXPECT_EQ(run.devices[0].chip, "gfx90a");
}

// Counters say neither when nor from where a kernel was launched: the k-th is the k-th launch.
TEST(TorchProfilerTest, CountersFindTheirOperators) {
  const Imported imported = ImportData("counters.json");
  const cli::Run& run = OnlyRun(imported);
  Stat products;
  for (const auto& [key, stats] : run.launches) {
    EXPECT_EQ(key.phase, Phase::kForward) << key.kernel;
    if (key.op != "aten::addmm") continue;
    const Stat& one = stats.metrics.at("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum");
    products.sum += one.sum;
    products.n += one.n;
  }
  EXPECT_EQ(products.n, 2u);
  EXPECT_EQ(2 * products.sum, Uint128{2ULL * 64 * 1024 * 512 + 2ULL * 64 * 512 * 10});
  EXPECT_EQ(Sum(run, kMetricTime), 0u);
}

// Of 100 us a step NCCL's kernel takes 40; a product runs beside it for 15 of them, and a copy for 5 more.
TEST(TorchProfilerTest, CommunicationThatNothingHidesIsAWait) {
  std::string events;
  const auto add = [&events](const std::string& category, const std::string& name, int start, int duration,
                             int thread) {
    events += std::string(events.empty() ? "" : ",") + R"({"ph":"X","cat":")" + category + R"(","name":")" + name +
              R"(","pid":1,"tid":)" + std::to_string(thread) + R"(,"ts":)" + std::to_string(start) + R"(,"dur":)" +
              std::to_string(duration) + R"(,"args":{"device":0,"stream":)" + std::to_string(thread) + "}}";
  };
  for (int step = 0; step < 3; ++step) {
    const int at = 1000 + 100 * step;
    add("user_annotation", "ProfilerStep#" + std::to_string(step), at, 100, 1);
    add("kernel", "sgemm", at + 10, 25, 7);
    add("kernel", "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", at + 20, 40, 8);
    add("gpu_memcpy", "Memcpy DtoD (Device -> Device)", at + 50, 5, 7);
  }
  const absl::StatusOr<Imported> imported = ImportText("{\"traceEvents\":[" + events + "]}");
  ASSERT_TRUE(imported.ok()) << imported.status();
  const StepTimes& times = OnlyRun(*imported).step_times.at(0);
  EXPECT_EQ(static_cast<uint64_t>(times.gpu_busy_ns.sum()), 3 * 50'000u);
  EXPECT_EQ(static_cast<uint64_t>(times.exposed_communication_ns.sum()), 3 * 20'000u);
  EXPECT_EQ(times.exposed_communication_ns.n(), 3u);
  // Where there is none, none is said to be hidden.
  const Imported alone = ImportData("dialect_2021.json");
  EXPECT_EQ(OnlyRun(alone).step_times.at(0).exposed_communication_ns.n(), 0u);
}

// --- Made for the purpose.

std::string Event(const std::string& category, const std::string& name, int64_t start, int64_t duration,
                  const std::string& arguments, const std::string& thread = "1") {
  return "{\"ph\":\"X\",\"cat\":\"" + category + "\",\"name\":\"" + name + "\",\"pid\":1,\"tid\":" + thread +
         ",\"ts\":" + std::to_string(start) + ",\"dur\":" + std::to_string(duration) + ",\"args\":{" + arguments +
         "}}";
}
std::string File(const std::vector<std::string>& events, const std::string& members = "") {
  std::string text = "{\"schemaVersion\":1," + members + "\"traceEvents\":[";
  for (size_t i = 0; i < events.size(); ++i) text += (i == 0 ? "" : ",") + events[i];
  return text + "]}";
}
constexpr char kProduct[] = R"("External id":7,"Input Dims":[[2,3],[3,4]],"Input type":["float","float"])";

TEST(TorchProfilerTest, ACallLeadsToTheInnermostOperator) {
  const absl::StatusOr<Imported> imported = ImportText(File({
      Event("kernel", "sgemm", 500, 7,
            R"("correlation":9,"External id":3,"device":0,"grid":[1,2,3],"block":[4,5,6])"),
      Event("cpu_op", "aten::matmul", 100, 50, R"("External id":3)"),
      Event("cpu_op", "aten::mm", 110, 30, kProduct),
      Event("cuda_runtime", "cudaLaunchKernel", 120, 5, R"("correlation":9)"),
  }));
  ASSERT_TRUE(imported.ok()) << imported.status();
  const cli::Run& run = OnlyRun(*imported);
  ASSERT_EQ(run.launches.size(), 1u);
  const auto& [key, stats] = *run.launches.begin();
  EXPECT_EQ(key.op, "aten::mm");
  EXPECT_EQ(key.signature, "f32[2,3] f32[3,4]");
  EXPECT_EQ(key.grid, (std::array<uint32_t, 3>{1, 2, 3}));
  EXPECT_EQ(stats.metrics.at(std::string(kMetricTime)).sum, Uint128{7000});
  EXPECT_EQ(stats.metrics.at(std::string(kMetricModelFlop)).sum, Uint128{2 * 2 * 3 * 4});
  EXPECT_EQ(stats.metrics.at(std::string(kMetricCompulsoryBytes)).sum, Uint128{4 * (6 + 12 + 8)});
  EXPECT_THAT(Diagnostics(run), Contains("joins-disagree"));  // 3 is aten::matmul's
}

TEST(TorchProfilerTest, WhatHasNoLaunchStaysARowOfItsOwn) {
  const absl::StatusOr<Imported> imported = ImportText(File({
      Event("cpu_op", "aten::mm", 110, 30, kProduct),
      Event("kernel", "joined", 150, 2, R"("correlation":1,"External id":7)"),
      Event("kernel", "alone", 160, 3, R"("correlation":2)"),
      Event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 170, 4, R"("correlation":3)"),
      Event("cuda_runtime", "cudaGraphLaunch", 180, 5, R"("correlation":4)"),
      Event("kernel", "of a graph", 190, 6, R"("correlation":4)"),
      Event("kernel", "of a graph", 200, 6, R"("correlation":4)"),
  }));
  ASSERT_TRUE(imported.ok()) << imported.status();
  const cli::Run& run = OnlyRun(*imported);
  std::map<std::string, std::string> ops;
  for (const auto& [key, stats] : run.launches) ops[key.kernel] = key.op;
  EXPECT_EQ(ops["joined"], "aten::mm");  // by the operator's number
  EXPECT_EQ(ops["alone"], kLaunchNotInFile);
  EXPECT_EQ(ops["Memcpy HtoD (Pinned -> Device)"], "");
  EXPECT_EQ(ops["of a graph"], "cudaGraphLaunch");
  EXPECT_EQ(Sum(run, kMetricTime), 21'000u);
  EXPECT_THAT(Diagnostics(run),
              AllOf(Contains("launch-not-recorded"), Contains("cuda-graphs"), Contains("no-steps")));
}

TEST(TorchProfilerTest, BackwardFindsItsLayerByTheSequenceNumber) {
  const absl::StatusOr<Imported> imported = ImportText(File({
      Event("python_function", "nn.Module: Net_0", 100, 100, ""),
      Event("python_function", "nn.Module: Linear_3", 110, 50, ""),
      Event("cpu_op", "aten::mm", 120, 20, std::string(kProduct) + R"(,"Sequence number":41,"Fwd thread id":0)"),
      Event("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 300, 50,
            R"("Sequence number":41,"Fwd thread id":1)", "2"),
      Event("cpu_op", "MmBackward0", 301, 40, R"("Sequence number":41)", "2"),
      Event("cpu_op", "aten::mm", 310, 20, R"("Input Dims":[[3,2],[2,4]],"Input type":["float","float"])", "2"),
      Event("cuda_runtime", "cudaLaunchKernel", 315, 5, R"("correlation":2)", "2"),
      Event("kernel", "gemm", 400, 9, R"("correlation":2)"),
  }));
  ASSERT_TRUE(imported.ok()) << imported.status();
  const LaunchKey& key = OnlyRun(*imported).launches.begin()->first;
  EXPECT_EQ(key.phase, Phase::kBackward);
  EXPECT_EQ(key.layer.model, "Net");
  EXPECT_EQ(key.layer.path, "Linear_3");
}

TEST(TorchProfilerTest, RecomputationIsAPhase) {
  const absl::StatusOr<Imported> imported = ImportText(File({
      Event("cpu_op", "autograd::engine::evaluate_function: CheckpointFunctionBackward", 100, 100,
            R"("Sequence number":4)"),
      Event("cpu_op", "CheckpointFunctionBackward", 101, 90, R"("Sequence number":4)"),
      Event("cpu_op", "aten::mm", 110, 20, kProduct),
      Event("cuda_runtime", "cudaLaunchKernel", 115, 5, R"("correlation":1)"),
      Event("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 140, 20, R"("Sequence number":9)"),
      Event("cpu_op", "aten::mm", 145, 10, kProduct),
      Event("cuda_runtime", "cudaLaunchKernel", 147, 5, R"("correlation":2)"),
      Event("kernel", "again", 400, 9, R"("correlation":1)"),
      Event("kernel", "gradient", 410, 9, R"("correlation":2)"),
  }));
  ASSERT_TRUE(imported.ok()) << imported.status();
  for (const auto& [key, stats] : OnlyRun(*imported).launches) {
    EXPECT_EQ(key.phase, key.kernel == "again" ? Phase::kRecompute : Phase::kBackward);
  }
}

TEST(TorchProfilerTest, StepsAreTheProfilersOrTheOptimizers) {
  std::vector<std::string> events;
  for (int step = 0; step < 3; ++step) {
    const int at = 1000 * step;
    const std::string correlation = R"("correlation":)" + std::to_string(step + 1);
    events.push_back(Event("cpu_op", "aten::mm", at + 110, 30, kProduct));
    events.push_back(Event("cuda_runtime", "cudaLaunchKernel", at + 120, 5, correlation));
    events.push_back(Event("kernel", "k", at + 200, 10 + step, correlation));
    events.push_back(Event("user_annotation", "Optimizer.step#SGD.step", at + 500, 100, ""));
  }
  EXPECT_EQ(OnlyRun(*ImportText(File(events))).steps.steps, 3u);
  for (int step = 0; step < 2; ++step) {
    events.push_back(Event("user_annotation", "ProfilerStep#" + std::to_string(step), 1000 * step, 990, ""));
  }
  const absl::StatusOr<Imported> imported = ImportText(File(events));
  const cli::Run& run = OnlyRun(*imported);
  EXPECT_EQ(run.steps.steps, 2u);
  EXPECT_EQ(run.step_spans.size(), 2u);
  EXPECT_THAT(Diagnostics(run), Contains("outside-steps"));  // the third
  EXPECT_EQ(Sum(run, kMetricTime), 33'000u);
  const std::vector<StepSum>& sums = run.launches.begin()->second.step_sums.at(std::string(kMetricTime));
  EXPECT_EQ(sums, (std::vector<StepSum>{{0, 10'000}, {1, 11'000}}));
}

// What torch.compile says of its own kernels: those of a template multiply, in the type of their operands.
TEST(TorchProfilerTest, AKernelOfATemplateMultipliesInItsOperandsType) {
  const absl::StatusOr<Imported> imported = ImportText(File({
      Event(
          "cpu_op", "triton_tem_fused_mm_2", 110, 30,
          R"("External id":7,"kernel_flop":4096,"Input Dims":[[8,16],[16,16]],"Input type":["c10::BFloat16","c10::BFloat16"])"),
      Event("kernel", "triton_tem_fused_mm_2", 150, 2, R"("External id":7)"),
      Event("cpu_op", "triton_poi_fused_add_0", 210, 30,
            R"("External id":8,"kernel_flop":64,"Input Dims":[[64]],"Input type":["c10::BFloat16"])"),
      Event("kernel", "triton_poi_fused_add_0", 250, 6, R"("External id":8)"),
  }));
  ASSERT_TRUE(imported.ok()) << imported.status();
  const cli::Run& run = imported->profile.runs.begin()->second;
  EXPECT_EQ(Sum(run, kMetricFlop[static_cast<size_t>(Precision::kBf16Tensor)]), 4096u);
  EXPECT_EQ(Sum(run, kMetricFlop[static_cast<size_t>(Precision::kFp32)]), 64u);
}

TEST(TorchProfilerTest, WhatARowLacksIsSaid) {
  const absl::StatusOr<Imported> imported = ImportText(File({
      Event("cpu_op", "aten::mm", 110, 30, R"("External id":7)"),
      Event("kernel", "k", 150, 2, R"("External id":7)"),
      Event("cpu_op", "my::op", 210, 30, R"("External id":8,"Input Dims":[[2]],"Input type":["float"])"),
      Event("kernel", "k2", 250, 6, R"("External id":8)"),
      Event("cpu_op", "triton_poi_fused_add_relu_0", 250, 10, R"("External id":9,"Input Dims":[[2]])"),
      Event("kernel", "triton_poi_fused_add_relu_0", 260, 1, R"("External id":9)"),
      Event("kernel", "ncclAllReduce", 300, 8, ""),
      Event("gpu_memcpy", "Memcpy HtoD", 310, 16, ""),
      Event("kernel", "lost", 330, 32, ""),
  }));
  ASSERT_TRUE(imported.ok()) << imported.status();
  const cli::Run& run = OnlyRun(*imported);
  std::string text, rest;
  for (const DiagnosticInfo& diagnostic : run.kept.diagnostic) {
    if (diagnostic.id == "work-not-known") text = diagnostic.text;
    if (diagnostic.id == "no-work") rest = diagnostic.text;
  }
  EXPECT_THAT(rest, AllOf(HasSubstr("16.0 us in copies"), HasSubstr("8.00 us in communication"),
                          HasSubstr("32.0 us in kernels without an operator")));
  EXPECT_THAT(text,
              AllOf(HasSubstr("my::op: there is no rule for it (9.2 %)"),
                    HasSubstr("aten::mm: its shapes were not recorded (3.1 %)"),
                    HasSubstr("triton_poi_fused_add_relu_0: torch.compile made it of the operators in its name")));
  for (const auto& [key, stats] : run.launches) EXPECT_FALSE(stats.metrics.contains(std::string(kMetricModelFlop)));
}

// --- Files as they should not be.

std::string Valid() {
  return File({Event("cpu_op", "aten::mm", 110, 30, kProduct), Event("kernel", "k", 150, 2, R"("External id":7)"),
               Event("kernel", "k", 160, 2, "")});
}

TEST(TorchProfilerTest, ACutFileGivesWhatCameBefore) {
  const std::string whole = Valid();
  const absl::StatusOr<Imported> imported = ImportText(whole.substr(0, whole.size() - 20));
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(Sum(OnlyRun(*imported), kMetricTime), 2'000u);
  EXPECT_THAT(Diagnostics(OnlyRun(*imported)), Contains("recording-cut"));
  EXPECT_THAT(imported->warnings, Contains(HasSubstr("the file ends inside of the list of events")));
}

TEST(TorchProfilerTest, WhatIsNoRecordingIsRefusedWithAnOffset) {
  const auto message = [](const std::string& text) { return std::string(ImportText(text).status().message()); };
  EXPECT_THAT(message("hello"), HasSubstr("file: byte 0: this is not JSON"));
  EXPECT_THAT(message("{\"traceEvents\":[{]}"), HasSubstr("file: byte 17: this is not JSON"));
  EXPECT_THAT(message("{\"a\":1}"), HasSubstr("JSON without traceEvents"));
  EXPECT_THAT(message("7"), HasSubstr("JSON without traceEvents"));
  EXPECT_THAT(message(""), HasSubstr("the file ends before any event"));
  EXPECT_THAT(message(File({Event("cpu_op", "aten::mm", 1, 1, "")})), HasSubstr("has no kernels"));
  const std::string late = Event("kernel", "k", 1, 1, "");
  for (const char* number : {"\"ts\":9223372036854775808", "\"dur\":9223372036854775808"}) {
    const std::string field = std::string(number).substr(0, std::string(number).find(':') + 1);
    const std::string file = File({absl::StrReplaceAll(late, {{field + "1", number}})});
    EXPECT_THAT(message(file),
                HasSubstr(absl::StrCat("1 event of the GPU has no usable time; the first ends at byte ",
                                       file.rfind('}', file.rfind(']')), ", and there are no others")))
        << file;
  }
  EXPECT_THAT(message(File({Event("mtia_ccp_events", "k", 1, 1, "")})), HasSubstr("another accelerator"));
  EXPECT_THAT(message("{\"a\":\"" + std::string(20u << 20, 'x') + "\"}"), HasSubstr("longer than 16 MiB"));
}

TEST(TorchProfilerTest, OddContentDoesNoHarm) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  const std::vector<std::string> odd = {
      Event("kernel", "k", INT64_MAX / 1000, 5, ""),
      Event("kernel", "k", 5, -5, ""),
      Event("kernel", "a\x01\x1f b\\\"\\u0000", 5, 5, R"("grid":[-1,"x",1e300],"correlation":18446744073709551616)"),
      Event("cpu_op", "aten::mm", 0, 9,
            R"("Input Dims":[[9223372036854775807,9223372036854775807],[]],"Input type":["float","float"])"),
      Event("cpu_op", "aten::convolution", 0, 9, R"("Input Dims":)" + deep),
      "[1,2]",
      "null",
      "{\"ph\":[],\"args\":[{}]}"};
  const absl::StatusOr<Imported> imported = ImportText(File(odd, "\"deviceProperties\":{},\"distributedInfo\":[7],"));
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(Diagnostics(OnlyRun(*imported)), Contains("no-times"));
}

// A few megabytes of nested modules would take gigabytes of paths.
TEST(TorchProfilerTest, ModulesAreKeptToADepth) {
  std::vector<std::string> events;
  for (int i = 0; i < 200; ++i) events.push_back(Event("python_function", "nn.Module: L_0", i, 1000 - 2 * i, ""));
  events.push_back(Event("cuda_runtime", "cudaLaunchKernel", 300, 1, R"("correlation":5)"));
  events.push_back(Event("kernel", "k", 400, 7, R"("correlation":5)"));
  const absl::StatusOr<Imported> imported = ImportText(File(events));
  ASSERT_TRUE(imported.ok()) << imported.status();
  const cli::Run& run = OnlyRun(*imported);
  EXPECT_EQ(Sum(run, kMetricTime), 7'000u);
  ASSERT_EQ(run.launches.size(), 1u);
  const std::string& path = run.launches.begin()->first.layer.path;
  EXPECT_EQ(std::count(path.begin(), path.end(), '.'), 62) << path;  // 64 modules, the first of which is the model
}

TEST(TorchProfilerTest, EventsBeyondTheLimitAreLeftOutWithALine) {
  std::vector<std::string> events;
  for (int i = 0; i < 40; ++i) events.push_back(Event("kernel", "k", i * 10, 2, ""));
  const std::string text = File(events);
  absl::StatusOr<std::unique_ptr<ByteStream>> bytes = ByteStream::OfBytes(text);
  ASSERT_TRUE(bytes.ok());
  const absl::StatusOr<TorchRecording> recording = ReadTorchRecording(**bytes, 30);
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_EQ(recording->all_activities.size(), 30u);
  EXPECT_THAT(recording->cut, HasSubstr("more events than fit in memory"));
}

TEST(TorchProfilerTest, KeysTakeWhatTheirNamesTake) {
  LaunchKey key;
  key.kernel = std::string(10'000, 'k');
  KeyMemory memory(25'000);
  EXPECT_TRUE(memory.Fits(key));
  EXPECT_TRUE(memory.Fits(key));
  EXPECT_FALSE(memory.Fits(key));
  EXPECT_FALSE(memory.Fits(LaunchKey())) << "what is full stays full";
}

TEST(TorchProfilerTest, AByteOrderMarkIsNoPartOfTheJson) {
  EXPECT_TRUE(ImportText("\xEF\xBB\xBF" + Valid()).ok()) << ImportText("\xEF\xBB\xBF" + Valid()).status();
}

// --- Packed.

std::string Deflated(const std::string& text, int window) {
  z_stream zlib{};
  EXPECT_EQ(deflateInit2(&zlib, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(text.size() + 100, '\0');
  zlib.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(text.data()));
  zlib.avail_in = static_cast<uInt>(text.size());
  zlib.next_out = reinterpret_cast<unsigned char*>(packed.data());
  zlib.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&zlib, Z_FINISH), Z_STREAM_END);
  packed.resize(zlib.total_out);
  deflateEnd(&zlib);
  return packed;
}

std::string ZipOf(const std::string& content, char method, char flags = 0) {
  std::string header("PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x06\0\0\0t.json", 36);
  header[6] = flags;
  header[8] = method;
  const uint32_t size = static_cast<uint32_t>(content.size());
  for (int i = 0; i < 4; ++i) header[18 + i] = static_cast<char>(size >> (8 * i));
  return header + content + "PK\x01\x02 and the directory";
}

TEST(TorchProfilerTest, PackedFilesAreTheSame) {
  const std::string text = Valid();
  constexpr int kGzip = 16 + MAX_WBITS;
  const absl::StatusOr<Imported> plain = ImportText(text);
  ASSERT_TRUE(plain.ok()) << plain.status();
  const std::string half = text.substr(0, text.size() / 2);
  for (const std::string& packed : {Deflated(text, kGzip), ZipOf(Deflated(text, -MAX_WBITS), 8), ZipOf(text, 0),
                                    Deflated(half, kGzip) + Deflated(text.substr(half.size()), kGzip)}) {
    const absl::StatusOr<Imported> imported = ImportText(packed);
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_EQ(imported->profile, plain->profile);
  }
  const std::string cut = Deflated(text + std::string(10'000, ' '), kGzip);
  EXPECT_TRUE(ImportText(cut.substr(0, cut.size() - 12)).ok());
  EXPECT_THAT(std::string(ImportText(ZipOf(text, 12)).status().message()), HasSubstr("packed by method 12"));
  EXPECT_THAT(std::string(ImportText(ZipOf(text, 8, 1)).status().message()), HasSubstr("encrypted"));
  std::string damaged = Deflated(text, kGzip);
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 0x55);
  EXPECT_FALSE(ImportText(damaged).ok());
}

TEST(ImportFormatsTest, FilesAreKnownByTheirContent) {
  const ImportFormat* format = RecogniseImport(RFINJECT_IMPORT_TESTDATA "/h100_resnet18_step.json.gz");
  ASSERT_NE(format, nullptr);
  EXPECT_EQ(format->name, "torch");
  EXPECT_EQ(RecogniseImport("/dev/zero"), nullptr);
  EXPECT_EQ(RecogniseImport("/nonexistent"), nullptr);
  EXPECT_EQ(ImportFormatNames(), "ncu, nsys, torch or et");
}

}  // namespace
}  // namespace rfinject::cli
