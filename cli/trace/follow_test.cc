#include "cli/trace/follow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cli/testing/trace_bytes.h"
#include "proto/rfinject/v1/trace.pb.h"

namespace rfinject::cli {
namespace {

namespace fs = std::filesystem;

bool Always() { return true; }

class RunFollowerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "rfinject-follow-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { fs::remove_all(root_); }

  // Appends what a writer appends; the file begins with its header.
  void Append(const std::string& name, const std::vector<uint8_t>& bytes) {
    std::ofstream file(root_ + "/" + name, std::ios::binary | std::ios::app);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  void Begin(const std::string& name, const std::string& job, uint32_t rank, int64_t start = 10) {
    v1::Chunk chunk;
    chunk.add_trace_id("id of " + job + std::to_string(rank));
    v1::Run* run = chunk.add_run();
    run->set_id(1);
    run->mutable_process()->set_job_id(job);
    run->mutable_process()->set_world_size(2);
    run->mutable_process()->set_rank(rank);
    run->mutable_process()->set_start_unix_ns(start);
    std::vector<uint8_t> bytes = testing::EmptyTrace();
    testing::AppendFrame(bytes, 0, chunk.SerializeAsString());
    Append(name, bytes);
  }
  static std::vector<uint8_t> Step(uint32_t frame) {
    v1::Chunk chunk;
    v1::Step* step = chunk.add_step();
    step->set_run(1);
    step->set_index(frame);
    step->set_duration_ns(1000);
    step->set_measured(true);
    std::vector<uint8_t> bytes;
    testing::AppendFrame(bytes, frame, chunk.SerializeAsString());
    return bytes;
  }
  static std::vector<uint8_t> End(uint32_t frame) {
    v1::Chunk chunk;
    chunk.mutable_end()->set_reason("exit");
    std::vector<uint8_t> bytes;
    testing::AppendFrame(bytes, frame, chunk.SerializeAsString());
    return bytes;
  }
  uint64_t Steps(const RunFollower& follower) {
    uint64_t steps = 0;
    for (const auto& [key, run] : follower.run().profile.runs) steps += run.steps.steps;
    return steps;
  }
  std::string root_;
};

TEST_F(RunFollowerTest, WhatIsAppendedIsNews) {
  Begin("a.rfx", "job", 0);
  RunFollower follower(root_);
  ASSERT_TRUE(*follower.Look(Always));
  EXPECT_EQ(Steps(follower), 0u);
  EXPECT_FALSE(*follower.Look(Always));

  // Half of a frame, as a reader may find it while it is being written: neither damage nor a step.
  const std::vector<uint8_t> step = Step(1);
  const auto middle = step.begin() + static_cast<std::ptrdiff_t>(step.size() / 2);
  Append("a.rfx", {step.begin(), middle});
  ASSERT_TRUE(*follower.Look(Always));
  EXPECT_EQ(Steps(follower), 0u);
  ASSERT_EQ(follower.run().traces.size(), 1u);
  EXPECT_TRUE(follower.run().traces[0].damage.ok());
  Append("a.rfx", {middle, step.end()});
  ASSERT_TRUE(*follower.Look(Always));
  EXPECT_EQ(Steps(follower), 1u);
  EXPECT_FALSE(follower.run().traces[0].ended);
  Append("a.rfx", End(2));
  ASSERT_TRUE(*follower.Look(Always));
  EXPECT_TRUE(follower.run().traces[0].ended);
  EXPECT_FALSE(*follower.Look(Always));
}

// A tool that copies a remote folder again and again writes beside the trace and then takes its place, with the time
// that the trace has there.
TEST_F(RunFollowerTest, ACopyThatTakesTheTracesPlaceIsNews) {
  Begin("a.rfx", "job", 0);
  const fs::path trace = root_ + "/a.rfx", copy = root_ + "/.a.rfx.Xy12Zz";
  const fs::file_time_type changed = fs::last_write_time(trace);
  RunFollower follower(root_);
  ASSERT_TRUE(*follower.Look(Always));
  fs::copy_file(trace, copy);
  Append(".a.rfx.Xy12Zz", Step(1));
  EXPECT_FALSE(*follower.Look(Always));
  fs::last_write_time(copy, changed - std::chrono::hours(1));
  fs::rename(copy, trace);
  ASSERT_TRUE(*follower.Look(Always));
  EXPECT_EQ(Steps(follower), 1u);
  EXPECT_EQ(follower.run().traces.size(), 1u);
}

TEST_F(RunFollowerTest, RanksThatComeLaterAndRunsThatBeginLater) {
  Begin("a.rfx", "job", 0);
  RunFollower follower(root_);
  ASSERT_TRUE(*follower.Look(Always));
  Begin("b.rfx", "job", 1);
  Append("b.rfx", Step(1));
  ASSERT_TRUE(*follower.Look(Always));
  ASSERT_EQ(follower.run().traces.size(), 2u);
  EXPECT_EQ(follower.run().traces[1].process.rank, 1u);
  EXPECT_EQ(Steps(follower), 1u);
  Begin("c.rfx", "later", 0, /*start=*/20);
  ASSERT_TRUE(*follower.Look(Always));
  EXPECT_EQ(follower.run().runs, 2u);
  EXPECT_EQ(follower.run().of.job, "later");
  EXPECT_EQ(Steps(follower), 0u);
}

TEST_F(RunFollowerTest, DamageIsSaidAndACopyCountsOnce) {
  Begin("a.rfx", "job", 0);
  Append("a.rfx", Step(1));
  Append("a.rfx", Step(2));
  fs::copy_file(root_ + "/a.rfx", root_ + "/copy.rfx");
  RunFollower follower(root_);
  ASSERT_TRUE(*follower.Look(Always));
  EXPECT_EQ(Steps(follower), 2u);
  Append("a.rfx", Step(7));  // out of sequence
  ASSERT_TRUE(*follower.Look(Always));
  EXPECT_EQ(Steps(follower), 2u);
  EXPECT_FALSE(follower.run().traces[0].damage.ok());
  EXPECT_TRUE(follower.run().traces[1].damage.ok());
}

TEST_F(RunFollowerTest, AnInterruptedLookChangesNothingAndIsMadeUpFor) {
  Begin("a.rfx", "job", 0);
  RunFollower follower(root_);
  ASSERT_TRUE(*follower.Look(Always));
  Append("a.rfx", Step(1));
  int asked = 0;
  EXPECT_FALSE(*follower.Look([&asked] { return ++asked < 2; }));
  EXPECT_EQ(Steps(follower), 0u);
  ASSERT_TRUE(*follower.Look(Always));
  EXPECT_EQ(Steps(follower), 1u);
}

TEST_F(RunFollowerTest, WhatIsNotThereIsNamed) {
  RunFollower follower(root_ + "/none");
  const absl::StatusOr<bool> news = follower.Look(Always);
  ASSERT_FALSE(news.ok());
  EXPECT_THAT(std::string(news.status().message()), ::testing::HasSubstr("/none: no such file or folder"));
  // A trace whose process has said nothing yet.
  Append("empty.rfx", {});
  RunFollower begun(root_);
  ASSERT_TRUE(*begun.Look(Always));
  EXPECT_TRUE(begun.run().profile.runs.empty());
  EXPECT_TRUE(begun.run().traces.at(0).damage.ok());
}

}  // namespace
}  // namespace rfinject::cli
