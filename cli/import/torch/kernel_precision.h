// File: kernel_precision.h
//
// Which unit a library's kernel ran on, as its name says: whether torch used TF32 stands nowhere else in a recording.
#ifndef RFINJECT_CLI_IMPORT_TORCH_KERNEL_PRECISION_H_
#define RFINJECT_CLI_IMPORT_TORCH_KERNEL_PRECISION_H_

#include <optional>
#include <string_view>

#include "proto/wire/vocabulary.h"

namespace rfinject::cli {

// The unit of a matrix product's or a convolution's kernel of cuBLAS, cuDNN or CUTLASS; nothing where the name does
// not tell ("nvjet_tst_128x64_…" has the type only in a code of one letter), or is of another kind of kernel.
std::optional<Precision> PrecisionOfKernel(std::string_view name);

// Whether the kernel moves data between GPUs (NCCL's and RCCL's).
bool IsCommunicationKernel(std::string_view name);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_TORCH_KERNEL_PRECISION_H_
