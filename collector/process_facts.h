// File: process_facts.h
//
// What the operating system and the launcher say about this process.
#ifndef RFINJECT_COLLECTOR_PROCESS_FACTS_H_
#define RFINJECT_COLLECTOR_PROCESS_FACTS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace rfinject {

struct ProcessFacts {
  std::string host;
  uint32_t pid = 0;
  std::vector<std::string> argv;
  std::string os;     // "Linux 6.1.0 x86_64, Debian GNU/Linux 12 (bookworm)"
  std::string cpu;    // model name
  uint32_t cpus = 0;  // that this process may run on
  uint64_t memory_bytes = 0;
  bool has_rank = false;
  uint32_t rank = 0;
  uint32_t local_rank = 0;
  uint32_t world_size = 0;  // 0: not a distributed job
  std::string job_id;
};

// Reads /proc, uname and the environment; some hundred microseconds. May throw std::bad_alloc.
ProcessFacts ReadProcessFacts();

// The rank of this process in its job, by the first of RANK (torchrun), OMPI_COMM_WORLD_RANK (Open MPI), PMI_RANK
// (MPICH, Intel MPI) and SLURM_PROCID that is a number. A SLURM_PROCID outside a step of several tasks is no rank:
// sbatch sets it to 0 in every batch script.
bool RankFromEnvironment(uint32_t* rank) noexcept;

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_PROCESS_FACTS_H_
