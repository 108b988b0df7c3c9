// File: cudnn_descriptors.h
//
// What stands behind cuDNN's handles, and behind every descriptor of its older interface: it keeps what it is told.
#ifndef RFINJECT_VIRTUAL_GPU_LIBRARIES_CUDNN_DESCRIPTORS_H_
#define RFINJECT_VIRTUAL_GPU_LIBRARIES_CUDNN_DESCRIPTORS_H_

#include <cuda.h>
#include <cudnn.h>
#include <stdint.h>

#include <vector>

struct cudnnContext {
  CUstream stream = nullptr;
};

namespace rfinject::virtual_gpu {

// The size in bytes of an element of a tensor's type; for types that training does not use, that of FP32.
inline int64_t ElementBytes(int64_t type) {
  switch (type) {
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
      return 2;
    case CUDNN_DATA_DOUBLE:
      return 8;
    default:
      return 4;
  }
}

struct CudnnDescriptor {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW;
  std::vector<int> extents, strides;

  // A recurrent network.
  cudnnRNNMode_t cell = CUDNN_LSTM;
  cudnnRNNBiasMode_t bias = CUDNN_RNN_DOUBLE_BIAS;
  int64_t input = 0, hidden = 0, projection = 0, layers = 0, directions = 1;
  // A batch of sequences.
  int64_t longest = 0, batch = 0;

  int64_t Elements() const {
    int64_t product = 1;
    for (const int extent : extents) product *= extent;
    return product;
  }
};

// Returns the descriptor behind one of the library's opaque handles.
template <typename Handle>
CudnnDescriptor* Of(Handle handle) {
  return reinterpret_cast<CudnnDescriptor*>(handle);
}

}  // namespace rfinject::virtual_gpu

#endif  // RFINJECT_VIRTUAL_GPU_LIBRARIES_CUDNN_DESCRIPTORS_H_
