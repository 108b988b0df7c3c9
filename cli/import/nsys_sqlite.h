// File: nsys_sqlite.h
//
// Nsight Systems' SQLite export (`nsys export --type sqlite`) into a Profile: kernels, copies and memory sets with
// their times. nsys has no counters, so such a Profile holds no FLOP and no bytes of DRAM.
#ifndef RFINJECT_CLI_IMPORT_NSYS_SQLITE_H_
#define RFINJECT_CLI_IMPORT_NSYS_SQLITE_H_

#include <string>

#include "cli/import/ncu_csv.h"

namespace rfinject::cli {

// Reads `path`, in memory bounded by the number of distinct launch keys. The export's format is not a stable one: the
// tables and columns are looked up first, and what is missing is named in the error.
ImportResult ImportNsysSqlite(const std::string& path, const NcuOptions& options);

// Puts the times of `times` (nsys) in the place of those of `counters` (ncu), kernel by kernel (name, grid, block),
// so that one run's counters stand beside undisturbed times. Warns of what differs between the two: ncu flushes
// caches and locks clocks by default, so its bytes are cold-cache bytes; and names what is in one file only.
ImportResult JoinTimes(ImportResult counters, const ImportResult& times);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_NSYS_SQLITE_H_
