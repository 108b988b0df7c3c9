#include "cli/attach/job.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <initializer_list>
#include <set>

namespace rfinject::cli {
namespace {

std::string Environment(std::initializer_list<std::string_view> entries) {
  std::string text;
  for (const std::string_view entry : entries) text.append(entry).append(1, '\0');
  return text;
}

std::string Torchrun(const char* rank) {
  return Environment({"PATH=/bin", "TORCHELASTIC_RUN_ID=none", "MASTER_PORT=29500", "WORLD_SIZE=2",
                      std::string("RANK=") + rank, std::string("LOCAL_RANK=") + rank});
}

std::string Slurm(const char* task) {
  return Environment(
      {"SLURM_JOB_ID=77", "SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=2", std::string("SLURM_PROCID=") + task});
}

const std::string kShell = Environment({"PATH=/bin"});

// A shell (1) that has started torchrun (10), whose ranks have children of their own; another program with PyTorch
// (30) beside it.
const std::vector<Process> kJob = {
    {1, 0, kShell},          {10, 1, kShell},         {12, 10, Torchrun("1")}, {11, 10, Torchrun("0")},
    {21, 11, Torchrun("0")}, {22, 12, Torchrun("1")}, {30, 1, kShell},
};

HasTorch AllBut(std::set<pid_t> without) {
  return [without](pid_t pid) { return without.count(pid) == 0; };
}

using Pids = std::vector<pid_t>;

TEST(RanksBelow, OfALauncherAreItsRanks) {
  EXPECT_EQ(RanksBelow(kJob, 10, AllBut({})), (Pids{11, 12}));  // torchrun imports PyTorch itself
  EXPECT_EQ(RanksBelow(kJob, 10, AllBut({10})), (Pids{11, 12}));
}

TEST(RanksBelow, OfARankIsTheRank) { EXPECT_EQ(RanksBelow(kJob, 12, AllBut({})), (Pids{12})); }

TEST(RanksBelow, OfAScriptAreWhatItRuns) {
  EXPECT_EQ(RanksBelow(kJob, 10, AllBut({10, 11, 12})), (Pids{21, 22}));
  const std::vector<Process> script = {{1, 0, kShell}, {2, 1, kShell}, {3, 2, kShell}};
  EXPECT_EQ(RanksBelow(script, 1, AllBut({1})), (Pids{2}));
}

TEST(RanksBelow, OfAProgramIsTheProgram) {
  EXPECT_EQ(RanksBelow(kJob, 30, AllBut({})), (Pids{30}));
  EXPECT_EQ(RanksBelow(kJob, 30, AllBut({30})), (Pids{}));
  EXPECT_EQ(RanksBelow(kJob, 4711, AllBut({})), (Pids{}));
}

// Kubernetes gives a pod RANK, too, and the pod runs torchrun.
TEST(RanksBelow, OfALauncherThatIsARankAreItsOwnRanks) {
  const std::vector<Process> pod = {
      {1, 0, Environment({"RANK=0"})}, {2, 1, Torchrun("0")}, {3, 1, Torchrun("1")}, {4, 3, Torchrun("1")}};
  EXPECT_EQ(RanksBelow(pod, 1, AllBut({})), (Pids{2, 3}));
  const std::vector<Process> steps = {{1, 0, Slurm("0")}, {2, 1, Slurm("0") + Torchrun("0")}};
  EXPECT_EQ(RanksOfJob(steps, "77", AllBut({})), (Pids{2}));
}

TEST(RanksBelow, EndsWhereNumbersWereGivenAgain) {
  const std::vector<Process> circle = {{1, 2, kShell}, {2, 1, kShell}};
  EXPECT_EQ(RanksBelow(circle, 1, AllBut({1, 2})), (Pids{}));
  EXPECT_EQ(ProcessesBelow(circle, 1), (Pids{1, 2}));
}

TEST(RanksOfJob, AreFoundByItsName) {
  EXPECT_EQ(RanksOfJob(kJob, "29500", AllBut({})), (Pids{11, 12}));
  const std::vector<Process> slurm = {{1, 0, kShell},     {2, 1, Environment({"SLURM_JOB_ID=77"})},
                                      {3, 1, Slurm("1")}, {4, 1, Slurm("0")},
                                      {5, 4, Slurm("0")}, {6, 1, Environment({"SLURM_JOB_ID=78"})}};
  EXPECT_EQ(RanksOfJob(slurm, "77", AllBut({1, 2})), (Pids{4, 3}));
  EXPECT_EQ(RanksOfJob(slurm, "77.0", AllBut({1, 2})), (Pids{4, 3}));
  EXPECT_EQ(RanksOfJob(slurm, "78", AllBut({})), (Pids{6}));
  EXPECT_EQ(RanksOfJob(slurm, "79", AllBut({})), (Pids{}));
  EXPECT_EQ(RanksOfJob(slurm, "", AllBut({})), (Pids{}));
}

TEST(RanksOfJob, AreFoundByAnyOfItsProcesses) {
  EXPECT_EQ(RanksOfJob(kJob, "12", AllBut({})), (Pids{11, 12}));
  EXPECT_EQ(RanksOfJob(kJob, "22", AllBut({})), (Pids{11, 12}));
  EXPECT_EQ(RanksOfJob(kJob, "10", AllBut({})), (Pids{11, 12}));
  EXPECT_EQ(RanksOfJob(kJob, "30", AllBut({})), (Pids{30}));
}

TEST(LaunchersJob, IsNoneWhereNothingWasLaunched) {
  EXPECT_EQ(LaunchersJob(InEnvironment("")), "");
  EXPECT_EQ(LaunchersJob(InEnvironment(Environment({"SLURM_JOB_ID=77", "SLURM_PROCID=0", "SLURM_STEP_ID=0"}))), "");
  EXPECT_EQ(LaunchersJob(InEnvironment(Environment({"TORCHELASTIC_RUN_ID=mine", "RANK=0"}))), "mine");
  EXPECT_EQ(LaunchersJob(InEnvironment(Environment({"PMIX_NAMESPACE=a@1"}))), "a@1");
}

TEST(InEnvironment, FindsWholeNamesOnly) {
  const FindVariable variable = InEnvironment(Environment({"MY_RANK=7", "RANK=", "RANKS=1", "A=b=c"}));
  EXPECT_EQ(variable("RANK"), "");
  EXPECT_EQ(variable("MY_RANK"), "7");
  EXPECT_EQ(variable("A"), "b=c");
}

TEST(ListProcesses, HasThisOneAndItsParent) {
  const std::vector<Process> all = ListProcesses();
  const auto own = std::find_if(all.begin(), all.end(), [](const Process& one) { return one.pid == getpid(); });
  ASSERT_NE(own, all.end());
  EXPECT_EQ(own->parent, getppid());
  const std::vector<pid_t> below = ProcessesBelow(all, getppid());
  EXPECT_NE(std::find(below.begin(), below.end(), getpid()), below.end());
  EXPECT_FALSE(HasTorchInMemory(getpid()));
}

}  // namespace
}  // namespace rfinject::cli
