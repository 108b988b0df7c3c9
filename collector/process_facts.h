// File: process_facts.h
//
// What the operating system and the launcher say about this process.
#ifndef RFINJECT_COLLECTOR_PROCESS_FACTS_H_
#define RFINJECT_COLLECTOR_PROCESS_FACTS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "collector/run_facts.h"

namespace rfinject {

// Returns 128 random bits as hexadecimal digits; others at each call, also in a forked child.
std::string NewTraceId();

// Returns the facts of the process, but for what Python and torch know, and the rank if there is one. It reads /proc,
// uname and the environment, which takes some hundred microseconds. May throw std::bad_alloc.
RunFacts ReadProcessFacts();

// How many threads this process has; 0 where /proc does not say. Allocates nothing.
int ThreadsOfProcess() noexcept;

// The rank of this process in its job, by the first of RANK (torchrun), OMPI_COMM_WORLD_RANK (Open MPI), PMI_RANK
// (MPICH, Intel MPI) and SLURM_PROCID that is a number. A SLURM_PROCID outside a step of several tasks is no rank:
// sbatch sets it to 0 in every batch script.
bool RankFromEnvironment(uint32_t* rank) noexcept;

// Whether Settings::ranks lets this process measure. A process whose rank is not known measures: it may be in no job
// of several.
bool RankMeasures(std::string_view ranks) noexcept;

// Returns what the processes of one job have in common and those of another do not, so that only these are added up:
// torchrun's id, RFINJECT_JOB (which `rfinject` sets for what it starts), Slurm's or Open MPI's number. It is empty
// where nothing tells, and then the process is a run of its own. May throw std::bad_alloc.
std::string JobFromEnvironment(std::string_view host);

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_PROCESS_FACTS_H_
