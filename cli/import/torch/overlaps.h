// File: overlaps.h
//
// What a recording of torch.profiler says of the GPU that cannot be, and what of it is lost.
#ifndef RFINJECT_CLI_IMPORT_TORCH_OVERLAPS_H_
#define RFINJECT_CLI_IMPORT_TORCH_OVERLAPS_H_

#include "cli/import/torch/recording.h"

namespace rfinject::cli {

// Cuts kernels that are said to run on while others of their stream do (stream_overlaps.h); TorchDamage counts them.
void CutOverlaps(TorchRecording* recording);

// Counts calls that launch a kernel, and those of them whose kernel is not in the file.
void CountLaunches(TorchRecording* recording);

// Counts how often a thread called CUDA earlier than it had called it before: calls are numbered as they are made.
void CountClockJumps(TorchRecording* recording);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_TORCH_OVERLAPS_H_
