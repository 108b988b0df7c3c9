// File: ncu_locale.h
//
// The decimal mark of a file of Nsight Compute, which writes numbers as the locale that it ran in wants them.
#ifndef RFINJECT_CLI_IMPORT_NCU_LOCALE_H_
#define RFINJECT_CLI_IMPORT_NCU_LOCALE_H_

#include "absl/status/statusor.h"
#include "cli/import/line_reader.h"
#include "cli/import/numbers.h"

namespace rfinject::cli {

// Looks for the first value that proves the mark, and rewinds; kUnknown when none does. Fails for UTF-16, of which
// nothing else can be read either, and where reading does.
absl::StatusOr<DecimalMark> DetectDecimalMark(LineReader& reader);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_NCU_LOCALE_H_
