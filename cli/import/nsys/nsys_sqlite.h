// File: nsys_sqlite.h
//
// Reads Nsight Systems' SQLite export (`nsys export --type sqlite`) into a Profile: kernels, copies and memory sets
// with their times. nsys has no counters, so such a Profile holds no FLOP and no bytes of DRAM.
#ifndef RFINJECT_CLI_IMPORT_NSYS_NSYS_SQLITE_H_
#define RFINJECT_CLI_IMPORT_NSYS_NSYS_SQLITE_H_

#include <string>

#include "absl/status/statusor.h"
#include "cli/import/imported.h"

namespace rfinject::cli {

// Reads `path`, in memory bounded by the number of distinct launch keys, and 32 MB. The export's format is not a
// stable one: the tables and columns are looked up first, and what is missing is named in the failure, with the file.
absl::StatusOr<Imported> ImportNsysSqlite(const std::string& path, const ImportOptions& options);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_NSYS_NSYS_SQLITE_H_
