// File: process_facts.h
//
// What the operating system and the launcher say about this process.
#ifndef RFINJECT_COLLECTOR_PROCESS_FACTS_H_
#define RFINJECT_COLLECTOR_PROCESS_FACTS_H_

#include <cstdint>
#include <string>

#include "collector/run_facts.h"

namespace rfinject {

// 128 random bits in hexadecimal digits: another one at each call, also in a forked child.
std::string NewTraceId();

// Process, but for what Python and torch know, and the rank if there is one. Reads /proc, uname and the environment;
// some hundred microseconds. May throw std::bad_alloc.
RunFacts ReadProcessFacts();

// The rank of this process in its job, by the first of RANK (torchrun), OMPI_COMM_WORLD_RANK (Open MPI), PMI_RANK
// (MPICH, Intel MPI) and SLURM_PROCID that is a number. A SLURM_PROCID outside a step of several tasks is no rank:
// sbatch sets it to 0 in every batch script.
bool RankFromEnvironment(uint32_t* rank) noexcept;

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_PROCESS_FACTS_H_
