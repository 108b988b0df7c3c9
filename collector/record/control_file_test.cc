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

TEST_F(ControlFileTest, OtherWordsAreNone) {
  for (const char* text :
       {"", "stop", "stop\nstart\n", "STOP\n", "stop\nand a line that is longer than any request\n"}) {
    Write(text);
    EXPECT_EQ(control_.Take(), Request::kNone) << text;
  }
}

TEST_F(ControlFileTest, AFileThatOthersMayWriteIsNone) {
  for (const mode_t mode : {0620, 0602, 0666}) {
    Write("stop\n", mode);
    EXPECT_EQ(control_.Take(), Request::kNone) << std::oct << mode;
  }
}

TEST_F(ControlFileTest, WhatIsNoPlainFileIsNoneAndHoldsNobodyUp) {
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  EXPECT_EQ(control_.Take(), Request::kNone);
  ASSERT_EQ(unlink(path().c_str()), 0);
  ASSERT_EQ(mkdir(path().c_str(), 0700), 0);
  EXPECT_EQ(control_.Take(), Request::kNone);
  ASSERT_EQ(rmdir(path().c_str()), 0);
  const std::string elsewhere = folder_.path() + "/elsewhere";
  std::ofstream(elsewhere) << "stop\n";
  ASSERT_EQ(chmod(elsewhere.c_str(), 0600), 0);
  ASSERT_EQ(symlink(elsewhere.c_str(), path().c_str()), 0);
  EXPECT_EQ(control_.Take(), Request::kNone);
  EXPECT_TRUE(std::filesystem::exists(elsewhere));
}

TEST_F(ControlFileTest, WithoutATraceThereIsNothing) { EXPECT_EQ(ControlFile().Take(), Request::kNone); }

}  // namespace
}  // namespace rfinject
