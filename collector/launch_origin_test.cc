#include "collector/launch_origin.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "collector/native_stack.h"
#include "collector/source_line.h"
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

class OriginRecorder : public rfinject::testing::FakeRecorder {
 public:
  void NoteStack(const LaunchIdentity& identity, std::span<const NativeFrame> frames) noexcept override {
    noted.push_back({identity, {frames.begin(), frames.end()}});
  }
  void NoteSourceLine(const LaunchIdentity& identity, uint32_t line) noexcept override {
    lines.push_back({identity, line});
  }
  std::vector<std::pair<LaunchIdentity, std::vector<NativeFrame>>> noted;
  std::vector<std::pair<LaunchIdentity, uint32_t>> lines;
};

int g_asked = 0;
bool g_can_tell = true;
uint32_t g_line = 7;
bool Line(const Site&, Recorder&, uint32_t* line) noexcept {
  ++g_asked;
  *line = g_line;
  return g_can_tell;
}

class LaunchOriginTest : public ::testing::Test {
 protected:
  void SetUp() override {
    g_taken = 0;
    g_frames = 2;
    g_native_stack.store(Take);
    g_asked = 0;
    g_can_tell = true;
    g_line = 7;
    // Each test uses another key, because what was found out of a key stays for the life of the process.
    static uint32_t next = 1;
    key_.kernel = next++;
  }
  void TearDown() override {
    g_native_stack.store(nullptr);
    g_source_line.store(nullptr);
  }

  OriginRecorder recorder_;
  LaunchIdentity key_;
};

TEST_F(LaunchOriginTest, OnceAKey) {
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

TEST_F(LaunchOriginTest, NotInALayer) {
  key_.site.layer = 3;
  NoteOriginOnce(key_, recorder_);
  EXPECT_EQ(g_taken, 0);
}

TEST_F(LaunchOriginTest, WhatCouldNotBeTakenIsTakenLater) {
  g_frames = 0;
  NoteOriginOnce(key_, recorder_);
  EXPECT_TRUE(recorder_.noted.empty());
  g_frames = 1;
  NoteOriginOnce(key_, recorder_);
  NoteOriginOnce(key_, recorder_);
  EXPECT_EQ(recorder_.noted.size(), 1u);
}

TEST_F(LaunchOriginTest, WithoutAnUnwinderNothingHappens) {
  g_native_stack.store(nullptr);
  NoteOriginOnce(key_, recorder_);
  EXPECT_TRUE(recorder_.noted.empty());
}

TEST_F(LaunchOriginTest, EveryKeyHasALineAndThoseInNoLayerAStack) {
  g_source_line.store(Line);
  LaunchIdentity in_layer = key_;
  in_layer.site.layer = 3;
  for (int i = 0; i < 100; ++i) {
    NoteOriginOnce(key_, recorder_);
    NoteOriginOnce(in_layer, recorder_);
  }
  EXPECT_EQ(g_asked, 2);
  EXPECT_EQ(g_taken, 1);
  ASSERT_EQ(recorder_.lines.size(), 2u);
  EXPECT_EQ(recorder_.lines[0], std::pair(key_, 7u));
  EXPECT_EQ(recorder_.lines[1], std::pair(in_layer, 7u));
}

TEST_F(LaunchOriginTest, WhatIsMissingIsAskedAgainAndTheRestIsNot) {
  g_source_line.store(Line);
  g_can_tell = false;
  NoteOriginOnce(key_, recorder_);
  NoteOriginOnce(key_, recorder_);
  EXPECT_EQ(g_asked, 2);
  EXPECT_EQ(g_taken, 1);
  EXPECT_TRUE(recorder_.lines.empty());
  g_can_tell = true;
  g_frames = 0;
  NoteOriginOnce(key_, recorder_);
  NoteOriginOnce(key_, recorder_);
  EXPECT_EQ(g_asked, 3);
  EXPECT_EQ(recorder_.lines.size(), 1u);
}

TEST_F(LaunchOriginTest, ThatThereIsNoLineIsAnAnswer) {
  g_source_line.store(Line);
  g_line = 0;
  NoteOriginOnce(key_, recorder_);
  NoteOriginOnce(key_, recorder_);
  EXPECT_EQ(g_asked, 1);
  EXPECT_TRUE(recorder_.lines.empty());
}

TEST_F(LaunchOriginTest, KeysWithoutEndEndUpWithoutAnOrigin) {
  for (uint32_t i = 0; i < 400'000; ++i) {
    key_.signature = i + 1;
    NoteOriginOnce(key_, recorder_);
  }
  EXPECT_LT(recorder_.noted.size(), size_t{200'000});
  EXPECT_GT(recorder_.noted.size(), size_t{100'000});
}

}  // namespace
}  // namespace rfinject
