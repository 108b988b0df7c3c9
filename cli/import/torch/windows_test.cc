#include "cli/import/torch/windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/import/torch/byte_stream.h"
#include "cli/import/torch/packed_list.h"
#include "cli/import/torch/torch_profiler.h"

namespace rfinject::cli {
namespace {

using testing::ElementsAre;

TEST(PackedListTest, GivesBackWhatWasAdded) {
  std::vector<TorchSpan> added;
  for (uint64_t i = 0; i < 10'000; ++i) {  // of several blocks
    added.push_back({.start = static_cast<int64_t>(i * 977 % 5000) - 2000,
                     .end = static_cast<int64_t>(i * 13),
                     .sequence = i % 3 == 0 ? static_cast<int64_t>(i) : TorchSpan::kNone,
                     .external_id = i % 4 == 0 ? i << 40 : 0,
                     .thread = static_cast<uint32_t>(i % 5),
                     .name = static_cast<uint32_t>(i),
                     .operands = static_cast<uint32_t>(i % 2),
                     .kind = static_cast<TorchSpan::Kind>(i % 3)});
  }
  added.push_back({.start = INT64_MIN,
                   .end = INT64_MAX,
                   .sequence = INT64_MAX,
                   .external_id = UINT64_MAX,
                   .thread = UINT32_MAX,
                   .name = UINT32_MAX,
                   .operands = UINT32_MAX});
  added.push_back({.start = INT64_MAX, .end = INT64_MIN, .sequence = 0, .external_id = 1});
  PackedList<TorchSpan> packed;
  for (const TorchSpan& span : added) packed.Add(span);
  ASSERT_EQ(packed.size(), added.size());
  packed.ForEach([&added](uint64_t index, const TorchSpan& span) {
    const TorchSpan& as = added[index];
    ASSERT_EQ(std::tie(span.start, span.end, span.sequence, span.external_id, span.thread, span.name, span.operands),
              std::tie(as.start, as.end, as.sequence, as.external_id, as.thread, as.name, as.operands));
    ASSERT_EQ(span.kind, as.kind);
  });
}

TEST(PackedListTest, AnEventTakesFewBytes) {
  PackedList<TorchActivity> packed;
  for (uint64_t i = 0; i < 100'000; ++i) {
    packed.Add({.start = static_cast<int64_t>(1'600'000'000'000'000'000 + i * 40'000),
                .duration = 30'000,
                .correlation = 5'000'000'000 + i,
                .external_id = 7'000 + i,
                .launch = 300,
                .stream = 7});
  }
  uint64_t bytes = 0;
  for (const auto& block : packed.blocks()) bytes += block.bytes.capacity();
  EXPECT_LT(bytes, 16 * packed.size());
}

// --- A training program of several steps: an operator with a module, its backward on a thread of its own, a kernel
// whose launch is not in the file, and one that ends in the next step. As the profiler writes them, operators come
// first.
class LongProgram {
 public:
  explicit LongProgram(int steps) {
    for (int step = 0; step < steps; ++step) AddStep(step);
  }
  void Add(std::vector<std::string>* events, const char* category, const std::string& name, int64_t start,
           int64_t duration, const std::string& arguments, int thread = 1) {
    events->push_back(R"({"ph":"X","cat":")" + std::string(category) + R"(","name":")" + name +
                      R"(","pid":1,"tid":)" + std::to_string(thread) + R"(,"ts":)" + std::to_string(start) +
                      R"(,"dur":)" + std::to_string(duration) + R"(,"args":{)" + arguments + "}}");
  }
  void AddHost(const char* category, const std::string& name, int64_t start, int64_t duration,
               const std::string& arguments, int thread = 1) {
    Add(&host_, category, name, start, duration, arguments, thread);
  }
  std::string Text() const {
    std::string text = R"({"schemaVersion":1,"traceEvents":[)";
    for (const auto* events : {&host_, &gpu_}) {
      for (const std::string& event : *events) text += (text.ends_with('[') ? "" : ",") + event;
    }
    return text + "]}";
  }

 private:
  void AddStep(int step) {
    const int64_t at = 1000 * step;
    const auto number = [step](const char* key, int value) {
      return "\"" + std::string(key) + "\":" + std::to_string(100 * step + value);
    };
    const std::string product = R"("Input Dims":[[2,3],[3,4]],"Input type":["float","float"])";
    AddHost("user_annotation", "ProfilerStep#" + std::to_string(step), at, 1000, "");
    AddHost("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, 50, "");
    AddHost("python_function", "nn.Module: Linear_0", at + 100, 100, "");
    AddHost("cpu_op", "aten::mm", at + 110, 50,
            product + "," + number("External id", 1) + "," + number("Sequence number", 1));
    AddHost("cpu_op", "aten::relu", at + 180, 10, product + "," + number("External id", 2));
    AddHost("cpu_op", "autograd::engine::evaluate_function: MmBackward0", at + 400, 100, number("Sequence number", 1),
            2);
    AddHost("cpu_op", "aten::mm", at + 420, 50, product + "," + number("External id", 3), 2);
    Add(&gpu_, "cuda_runtime", "cudaLaunchKernel", at + 120, 5, number("correlation", 1));
    Add(&gpu_, "kernel", "sgemm", at + 200, 70 + step, number("correlation", 1) + "," + number("External id", 1), 7);
    Add(&gpu_, "kernel", "relu", at + 300, 20, number("External id", 2), 7);
    Add(&gpu_, "cuda_runtime", "cudaLaunchKernel", at + 430, 5, number("correlation", 3), 2);
    // It names another step's operator.
    Add(&gpu_, "kernel", "sgemm_backward", at + 900, 300, number("correlation", 3) + R"(,"External id":1)", 7);
    Add(&gpu_, "kernel", "ncclAllReduce", at + 950, 90, "", 8);
    Add(&gpu_, "cuda_runtime", "cudaStreamSynchronize", at + 980, 15, "");
  }
  std::vector<std::string> host_, gpu_;
};

Imported ImportOf(const LongProgram& program, uint64_t window_events) {
  ImportOptions options;
  options.torch_window_events = window_events;
  absl::StatusOr<Imported> imported = ImportTorchProfilerBytes(program.Text(), "file", options);
  EXPECT_TRUE(imported.ok()) << imported.status();
  return imported.ok() ? *std::move(imported) : Imported{};
}

std::vector<size_t> EventsOfWindows(const LongProgram& program, uint64_t events) {
  const std::string text = program.Text();
  auto bytes = ByteStream::OfBytes(text);
  TorchRecording recording = *ReadTorchRecording(**bytes);
  const TorchWindows windows(recording, OutlineOf(recording), events);
  std::vector<size_t> counts;
  uint64_t activities = 0, calls = 0;
  for (size_t i = 0; i < windows.size(); ++i) {
    const TorchWindow window = windows.Unpack(i, recording);
    counts.push_back(window.spans.size());
    activities += window.activities.size();
    calls += window.calls.size();
  }
  EXPECT_EQ(activities, recording.all_activities.size());
  EXPECT_EQ(calls, recording.all_calls.size());
  return counts;
}

TEST(TorchWindowsTest, AWindowHasWholeSteps) {
  constexpr uint64_t kEventsOfStep = 13;  // seven spans, and a call counts twice
  // An annotation that ends when a window begins is in both.
  EXPECT_THAT(EventsOfWindows(LongProgram(4), 1), ElementsAre(7, 8, 8, 8));
  EXPECT_THAT(EventsOfWindows(LongProgram(4), kEventsOfStep + 1), ElementsAre(14, 15));
  EXPECT_THAT(EventsOfWindows(LongProgram(4), kOneWindow), ElementsAre(28));
}

TEST(TorchWindowsTest, AnOperatorIsNotCut) {
  LongProgram program(4);
  program.AddHost("cpu_op", "aten::slow", 700, 1500, "", 3);  // from the first step to the third
  EXPECT_THAT(EventsOfWindows(program, 1), ElementsAre(7 + 7 + 7 + 1, 8));
}

TEST(TorchWindowsTest, WindowsAddUpToTheWhole) {
  const Imported whole = ImportOf(LongProgram(7), kOneWindow);
  ASSERT_EQ(whole.profile.runs.size(), 1u);
  const cli::Run& run = whole.profile.runs.begin()->second;
  EXPECT_EQ(run.launches.size(), 4u);
  EXPECT_EQ(run.steps.steps, 7u);
  for (const auto& [key, stats] : run.launches) {
    if (key.kernel.starts_with("sgemm")) {
      EXPECT_EQ(key.layer.model, "Linear") << key.kernel;
    }
  }
  for (const uint64_t events : {1, 14, 30}) {
    const Imported parts = ImportOf(LongProgram(7), events);
    EXPECT_TRUE(parts.profile == whole.profile) << events;
    EXPECT_EQ(parts.kernels, whole.kernels);
  }
}

}  // namespace
}  // namespace rfinject::cli
