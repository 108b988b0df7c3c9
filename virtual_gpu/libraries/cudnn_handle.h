// File: cudnn_handle.h
//
// cuDNN's handle, which both of its interfaces share.
#ifndef RFINJECT_VIRTUAL_GPU_LIBRARIES_CUDNN_HANDLE_H_
#define RFINJECT_VIRTUAL_GPU_LIBRARIES_CUDNN_HANDLE_H_

#include <cuda.h>

struct cudnnContext {
  CUstream stream = nullptr;
};

#endif  // RFINJECT_VIRTUAL_GPU_LIBRARIES_CUDNN_HANDLE_H_
