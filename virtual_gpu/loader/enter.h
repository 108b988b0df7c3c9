// File: enter.h
//
// The one function of librfinject_virtual_gpu.so: puts a virtual GPU into this process, before torch is loaded.
#ifndef RFINJECT_VIRTUAL_GPU_LOADER_ENTER_H_
#define RFINJECT_VIRTUAL_GPU_LOADER_ENTER_H_

#include "virtual_gpu/virtual_gpu.h"

// `torch_libraries` is the folder with the libtorch_cuda.so that will be imported next. Loads the driver, and the
// runtime and stand-ins for the CUDA that this torch was built for, from the folder of this library; then, under the
// names of NVIDIA's libraries, empty ones, so that theirs are never opened. Returns null, or why there is no virtual
// GPU (a static string; the process is then as before, or has libraries loaded that are not called).
extern "C" const char* rfinject_virtual_gpu_enter(const char* torch_libraries,
                                                  const struct rfinject_virtual_board* board);

#endif  // RFINJECT_VIRTUAL_GPU_LOADER_ENTER_H_
