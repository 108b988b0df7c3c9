// File: memory.h
//
// What was in the device's memory when it was fullest, by the layer and phase that allocated it.
#ifndef RFINJECT_CLI_REPORT_FACTS_MEMORY_H_
#define RFINJECT_CLI_REPORT_FACTS_MEMORY_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/profile/profile.h"
#include "cli/report/facts/fact.h"
#include "cli/text/row_set.h"

namespace rfinject::cli {

struct MemoryRow {
  std::string model, layer, class_name;  // model empty: allocated in no layer
  Phase phase{};
  uint64_t bytes = 0;
  double share = 0;  // of all that lay there
};

struct DeviceMemory {
  uint64_t peak_bytes = 0;  // of the device, in use by all processes; 0: unknown
};
std::span<const FactOf<DeviceMemory>> MemoryFacts();

// Equal numbers of the step's allocations and returns, at the moment when most lay there.
struct MemoryPoint {
  Phase phase{};                                     // that the program was in
  std::array<uint64_t, kPhaseNames.size()> bytes{};  // by the phase of the allocation
};

struct MemoryTable {
  std::string title;             // of the run
  bool known = false;            // else the rest says nothing but memory_in_use_bytes
  uint64_t allocated_bytes = 0;  // that the program's allocator had given out
  uint64_t reserved_bytes = 0;   // that it held of the device then
  uint64_t step = 0;
  uint32_t device = 0;
  uint64_t parameter_bytes = 0;   // of all models of the run, wherever they lie
  uint64_t gradient_bytes = 0;    // of those parameters that are trained: as much as these take
  uint64_t in_use_bytes = 0;      // of the device, by all processes, at most; 0: unknown
  uint64_t memory_bytes = 0;      // that the device has; 0: unknown
  MemoryRow refused;              // what was asked for in vain, the largest of it; 0 bytes: the program got all
  std::vector<MemoryRow> phases;  // most bytes first
  std::vector<MemoryRow> rows;    // by layer and phase, in the same order
  uint64_t points_step = 0;
  std::vector<MemoryPoint> points;  // how memory went over that step; none: not known
};

// Makes the table of a run; `known` is false where the trace does not tell what the memory held.
MemoryTable FoldMemory(const Run& run);

// "parameters, buffers, inputs": what is usually allocated in this phase and still there. Empty where nothing is
// usual.
std::string_view UsuallyOf(Phase phase);

// Such rows with the columns of CSV and JSON.
RowSet MemoryOf(std::span<const MemoryRow> rows);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_FACTS_MEMORY_H_
