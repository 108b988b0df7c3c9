#include "cli/import/et/execution_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cli/import/et/estimate.h"
#include "cli/import/formats.h"
#include "cli/import/torch/torch_profiler.h"

namespace rfinject::cli {
namespace {

using testing::HasSubstr;

constexpr char kRecording[] = RFINJECT_IMPORT_TESTDATA "/perceptron.json";
constexpr char kTrace[] = RFINJECT_IMPORT_TESTDATA "/execution_trace/perceptron.json";

uint64_t Sum(const Imported& imported, std::string_view metric, Phase phase, const std::string& op) {
  Uint128 sum = 0;
  for (const auto& [key, stats] : imported.profile.runs.begin()->second.launches) {
    const auto found = stats.metrics.find(std::string(metric));
    if (key.phase == phase && (op.empty() || key.op == op) && found != stats.metrics.end()) sum += found->second.sum;
  }
  return static_cast<uint64_t>(sum);
}

std::string Said(const Imported& imported, const std::string& id) {
  for (const DiagnosticInfo& diagnostic : imported.profile.runs.begin()->second.kept.diagnostic) {
    if (diagnostic.id == id) return diagnostic.text;
  }
  return "";
}

// The products of a perceptron of two layers, [32,64] by [64,128] and [32,128] by [128,16], and twice backward but
// for the first input.
constexpr uint64_t kHidden = 2ULL * 32 * 64 * 128, kOutput = 2ULL * 32 * 128 * 16;

// Two steps, whose recording has no shapes; the execution trace has one step.
TEST(ExecutionTraceTest, GivesARecordingItsShapes) {
  const absl::StatusOr<Imported> alone = ImportTorchProfiler(kRecording, {});
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(Sum(*alone, kMetricModelFlop, Phase::kForward, ""), 0u);
  ImportOptions options;
  options.execution_trace = kTrace;
  const absl::StatusOr<Imported> joined = ImportTorchProfiler(kRecording, options);
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->profile.runs.begin()->second.steps.steps, 2u);
  EXPECT_EQ(Sum(*joined, kMetricModelFlop, Phase::kForward, "aten::addmm"), 2 * (kHidden + kOutput));
  EXPECT_EQ(Sum(*joined, kMetricModelFlop, Phase::kBackward, "aten::mm"), 2 * (kHidden + 2 * kOutput));
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    EXPECT_EQ(Sum(*joined, kMetricTime, phase, ""), Sum(*alone, kMetricTime, phase, ""));
  }
  EXPECT_THAT(Said(*joined, "execution-trace-joined"), HasSubstr(" have operands and results of an execution trace"));
}

TEST(ExecutionTraceTest, AFileThatCannotBeOpenedIsNamed) {
  ImportOptions options;
  options.execution_trace = "/nowhere/trace.json";
  const absl::StatusOr<Imported> joined = ImportTorchProfiler(kRecording, options);
  EXPECT_EQ(std::string(joined.status().message()), "/nowhere/trace.json: No such file or directory");
}

TEST(ExecutionTraceTest, IsAnEstimateByItself) {
  ImportOptions options;
  options.estimate = "H100-SXM5-80GB";
  const absl::StatusOr<Imported> imported = ImportExecutionTrace(kTrace, options);
  ASSERT_TRUE(imported.ok()) << imported.status();
  const cli::Run& run = imported->profile.runs.begin()->second;
  EXPECT_EQ(run.key.source, SourceKind::kEstimated);
  EXPECT_EQ(run.key.estimated_gpu, "H100-SXM5-80GB");
  EXPECT_TRUE(run.key.training);
  EXPECT_EQ(Sum(*imported, kMetricModelFlop, Phase::kForward, "aten::addmm"), kHidden + kOutput);
  EXPECT_EQ(Sum(*imported, kMetricModelFlop, Phase::kBackward, "aten::mm"), kHidden + 2 * kOutput);
  // Nothing is counted inside of what is one kernel.
  EXPECT_EQ(Sum(*imported, kMetricModelFlop, Phase::kForward, "aten::linear"), 0u);
  EXPECT_GT(Sum(*imported, kMetricTime, Phase::kOptimizer, "aten::add_"), 0u);
  const auto refused = ImportExecutionTrace(kTrace, {});
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("rfinject import et FILE --estimate GPU"));
  EXPECT_EQ(RecogniseImport(kTrace)->name, "et");
  EXPECT_EQ(RecogniseImport(kRecording)->name, "torch");
}

// Chakra's dialect: lists in one object, the rest among attributes; strides since 2025.
// clang-format off
constexpr char kChakra[] = R"json({"schema": "1.1.1-chakra.0.0.4", "pid": 1, "start_ts": 1, "nodes": [
{"id": 4, "name": "aten::mm", "ctrl_deps": 3, "inputs": {"values": [[7, 8, 0, 6, 4, "cuda:0"], [9, 10, 0, 12, 4, "cuda:0"]],
 "shapes": [[2, 3], [3, 4]], "types": ["Tensor(float)", "Tensor(float)"], "strides": [[3, 1], [4, 1]]},
 "outputs": {"values": [[11, 12, 0, 8, 4, "cuda:0"]], "shapes": [[2, 4]], "types": ["Tensor(float)"]},
 "attrs": [{"name": "scope", "type": "uint64", "value": 0}]},
{"id": 3, "name": "aten::matmul", "ctrl_deps": 2, "inputs": {"values": [[7, 8, 0, 6, 4, "cuda:0"], [9, 10, 0, 12, 4, "cuda:0"]],
 "shapes": [[2, 3], [3, 4]], "types": ["Tensor(float)", "Tensor(float)"]}, "outputs": {"values": [], "shapes": [], "types": []},
 "attrs": [{"name": "scope", "type": "uint64", "value": 0}]},
{"id": 5, "name": "aten::add", "ctrl_deps": 2, "inputs": {"values": [[1, 2, 0, 6, 4, "cpu"], [1, 2, 0, 6, 4, "cpu"], 1],
 "shapes": [[2, 3], [2, 3], []], "types": ["Tensor(float)", "Tensor(float)", "Int"]},
 "outputs": {"values": [[1, 2, 0, 6, 4, "cpu"]], "shapes": [[2, 3]], "types": ["Tensor(float)"]},
 "attrs": [{"name": "scope", "type": "uint64", "value": 0}]},
{"id": 2, "name": "[pytorch|profiler|execution_trace|thread]", "ctrl_deps": 1, "inputs": {"values": [], "shapes": [], "types": []},
 "outputs": {"values": [], "shapes": [], "types": []}, "attrs": [{"name": "scope", "type": "uint64", "value": 7}]}]})json";
// clang-format on

TEST(ExecutionTraceTest, ReadsChakrasDialect) {
  ImportOptions options;
  options.estimate = "T4";
  const absl::StatusOr<Imported> imported = ImportExecutionTraceBytes(kChakra, "file", options);
  ASSERT_TRUE(imported.ok()) << imported.status();
  const cli::Run& run = imported->profile.runs.begin()->second;
  ASSERT_EQ(run.launches.size(), 1u);  // what is done on the host is no GPU's work, and matmul is what mm does
  const auto& [key, stats] = *run.launches.begin();
  EXPECT_EQ(key.op, "aten::mm");
  EXPECT_EQ(key.signature, "f32[2,3] f32[3,4]");
  EXPECT_EQ(stats.metrics.at(std::string(kMetricModelFlop)).sum, Uint128{2 * 2 * 3 * 4});
  EXPECT_EQ(stats.metrics.at(std::string(kMetricCompulsoryBytes)).sum, Uint128{4 * (6 + 12 + 8)});
}

TEST(ExecutionTraceTest, WhatIsNoneIsRefused) {
  ImportOptions options;
  options.estimate = "T4";
  const auto message = [&options](std::string_view text) {
    return std::string(ImportExecutionTraceBytes(text, "file", options).status().message());
  };
  EXPECT_THAT(message("{\"nodes\": [{]}"), HasSubstr("file: byte 12: this is not JSON"));
  EXPECT_THAT(message("{}"), HasSubstr("no execution trace"));
  EXPECT_THAT(message(R"({"nodes": [7, {}, {"id": -1, "name": 3, "inputs": 5, "attrs": [1]}]})"),
              HasSubstr("no operator in it does work on a GPU"));
  EXPECT_THAT(message("{\"nodes\":" + std::string(100'000, '[')), HasSubstr("this is not JSON"));
  options.estimate = "MI300X-OAM-192GB";
  EXPECT_THAT(message(kChakra), HasSubstr("rfinject import et FILE --estimate GPU"));
}

}  // namespace
}  // namespace rfinject::cli
