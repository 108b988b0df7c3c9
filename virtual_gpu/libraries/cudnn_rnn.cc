// cuDNN's recurrent networks: where the weights lie in their one buffer, and the kernels of a pass.
//
// The order of the weights is the stand-in's own; a caller asks for each by cudnnGetRNNWeightParams. A pass launches
// one product for all inputs of a layer and one kernel for each time step, which is how cuDNN's standard algorithm
// works.
#include <cudnn.h>

#include <algorithm>
#include <array>

#include "virtual_gpu/libraries/cudnn_descriptors.h"
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

cudnnStatus_t Pass(cudnnHandle_t handle, const CudnnDescriptor& network, int64_t longest, int64_t batch,
                   const char* direction) {
  const char* cell = network.cell == CUDNN_LSTM ? "lstm" : network.cell == CUDNN_GRU ? "gru" : "rnn";
  const std::string name = std::string("standin_cudnn_") + cell + "_" + direction;
  for (int64_t layer = 0; layer < network.layers * network.directions; ++layer) {
    LaunchStandin(name + "_input", {.blocks = Blocks(longest * batch * Gates(network) * network.hidden, 8192)},
                  handle->stream);
    for (int64_t step = 0; step < longest; ++step) {
      LaunchStandin(name + "_step", {.blocks = Blocks(batch * Gates(network) * network.hidden, 4096)},
                    handle->stream);
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t WeightsPass(cudnnHandle_t handle, const CudnnDescriptor& network) {
  for (int64_t layer = 0; layer < network.layers * network.directions; ++layer) {
    const int64_t elements = MatrixElements(network, layer, Matrices(network));
    LaunchStandin("standin_cudnn_rnn_backward_weights", {.blocks = Blocks(elements, int64_t{128} * 128)},
                  handle->stream);
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
  return Pass(handle, *Of(network), Of(x)->longest, Of(x)->batch, "forward");
}
RFINJECT_STANDIN cudnnStatus_t cudnnRNNBackwardData_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t network,
                                                       const int32_t[], cudnnRNNDataDescriptor_t y, const void*,
                                                       const void*, cudnnRNNDataDescriptor_t, void*,
                                                       cudnnTensorDescriptor_t, const void*, const void*, void*,
                                                       cudnnTensorDescriptor_t, const void*, const void*, void*,
                                                       size_t, const void*, size_t, void*, size_t, void*) {
  return Pass(handle, *Of(network), Of(y)->longest, Of(y)->batch, "backward_data");
}
RFINJECT_STANDIN cudnnStatus_t cudnnRNNBackwardWeights_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t network,
                                                          cudnnWgradMode_t, const int32_t[], cudnnRNNDataDescriptor_t,
                                                          const void*, cudnnTensorDescriptor_t, const void*,
                                                          cudnnRNNDataDescriptor_t, const void*, size_t, void*,
                                                          size_t, void*, size_t, void*) {
  return WeightsPass(handle, *Of(network));
}

#if CUDNN_MAJOR < 9
// The interface of version 6, which PyTorch took up to cuDNN 8. The input of each step has a descriptor of its own,
// [batch, width, 1]; the first step's batch is the largest.
namespace {

int64_t Extent(cudnnTensorDescriptor_t tensor, size_t dimension) {
  return dimension < Of(tensor)->extents.size() ? Of(tensor)->extents[dimension] : 1;
}

// Where a matrix or a bias lies: the weights' address is that of their first.
cudnnStatus_t Find(const CudnnDescriptor& network, int64_t pseudo_layer, int64_t elements, int64_t rows,
                   int64_t columns, const void* weights, cudnnFilterDescriptor_t found, void** at) {
  Of(found)->type = network.type;
  Of(found)->extents = {1, static_cast<int>(rows), static_cast<int>(columns)};
  *at = static_cast<char*>(const_cast<void*>(weights)) +
        (LayerOffset(network, pseudo_layer) + elements) * ElementBytes(network.type);
  return CUDNN_STATUS_SUCCESS;
}

// The network, with what only its input and its weights say of it.
const CudnnDescriptor& NetworkOf(cudnnRNNDescriptor_t descriptor, cudnnTensorDescriptor_t x,
                                 cudnnFilterDescriptor_t weights) {
  CudnnDescriptor& network = *Of(descriptor);
  network.type = Of(weights)->type;
  network.input = Extent(x, 1);
  return network;
}

}  // namespace

RFINJECT_STANDIN cudnnStatus_t cudnnSetRNNDescriptor_v6(cudnnHandle_t, cudnnRNNDescriptor_t descriptor,
                                                        const int hidden, const int layers, cudnnDropoutDescriptor_t,
                                                        cudnnRNNInputMode_t, cudnnDirectionMode_t directions,
                                                        cudnnRNNMode_t cell, cudnnRNNAlgo_t, cudnnDataType_t) {
  CudnnDescriptor& network = *Of(descriptor);
  network.cell = cell;
  network.directions = directions == CUDNN_BIDIRECTIONAL ? 2 : 1;
  network.hidden = hidden;
  network.projection = hidden;
  network.layers = layers;
  return CUDNN_STATUS_SUCCESS;
}
RFINJECT_STANDIN cudnnStatus_t cudnnSetRNNMatrixMathType(cudnnRNNDescriptor_t, cudnnMathType_t) {
  return CUDNN_STATUS_SUCCESS;
}
RFINJECT_STANDIN cudnnStatus_t cudnnSetRNNProjectionLayers(cudnnHandle_t, cudnnRNNDescriptor_t descriptor,
                                                           const int projection, const int) {
  Of(descriptor)->projection = projection;
  return CUDNN_STATUS_SUCCESS;
}
RFINJECT_STANDIN cudnnStatus_t cudnnGetRNNParamsSize(cudnnHandle_t handle, const cudnnRNNDescriptor_t descriptor,
                                                     const cudnnTensorDescriptor_t x, size_t* bytes,
                                                     cudnnDataType_t type) {
  Of(descriptor)->type = type;
  Of(descriptor)->input = Extent(x, 1);
  return cudnnGetRNNWeightSpaceSize(handle, descriptor, bytes);
}
RFINJECT_STANDIN cudnnStatus_t cudnnGetRNNWorkspaceSize(cudnnHandle_t, const cudnnRNNDescriptor_t descriptor,
                                                        const int, const cudnnTensorDescriptor_t* x, size_t* bytes) {
  const CudnnDescriptor& network = *Of(descriptor);
  *bytes = static_cast<size_t>(Extent(x[0], 0) * network.hidden * Gates(network) * ElementBytes(Of(x[0])->type));
  return CUDNN_STATUS_SUCCESS;
}
RFINJECT_STANDIN cudnnStatus_t cudnnGetRNNTrainingReserveSize(cudnnHandle_t, const cudnnRNNDescriptor_t descriptor,
                                                              const int longest, const cudnnTensorDescriptor_t* x,
                                                              size_t* bytes) {
  const CudnnDescriptor& network = *Of(descriptor);
  *bytes = static_cast<size_t>(Extent(x[0], 0) * network.hidden * ElementBytes(Of(x[0])->type) * longest *
                               network.layers * network.directions * (Gates(network) + 1));
  return CUDNN_STATUS_SUCCESS;
}
RFINJECT_STANDIN cudnnStatus_t cudnnGetRNNLinLayerMatrixParams(cudnnHandle_t, const cudnnRNNDescriptor_t descriptor,
                                                               const int pseudo_layer,
                                                               const cudnnTensorDescriptor_t x,
                                                               const cudnnFilterDescriptor_t weights,
                                                               const void* address, const int index,
                                                               cudnnFilterDescriptor_t found, void** at) {
  const CudnnDescriptor& network = NetworkOf(descriptor, x, weights);
  const auto [rows, columns] = MatrixExtents(network, pseudo_layer, index);
  return Find(network, pseudo_layer, MatrixElements(network, pseudo_layer, index), rows, columns, address, found, at);
}
RFINJECT_STANDIN cudnnStatus_t cudnnGetRNNLinLayerBiasParams(cudnnHandle_t, const cudnnRNNDescriptor_t descriptor,
                                                             const int pseudo_layer, const cudnnTensorDescriptor_t x,
                                                             const cudnnFilterDescriptor_t weights,
                                                             const void* address, const int index,
                                                             cudnnFilterDescriptor_t found, void** at) {
  const CudnnDescriptor& network = NetworkOf(descriptor, x, weights);
  const int64_t before = MatrixElements(network, pseudo_layer, Matrices(network)) + index * network.hidden;
  return Find(network, pseudo_layer, before, network.hidden, 1, address, found, at);
}
RFINJECT_STANDIN cudnnStatus_t cudnnRNNForwardTraining(
    cudnnHandle_t handle, const cudnnRNNDescriptor_t network, const int longest, const cudnnTensorDescriptor_t* x,
    const void*, const cudnnTensorDescriptor_t, const void*, const cudnnTensorDescriptor_t, const void*,
    const cudnnFilterDescriptor_t, const void*, const cudnnTensorDescriptor_t*, void*, const cudnnTensorDescriptor_t,
    void*, const cudnnTensorDescriptor_t, void*, void*, size_t, void*, size_t) {
  return Pass(handle, *Of(network), longest, Extent(x[0], 0), "forward");
}
RFINJECT_STANDIN cudnnStatus_t cudnnRNNForwardInference(
    cudnnHandle_t handle, const cudnnRNNDescriptor_t network, const int longest, const cudnnTensorDescriptor_t* x,
    const void*, const cudnnTensorDescriptor_t, const void*, const cudnnTensorDescriptor_t, const void*,
    const cudnnFilterDescriptor_t, const void*, const cudnnTensorDescriptor_t*, void*, const cudnnTensorDescriptor_t,
    void*, const cudnnTensorDescriptor_t, void*, void*, size_t) {
  return Pass(handle, *Of(network), longest, Extent(x[0], 0), "forward");
}
RFINJECT_STANDIN cudnnStatus_t cudnnRNNBackwardData(
    cudnnHandle_t handle, const cudnnRNNDescriptor_t network, const int longest, const cudnnTensorDescriptor_t* y,
    const void*, const cudnnTensorDescriptor_t*, const void*, const cudnnTensorDescriptor_t, const void*,
    const cudnnTensorDescriptor_t, const void*, const cudnnFilterDescriptor_t, const void*,
    const cudnnTensorDescriptor_t, const void*, const cudnnTensorDescriptor_t, const void*,
    const cudnnTensorDescriptor_t*, void*, const cudnnTensorDescriptor_t, void*, const cudnnTensorDescriptor_t, void*,
    void*, size_t, void*, size_t) {
  return Pass(handle, *Of(network), longest, Extent(y[0], 0), "backward_data");
}
RFINJECT_STANDIN cudnnStatus_t cudnnRNNBackwardWeights(cudnnHandle_t handle, const cudnnRNNDescriptor_t network,
                                                       const int, const cudnnTensorDescriptor_t*, const void*,
                                                       const cudnnTensorDescriptor_t, const void*,
                                                       const cudnnTensorDescriptor_t*, const void*, const void*,
                                                       size_t, const cudnnFilterDescriptor_t, void*, const void*,
                                                       size_t) {
  return WeightsPass(handle, *Of(network));
}
#endif
