// cuBLASLt: descriptors keep what they are told, the heuristic answers with one algorithm that needs no workspace.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <string.h>

#include <map>
#include <string>

#include "virtual_gpu/libraries/gemm.h"
#include "virtual_gpu/libraries/launch.h"

using namespace rfinject::virtual_gpu;

namespace {

// Behind all three kinds of descriptor: attributes by their number.
struct LtDescriptor {
  std::map<int, std::string> attributes;
  cudaDataType type = CUDA_R_32F;
  uint64_t rows = 0, columns = 0;

  cublasStatus_t Set(int attribute, const void* value, size_t bytes) {
    attributes[attribute].assign(static_cast<const char*>(value), bytes);
    return CUBLAS_STATUS_SUCCESS;
  }
  template <typename T>
  T Get(int attribute, T otherwise) const {
    const auto at = attributes.find(attribute);
    if (at == attributes.end() || at->second.size() < sizeof(T)) return otherwise;
    T value;
    memcpy(&value, at->second.data(), sizeof value);
    return value;
  }
};

template <typename Handle>
LtDescriptor* LtOf(Handle handle) {
  return reinterpret_cast<LtDescriptor*>(handle);
}

template <typename Handle>
cublasStatus_t Make(Handle* handle, LtDescriptor descriptor) {
  return Set(handle, reinterpret_cast<Handle>(new LtDescriptor(std::move(descriptor))));
}

template <typename Handle>
cublasStatus_t Destroy(Handle handle) {
  delete LtOf(handle);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

RFINJECT_STANDIN size_t cublasLtGetVersion() { return CUBLAS_VERSION; }
RFINJECT_STANDIN cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return cublasCreate_v2(reinterpret_cast<cublasHandle_t*>(handle));
}
RFINJECT_STANDIN cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* descriptor, cublasComputeType_t,
                                                         cudaDataType_t) {
  return Make(descriptor, {});
}
RFINJECT_STANDIN cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t descriptor) {
  return Destroy(descriptor);
}
RFINJECT_STANDIN cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t descriptor,
                                                               cublasLtMatmulDescAttributes_t attribute,
                                                               const void* value, size_t bytes) {
  return LtOf(descriptor)->Set(attribute, value, bytes);
}
RFINJECT_STANDIN cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return Make(preference, {});
}
RFINJECT_STANDIN cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return Destroy(preference);
}
RFINJECT_STANDIN cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                                     cublasLtMatmulPreferenceAttributes_t attribute,
                                                                     const void* value, size_t bytes) {
  return LtOf(preference)->Set(attribute, value, bytes);
}
RFINJECT_STANDIN cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                                           uint64_t rows, uint64_t columns, int64_t) {
  LtDescriptor descriptor;
  descriptor.type = type;
  descriptor.rows = rows;
  descriptor.columns = columns;
  return Make(layout, std::move(descriptor));
}
RFINJECT_STANDIN cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { return Destroy(layout); }
RFINJECT_STANDIN cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                                 cublasLtMatrixLayoutAttribute_t attribute,
                                                                 const void* value, size_t bytes) {
  return LtOf(layout)->Set(attribute, value, bytes);
}
RFINJECT_STANDIN cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                                               cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                                               cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                                               cublasLtMatmulPreference_t, int wanted,
                                                               cublasLtMatmulHeuristicResult_t results[],
                                                               int* found) {
  *found = wanted > 0 ? 1 : 0;
  if (wanted > 0) {
    results[0] = cublasLtMatmulHeuristicResult_t{};
    results[0].wavesCount = 1;
  }
  return CUBLAS_STATUS_SUCCESS;
}
RFINJECT_STANDIN cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void*,
                                               const void*, cublasLtMatrixLayout_t a, const void*,
                                               cublasLtMatrixLayout_t, const void*, const void*,
                                               cublasLtMatrixLayout_t, void*, cublasLtMatrixLayout_t result,
                                               const cublasLtMatmulAlgo_t*, void*, size_t, cudaStream_t stream) {
  const auto transposed = [&](int attribute) {
    return LtOf(product)->Get<int32_t>(attribute, CUBLAS_OP_N) != CUBLAS_OP_N;
  };
  const bool a_transposed = transposed(CUBLASLT_MATMUL_DESC_TRANSA);
  LaunchGemm({"cublaslt", LtOf(a)->type, a_transposed, transposed(CUBLASLT_MATMUL_DESC_TRANSB),
              static_cast<int64_t>(LtOf(result)->rows), static_cast<int64_t>(LtOf(result)->columns),
              LtOf(result)->Get<int32_t>(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 1),
              static_cast<int64_t>(a_transposed ? LtOf(a)->rows : LtOf(a)->columns)},
             stream);
  return CUBLAS_STATUS_SUCCESS;
}
