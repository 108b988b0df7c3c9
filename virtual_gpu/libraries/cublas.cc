// cuBLAS: the calls of cublas_api.h that PyTorch makes.
#include <cublas_v2.h>

#include "virtual_gpu/libraries/gemm.h"
#include "virtual_gpu/libraries/launch.h"

using namespace rfinject::virtual_gpu;

struct cublasContext {
  CUstream stream = nullptr;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  cublasPointerMode_t pointers = CUBLAS_POINTER_MODE_HOST;
};

namespace {

cublasStatus_t Gemm(cublasHandle_t handle, cudaDataType type, cublasOperation_t a, cublasOperation_t b, int64_t rows,
                    int64_t columns, int64_t inner, int64_t batch) {
  LaunchGemm({"cublas", type, a != CUBLAS_OP_N, b != CUBLAS_OP_N, rows, columns, batch, inner}, handle->stream);
  return CUBLAS_STATUS_SUCCESS;
}

// A call with one kernel over `elements` results.
cublasStatus_t Other(cublasHandle_t handle, const char* name, int64_t elements) {
  LaunchStandin(std::string("standin_cublas_") + name, {.blocks = Blocks(elements, 128), .threads = 128},
                handle->stream);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

RFINJECT_STANDIN cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) { return Set(handle, new cublasContext); }
RFINJECT_STANDIN cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) { return Unmake(handle); }
RFINJECT_STANDIN cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int* version) {
  return Set(version, CUBLAS_VERSION);
}
RFINJECT_STANDIN cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  return Set(&handle->stream, stream);
}
RFINJECT_STANDIN cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream) {
  return Set(stream, handle->stream);
}
RFINJECT_STANDIN cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void*, size_t) { return CUBLAS_STATUS_SUCCESS; }
RFINJECT_STANDIN cublasStatus_t cublasSetSmCountTarget(cublasHandle_t, int) { return CUBLAS_STATUS_SUCCESS; }
RFINJECT_STANDIN cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  return Set(&handle->math, mode);
}
RFINJECT_STANDIN cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  return Set(mode, handle->math);
}
RFINJECT_STANDIN cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
  return Set(&handle->pointers, mode);
}
RFINJECT_STANDIN cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t* mode) {
  return Set(mode, handle->pointers);
}

#define GEMM(letter, type, data)                                                                                     \
  RFINJECT_STANDIN cublasStatus_t cublas##letter##gemm_v2(                                                           \
      cublasHandle_t handle, cublasOperation_t a, cublasOperation_t b, int m, int n, int k, const type*,             \
      const type*, int, const type*, int, const type*, type*, int) {                                                 \
    return Gemm(handle, data, a, b, m, n, k, 1);                                                                     \
  }                                                                                                                  \
  RFINJECT_STANDIN cublasStatus_t cublas##letter##gemmStridedBatched(                                                \
      cublasHandle_t handle, cublasOperation_t a, cublasOperation_t b, int m, int n, int k, const type*,             \
      const type*, int, long long, const type*, int, long long, const type*, type*, int, long long, int batch) {     \
    return Gemm(handle, data, a, b, m, n, k, batch);                                                                 \
  }                                                                                                                  \
  RFINJECT_STANDIN cublasStatus_t cublas##letter##gemmBatched(                                                       \
      cublasHandle_t handle, cublasOperation_t a, cublasOperation_t b, int m, int n, int k, const type*,             \
      const type* const[], int, const type* const[], int, const type*, type* const[], int, int batch) {              \
    return Gemm(handle, data, a, b, m, n, k, batch);                                                                 \
  }                                                                                                                  \
  RFINJECT_STANDIN cublasStatus_t cublas##letter##gemv_v2(cublasHandle_t handle, cublasOperation_t operation, int m, \
                                                          int n, const type*, const type*, int, const type*, int,    \
                                                          const type*, type*, int) {                                 \
    return Other(handle, #letter "gemv", operation == CUBLAS_OP_N ? m : n);                                          \
  }                                                                                                                  \
  RFINJECT_STANDIN cublasStatus_t cublas##letter##trsm_v2(cublasHandle_t handle, cublasSideMode_t, cublasFillMode_t, \
                                                          cublasOperation_t, cublasDiagType_t, int m, int n,         \
                                                          const type*, const type*, int, type*, int) {               \
    return Other(handle, #letter "trsm", int64_t{m} * n);                                                            \
  }                                                                                                                  \
  RFINJECT_STANDIN cublasStatus_t cublas##letter##trsmBatched(                                                       \
      cublasHandle_t handle, cublasSideMode_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int m, int n,  \
      const type*, const type* const[], int, type* const[], int, int batch) {                                        \
    return Other(handle, #letter "trsm_batched", int64_t{m} * n * batch);                                            \
  }                                                                                                                  \
  RFINJECT_STANDIN cublasStatus_t cublas##letter##getrfBatched(cublasHandle_t handle, int n, type* const[], int,     \
                                                               int*, int*, int batch) {                              \
    return Other(handle, #letter "getrf_batched", int64_t{n} * n * batch);                                           \
  }                                                                                                                  \
  RFINJECT_STANDIN cublasStatus_t cublas##letter##getrsBatched(cublasHandle_t handle, cublasOperation_t, int n,      \
                                                               int right, const type* const[], int, const int*,      \
                                                               type* const[], int, int* info, int batch) {           \
    *info = 0; /* on the host: no argument was wrong */                                                              \
    return Other(handle, #letter "getrs_batched", int64_t{n} * right * batch);                                       \
  }                                                                                                                  \
  RFINJECT_STANDIN cublasStatus_t cublas##letter##geqrfBatched(cublasHandle_t handle, int m, int n, type* const[],   \
                                                               int, type* const[], int* info, int batch) {           \
    *info = 0;                                                                                                       \
    return Other(handle, #letter "geqrf_batched", int64_t{m} * n * batch);                                           \
  }                                                                                                                  \
  RFINJECT_STANDIN cublasStatus_t cublas##letter##gelsBatched(cublasHandle_t handle, cublasOperation_t, int m,       \
                                                              int n, int right, type* const[], int, type* const[],   \
                                                              int, int* info, int*, int batch) {                     \
    *info = 0;                                                                                                       \
    return Other(handle, #letter "gels_batched", (int64_t{m} * n + int64_t{m} * right) * batch);                     \
  }
GEMM(S, float, CUDA_R_32F)
GEMM(D, double, CUDA_R_64F)
GEMM(C, cuComplex, CUDA_C_32F)
GEMM(Z, cuDoubleComplex, CUDA_C_64F)
#undef GEMM

#define DOT(name, type)                                                                                          \
  RFINJECT_STANDIN cublasStatus_t cublas##name##_v2(cublasHandle_t handle, int n, const type*, int, const type*, \
                                                    int, type* result) {                                         \
    if (handle->pointers == CUBLAS_POINTER_MODE_HOST) *result = type{};                                          \
    return Other(handle, #name, n);                                                                              \
  }
DOT(Sdot, float)
DOT(Ddot, double)
DOT(Cdotu, cuComplex)
DOT(Cdotc, cuComplex)
DOT(Zdotu, cuDoubleComplex)
DOT(Zdotc, cuDoubleComplex)
#undef DOT

RFINJECT_STANDIN cublasStatus_t cublasDotEx(cublasHandle_t handle, int n, const void*, cudaDataType, int, const void*,
                                            cudaDataType, int, void*, cudaDataType, cudaDataType) {
  return Other(handle, "dot", n);
}
RFINJECT_STANDIN cublasStatus_t cublasSgemmEx(cublasHandle_t handle, cublasOperation_t a, cublasOperation_t b, int m,
                                              int n, int k, const float*, const void*, cudaDataType type, int,
                                              const void*, cudaDataType, int, const float*, void*, cudaDataType,
                                              int) {
  return Gemm(handle, type, a, b, m, n, k, 1);
}
RFINJECT_STANDIN cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t a, cublasOperation_t b, int m,
                                             int n, int k, const void*, const void*, cudaDataType type, int,
                                             const void*, cudaDataType, int, const void*, void*, cudaDataType, int,
                                             cublasComputeType_t, cublasGemmAlgo_t) {
  return Gemm(handle, type, a, b, m, n, k, 1);
}
RFINJECT_STANDIN cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t a,
                                                           cublasOperation_t b, int m, int n, int k, const void*,
                                                           const void*, cudaDataType type, int, long long,
                                                           const void*, cudaDataType, int, long long, const void*,
                                                           void*, cudaDataType, int, long long, int batch,
                                                           cublasComputeType_t, cublasGemmAlgo_t) {
  return Gemm(handle, type, a, b, m, n, k, batch);
}
