#include "collector/process_facts.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <initializer_list>
#include <string>
#include <utility>

namespace rfinject {
namespace {

constexpr const char* kVariables[] = {"RANK",
                                      "LOCAL_RANK",
                                      "WORLD_SIZE",
                                      "OMPI_COMM_WORLD_RANK",
                                      "OMPI_COMM_WORLD_LOCAL_RANK",
                                      "PMI_RANK",
                                      "PMI_SIZE",
                                      "MPI_LOCALRANKID",
                                      "SLURM_PROCID",
                                      "SLURM_LOCALID",
                                      "SLURM_NTASKS",
                                      "SLURM_STEP_NUM_TASKS",
                                      "SLURM_JOB_ID",
                                      "SLURM_STEP_ID",
                                      "RFINJECT_JOB",
                                      "GROUP_WORLD_SIZE",
                                      "LOCAL_WORLD_SIZE",
                                      "PMIX_NAMESPACE",
                                      "TORCHELASTIC_RUN_ID",
                                      "OMPI_COMM_WORLD_SIZE"};

RunFacts With(std::initializer_list<std::pair<const char*, const char*>> environment) {
  for (const char* name : kVariables) unsetenv(name);
  for (const auto& [name, value] : environment) setenv(name, value, 1);
  RunFacts facts = ReadProcessFacts();
  for (const char* name : kVariables) unsetenv(name);
  return facts;
}

TEST(ProcessFacts, ThisProcess) {
  const RunFacts run = With({});
  const ProcessFacts& facts = run.process;
  EXPECT_EQ(facts.pid, static_cast<uint32_t>(getpid()));
  EXPECT_FALSE(facts.host.empty());
  EXPECT_NE(facts.os.find("Linux"), std::string::npos);
  EXPECT_FALSE(facts.cpu.empty());
  EXPECT_GE(facts.cpus, 1u);
  EXPECT_GT(facts.memory_bytes, uint64_t{1} << 24);
  ASSERT_FALSE(facts.argv.empty());
  EXPECT_NE(facts.argv[0].find("collector_test"), std::string::npos);
  EXPECT_TRUE(run.rank.empty());
  EXPECT_EQ(facts.world_size, 0u);
}

TEST(ProcessFacts, RanksThatMeasure) {
  const auto measures = [](const char* rank, std::string_view ranks) {
    rank == nullptr ? unsetenv("RANK") : setenv("RANK", rank, 1);
    const bool result = RankMeasures(ranks);
    unsetenv("RANK");
    return result;
  };
  With({});
  for (const char* all : {"", "all"}) EXPECT_TRUE(measures("3", all));
  EXPECT_TRUE(measures(nullptr, "3"));
  EXPECT_TRUE(measures("3", "3"));
  EXPECT_TRUE(measures("3", "0,3"));
  EXPECT_TRUE(measures("0", "0,3"));
  EXPECT_FALSE(measures("3", "0"));
  EXPECT_FALSE(measures("3", "33,30,0"));
  EXPECT_FALSE(measures("3", "0,"));
}

TEST(ProcessFacts, Torchrun) {
  const RunFacts run =
      With({{"RANK", "5"}, {"LOCAL_RANK", "1"}, {"WORLD_SIZE", "8"}, {"TORCHELASTIC_RUN_ID", "run7"}});
  const ProcessFacts& facts = run.process;
  EXPECT_FALSE(run.rank.empty());
  EXPECT_EQ(facts.rank, 5u);
  EXPECT_EQ(facts.local_rank, 1u);
  EXPECT_EQ(facts.world_size, 8u);
  EXPECT_EQ(facts.job_id, "run7");
}

TEST(ProcessFacts, TorchrunInsideSlurmIsTorchruns) {
  const RunFacts run = With({{"RANK", "9"},
                             {"WORLD_SIZE", "16"},
                             {"SLURM_PROCID", "1"},
                             {"SLURM_NTASKS", "2"},
                             {"SLURM_JOB_ID", "77"},
                             {"TORCHELASTIC_RUN_ID", "run7"}});
  const ProcessFacts& facts = run.process;
  EXPECT_EQ(facts.rank, 9u);
  EXPECT_EQ(facts.world_size, 16u);
  EXPECT_EQ(facts.job_id, "run7");
}

TEST(ProcessFacts, OpenMpiAndMpich) {
  EXPECT_EQ(With({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}}).process.rank, 3u);
  EXPECT_EQ(With({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}}).process.world_size, 4u);
  EXPECT_EQ(With({{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}}).process.rank, 2u);
}

// sbatch sets SLURM_PROCID=0 for a plain script; that is no rank of a job of one.
TEST(ProcessFacts, SlurmOnlyWithSeveralTasks) {
  EXPECT_TRUE(With({{"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "77"}}).rank.empty());
  EXPECT_TRUE(With({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}).rank.empty());
  const RunFacts run = With({{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "1"}});
  const ProcessFacts& facts = run.process;
  EXPECT_EQ(facts.rank, 3u);
  EXPECT_EQ(facts.world_size, 4u);
  EXPECT_EQ(facts.local_rank, 1u);
}

// A job is what one command started, however often; its id is what adds its processes up, and nothing else may.
TEST(ProcessFacts, OneJobHasOneId) {
  EXPECT_EQ(With({}).process.job_id, "");
  EXPECT_EQ(With({{"RFINJECT_JOB", "host.7.1"}}).process.job_id, "host.7.1");
  // A number that people give every run of theirs does not join two commands of ours on one machine ...
  EXPECT_EQ(
      With({{"RFINJECT_JOB", "host.7.1"}, {"TORCHELASTIC_RUN_ID", "100"}, {"GROUP_WORLD_SIZE", "1"}}).process.job_id,
      "host.7.1");
  // ... and does join the nodes of a job, although each node has its own.
  EXPECT_EQ(
      With({{"RFINJECT_JOB", "host.7.1"}, {"TORCHELASTIC_RUN_ID", "100"}, {"GROUP_WORLD_SIZE", "2"}}).process.job_id,
      "100");
  EXPECT_EQ(With({{"SLURM_JOB_ID", "77"}, {"SLURM_NTASKS", "4"}, {"SLURM_STEP_ID", "3"}}).process.job_id, "77.3");
  EXPECT_EQ(With({{"SLURM_JOB_ID", "77"}, {"SLURM_NTASKS", "1"}, {"SLURM_STEP_ID", "3"}}).process.job_id, "77");
  EXPECT_EQ(With({{"PMIX_NAMESPACE", "prterun-a-1@1"}}).process.job_id, "prterun-a-1@1");
  const std::string torchrun =
      With({{"TORCHELASTIC_RUN_ID", "none"}, {"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}})
          .process.job_id;
  EXPECT_TRUE(torchrun.starts_with("torchrun.")) << torchrun;
  EXPECT_TRUE(torchrun.ends_with("." + std::to_string(getppid()))) << torchrun;
  EXPECT_EQ(With({{"TORCHELASTIC_RUN_ID", "none"}, {"RANK", "0"}, {"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", "2"}})
                .process.job_id,
            "");
}

TEST(ProcessFacts, WhatIsNoNumberIsNoRank) {
  for (const char* bad : {"", "-1", "x", "1x", " 1", "99999999999"}) {
    EXPECT_TRUE(With({{"RANK", bad}}).rank.empty()) << bad;
  }
  EXPECT_EQ(With({{"TORCHELASTIC_RUN_ID", "none"}}).process.job_id, "");
}

}  // namespace
}  // namespace rfinject
