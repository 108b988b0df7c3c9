// File: kernel_names.h
//
// What the names of GPU kernels say: libraries put the instruction, the tile, the type or their own name into them.
// All of it is here, because each name is asked for by several parts: the hardware source, the imports, the alarms.
#ifndef RFINJECT_GPUS_KERNEL_NAMES_H_
#define RFINJECT_GPUS_KERNEL_NAMES_H_

#include <optional>
#include <string_view>

#include "proto/wire/vocabulary.h"

namespace rfinject {

// Whether a kernel is NCCL's or RCCL's, by its name as the compiler has mangled it, as it is readable, or as the
// virtual GPU's stand-in has it.
bool IsCommunicationKernel(std::string_view name) noexcept;

// Whether a kernel of cuDNN, cuBLAS or CUTLASS multiplies on tensor cores.
bool NamesTensorCores(std::string_view name) noexcept;

// Whether a kernel's name has a type of 16 or 8 bits in it (true), or other types only (false); nothing where it has
// none.
std::optional<bool> NamesHalfPrecision(std::string_view name) noexcept;

// The unit of a matrix product's or a convolution's kernel of cuBLAS, cuDNN or CUTLASS; nothing where the name does
// not tell ("nvjet_tst_128x64_…" has the type only in a code of one letter), or is of another kind of kernel.
std::optional<Precision> PrecisionOfKernel(std::string_view name);

}  // namespace rfinject

#endif  // RFINJECT_GPUS_KERNEL_NAMES_H_
