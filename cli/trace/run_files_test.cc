#include "cli/trace/run_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "cli/testing/trace_bytes.h"
#include "proto/rfinject/v1/trace.pb.h"

namespace rfinject::cli {
namespace {

namespace fs = std::filesystem;

class RunFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "rfinject-run-files-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { fs::remove_all(root_); }
  void Save(const std::string& name, const std::vector<uint8_t>& bytes) {
    std::ofstream file(root_ + "/" + name, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    files_.push_back(root_ + "/" + name);
  }
  // A trace that a process has only begun.
  void Process(const std::string& name, const std::string& job, int64_t start,
               const std::string& script = "train.py") {
    v1::Chunk chunk;
    v1::Run* run = chunk.add_run();
    run->set_id(1);
    run->mutable_process()->set_job_id(job);
    run->mutable_process()->set_start_unix_ns(start);
    run->mutable_process()->add_argv("python");
    run->mutable_process()->add_argv(script);
    std::vector<uint8_t> bytes = testing::EmptyTrace();
    testing::AppendFrame(bytes, 0, chunk.SerializeAsString());
    Save(name, bytes);
  }
  std::vector<std::string> Names(const RunFiles& run) {
    std::vector<std::string> names;
    for (const std::string& file : run.files) names.push_back(fs::path(file).filename());
    return names;
  }
  std::string root_;
  std::vector<std::string> files_, unknown_;
  TraceBeginnings beginnings_;
};

TEST_F(RunFilesTest, OnlyWhatIsOfOneJobIsOneRun) {
  Process("a.rfx", "job2", 30);
  Process("b.rfx", "job1", 20, "other.py");
  Process("c.rfx", "job2", 10, "first.py");
  Process("d.rfx", "", 40);
  Process("e.rfx", "", 40);
  const std::vector<RunFiles> runs = GroupByRun(files_, &beginnings_, &unknown_);
  ASSERT_EQ(runs.size(), 4u);
  EXPECT_EQ(Names(runs[0]), (std::vector<std::string>{"a.rfx", "c.rfx"}));
  EXPECT_EQ(runs[0].start_unix_ns, 10);
  EXPECT_EQ(runs[0].argv.back(), "first.py");
  EXPECT_EQ(Names(runs[1]), std::vector<std::string>{"b.rfx"});
  EXPECT_EQ(Names(runs[2]), std::vector<std::string>{"d.rfx"});
  EXPECT_EQ(Names(runs[3]), std::vector<std::string>{"e.rfx"});
  EXPECT_TRUE(unknown_.empty());
}

TEST_F(RunFilesTest, AMergedTraceIsARunOfItsOwn) {
  Process("a.rfx", "job1", 20);
  Profile merged;
  cli::Run& run = merged.runs[{}];
  run.processes = 2;
  run.process_list = {{.start_unix_ns = 5, .job_id = "job1"}, {.start_unix_ns = 6, .job_id = "job1"}};
  Save("m.rfx", testing::WrittenTrace(merged));
  const std::vector<RunFiles> runs = GroupByRun(files_, &beginnings_, &unknown_);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(Names(runs[0]), std::vector<std::string>{"m.rfx"});
  EXPECT_EQ(runs[0].start_unix_ns, 5);
}

TEST_F(RunFilesTest, WhatSaysNothingIsNamed) {
  Save("empty.rfx", {});
  Save("begun.rfx", testing::EmptyTrace());
  Save("garbage.rfx", std::vector<uint8_t>(100, 'x'));
  Process("good.rfx", "", 1);
  EXPECT_EQ(GroupByRun(files_, &beginnings_, &unknown_).size(), 1u);
  EXPECT_EQ(unknown_.size(), 3u);
}

TEST_F(RunFilesTest, TheLatestRunIsOneOfTheFolder) {
  EXPECT_EQ(LatestRun(root_), "");
  fs::create_directory(root_ + "/one");
  fs::create_directory_symlink("one", root_ + "/latest");
  EXPECT_EQ(LatestRun(root_), root_ + "/one/");
  for (const char* elsewhere : {"/tmp", "../elsewhere", "one/..", "..", ".", "nowhere", "latest"}) {
    fs::remove(root_ + "/latest");
    fs::create_directory_symlink(elsewhere, root_ + "/latest");
    EXPECT_EQ(LatestRun(root_), "") << elsewhere;
  }
}

TEST_F(RunFilesTest, ARunThatLeftNoTraceIsKnownWhereAnotherOneDid) {
  NoteStarted(root_, "zero");
  EXPECT_TRUE(fs::is_empty(root_)) << "there is no run that could be taken for it";
  fs::create_directory(root_ + "/one");
  fs::create_directory_symlink("one", root_ + "/latest");
  NoteStarted(root_, "two");
  EXPECT_EQ(StartedWithoutTrace(root_), "two");
  NoteStarted(root_, "three");
  EXPECT_EQ(StartedWithoutTrace(root_), "three");
  fs::create_directory(root_ + "/three");
  EXPECT_EQ(StartedWithoutTrace(root_), "");
  NoteStarted(root_, "../four");
  EXPECT_EQ(StartedWithoutTrace(root_), "");
  // Nothing else is left beside the links.
  EXPECT_EQ(std::distance(fs::directory_iterator(root_), fs::directory_iterator()), 4);
}

// The owner of a file may set its time to anything.
TEST_F(RunFilesTest, ATimeBeyondNanosecondsIsLate) {
  Process("future.rfx", "", 0);
  Process("past.rfx", "", 0);
  const timespec year_2400[2] = {{.tv_sec = 13'569'465'600, .tv_nsec = 0}, {.tv_sec = 13'569'465'600, .tv_nsec = 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, files_[0].c_str(), year_2400, 0), 0);
  const std::vector<RunFiles> runs = GroupByRun(files_, &beginnings_, &unknown_);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(Names(runs[1]), std::vector<std::string>{"future.rfx"});
  EXPECT_GT(runs[1].start_unix_ns, runs[0].start_unix_ns);
}

}  // namespace
}  // namespace rfinject::cli
