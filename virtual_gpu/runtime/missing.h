// File: missing.h
//
// What the runtime says of a function that it does not carry out. Apart from runtime.h, because the functions are
// defined where CUDA's headers, which declare them, are not read.
#ifndef RFINJECT_VIRTUAL_GPU_RUNTIME_MISSING_H_
#define RFINJECT_VIRTUAL_GPU_RUNTIME_MISSING_H_

namespace rfinject::virtual_gpu {

// Reports `name`, and makes `status`, a cudaError_t, the thread's last error. Returns it.
int RuntimeMissing(const char* name, int status);

}  // namespace rfinject::virtual_gpu

#endif  // RFINJECT_VIRTUAL_GPU_RUNTIME_MISSING_H_
