// What is left in a folder after each way to end, by both ways to write: an unnamed file and one beside the output.
#include "cli/cmd/output_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace rfinject::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class OutputFileTest : public ::testing::TestWithParam<bool> {
 protected:
  OutputFileTest() {
    folder_ = ::testing::TempDir() + "/rfinject-output-XXXXXX";
    EXPECT_NE(::mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/out";
  }
  ~OutputFileTest() override { std::filesystem::remove_all(folder_); }

  Replace replace() const { return {.any = true, .named = GetParam()}; }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) names.push_back(entry.path().filename());
    return names;
  }
  std::string Content() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }

  std::string folder_, path_;
};

TEST_P(OutputFileTest, IsThereWhenItIsWhole) {
  for (const char* text : {"first", "second"}) {
    OutputFile file;
    ASSERT_TRUE(file.Open(path_, replace()).ok());
    ASSERT_TRUE(file.Write(text, std::string(text).size()).ok());
    EXPECT_NE(Content(), text);
    ASSERT_TRUE(file.Commit().ok());
    EXPECT_EQ(Content(), text);
    EXPECT_THAT(Names(), ElementsAre("out"));
    struct stat status;
    ASSERT_EQ(::stat(path_.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0600u);
  }
}

TEST_P(OutputFileTest, LeavesNothingWhenItIsGivenUp) {
  {
    OutputFile file;
    ASSERT_TRUE(file.Open(path_, replace()).ok());
    ASSERT_TRUE(file.Write("half", 4).ok());
  }
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_P(OutputFileTest, LeavesNothingWhenASignalEndsUs) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::signal(signal, SIG_DFL);
      OutputFile file;
      if (!file.Open(path_, replace()).ok() || !file.Write("half", 4).ok()) ::_exit(1);
      ::raise(signal);
      ::_exit(2);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
    EXPECT_THAT(Names(), IsEmpty());
  }
}

TEST_P(OutputFileTest, WhatCouldNotBeMadeIsNotPutInPlace) {
  OutputFile file;
  ASSERT_TRUE(file.Open(path_, replace()).ok());
  ASSERT_TRUE(file.Write("half", 4).ok());
  const absl::Status status = file.Commit(absl::ResourceExhaustedError("too large"));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), path_ + ": cannot be written: too large");
  EXPECT_FALSE(std::filesystem::exists(path_));
}

// Where no process can do anything any more, only a file without a name leaves nothing.
TEST_P(OutputFileTest, LeavesNothingBehindAKill) {
  if (GetParam()) GTEST_SKIP() << "a file with a name stays behind SIGKILL";
  const pid_t child = ::fork();
  if (child == 0) {
    OutputFile file;
    if (!file.Open(path_, replace()).ok() || !file.Write("half", 4).ok()) ::_exit(1);
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (!Names().empty()) GTEST_SKIP() << "this file system has no unnamed files";
  EXPECT_TRUE(WIFSIGNALED(status));
}

TEST_P(OutputFileTest, IsNeverAStandardStream) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(0);
    ::close(1);
    ::close(2);
    OutputFile file;
    if (!file.Open(path_, replace()).ok()) ::_exit(1);
    (void)!::write(1, "x", 1);
    (void)!::write(2, "x", 1);
    ::_exit(file.Write("all", 3).ok() && file.Commit().ok() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Content(), "all");
}

INSTANTIATE_TEST_SUITE_P(Ways, OutputFileTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Named" : "Unnamed"; });

}  // namespace
}  // namespace rfinject::cli
