// File: process.h
//
// The processes that a run was made of, what they ran, and what the trace can say of their layers.
#ifndef RFINJECT_CLI_REPORT_FACTS_PROCESS_H_
#define RFINJECT_CLI_REPORT_FACTS_PROCESS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/profile/profile.h"
#include "cli/report/facts/fact.h"

namespace rfinject::cli {

struct Processes {
  std::vector<ProcessInfo> list;
  uint64_t count = 0;
  uint64_t unfinished = 0;  // whose trace has no end
  int tier = 0;             // how launches got their layers
  std::vector<ModelInfo> models;
  // Where processes were added that were not started alike: their commands (DifferentCommands).
  std::vector<std::string> different_commands;
};

Processes ProcessesOf(const Run& run);
std::span<const FactOf<Processes>> ProcessFacts();

// The process that began first; null of none.
const ProcessInfo* FirstProcess(std::span<const ProcessInfo> processes);

// Returns the commands of processes that were added up, if they differ. The arguments that a launcher gives each
// rank, and the workers that a process starts by itself, do not count as a difference.
std::vector<std::string> DifferentCommands(std::span<const ProcessInfo> processes);

// "2026-01-02 03:04:05", in the time zone of this machine; empty for 0.
std::string StartText(int64_t start_unix_ns);
// Returns the words of a command as one could type them again: those with blanks in them are quoted.
std::string CommandText(std::span<const std::string> argv);

// "A", and what it means: "layers from the calls of Module.__call__, ...".
struct TierWords {
  std::string_view letter, meaning;
};
TierWords TierOf(int tier);
// "A: layers from ..."; "unknown".
std::string TierText(int tier);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_FACTS_PROCESS_H_
