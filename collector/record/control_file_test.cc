#include "collector/record/control_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "collector/testing/trace_content.h"

namespace rfinject {
namespace {

using Request = ControlFile::Request;

class ControlFileTest : public ::testing::Test {
 protected:
  ControlFileTest() { control_.Watch(folder_.path() + "/a.rfx"); }
  std::string path() const { return folder_.path() + "/a.rfx.control"; }
  void Write(const std::string& text, mode_t mode = 0600) const {
    std::ofstream(path()) << text;
    ASSERT_EQ(chmod(path().c_str(), mode), 0);
  }

  testing::TemporaryFolder folder_;
  ControlFile control_;
};

TEST_F(ControlFileTest, ARequestIsTakenOnce) {
  EXPECT_EQ(control_.Take(), Request::kNone);
  Write("stop\n");
  EXPECT_EQ(control_.Take(), Request::kStop);
  EXPECT_FALSE(std::filesystem::exists(path()));
  EXPECT_EQ(control_.Take(), Request::kNone);
  Write("start\n");
  EXPECT_EQ(control_.Take(), Request::kStart);
}

TEST_F(ControlFileTest, OtherWordsAreRefusedAndTakenAway) {
  for (const std::string& text :
       {std::string("stop\nstart\n"), std::string("STOP\n"), std::string("stop\n\0", 6),
        std::string("stop\nand a line that is longer than any request\n"), std::string(100'000, 's')}) {
    Write(text);
    EXPECT_EQ(control_.Take(), Request::kRefused) << text.substr(0, 80);
    EXPECT_FALSE(std::filesystem::exists(path()));
    EXPECT_EQ(control_.Take(), Request::kNone);
  }
}

TEST_F(ControlFileTest, AWordThatIsBeingWrittenWaits) {
  for (const char* text : {"", "st", "stop", "start"}) {
    Write(text);
    EXPECT_EQ(control_.Take(), Request::kNone) << text;
    EXPECT_TRUE(std::filesystem::exists(path()));
  }
  Write("start\n");
  EXPECT_EQ(control_.Take(), Request::kStart);
}

TEST_F(ControlFileTest, AFileThatOthersMayWriteIsRefusedAndTakenAway) {
  for (const mode_t mode : {0620, 0602, 0666}) {
    Write("stop\n", mode);
    EXPECT_EQ(control_.Take(), Request::kRefused) << std::oct << mode;
    EXPECT_FALSE(std::filesystem::exists(path()));
  }
}

TEST_F(ControlFileTest, WhatIsNoPlainFileIsNoneAndHoldsNobodyUp) {
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  EXPECT_EQ(control_.Take(), Request::kNone);
  EXPECT_TRUE(std::filesystem::is_fifo(path()));
  ASSERT_EQ(unlink(path().c_str()), 0);
  ASSERT_EQ(mkdir(path().c_str(), 0700), 0);
  EXPECT_EQ(control_.Take(), Request::kNone);
  ASSERT_EQ(rmdir(path().c_str()), 0);
  const std::string elsewhere = folder_.path() + "/elsewhere";
  std::ofstream(elsewhere) << "stop\n";
  ASSERT_EQ(chmod(elsewhere.c_str(), 0600), 0);
  ASSERT_EQ(symlink(elsewhere.c_str(), path().c_str()), 0);
  EXPECT_EQ(control_.Take(), Request::kNone);
  EXPECT_TRUE(std::filesystem::is_symlink(path()));
  EXPECT_TRUE(std::filesystem::exists(elsewhere));
}

TEST_F(ControlFileTest, AnotherUsersFileStays) {
  if (geteuid() != 0) GTEST_SKIP() << "note: only root can give a file to another user";
  Write("STOP\n");
  ASSERT_EQ(chown(path().c_str(), 65534, 65534), 0);
  EXPECT_EQ(control_.Take(), Request::kNone);
  EXPECT_TRUE(std::filesystem::exists(path()));
}

TEST_F(ControlFileTest, WithoutATraceThereIsNothing) { EXPECT_EQ(ControlFile().Take(), Request::kNone); }

}  // namespace
}  // namespace rfinject
