// File: locale.h
//
// Finds the decimal mark of a file of Nsight Compute, which writes numbers in the form of the locale that it ran in.
#ifndef RFINJECT_CLI_IMPORT_NCU_LOCALE_H_
#define RFINJECT_CLI_IMPORT_NCU_LOCALE_H_

#include "absl/status/statusor.h"
#include "cli/import/ncu/line_reader.h"
#include "cli/import/numbers.h"

namespace rfinject::cli {

// Looks for the first value that proves the mark, and rewinds; returns kUnknown when none does. It fails for UTF-16,
// which the import cannot read at all, and where reading fails.
absl::StatusOr<DecimalMark> DetectDecimalMark(LineReader& reader);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_NCU_LOCALE_H_
