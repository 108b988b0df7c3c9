// File: ncu_csv.h
//
// Reads Nsight Compute's CSV, as people have it, into a Profile:
//   ncu --csv --page details   long: one line a kernel and metric; human metric names in sections, or raw ones
//   ncu --csv --page raw       wide: one line a kernel, a second header line with the units
// in any locale and with any unit, with the program's own output between the lines, with NVTX columns (their
// innermost ranges become layers), UTF-8 with or without a byte order mark.
//
// A value in an unknown unit is added to nothing, and is reported.
#ifndef RFINJECT_CLI_IMPORT_NCU_NCU_CSV_H_
#define RFINJECT_CLI_IMPORT_NCU_NCU_CSV_H_

#include <string>

#include "absl/status/statusor.h"
#include "cli/import/imported.h"
#include "cli/import/ncu/line_reader.h"

namespace rfinject::cli {

// Reads the file `path` in one pass over the data (and one over its beginning to learn the locale), in memory bounded
// by the number of distinct launch keys. Fails with the file and the reason when it cannot be read or holds no table.
absl::StatusOr<Imported> ImportNcuCsv(const std::string& path, const ImportOptions& options);

// Does the same with what `lines` reads.
absl::StatusOr<Imported> ImportNcuCsv(LineReader& lines, const ImportOptions& options);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_NCU_NCU_CSV_H_
