// File: launch.h
//
// What the stand-ins for NVIDIA's libraries share: each of their calls that would run kernels launches one, which has
// a name that says what it stands for ("standin_…") and a grid that the result's size suggests. Nothing is computed.
#ifndef RFINJECT_VIRTUAL_GPU_LIBRARIES_LAUNCH_H_
#define RFINJECT_VIRTUAL_GPU_LIBRARIES_LAUNCH_H_

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

#include <string>

#include "virtual_gpu/success.h"

#define RFINJECT_STANDIN extern "C" __attribute__((visibility("default")))

namespace rfinject::virtual_gpu {

struct Shape {
  int64_t blocks = 1, y = 1, z = 1;
  unsigned threads = 256;
  // The work that the kernel stands for, where that is plain from the call; 0: not known.
  double flop = 0, bytes = 0;
};

// Launches the kernel of that name on `stream`. Grids that no device takes are cut to what it takes.
void LaunchStandin(const std::string& name, const Shape& shape, CUstream stream);

// How many of `unit` cover `value`.
constexpr int64_t Blocks(int64_t value, int64_t unit) { return (value + unit - 1) / unit; }

// "volta", "turing", "ampere", "sm90", …: as the libraries' kernels name their chip.
const char* ChipWord();

}  // namespace rfinject::virtual_gpu

#endif  // RFINJECT_VIRTUAL_GPU_LIBRARIES_LAUNCH_H_
