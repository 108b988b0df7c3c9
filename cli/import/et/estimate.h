// File: estimate.h
//
// Estimates a program that is not at hand from its execution trace: what each of its operators would take on a GPU.
#ifndef RFINJECT_CLI_IMPORT_ET_ESTIMATE_H_
#define RFINJECT_CLI_IMPORT_ET_ESTIMATE_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cli/import/imported.h"

namespace rfinject::cli {

// Run.collector of such an estimate.
inline constexpr std::string_view kExecutionTraceCollector = "execution-trace";

// Reads `path`, which PyTorch's ExecutionTraceObserver wrote, and costs its operators as `rfinject --estimate` does
// on ImportOptions::estimate, which must be set. The Profile is an estimate, of one step, by operator and phase; the
// trace has no layers.
absl::StatusOr<Imported> ImportExecutionTrace(const std::string& path, const ImportOptions& options);

// The same of bytes; `name` is the file's, for messages.
absl::StatusOr<Imported> ImportExecutionTraceBytes(std::string_view bytes, const std::string& name,
                                                   const ImportOptions& options);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_ET_ESTIMATE_H_
