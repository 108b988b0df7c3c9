// File: perfetto.h
//
// Reads what torch.profiler writes as .pftrace or .pftrace.gz (PyTorch's profiler on CUPTI since 2.12, torchtitan): a
// trace of Perfetto whose slices are the host's threads, with the arguments of torch.profiler's events, and whose
// render stages are what the GPU did.
#ifndef RFINJECT_CLI_IMPORT_TORCH_PERFETTO_H_
#define RFINJECT_CLI_IMPORT_TORCH_PERFETTO_H_

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "cli/import/torch/byte_stream.h"
#include "cli/import/torch/recording.h"

namespace rfinject::cli {

// Whether a file that begins like this (1 KiB is enough) may be a trace of Perfetto.
bool LooksLikePerfettoTrace(std::string_view beginning);

// Reads one as ReadTorchRecording() reads JSON: a packet that cannot be read is left out and counted, and of a file
// that is cut, what came before is there.
absl::StatusOr<TorchRecording> ReadPerfettoTrace(ByteStream& bytes, uint64_t most_events = kMostTorchEvents);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_TORCH_PERFETTO_H_
