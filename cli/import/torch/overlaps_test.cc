#include "cli/import/torch/overlaps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/import/torch/testing/made_recording.h"
#include "cli/import/torch/torch_profiler.h"
#include "cli/testing/sanitized.h"

namespace rfinject::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

struct Damaged {
  std::map<std::string, uint64_t> ns;  // by kernel
  std::map<std::string, std::string> said;
  bool read = false;
};

Damaged ImportDamaged(const std::string& json) {
  Damaged found;
  absl::StatusOr<Imported> imported = ImportTorchProfilerBytes(json, "file", {});
  if (!imported.ok()) return found;
  found.read = true;
  const cli::Run& run = imported->profile.runs.begin()->second;
  for (const auto& [key, stats] : run.launches) {
    found.ns[key.kernel] += static_cast<uint64_t>(stats.metrics.at(std::string(kMetricTime)).sum);
  }
  for (const trace::Diagnostic& one : run.kept.diagnostic) found.said[one.id] = one.text;
  return found;
}

MadeRecording Empty() { return {"NVIDIA A100-SXM4-40GB", 8, 0}; }

TEST(OverlapsTest, AKernelThatOthersRunInEndsWhereTheyBegin) {
  MadeRecording made = Empty();
  made.Ran("B", 100, 50, 2);
  made.Ran("A", 0, 3'000'000, 1);
  made.Ran("C", 200, 50, 3);
  made.Ran("other stream", 0, 1000, 4, 0, /*stream=*/8);
  const Damaged found = ImportDamaged(made.Json());
  EXPECT_THAT(found.ns,
              ElementsAre(Pair("A", 100'000), Pair("B", 50'000), Pair("C", 50'000), Pair("other stream", 1'000'000)));
  EXPECT_THAT(found.said.at("kernels-overlap"), HasSubstr("3.00 s of that is not counted, most of it of A"));
}

// The next kernel may begin before one has ended, and what one other lies in may be as wrong as it.
TEST(OverlapsTest, OtherOverlapsStay) {
  MadeRecording made = Empty();
  made.Ran("A", 0, 100, 1);
  made.Ran("B", 90, 100, 2);
  made.Ran("C", 180, 100, 3);
  made.Ran("D", 200, 10, 4);
  made.Ran("E", 400, 10, 5);
  const Damaged found = ImportDamaged(made.Json());
  uint64_t sum = 0;
  for (const auto& [kernel, ns] : found.ns) sum += ns;
  EXPECT_EQ(sum, 320'000u);
  EXPECT_FALSE(found.said.contains("kernels-overlap"));
}

// What is launched without attributes begins when what is before it in its stream has ended.
TEST(OverlapsTest, ALaunchThatWaitsForItsStreamEndsWhatIsBeforeIt) {
  MadeRecording made = Empty();
  made.Ran("A", 100, 300, 1);
  made.Ran("B", 150, 100, 2);
  made.Ran("C", 200, 300, 3);
  made.Ran("D", 600, 50, 4);
  made.Ran("other stream", 120, 500, 5, 0, /*stream=*/8);
  for (int i = 1; i <= 5; ++i) made.Launch(i, i);
  // Whole microseconds: it began where the one before ended.
  made.Ran("E", 649, 50, 6);
  made.Launch(6, 6);
  const Damaged found = ImportDamaged(made.Json());
  EXPECT_THAT(found.ns, ElementsAre(Pair("A", 50'000), Pair("B", 50'000), Pair("C", 300'000), Pair("D", 50'000),
                                    Pair("E", 50'000), Pair("other stream", 500'000)));
  EXPECT_THAT(found.said.at("kernels-overlap"), HasSubstr("2 kernels"));
}

TEST(OverlapsTest, ALaunchWithAttributesMayBeginEarlier) {
  MadeRecording made = Empty();
  made.Ran("A", 100, 300, 1);
  made.Ran("B", 350, 100, 2);
  made.Launch(1, 1);
  made.Launch(2, 2, "cudaLaunchKernelExC");
  const Damaged found = ImportDamaged(made.Json());
  EXPECT_THAT(found.ns, ElementsAre(Pair("A", 300'000), Pair("B", 100'000)));
  EXPECT_FALSE(found.said.contains("kernels-overlap"));
}

// A host whose clock is set back by 300 us between two launches, and a GPU whose kernel is said to begin before its
// launch.
TEST(OverlapsTest, ClockJumpsAreSaid) {
  MadeRecording made = Empty();
  for (const auto& [at, number] : {std::pair(1000, 1), {1500, 2}, {1200, 3}, {1300, 4}}) {
    made.Launch(at, number);
    made.Ran("k", at + 10, 5, number);
  }
  const Damaged back = ImportDamaged(made.Json());
  EXPECT_EQ(back.said.at("clock-jumps"),
            "the host's clock went back 1 time, by up to 300 us: times across such a place cannot be trusted");
  EXPECT_TRUE(DoubtsSums("clock-jumps"));
  MadeRecording early = Empty();
  early.Launch(1000, 1);
  early.Ran("k", 940, 5, 1);
  early.Launch(1100, 2);
  early.Ran("k", 1200, 5, 2);
  EXPECT_EQ(
      ImportDamaged(early.Json()).said.at("clocks-apart"),
      "1 kernel or copy begins before the call that launches it, by up to 60.0 us: the clocks of host and GPU are apart, "
      "so gaps and waits are not what they seem");
  MadeRecording whole = Empty();
  whole.Kernel("k", 10, 5);
  whole.Kernel("k", 20, 5);
  EXPECT_FALSE(ImportDamaged(whole.Json()).said.contains("clock-jumps"));
  EXPECT_FALSE(ImportDamaged(whole.Json()).said.contains("clocks-apart"));
}

TEST(OverlapsTest, LaunchesWithoutKernelsAreSaid) {
  MadeRecording made = Empty();
  made.Launch(10, 1);
  made.Launch(20, 2);
  made.Launch(30, 3);
  made.Ran("k", 100, 10, 3);
  EXPECT_THAT(ImportDamaged(made.Json()).said.at("kernels-not-recorded"),
              HasSubstr("of 3 launches 2 have no kernel"));
  MadeRecording whole = Empty();
  whole.Launch(30, 3);
  whole.Ran("k", 100, 10, 3);
  EXPECT_FALSE(ImportDamaged(whole.Json()).said.contains("kernels-not-recorded"));
}

// Whatever byte of whatever event is destroyed: the other kernels are there, with their times.
TEST(DamageTest, ADestroyedByteLosesAtMostItsEvent) {
  MadeRecording made = Empty();
  made.Operator("aten::mm", "[[64,32],[32,16]]", R"(["float","float"])", 100, 20);
  for (int i = 0; i < 4; ++i) made.Kernel(absl::StrCat("k", i), 105 + i, 1 << i);
  made.Raw(R"({"name":"process_name","ph":"M","ts":1,"pid":1,"tid":0,"args":{"name":"python"}})");
  made.Kernel("last", 130, 16);
  const std::string json = made.Json();
  const Damaged whole = ImportDamaged(json);
  ASSERT_EQ(whole.ns.size(), 5u);
  size_t at = json.find('\n') + 1, destroyed = 0;
  for (const std::string& event : made.events()) {
    for (size_t i = 0; i < event.size(); i += OneIn(5), ++destroyed) {
      for (const char c : {'"', '{', '}', '[', ']', ',', ':', '\\', 'x', '7', ' ', '\x01'}) {
        std::string damaged = json;
        damaged[at + i] = c;
        const Damaged found = ImportDamaged(damaged);
        ASSERT_TRUE(found.read) << event << ' ' << i << c;
        size_t lost = 0;
        for (const auto& [kernel, ns] : whole.ns) {
          const auto there = found.ns.find(kernel);
          const bool own = event.find(absl::StrCat("\"", kernel, "\"")) != std::string::npos;
          const bool same = there != found.ns.end() && there->second == ns;
          lost += same ? 0 : 1;
          ASSERT_TRUE(same || own) << kernel << ' ' << event << ' ' << i << c;
        }
        ASSERT_LE(lost, 1u);
      }
    }
    at += event.size() + 2;
  }
  EXPECT_GT(destroyed, 1500 / OneIn(5));
}

TEST(DamageTest, UnreadableEventsAreCounted) {
  MadeRecording made = Empty();
  made.Kernel("k_one", 105, 10);
  made.Raw(R"({"ph":"X","cat":"python_function","name":"<eval_with_key>"x"","pid":1,"tid":10,"ts":150,"dur":5})");
  made.Kernel("k_two", 165, 20);
  made.Raw(R"({"ph" "X"})");
  const Damaged found = ImportDamaged(made.Json());
  EXPECT_THAT(found.ns, ElementsAre(Pair("k_one", 10'000), Pair("k_two", 20'000)));
  EXPECT_THAT(found.said.at("events-unreadable"), HasSubstr("2 events are no JSON"));
  // What stands behind the events is read.
  EXPECT_FALSE(found.said.contains("recording-cut"));
}

}  // namespace
}  // namespace rfinject::cli
