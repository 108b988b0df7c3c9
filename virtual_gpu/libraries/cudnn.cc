// cuDNN's older interface: handles, descriptors, batch normalization, dropout, spatial transformers.
#include <cudnn.h>
#include <stdio.h>

#include <algorithm>

#include "virtual_gpu/libraries/cudnn_descriptors.h"
#include "virtual_gpu/libraries/launch.h"

using namespace rfinject::virtual_gpu;

namespace {

// PyTorch refuses a library with a smaller minor version than that of the headers which it was compiled with. So the
// stand-in says a high one, and has what the program calls, whichever version that is of.
constexpr int kMinor = CUDNN_MAJOR < 9 ? 9 : 99;
constexpr size_t kVersion = CUDNN_MAJOR * (CUDNN_MAJOR < 9 ? 1000 : 10000) + kMinor * 100;

int64_t Channels(cudnnTensorDescriptor_t tensor) {
  const auto& extents = Of(tensor)->extents;
  return extents.size() > 1 ? extents[1] : 1;
}

cudnnStatus_t Launch(cudnnHandle_t handle, const char* name, int64_t blocks, unsigned threads) {
  LaunchStandin(std::string("standin_cudnn_") + name, {.blocks = blocks, .threads = threads}, handle->stream);
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

RFINJECT_STANDIN size_t cudnnGetVersion() { return kVersion; }
RFINJECT_STANDIN size_t cudnnGetCudartVersion() { return CUDART_VERSION; }
RFINJECT_STANDIN cudnnStatus_t cudnnGetProperty(libraryPropertyType type, int* value) {
  *value = type == MAJOR_VERSION ? CUDNN_MAJOR : type == MINOR_VERSION ? kMinor : 0;
  return CUDNN_STATUS_SUCCESS;
}
RFINJECT_STANDIN const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_BAD_PARAM:
      return "CUDNN_STATUS_BAD_PARAM";
    default:
      return "CUDNN_STATUS_NOT_SUPPORTED";
  }
}
RFINJECT_STANDIN void cudnnGetLastErrorString(char* message, size_t bytes) {
  snprintf(message, bytes, "the virtual GPU's cuDNN cannot do this");
}
RFINJECT_STANDIN cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) { return Set(handle, new cudnnContext); }
RFINJECT_STANDIN cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) { return Unmake(handle); }
RFINJECT_STANDIN cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  return Set(&handle->stream, stream);
}
RFINJECT_STANDIN cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  return Set(stream, handle->stream);
}

#define DESCRIPTOR(name)                                                                                \
  RFINJECT_STANDIN cudnnStatus_t cudnnCreate##name##Descriptor(cudnn##name##Descriptor_t* descriptor) { \
    *descriptor = reinterpret_cast<cudnn##name##Descriptor_t>(new CudnnDescriptor);                     \
    return CUDNN_STATUS_SUCCESS;                                                                        \
  }                                                                                                     \
  RFINJECT_STANDIN cudnnStatus_t cudnnDestroy##name##Descriptor(cudnn##name##Descriptor_t descriptor) { \
    delete Of(descriptor);                                                                              \
    return CUDNN_STATUS_SUCCESS;                                                                        \
  }
DESCRIPTOR(Tensor)
DESCRIPTOR(Filter)
DESCRIPTOR(Convolution)
DESCRIPTOR(Activation)
DESCRIPTOR(Dropout)
DESCRIPTOR(Pooling)
DESCRIPTOR(RNN)
DESCRIPTOR(RNNData)
DESCRIPTOR(CTCLoss)
DESCRIPTOR(SpatialTransformer)
#undef DESCRIPTOR

RFINJECT_STANDIN cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensor, cudnnDataType_t type,
                                                          int rank, const int extents[], const int strides[]) {
  Of(tensor)->type = type;
  Of(tensor)->extents.assign(extents, extents + rank);
  Of(tensor)->strides.assign(strides, strides + rank);
  return CUDNN_STATUS_SUCCESS;
}
RFINJECT_STANDIN cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t tensor, int wanted,
                                                          cudnnDataType_t* type, int* rank, int extents[],
                                                          int strides[]) {
  const int known = static_cast<int>(Of(tensor)->extents.size());
  // A caller leaves out what it does not ask for.
  if (type != nullptr) *type = Of(tensor)->type;
  if (rank != nullptr) *rank = known;
  for (int i = 0; i < std::min(wanted, known); ++i) {
    if (extents != nullptr) extents[i] = Of(tensor)->extents[static_cast<size_t>(i)];
    if (strides != nullptr) strides[i] = Of(tensor)->strides[static_cast<size_t>(i)];
  }
  return CUDNN_STATUS_SUCCESS;
}
RFINJECT_STANDIN cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                                          cudnnTensorFormat_t format, int rank, const int extents[]) {
  Of(filter)->type = type;
  Of(filter)->format = format;
  Of(filter)->extents.assign(extents, extents + rank);
  return CUDNN_STATUS_SUCCESS;
}
RFINJECT_STANDIN cudnnStatus_t cudnnGetFilterNdDescriptor(const cudnnFilterDescriptor_t filter, int wanted,
                                                          cudnnDataType_t* type, cudnnTensorFormat_t* format,
                                                          int* rank, int extents[]) {
  *type = Of(filter)->type;
  *format = Of(filter)->format;
  *rank = static_cast<int>(Of(filter)->extents.size());
  for (int i = 0; i < std::min(wanted, *rank); ++i) extents[i] = Of(filter)->extents[static_cast<size_t>(i)];
  return CUDNN_STATUS_SUCCESS;
}
RFINJECT_STANDIN cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t, cudnnActivationMode_t,
                                                            cudnnNanPropagation_t, double) {
  return CUDNN_STATUS_SUCCESS;
}

// --- Batch normalization: each call launches one kernel, in training with a block for each channel.
RFINJECT_STANDIN cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t, cudnnBatchNormMode_t, cudnnBatchNormOps_t, const cudnnTensorDescriptor_t,
    const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnActivationDescriptor_t, size_t* bytes) {
  return Set(bytes, 0);
}
RFINJECT_STANDIN cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t, cudnnBatchNormMode_t, cudnnBatchNormOps_t, const cudnnTensorDescriptor_t,
    const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t, const cudnnActivationDescriptor_t, size_t* bytes) {
  return Set(bytes, 0);
}
RFINJECT_STANDIN cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
    cudnnHandle_t, cudnnBatchNormMode_t, cudnnBatchNormOps_t, const cudnnActivationDescriptor_t,
    const cudnnTensorDescriptor_t, size_t* bytes) {
  return Set(bytes, 0);
}
RFINJECT_STANDIN cudnnStatus_t cudnnBatchNormalizationForwardTrainingEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t, cudnnBatchNormOps_t, const void*, const void*,
    const cudnnTensorDescriptor_t x, const void*, const cudnnTensorDescriptor_t, const void*,
    const cudnnTensorDescriptor_t, void*, const cudnnTensorDescriptor_t, const void*, const void*, double, void*,
    void*, double, void*, void*, cudnnActivationDescriptor_t, void*, size_t, void*, size_t) {
  return Launch(handle, "bn_fw_tr", Channels(x), 512);
}
RFINJECT_STANDIN cudnnStatus_t cudnnBatchNormalizationForwardInference(
    cudnnHandle_t handle, cudnnBatchNormMode_t, const void*, const void*, const cudnnTensorDescriptor_t x,
    const void*, const cudnnTensorDescriptor_t, void*, const cudnnTensorDescriptor_t, const void*, const void*,
    const void*, const void*, double) {
  return Launch(handle, "bn_fw_inf", Blocks(Of(x)->Elements(), 1024), 256);
}
RFINJECT_STANDIN cudnnStatus_t cudnnBatchNormalizationBackwardEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t, cudnnBatchNormOps_t, const void*, const void*, const void*,
    const void*, const cudnnTensorDescriptor_t x, const void*, const cudnnTensorDescriptor_t, const void*,
    const cudnnTensorDescriptor_t, const void*, const cudnnTensorDescriptor_t, void*, const cudnnTensorDescriptor_t,
    void*, const cudnnTensorDescriptor_t, const void*, const void*, void*, void*, double, const void*, const void*,
    cudnnActivationDescriptor_t, void*, size_t, void*, size_t) {
  return Launch(handle, "bn_bw", Channels(x), 512);
}

// --- Dropout, which the recurrent networks use.
RFINJECT_STANDIN cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t, size_t* bytes) { return Set(bytes, 1 << 20); }
RFINJECT_STANDIN cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t, cudnnHandle_t handle, float, void*,
                                                         size_t, unsigned long long) {
  return Launch(handle, "dropout_init", 128, 256);
}
RFINJECT_STANDIN cudnnStatus_t cudnnRestoreDropoutDescriptor(cudnnDropoutDescriptor_t, cudnnHandle_t, float, void*,
                                                             size_t, unsigned long long) {
  return CUDNN_STATUS_SUCCESS;
}

// --- Spatial transformers: grid_sample and affine_grid.
RFINJECT_STANDIN cudnnStatus_t cudnnSetSpatialTransformerNdDescriptor(cudnnSpatialTransformerDescriptor_t descriptor,
                                                                      cudnnSamplerType_t, cudnnDataType_t type,
                                                                      const int rank, const int extents[]) {
  Of(descriptor)->type = type;
  Of(descriptor)->extents.assign(extents, extents + rank);
  return CUDNN_STATUS_SUCCESS;
}
RFINJECT_STANDIN cudnnStatus_t cudnnSpatialTfGridGeneratorForward(
    cudnnHandle_t handle, const cudnnSpatialTransformerDescriptor_t descriptor, const void*, void*) {
  return Launch(handle, "grid_generator_fw", Blocks(Of(descriptor)->Elements(), 256), 256);
}
RFINJECT_STANDIN cudnnStatus_t cudnnSpatialTfGridGeneratorBackward(
    cudnnHandle_t handle, const cudnnSpatialTransformerDescriptor_t descriptor, const void*, void*) {
  return Launch(handle, "grid_generator_bw", Blocks(Of(descriptor)->Elements(), 256), 256);
}
RFINJECT_STANDIN cudnnStatus_t cudnnSpatialTfSamplerForward(cudnnHandle_t handle, cudnnSpatialTransformerDescriptor_t,
                                                            const void*, const cudnnTensorDescriptor_t, const void*,
                                                            const void*, const void*, cudnnTensorDescriptor_t y,
                                                            void*) {
  return Launch(handle, "sampler_fw", Blocks(Of(y)->Elements(), 256), 256);
}
RFINJECT_STANDIN cudnnStatus_t cudnnSpatialTfSamplerBackward(cudnnHandle_t handle,
                                                             cudnnSpatialTransformerDescriptor_t, const void*,
                                                             const cudnnTensorDescriptor_t, const void*, const void*,
                                                             const cudnnTensorDescriptor_t dx, void*, const void*,
                                                             const cudnnTensorDescriptor_t, const void*, const void*,
                                                             const void*, void*) {
  return Launch(handle, "sampler_bw", Blocks(Of(dx)->Elements(), 256), 256);
}
