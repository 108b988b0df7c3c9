// File: ncu_csv.h
//
// Nsight Compute's CSV as people have it, into a Profile:
//   ncu --csv --page details   long: one line a kernel and metric; human metric names in sections, or raw ones
//   ncu --csv --page raw       wide: one line a kernel, a second header line with the units
// in any locale and with any unit, with the program's own output between the lines, with NVTX columns (their
// innermost ranges become layers), UTF-8 with or without a byte order mark.
//
// Typed values are read, never text: a value in a unit that is not known is not added to anything, and is reported.
#ifndef RFINJECT_CLI_IMPORT_NCU_CSV_H_
#define RFINJECT_CLI_IMPORT_NCU_CSV_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/import/numbers.h"
#include "cli/profile/profile.h"

namespace rfinject::cli {

struct NcuOptions {
  std::string gpu;                              // row of gpus.csv; empty: unknown, the chip is taken from column CC
  std::string model;                            // name for what the file holds; empty: its process name
  DecimalMark decimal = DecimalMark::kUnknown;  // kUnknown: the file tells
};

struct ImportResult {
  Profile profile;
  uint64_t rows = 0;                  // data lines read
  uint64_t kernels = 0;               // launches found
  uint64_t skipped_lines = 0;         // lines that are no part of the table
  std::vector<std::string> warnings;  // one line each
  std::string error;                  // not empty: nothing was imported; with file and line
};

// Reads `path` in one pass over the data (and one over its beginning to learn the locale), in memory bounded by the
// number of distinct launch keys.
ImportResult ImportNcuCsv(const std::string& path, const NcuOptions& options);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_NCU_CSV_H_
