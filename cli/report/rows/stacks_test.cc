#include "cli/report/rows/stacks.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

namespace rfinject::cli {
namespace {

NativeFrameInfo Frame(const char* module, const char* function, uint64_t offset = 0x10) {
  return {.module = module, .build_id = "ab", .function = function, .offset = offset};
}

TEST(StacksTest, TheCallerIsTheProgramsOwn) {
  EXPECT_EQ(CallerOf({Frame("/usr/lib/libtorch_cpu.so.1", "at::_ops::add::call(at::Tensor const&)"),
                      Frame("/home/me/train", "(anonymous namespace)::Net::project(at::Tensor, std::pair<int, int>)"),
                      Frame("/home/me/train", "main")}),
            "(anonymous namespace)::Net::project");
  EXPECT_EQ(CallerOf({Frame("/opt/libtorch.so", "x()"), Frame("/home/me/my_ext.so", "", 0x1f3)}), "my_ext.so+0x1f3");
  EXPECT_EQ(CallerOf({Frame("/home/me/a", "std::vector<int> f<int, float>(int)")}), "f<int, float>");
  EXPECT_EQ(CallerOf({Frame("libtorch.so", "inner()"), Frame("libc.so.6", "outer()")}), "outer");
  EXPECT_EQ(CallerOf({}), "");
  EXPECT_TRUE(IsPlumbingOnly({Frame("libtorch.so", "inner()"), Frame("python3.11", "_start")}));
  EXPECT_FALSE(IsPlumbingOnly({Frame("libtorch.so", "inner()"), Frame("/home/me/my_ext.so", "f()")}));
}

TEST(StacksTest, WherePythonCalledTheProgramsLineIsTheCaller) {
  const auto stack = std::make_shared<const NativeStackInfo>(
      NativeStackInfo{Frame("libtorch.so", "at::add()"), Frame("python3.11", "_start")});
  cli::Run run;
  for (uint32_t line : {12, 13}) {
    LaunchKey key;
    key.kernel = "k" + std::to_string(line);
    LaunchStats stats;
    stats.launches = 1;
    stats.stack = stack;
    stats.line = std::make_shared<const SourceLineInfo>(SourceLineInfo{"/home/me/train.py", "main", line});
    stats.metrics["rf.time"] = {.n = 1, .sum = line, .min = line, .max = line};
    run.launches[key] = stats;
  }
  const std::vector<StackRow> rows = FoldStacks(run);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].caller, "train.py:13 and 1 more");
}

TEST(StacksTest, WhatIsInNoLayerIsFoldedByPhaseAndStack) {
  const auto stack = std::make_shared<NativeStackInfo>(NativeStackInfo{Frame("a.out", "main")});
  cli::Run run;
  const auto add = [&](const char* kernel, const char* model, Phase phase, auto taken, uint64_t ns) {
    LaunchKey key;
    key.kernel = kernel;
    key.layer.model = model;
    key.phase = phase;
    LaunchStats stats;
    stats.launches = 2;
    stats.stack = std::move(taken);
    stats.metrics["rf.time"] = {.n = 2, .sum = 2 * ns, .min = ns, .max = ns};
    run.launches[key] = stats;
  };
  const std::shared_ptr<const NativeStackInfo> none;
  add("k1", "", Phase::kOther, std::shared_ptr<const NativeStackInfo>(stack), 10);
  add("k2", "", Phase::kOther, std::make_shared<const NativeStackInfo>(*stack), 30);  // equal, but another object
  add("k3", "", Phase::kOptimizer, none, 500);
  add("k4", "Net", Phase::kForward, none, 1000);
  const std::vector<StackRow> rows = FoldStacks(run);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].phase, Phase::kOptimizer);
  EXPECT_EQ(rows[0].caller, "");
  EXPECT_EQ(rows[1].caller, "main");
  EXPECT_EQ(rows[1].launches, 4u);
  EXPECT_DOUBLE_EQ(rows[1].time_ns, 80);
  EXPECT_EQ(rows[1].kernels, (std::vector<std::string>{"k1", "k2"}));
}

TEST(StacksTest, AFoldedStackIsOutermostFirstAndItsSeparatorIsItsOwn) {
  StackRow row;
  EXPECT_EQ(FoldedStack(row), "");
  row.stack = std::make_shared<const NativeStackInfo>(NativeStackInfo{
      Frame("/usr/lib/libfoo.so", "", 0x1f3), Frame("a.out", "f(char, 'a;b')"), Frame("a.out", "main")});
  EXPECT_EQ(FoldedStack(row), "main;f(char, 'a,b');libfoo.so+0x1f3");
}

TEST(StacksTest, MergingKeepsTheSmallerStackInEitherOrder) {
  LaunchStats a, b, c;
  a.MergeStack(std::make_shared<const NativeStackInfo>(NativeStackInfo{Frame("a", "f")}));
  b.MergeStack(std::make_shared<const NativeStackInfo>(NativeStackInfo{Frame("b", "g")}));
  LaunchStats ab = a, ba = b;
  ab.Merge(b);
  ba.Merge(a);
  ab.Merge(c);
  EXPECT_EQ(ab, ba);
  EXPECT_EQ(*ab.stack, *a.stack);
  EXPECT_FALSE(a == b);
}

}  // namespace
}  // namespace rfinject::cli
