#include "injector/torch/engine_threads.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace rfinject {
namespace {

class EngineThreadsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/tasks-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    tasks_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(tasks_); }
  void Add(const std::string& id, const std::string& name, char state) {
    std::filesystem::create_directory(tasks_ + "/" + id);
    std::ofstream(tasks_ + "/" + id + "/stat") << id << " (" << name << ") " << state << " 1 2 3\n";
  }
  std::string tasks_;
};

TEST_F(EngineThreadsTest, WhereThereAreNoneItReturnsAtOnce) {
  EXPECT_EQ(WaitForEngineThreadsIn(tasks_ + "/none"), 1);
  Add("10", "python", 'R');
  Add("11", "a) pt_autograd_0", 'R');
  EXPECT_EQ(WaitForEngineThreadsIn(tasks_), 1);
}

TEST_F(EngineThreadsTest, ThoseAtRestAreSeenTwice) {
  Add("10", "python", 'R');
  Add("12", "pt_autograd_0", 'S');
  EXPECT_EQ(WaitForEngineThreadsIn(tasks_), 2);
}

TEST_F(EngineThreadsTest, OneThatNeverRestsDoesNotHoldTheProgramForEver) {
  Add("12", "pt_autograd_0", 'S');
  Add("13", "pt_autograd_1", 'R');
  Add("14", "pt_autograd_2", 'S');
  EXPECT_EQ(WaitForEngineThreadsIn(tasks_), 100);
}

}  // namespace
}  // namespace rfinject
