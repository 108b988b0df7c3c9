// File: kernel_names.h
//
// What the names of GPU kernels say: libraries put the instruction, the tile, the type or their own name into them.
// All of it is here, because each name is asked for by several parts: the hardware source, the imports, the alarms.
#ifndef RFINJECT_GPUS_KERNEL_NAMES_H_
#define RFINJECT_GPUS_KERNEL_NAMES_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "proto/wire/vocabulary.h"

namespace rfinject {

// Whether a kernel moves data between GPUs: those of NCCL, RCCL and NVSHMEM, and those that PyTorch, vLLM,
// TensorRT-LLM and DeepEP have of their own. The name is as the compiler has mangled it, as it is readable, or as the
// virtual GPU's stand-in has it.
bool IsCommunicationKernel(std::string_view name) noexcept;

// Whether such a kernel is of a collective at whose end all ranks have come to it: an all-reduce, an all-gather, a
// reduce-scatter, an all-to-all. NCCL makes the last of sends and receives, which two ranks may have alone as well:
// their ends tell. (A broadcast's root may be gone before the others come.)
bool AllRanksMeetIn(std::string_view name) noexcept;

// Whether a kernel of cuDNN, cuBLAS or CUTLASS multiplies on tensor cores.
bool NamesTensorCores(std::string_view name) noexcept;

// Whether a kernel's name has a type of 16 or 8 bits in it (true), or other types only (false); nothing where it has
// none.
std::optional<bool> NamesHalfPrecision(std::string_view name) noexcept;

// What a kernel does for an operator that multiplies matrices, convolves or attends.
enum class KernelRole : uint8_t {
  kMultiplies,
  kHelps,    // brings operands into another layout, transforms them, adds parts up: it multiplies nothing
  kUnknown,  // the name does not tell
};
KernelRole RoleOfKernel(std::string_view name);

// Which gradient of a convolution a kernel computes, as its name says.
enum class GradientOf : uint8_t { kUnknown, kInput, kWeight };
GradientOf GradientOfKernel(std::string_view name);

// How a kernel computes a convolution with fewer multiplications than its definition has: over tiles of `size` x
// `size` results (Winograd) or inputs (Fourier), as the names of what transforms them say ("winogradForwardData4x4",
// "fft2d_r2c_32x32"); a fused Winograd kernel has tiles of 2 x 2 results.
struct ConvolutionTiles {
  enum class Algorithm : uint8_t { kWinograd, kFourier };
  Algorithm algorithm = Algorithm::kWinograd;
  int size = 0;
};
std::optional<ConvolutionTiles> TilesOfKernel(std::string_view name);
// Whether a kernel multiplies complex matrices, as the products of Fourier's algorithm are.
bool MultipliesComplex(std::string_view name);

// The unit of a matrix product's or a convolution's kernel of cuBLAS, cuDNN or CUTLASS; nothing where the name does
// not tell, or is of another kind of kernel.
std::optional<Precision> PrecisionOfKernel(std::string_view name);

}  // namespace rfinject

#endif  // RFINJECT_GPUS_KERNEL_NAMES_H_
