// File: gemm.h
//
// The kernel that stands for a matrix product of cuBLAS or cuBLASLt: its tile and its grid.
#ifndef RFINJECT_VIRTUAL_GPU_LIBRARIES_GEMM_H_
#define RFINJECT_VIRTUAL_GPU_LIBRARIES_GEMM_H_

#include <cuda.h>
#include <library_types.h>
#include <stdint.h>

namespace rfinject::virtual_gpu {

struct GemmCall {
  const char* library;
  cudaDataType type;  // of the operands
  bool transpose_a, transpose_b;
  int64_t rows, columns, batch;  // of the result
  int64_t inner;                 // what is summed over
};

// Bytes of one number of that type.
double ElementBytes(cudaDataType type);

// Launches a stand-in with a name, a grid, FLOP and bytes as a kernel for this product would have them; nothing is
// computed.
void LaunchGemm(const GemmCall& call, CUstream stream);

}  // namespace rfinject::virtual_gpu

#endif  // RFINJECT_VIRTUAL_GPU_LIBRARIES_GEMM_H_
