#include "collector/native_stack.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "collector/testing/fake_recorder.h"

namespace rfinject {
namespace {

int g_taken = 0;
size_t g_frames = 0;
size_t Take(std::span<NativeFrame> frames) noexcept {
  ++g_taken;
  for (size_t i = 0; i < g_frames; ++i) frames[i] = {1, 100 + i};
  return g_frames;
}

class StackRecorder : public rfinject::testing::FakeRecorder {
 public:
  void NoteStack(const LaunchIdentity& identity, std::span<const NativeFrame> frames) noexcept override {
    noted.push_back({identity, {frames.begin(), frames.end()}});
  }
  std::vector<std::pair<LaunchIdentity, std::vector<NativeFrame>>> noted;
};

class NativeStackTest : public ::testing::Test {
 protected:
  void SetUp() override {
    g_taken = 0;
    g_frames = 2;
    g_native_stack.store(Take);
    // Another key in each test: what was taken stays taken for the life of the process.
    static uint32_t next = 1;
    key_.kernel = next++;
  }
  void TearDown() override { g_native_stack.store(nullptr); }

  StackRecorder recorder_;
  LaunchIdentity key_;
};

TEST_F(NativeStackTest, OnceAKey) {
  for (int i = 0; i < 100; ++i) NoteOriginOnce(key_, recorder_);
  EXPECT_EQ(g_taken, 1);
  ASSERT_EQ(recorder_.noted.size(), 1u);
  EXPECT_EQ(recorder_.noted[0].first, key_);
  EXPECT_EQ(recorder_.noted[0].second, (std::vector<NativeFrame>{{1, 100}, {1, 101}}));
  LaunchIdentity other = key_;
  other.grid[0] = 7;
  NoteOriginOnce(other, recorder_);
  EXPECT_EQ(g_taken, 2);
}

TEST_F(NativeStackTest, NotInALayer) {
  key_.site.layer = 3;
  NoteOriginOnce(key_, recorder_);
  EXPECT_EQ(g_taken, 0);
}

TEST_F(NativeStackTest, WhatCouldNotBeTakenIsTakenLater) {
  g_frames = 0;
  NoteOriginOnce(key_, recorder_);
  EXPECT_TRUE(recorder_.noted.empty());
  g_frames = 1;
  NoteOriginOnce(key_, recorder_);
  NoteOriginOnce(key_, recorder_);
  EXPECT_EQ(recorder_.noted.size(), 1u);
}

TEST_F(NativeStackTest, WithoutAnUnwinderNothingHappens) {
  g_native_stack.store(nullptr);
  NoteOriginOnce(key_, recorder_);
  EXPECT_TRUE(recorder_.noted.empty());
}

TEST_F(NativeStackTest, KeysWithoutEndEndUpWithoutStacks) {
  for (uint32_t i = 0; i < 100'000; ++i) {
    key_.signature = i + 1;
    NoteOriginOnce(key_, recorder_);
  }
  EXPECT_LE(recorder_.noted.size(), 16384u);
  EXPECT_GT(recorder_.noted.size(), 8192u);
}

}  // namespace
}  // namespace rfinject
