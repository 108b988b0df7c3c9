#include "cli/cmd/run_folder.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <vector>

namespace rfinject::cli {
namespace {

const absl::Time kSomeTime = absl::FromUnixSeconds(1767323045);  // 2026-01-02 03:04:05 UTC

class RunFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"TORCHELASTIC_RUN_ID", "RANK", "MASTER_PORT", "PMIX_NAMESPACE", "SLURM_STEP_NUM_TASKS",
                             "SLURM_NTASKS", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_JOB_ID", "RFINJECT_JOB"}) {
      ::unsetenv(name);
    }
    ::setenv("TZ", "UTC", 1);
    std::string pattern = (std::filesystem::temp_directory_path() / "rfinject-run-folder-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  std::string root_;
};

TEST_F(RunFolder, IsNamedAfterTheScript) {
  EXPECT_EQ(ScriptName(std::vector<std::string>{"python", "-u", "a/train.py", "-a", "x.py"}), "train");
  EXPECT_EQ(ScriptName(std::vector<std::string>{"python3", "-m", "pkg.train", "x"}), "pkg.train");
  EXPECT_EQ(ScriptName(std::vector<std::string>{"/usr/bin/torchrun", "--nproc", "2", "train.py"}), "train");
  EXPECT_EQ(ScriptName(std::vector<std::string>{"./a out%p", "1"}), "a_out_p");
  EXPECT_EQ(ScriptName(std::vector<std::string>{"..."}), "run");
  EXPECT_EQ(ScriptName(std::vector<std::string>{std::string(300, 'x')}), std::string(40, 'x'));
}

TEST_F(RunFolder, NoTwoRunsHaveOne) {
  const std::vector<std::string> words = {"python", "train.py"};
  EXPECT_EQ(RunFolderName(root_, words, kSomeTime, 4711), "20260102-030405-train-4711");
  std::filesystem::create_directory(root_ + "/20260102-030405-train-4711");
  EXPECT_EQ(RunFolderName(root_, words, kSomeTime, 4711), "20260102-030405-train-4711-2");
  std::filesystem::create_symlink("nowhere", root_ + "/20260102-030405-train-4711-2");
  EXPECT_EQ(RunFolderName(root_, words, kSomeTime, 4711), "20260102-030405-train-4711-3");
  // Two commands that start in one second: neither has made its folder yet.
  EXPECT_NE(RunFolderName(root_, words, kSomeTime, 1), RunFolderName(root_, words, kSomeTime, 2));
}

// Ranks start at different moments, each under a command of ours, and are one run.
TEST_F(RunFolder, RanksOfALauncherShareOne) {
  EXPECT_FALSE(NewJobId().empty());
  const std::vector<std::string> words = {"python", "train.py"};
  ::setenv("SLURM_JOB_ID", "77", 1);
  EXPECT_FALSE(NewJobId().empty()) << "a batch script runs many commands, one after the other";
  ::setenv("SLURM_NTASKS", "4", 1);
  ::setenv("SLURM_STEP_ID", "0", 1);
  ::setenv("SLURM_PROCID", "3", 1);
  EXPECT_EQ(NewJobId(), "");
  EXPECT_EQ(RunFolderName(root_, words, kSomeTime, 4711), "job77.0-train");
  std::filesystem::create_directory(root_ + "/job77.0-train");
  EXPECT_EQ(RunFolderName(root_, words, kSomeTime + absl::Seconds(5), 4712), "job77.0-train");
}

TEST_F(RunFolder, AnIdThatIsThereCounts) {
  ::setenv("RFINJECT_JOB", "mine", 1);
  EXPECT_EQ(NewJobId(), "");
}

}  // namespace
}  // namespace rfinject::cli
