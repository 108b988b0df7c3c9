#include "virtual_gpu/libraries/gemm.h"

#include <stdio.h>

#include "virtual_gpu/libraries/launch.h"

namespace rfinject::virtual_gpu {
namespace {

// CUDA_R_8F_E4M3 and CUDA_R_8F_E5M2, which the headers of CUDA 11.7 lack.
bool IsFp8(cudaDataType type) { return static_cast<int>(type) == 28 || static_cast<int>(type) == 29; }

const char* TypeWord(cudaDataType type) {
  if (IsFp8(type)) return "f8";
  switch (type) {
    case CUDA_R_16F:
      return "h";
    case CUDA_R_16BF:
      return "bf16";
    case CUDA_R_64F:
      return "d";
    case CUDA_C_32F:
      return "c";
    case CUDA_C_64F:
      return "z";
    case CUDA_R_8I:
      return "i8";
    default:
      return "s";
  }
}

// The libraries take smaller tiles where large ones would leave SMs without work.
constexpr int64_t kLargeTile = 128;
constexpr int64_t kSmallTile = 64;
constexpr int64_t kBlocksWorthLargeTiles = 80;

}  // namespace

double ElementBytes(cudaDataType type) {
  if (IsFp8(type)) return 1;
  switch (type) {
    case CUDA_R_8I:
      return 1;
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return 2;
    case CUDA_R_64F:
    case CUDA_C_32F:
      return 8;
    case CUDA_C_64F:
      return 16;
    default:
      return 4;
  }
}

void LaunchGemm(const GemmCall& call, CUstream stream) {
  const int64_t large = Blocks(call.rows, kLargeTile) * Blocks(call.columns, kLargeTile) * call.batch;
  const int64_t tile = large < kBlocksWorthLargeTiles ? kSmallTile : kLargeTile;
  char name[128];
  snprintf(name, sizeof name, "standin_%s_%s_%sgemm_%dx%d_%c%c", call.library, ChipWord(), TypeWord(call.type),
           static_cast<int>(tile), static_cast<int>(tile), call.transpose_a ? 't' : 'n',
           call.transpose_b ? 't' : 'n');
  const auto rows = static_cast<double>(call.rows), columns = static_cast<double>(call.columns);
  const auto inner = static_cast<double>(call.inner), batch = static_cast<double>(call.batch);
  LaunchStandin(name,
                {.blocks = Blocks(call.rows, tile),
                 .y = Blocks(call.columns, tile),
                 .z = call.batch,
                 .threads = tile == kLargeTile ? 256u : 128u,
                 .flop = 2 * rows * columns * inner * batch,
                 .bytes = (rows * inner + inner * columns + rows * columns) * batch * ElementBytes(call.type)},
                stream);
}

}  // namespace rfinject::virtual_gpu
