// File: job.h
//
// Which processes of this machine make up a job. Launchers give each rank variables that tell it which one it is; a
// rank's workers and other children inherit them.
#ifndef RFINJECT_CLI_ATTACH_JOB_H_
#define RFINJECT_CLI_ATTACH_JOB_H_

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rfinject::cli {

// The value of a variable, empty where there is none.
using FindVariable = std::function<std::string(const char* name)>;
// Looks in an environment as /proc/PID/environ has it: what the program began with.
FindVariable InEnvironment(std::string environment);

// The name of the job, in a process that a launcher started for each rank; empty in others. torchrun's --rdzv-id, or
// the port where it has none; PMIx's namespace; Slurm's JOB.STEP. collector/process_facts.cc reads the same variables
// for the trace.
std::string LaunchersJob(const FindVariable& variable);
// The number that tells the process which rank of the job it is; empty where it is none.
std::string RankOf(const FindVariable& variable);

struct Process {
  pid_t pid = 0, parent = 0;
  std::string environment;  // empty where it may not be read
};
// All processes of this machine.
std::vector<Process> ListProcesses();
// `root` and all processes that it started, parents first.
std::vector<pid_t> ProcessesBelow(const std::vector<Process>& all, pid_t root);

// Whether a process has loaded PyTorch.
using HasTorch = std::function<bool(pid_t pid)>;
bool HasTorchInMemory(pid_t pid);

// What is measured of `root` and what it started: the ranks where it launched some; else itself, if it has PyTorch;
// else those with PyTorch that it started. A rank's own children (workers of its loaders) are none of these.
std::vector<pid_t> RanksBelow(const std::vector<Process>& all, pid_t root,
                              const HasTorch& has_torch = &HasTorchInMemory);
// The same of a job. Its name is what LaunchersJob says or SLURM_JOB_ID; or, where no process has that, the number of
// a process: the job that it is a rank of, or that it has launched.
std::vector<pid_t> RanksOfJob(const std::vector<Process>& all, std::string_view name,
                              const HasTorch& has_torch = &HasTorchInMemory);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_ATTACH_JOB_H_
