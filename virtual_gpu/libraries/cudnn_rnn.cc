// cuDNN's recurrent networks: where the weights lie in their one buffer, and the kernels of a pass.
//
// The order of the weights is the stand-in's own; a caller asks for each by cudnnGetRNNWeightParams. A pass launches
// one product for all inputs of a layer and one kernel for each time step, which is how cuDNN's standard algorithm
// works.
#include <cudnn.h>

#include <algorithm>
#include <array>

#include "virtual_gpu/libraries/cudnn_descriptors.h"
#include "virtual_gpu/libraries/cudnn_handle.h"
#include "virtual_gpu/libraries/launch.h"

using namespace rfinject::virtual_gpu;

namespace {

int64_t Gates(const CudnnDescriptor& network) {
  switch (network.cell) {
    case CUDNN_LSTM:
      return 4;
    case CUDNN_GRU:
      return 3;
    default:
      return 1;
  }
}

bool HasProjection(const CudnnDescriptor& network) {
  return network.projection != 0 && network.projection != network.hidden;
}
int64_t OutputWidth(const CudnnDescriptor& network) {
  return HasProjection(network) ? network.projection : network.hidden;
}

// A pseudo-layer is one direction of a layer.
int64_t InputWidth(const CudnnDescriptor& network, int64_t pseudo_layer) {
  return pseudo_layer < network.directions ? network.input : OutputWidth(network) * network.directions;
}

// Matrix `index` of a pseudo-layer: the gates' input matrices, then their recurrent ones, then the projection.
std::array<int64_t, 2> MatrixExtents(const CudnnDescriptor& network, int64_t pseudo_layer, int64_t index) {
  const int64_t gates = Gates(network);
  if (index < gates) return {network.hidden, InputWidth(network, pseudo_layer)};
  if (index < 2 * gates) return {network.hidden, OutputWidth(network)};
  return {network.projection, network.hidden};
}
int64_t Matrices(const CudnnDescriptor& network) { return 2 * Gates(network) + (HasProjection(network) ? 1 : 0); }
int64_t Biases(const CudnnDescriptor& network) { return network.bias == CUDNN_RNN_NO_BIAS ? 0 : 2 * Gates(network); }

int64_t MatrixElements(const CudnnDescriptor& network, int64_t pseudo_layer, int64_t count) {
  int64_t elements = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto [rows, columns] = MatrixExtents(network, pseudo_layer, i);
    elements += rows * columns;
  }
  return elements;
}

// How many elements lie before the matrices (`biases` false) or the biases of a pseudo-layer.
int64_t LayerOffset(const CudnnDescriptor& network, int64_t pseudo_layer) {
  int64_t elements = 0;
  for (int64_t i = 0; i < pseudo_layer; ++i) {
    elements += MatrixElements(network, i, Matrices(network)) + Biases(network) * network.hidden;
  }
  return elements;
}

void Describe(cudnnTensorDescriptor_t tensor, cudnnDataType_t type, int64_t rows, int64_t columns) {
  Of(tensor)->type = type;
  Of(tensor)->extents = {1, static_cast<int>(rows), static_cast<int>(columns)};
  Of(tensor)->strides = {static_cast<int>(rows * columns), static_cast<int>(columns), 1};
}

cudnnStatus_t Pass(cudnnHandle_t handle, const CudnnDescriptor& network, const CudnnDescriptor& data,
                   const char* direction) {
  const char* cell = network.cell == CUDNN_LSTM ? "lstm" : network.cell == CUDNN_GRU ? "gru" : "rnn";
  const std::string name = std::string("standin_cudnn_") + cell + "_" + direction;
  for (int64_t layer = 0; layer < network.layers * network.directions; ++layer) {
    LaunchStandin(name + "_input",
                  {.blocks = Blocks(data.longest * data.batch * Gates(network) * network.hidden, 8192)},
                  handle->stream);
    for (int64_t step = 0; step < data.longest; ++step) {
      LaunchStandin(name + "_step", {.blocks = Blocks(data.batch * Gates(network) * network.hidden, 4096)},
                    handle->stream);
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

RFINJECT_STANDIN cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t descriptor, cudnnRNNAlgo_t,
                                                        cudnnRNNMode_t cell, cudnnRNNBiasMode_t bias,
                                                        cudnnDirectionMode_t directions, cudnnRNNInputMode_t,
                                                        cudnnDataType_t type, cudnnDataType_t, cudnnMathType_t,
                                                        int32_t input, int32_t hidden, int32_t projection,
                                                        int32_t layers, cudnnDropoutDescriptor_t, uint32_t) {
  CudnnDescriptor& network = *Of(descriptor);
  network.cell = cell;
  network.bias = bias;
  network.directions = directions == CUDNN_BIDIRECTIONAL ? 2 : 1;
  network.type = type;
  network.input = input;
  network.hidden = hidden;
  network.projection = projection;
  network.layers = layers;
  return CUDNN_STATUS_SUCCESS;
}
RFINJECT_STANDIN cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t descriptor, cudnnDataType_t type,
                                                         cudnnRNNDataLayout_t, int longest, int batch, int,
                                                         const int[], void*) {
  Of(descriptor)->type = type;
  Of(descriptor)->longest = longest;
  Of(descriptor)->batch = batch;
  return CUDNN_STATUS_SUCCESS;
}
RFINJECT_STANDIN cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t, cudnnRNNDescriptor_t descriptor,
                                                          size_t* bytes) {
  const CudnnDescriptor& network = *Of(descriptor);
  *bytes =
      static_cast<size_t>(LayerOffset(network, network.layers * network.directions) * ElementBytes(network.type));
  return CUDNN_STATUS_SUCCESS;
}
RFINJECT_STANDIN cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t, cudnnRNNDescriptor_t descriptor,
                                                       int32_t pseudo_layer, size_t, const void* weights,
                                                       int32_t index, cudnnTensorDescriptor_t matrix,
                                                       void** matrix_at, cudnnTensorDescriptor_t bias,
                                                       void** bias_at) {
  const CudnnDescriptor& network = *Of(descriptor);
  const int64_t bytes = ElementBytes(network.type);
  auto* base = static_cast<char*>(const_cast<void*>(weights)) + LayerOffset(network, pseudo_layer) * bytes;
  // A caller leaves out what it does not ask for.
  if (matrix_at != nullptr) *matrix_at = nullptr;
  if (bias_at != nullptr) *bias_at = nullptr;
  if (matrix != nullptr && matrix_at != nullptr && index < Matrices(network)) {
    const auto [rows, columns] = MatrixExtents(network, pseudo_layer, index);
    Describe(matrix, network.type, rows, columns);
    *matrix_at = base + MatrixElements(network, pseudo_layer, index) * bytes;
  }
  if (bias != nullptr && bias_at != nullptr && index < Biases(network)) {
    Describe(bias, network.type, network.hidden, 1);
    *bias_at = base + (MatrixElements(network, pseudo_layer, Matrices(network)) + index * network.hidden) * bytes;
  }
  return CUDNN_STATUS_SUCCESS;
}
// In training cuDNN keeps the gates and the cell of every step for the backward pass.
RFINJECT_STANDIN cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t, cudnnRNNDescriptor_t descriptor,
                                                         cudnnForwardMode_t mode, cudnnRNNDataDescriptor_t data,
                                                         size_t* workspace_bytes, size_t* reserve_bytes) {
  const CudnnDescriptor& network = *Of(descriptor);
  const int64_t step = Of(data)->batch * network.hidden * ElementBytes(network.type);
  const int64_t all = step * Of(data)->longest * network.layers * network.directions * (Gates(network) + 1);
  // In the backward pass the reserve exists already, and the caller does not ask for its size.
  if (workspace_bytes != nullptr) *workspace_bytes = static_cast<size_t>(step * Gates(network));
  if (reserve_bytes != nullptr) *reserve_bytes = mode == CUDNN_FWD_MODE_TRAINING ? static_cast<size_t>(all) : 0;
  return CUDNN_STATUS_SUCCESS;
}
RFINJECT_STANDIN cudnnStatus_t cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t network, cudnnForwardMode_t,
                                               const int32_t[], cudnnRNNDataDescriptor_t x, const void*,
                                               cudnnRNNDataDescriptor_t, void*, cudnnTensorDescriptor_t, const void*,
                                               void*, cudnnTensorDescriptor_t, const void*, void*, size_t,
                                               const void*, size_t, void*, size_t, void*) {
  return Pass(handle, *Of(network), *Of(x), "forward");
}
RFINJECT_STANDIN cudnnStatus_t cudnnRNNBackwardData_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t network,
                                                       const int32_t[], cudnnRNNDataDescriptor_t y, const void*,
                                                       const void*, cudnnRNNDataDescriptor_t, void*,
                                                       cudnnTensorDescriptor_t, const void*, const void*, void*,
                                                       cudnnTensorDescriptor_t, const void*, const void*, void*,
                                                       size_t, const void*, size_t, void*, size_t, void*) {
  return Pass(handle, *Of(network), *Of(y), "backward_data");
}
RFINJECT_STANDIN cudnnStatus_t cudnnRNNBackwardWeights_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t network,
                                                          cudnnWgradMode_t, const int32_t[],
                                                          cudnnRNNDataDescriptor_t x, const void*,
                                                          cudnnTensorDescriptor_t, const void*,
                                                          cudnnRNNDataDescriptor_t, const void*, size_t, void*,
                                                          size_t, void*, size_t, void*) {
  const int64_t layers = Of(network)->layers * Of(network)->directions;
  for (int64_t layer = 0; layer < layers; ++layer) {
    const int64_t elements = MatrixElements(*Of(network), layer, Matrices(*Of(network)));
    LaunchStandin("standin_cudnn_rnn_backward_weights", {.blocks = Blocks(elements, int64_t{128} * 128)},
                  handle->stream);
  }
  (void)x;
  return CUDNN_STATUS_SUCCESS;
}
