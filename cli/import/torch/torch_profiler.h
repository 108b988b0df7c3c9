// File: torch_profiler.h
//
// Reads a recording that torch.profiler wrote (Chrome's JSON, plain, .gz or TensorBoard's .zip) into a Profile: what
// the GPU did with its times, by operator, layer and phase, with FLOP and bytes from the shapes that the file has.
#ifndef RFINJECT_CLI_IMPORT_TORCH_TORCH_PROFILER_H_
#define RFINJECT_CLI_IMPORT_TORCH_TORCH_PROFILER_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cli/import/imported.h"

namespace rfinject::cli {

// Reads `path`. Memory is about 50 bytes an event, and what distinct names and shapes take. All of the GPU's time in
// the file is in the Profile, whether it found an operator or not. Fails where the file is no such recording, with
// the offset; a file that is cut gives what came before, and a warning.
absl::StatusOr<Imported> ImportTorchProfiler(const std::string& path, const ImportOptions& options);

// The same of bytes; `name` is the file's, for messages.
absl::StatusOr<Imported> ImportTorchProfilerBytes(std::string_view bytes, const std::string& name,
                                                  const ImportOptions& options);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_TORCH_TORCH_PROFILER_H_
