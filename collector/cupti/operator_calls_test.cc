#include "collector/cupti/operator_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "collector/operator_slices.h"
#include "collector/testing/fake_recorder.h"

namespace rfinject::cupti {
namespace {

class WorkRecorder : public rfinject::testing::FakeRecorder {
 public:
  void NoteOperatorWork(OperatorWork work) noexcept override { works.push_back(std::move(work)); }
  std::vector<OperatorWork> works;
};

// aten::mm of two square matrices on the GPU.
class Product {
 public:
  explicit Product(int64_t size, uint64_t first_launch) {
    for (TensorView& tensor : tensors_) {
      tensor.dtype = DType::kFloat;
      tensor.rank = 2;
      tensor.shape = {size, size};
      tensor.numel = tensor.distinct = static_cast<uint64_t>(size * size);
      tensor.element_size = 4;
    }
    for (uint16_t i = 0; i < 3; ++i) arguments_[i] = {.kind = Argument::Kind::kTensor, .first = i, .count = 1};
    call_.name = "aten::mm";
    call_.inputs = std::span(arguments_).first(2);
    call_.outputs = std::span(arguments_).last(1);
    call_.tensors = tensors_;
    call_.first_launch = first_launch;
  }
  OpCall& call() { return call_; }

 private:
  std::array<TensorView, 3> tensors_{};
  std::array<Argument, 3> arguments_{};
  OpCall call_;
};

class OperatorCallsTest : public ::testing::Test {
 protected:
  OperatorCallsTest() {
    calls_.SetDevice(8, 0);
    calls_.OnStepEnd(0);
  }
  // A launch of a kernel, in CUPTI's callback.
  uint32_t Launch(const char* name) {
    LaunchCall call;
    call.function = name;
    const LaunchIdentity* identity = nullptr;
    const uint32_t key = keys_.Find(call, name, recorder_, &identity);
    calls_.NoteLaunch(key, *identity, 0);
    return key;
  }
  uint64_t launches() const { return *OperatorCalls::LaunchesOfThread(); }

  WorkRecorder recorder_;
  LaunchKeys keys_;
  OperatorCalls calls_{keys_, recorder_, "auto", true};  // in whole steps
};

constexpr uint64_t kFlop = 2 * 64 * 64 * 64, kBytes = 3 * 4 * 64 * 64;

TEST_F(OperatorCallsTest, AnOperatorHasTheLaunchesInsideIt) {
  ASSERT_TRUE(calls_.observing());
  Launch("before");
  Product product(64, launches());
  Launch("split");
  Launch("multiply");
  Launch("split");
  EXPECT_TRUE(calls_.OnOp(product.call(), false));
  Launch("behind");
  calls_.OnStepEnd(1);
  ASSERT_EQ(recorder_.works.size(), 1u);
  const OperatorWork& work = recorder_.works[0];
  EXPECT_EQ(work.work.op, recorder_.Intern("aten::mm"));
  EXPECT_EQ(work.work.signature, recorder_.Intern("f32[64,64] f32[64,64]"));
  EXPECT_EQ(work.work.model_flop, kFlop);
  EXPECT_EQ(work.work.compulsory_bytes, kBytes);
  EXPECT_TRUE(work.work.multiplies);
  EXPECT_EQ(work.work.calls, 1u);
  ASSERT_EQ(work.launched.size(), 2u);
  EXPECT_EQ(work.launched[0].kernel, recorder_.Intern("split"));
  EXPECT_EQ(work.work.launches, (std::vector<uint64_t>{2, 1}));
}

// What an operator inside another one has launched is that one's alone.
TEST_F(OperatorCallsTest, TheInnermostOperatorHasALaunch) {
  Product outer(32, launches());
  Launch("own");
  Product inner(64, launches());
  Launch("inner");
  EXPECT_TRUE(calls_.OnOp(inner.call(), false));
  EXPECT_TRUE(calls_.OnOp(outer.call(), false));
  Product without(16, launches());
  EXPECT_FALSE(calls_.OnOp(without.call(), false));  // it launches nothing
  calls_.OnStepEnd(1);
  ASSERT_EQ(recorder_.works.size(), 2u);
  for (const OperatorWork& work : recorder_.works) {
    ASSERT_EQ(work.launched.size(), 1u);
    const bool is_inner = work.work.model_flop == kFlop;
    EXPECT_EQ(work.launched[0].kernel, recorder_.Intern(is_inner ? "inner" : "own"));
  }
}

TEST_F(OperatorCallsTest, WhatIsComputedAgainHasNoModelFlop) {
  Product product(64, launches());
  Launch("multiply");
  EXPECT_TRUE(calls_.OnOp(product.call(), true));
  calls_.OnStepEnd(1);
  ASSERT_EQ(recorder_.works.size(), 1u);
  EXPECT_EQ(recorder_.works[0].work.model_flop, 0u);
  EXPECT_EQ(recorder_.works[0].work.compulsory_bytes, kBytes);
}

TEST_F(OperatorCallsTest, TheHostsOperatorsAreNotTheGpus) {
  Product product(64, launches());
  product.call().on_host = true;
  Launch("copy");
  EXPECT_FALSE(calls_.OnOp(product.call(), false));
}

// Two products of different sizes that have the same kernel and grid, in the same order in each step.
TEST_F(OperatorCallsTest, AKeyWhoseLaunchesDoDifferentWorkIsSplit) {
  const auto run_step = [this](uint64_t step, std::vector<int64_t> sizes) {
    std::vector<uint32_t> keys;
    for (const int64_t size : sizes) {
      Product product(size, launches());
      keys.push_back(Launch("multiply"));
      calls_.OnOp(product.call(), false);
    }
    calls_.OnStepEnd(step);
    return keys;
  };
  const std::vector<uint32_t> whole = run_step(1, {64, 32, 64});
  EXPECT_EQ(whole[0], whole[1]);
  run_step(2, {64, 32, 64});
  const std::vector<uint32_t> pieces = run_step(3, {64, 32, 64});
  EXPECT_NE(pieces[0], whole[0]);
  EXPECT_NE(pieces[0], pieces[1]);
  EXPECT_EQ(pieces[0], pieces[2]);
  EXPECT_EQ(keys_.Identity(pieces[1]).signature, recorder_.Intern("f32[32,32] f32[32,32]"));
  EXPECT_EQ(keys_.Identity(pieces[1]).site.op, recorder_.Intern("aten::mm"));
  // The trace knows what the pieces compute, although they were in no observed step.
  const auto of_small = [&](const OperatorWork& work) {
    return work.launched[0].signature == keys_.Identity(pieces[1]).signature && work.work.model_flop == kFlop / 8;
  };
  EXPECT_TRUE(std::ranges::any_of(recorder_.works, of_small));

  // A step with another number of launches says that the order means nothing.
  run_step(4, {64, 32});
  EXPECT_EQ(run_step(5, {64, 32, 64}), whole);
}

// Where all keys are known no step is observed until a new key comes; where some stay unknown, seldom.
TEST_F(OperatorCallsTest, StepsAreObservedWhileKeysAreNew) {
  const auto run_step = [this](uint64_t step, const char* kernel, bool in_operator) {
    Product product(64, launches());
    Launch(kernel);
    if (in_operator) calls_.OnOp(product.call(), false);
    calls_.OnStepEnd(step);
  };
  run_step(1, "known", true);
  run_step(2, "known", true);
  for (uint64_t step = 3; step < 100; ++step) {
    EXPECT_FALSE(calls_.observing()) << step;
    run_step(step, "known", true);
  }
  run_step(100, "new", true);
  EXPECT_TRUE(calls_.observing());
  run_step(101, "new", true);
  EXPECT_FALSE(calls_.observing());

  size_t observed = 0;
  for (uint64_t step = 102; step < 10'102; ++step) {
    run_step(step, "of no operator", false);
    observed += calls_.observing() ? 1 : 0;
  }
  EXPECT_GT(observed, 3u);
  EXPECT_LT(observed, 25u);
}

// A program whose shapes never repeat is observed in one step of 64.
TEST_F(OperatorCallsTest, NewKeysInEveryStepDoNotMakeEveryStepObserved) {
  std::vector<std::string> names;
  for (int i = 0; i < 6400; ++i) names.push_back("kernel " + std::to_string(i));
  size_t observed = 0;
  for (uint64_t step = 1; step <= names.size(); ++step) {
    Launch(names[step - 1].c_str());
    calls_.OnStepEnd(step);
    observed += calls_.observing() ? 1 : 0;
  }
  EXPECT_LE(observed, 6400u / 64 + 4);
  EXPECT_GE(observed, 6400u / 64 - 4);
}

// --- Slices.

bool g_heard = false;  // what the injector would do

class OperatorSlicesTest : public OperatorCallsTest {
 protected:
  OperatorSlicesTest() {
    g_heard = false;
    g_launch_of_slices.store(+[](bool hear) noexcept { g_heard |= hear; });
    sliced_.SetDevice(8, 0);
    sliced_.OnStepEnd(0);
  }
  ~OperatorSlicesTest() override { g_launch_of_slices.store(nullptr); }

  // A step of products of these sizes. Returns how many of them were heard.
  size_t Run(uint64_t step, const std::vector<int64_t>& sizes) {
    g_heard = sliced_.HearsStepFromItsBeginning();
    size_t heard = 0;
    for (const int64_t size : sizes) {
      g_heard = g_heard && sliced_.GoesOn();
      const bool hears = g_heard;
      Product product(size, launches());
      LaunchCall call;
      call.function = "multiply";
      call.grid = {static_cast<uint32_t>(size), 1, 1};
      const LaunchIdentity* identity = nullptr;
      const uint32_t key = keys_.Find(call, "multiply", recorder_, &identity);
      sliced_.NoteLaunch(key, *identity, 0);
      if (!hears) continue;
      ++heard;
      EXPECT_TRUE(sliced_.OnOp(product.call(), false));
    }
    sliced_.OnStepEnd(step);
    return heard;
  }
  static std::vector<int64_t> Sizes(int64_t count) {
    std::vector<int64_t> sizes(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) sizes[static_cast<size_t>(i)] = i + 1;
    return sizes;
  }

  OperatorCalls sliced_{keys_, recorder_};
};

TEST_F(OperatorSlicesTest, ASweepHearsEachOperatorOnceAndAFewInAStep) {
  const std::vector<int64_t> sizes = Sizes(200);
  EXPECT_EQ(Run(1, sizes), 0u);  // this one tells how many there are
  uint64_t step = 2;
  for (size_t heard = 0; heard < sizes.size() && step < 100; ++step) {
    const size_t now = Run(step, sizes);
    EXPECT_GT(now, 0u) << step;
    EXPECT_LE(now, 8u) << step;
    heard += now;
    EXPECT_EQ(recorder_.works.size(), heard);  // it is told at once
  }
  EXPECT_LE(step, 28u);
  ASSERT_EQ(recorder_.works.size(), sizes.size());
  for (const OperatorWork& work : recorder_.works) EXPECT_EQ(work.work.calls, 1u);
  // The second sweep goes on in the same way; then all is known.
  while (sliced_.observing() && step < 100) EXPECT_LE(Run(step++, sizes), 8u);
  EXPECT_LE(step, 55u);
  EXPECT_EQ(recorder_.works.size(), 2 * sizes.size());
}

// The next sweep begins at the beginning again.
TEST_F(OperatorSlicesTest, AStepThatIsShorterEndsTheSweep) {
  for (uint64_t step = 1; step < 6; ++step) Run(step, Sizes(200));
  EXPECT_EQ(recorder_.works.size(), 32u);
  EXPECT_FALSE(sliced_.HearsStepFromItsBeginning());
  EXPECT_EQ(Run(6, Sizes(10)), 0u);
  EXPECT_TRUE(sliced_.HearsStepFromItsBeginning());
}

// Two sizes in turn with one grid: the slices of a sweep together tell which launch does what.
TEST_F(OperatorSlicesTest, AKeyIsSplitByWhatTwoSweepsHaveSeen) {
  uint64_t step = 1;
  const auto run = [&](size_t count) {
    std::vector<uint32_t> keys;
    g_heard = sliced_.HearsStepFromItsBeginning();
    for (size_t i = 0; i < count; ++i) {
      g_heard = g_heard && sliced_.GoesOn();
      const bool hears = g_heard;
      Product product(i % 2 == 0 ? 64 : 32, launches());
      LaunchCall call;
      call.function = "multiply";
      const LaunchIdentity* identity = nullptr;
      keys.push_back(keys_.Find(call, "multiply", recorder_, &identity));
      sliced_.NoteLaunch(keys.back(), *identity, 0);
      if (hears) sliced_.OnOp(product.call(), false);
    }
    sliced_.OnStepEnd(step++);
    return keys;
  };
  std::vector<uint32_t> keys = run(50);
  EXPECT_EQ(keys[0], keys[1]);
  while (sliced_.observing() && step < 100) keys = run(50);
  keys = run(50);
  EXPECT_NE(keys[0], keys[1]);
  EXPECT_EQ(keys[0], keys[2]);
  EXPECT_EQ(keys[1], keys[49]);
}

}  // namespace
}  // namespace rfinject::cupti
