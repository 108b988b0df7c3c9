// cuSOLVER: the calls of cusolverDn.h that PyTorch makes for factorisations, eigenvalues and singular values of dense
// matrices. Each launches one kernel, and none wants workspace. What a factorisation reports (`info`) stays zero: it
// succeeded.
#include <cusolverDn.h>

#include "virtual_gpu/libraries/launch.h"

using namespace rfinject::virtual_gpu;

struct cusolverDnContext {
  CUstream stream = nullptr;
};
struct cusolverDnParams {};
struct gesvdjInfo {};
struct syevjInfo {};

namespace {

// A call with one kernel, for `batch` matrices of rows x columns.
cusolverStatus_t Call(cusolverDnHandle_t handle, const char* name, int64_t rows, int64_t columns, int64_t batch = 1) {
  LaunchStandin(std::string("standin_cusolver_") + name,
                {.blocks = Blocks(rows, 32), .y = Blocks(columns, 32), .z = batch}, handle->stream);
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t NoWorkspace(int* elements) { return Set(elements, 0); }

cusolverStatus_t NoWorkspace(size_t* on_device, size_t* on_host) {
  *on_device = *on_host = 0;
  return CUSOLVER_STATUS_SUCCESS;
}

template <typename Object>
cusolverStatus_t Make(Object** object) {
  return Set(object, new Object);
}

}  // namespace

#define SOLVER(name) RFINJECT_STANDIN cusolverStatus_t cusolverDn##name

SOLVER(Create)(cusolverDnHandle_t* handle) { return Make(handle); }
SOLVER(Destroy)(cusolverDnHandle_t handle) { return Unmake(handle); }
SOLVER(SetStream)(cusolverDnHandle_t handle, cudaStream_t stream) { return Set(&handle->stream, stream); }
SOLVER(GetStream)(cusolverDnHandle_t handle, cudaStream_t* stream) { return Set(stream, handle->stream); }
SOLVER(CreateParams)(cusolverDnParams_t* params) { return Make(params); }
SOLVER(DestroyParams)(cusolverDnParams_t params) { return Unmake(params); }
SOLVER(CreateGesvdjInfo)(gesvdjInfo_t* info) { return Make(info); }
SOLVER(DestroyGesvdjInfo)(gesvdjInfo_t info) { return Unmake(info); }
SOLVER(CreateSyevjInfo)(syevjInfo_t* info) { return Make(info); }
SOLVER(DestroySyevjInfo)(syevjInfo_t info) { return Unmake(info); }
SOLVER(XgesvdjSetMaxSweeps)(gesvdjInfo_t, int) { return CUSOLVER_STATUS_SUCCESS; }
SOLVER(XgesvdjSetSortEig)(gesvdjInfo_t, int) { return CUSOLVER_STATUS_SUCCESS; }
SOLVER(XgesvdjSetTolerance)(gesvdjInfo_t, double) { return CUSOLVER_STATUS_SUCCESS; }
SOLVER(XsyevjSetMaxSweeps)(syevjInfo_t, int) { return CUSOLVER_STATUS_SUCCESS; }
SOLVER(XsyevjSetSortEig)(syevjInfo_t, int) { return CUSOLVER_STATUS_SUCCESS; }
SOLVER(XsyevjSetTolerance)(syevjInfo_t, double) { return CUSOLVER_STATUS_SUCCESS; }

// The interface of 64 bits, with a type as an argument.
SOLVER(Xpotrf_bufferSize)
(cusolverDnHandle_t, cusolverDnParams_t, cublasFillMode_t, int64_t, cudaDataType, const void*, int64_t, cudaDataType,
 size_t* on_device, size_t* on_host) {
  return NoWorkspace(on_device, on_host);
}
SOLVER(Xpotrf)
(cusolverDnHandle_t handle, cusolverDnParams_t, cublasFillMode_t, int64_t n, cudaDataType, void*, int64_t,
 cudaDataType, void*, size_t, void*, size_t, int*) {
  return Call(handle, "potrf", n, n);
}
SOLVER(Xpotrs)
(cusolverDnHandle_t handle, cusolverDnParams_t, cublasFillMode_t, int64_t n, int64_t right, cudaDataType, const void*,
 int64_t, cudaDataType, void*, int64_t, int*) {
  return Call(handle, "potrs", n, right);
}
SOLVER(Xgeqrf_bufferSize)
(cusolverDnHandle_t, cusolverDnParams_t, int64_t, int64_t, cudaDataType, const void*, int64_t, cudaDataType,
 const void*, cudaDataType, size_t* on_device, size_t* on_host) {
  return NoWorkspace(on_device, on_host);
}
SOLVER(Xgeqrf)
(cusolverDnHandle_t handle, cusolverDnParams_t, int64_t m, int64_t n, cudaDataType, void*, int64_t, cudaDataType,
 void*, cudaDataType, void*, size_t, void*, size_t, int*) {
  return Call(handle, "geqrf", m, n);
}
SOLVER(Xsyevd_bufferSize)
(cusolverDnHandle_t, cusolverDnParams_t, cusolverEigMode_t, cublasFillMode_t, int64_t, cudaDataType, const void*,
 int64_t, cudaDataType, const void*, cudaDataType, size_t* on_device, size_t* on_host) {
  return NoWorkspace(on_device, on_host);
}
SOLVER(Xsyevd)
(cusolverDnHandle_t handle, cusolverDnParams_t, cusolverEigMode_t, cublasFillMode_t, int64_t n, cudaDataType, void*,
 int64_t, cudaDataType, void*, cudaDataType, void*, size_t, void*, size_t, int*) {
  return Call(handle, "syevd", n, n);
}
// Not in the headers of CUDA 12.4.
SOLVER(XsyevBatched_bufferSize)
(cusolverDnHandle_t, cusolverDnParams_t, cusolverEigMode_t, cublasFillMode_t, int64_t, cudaDataType, const void*,
 int64_t, cudaDataType, const void*, cudaDataType, size_t* on_device, size_t* on_host, int64_t) {
  return NoWorkspace(on_device, on_host);
}
SOLVER(XsyevBatched)
(cusolverDnHandle_t handle, cusolverDnParams_t, cusolverEigMode_t, cublasFillMode_t, int64_t n, cudaDataType, void*,
 int64_t, cudaDataType, void*, cudaDataType, void*, size_t, void*, size_t, int*, int64_t batch) {
  return Call(handle, "syev", n, n, batch);
}
SOLVER(Xgeev_bufferSize)
(cusolverDnHandle_t, cusolverDnParams_t, cusolverEigMode_t, cusolverEigMode_t, int64_t, cudaDataType, const void*,
 int64_t, cudaDataType, const void*, cudaDataType, const void*, int64_t, cudaDataType, const void*, int64_t,
 cudaDataType, size_t* on_device, size_t* on_host) {
  return NoWorkspace(on_device, on_host);
}
SOLVER(Xgeev)
(cusolverDnHandle_t handle, cusolverDnParams_t, cusolverEigMode_t, cusolverEigMode_t, int64_t n, cudaDataType, void*,
 int64_t, cudaDataType, void*, cudaDataType, void*, int64_t, cudaDataType, void*, int64_t, cudaDataType, void*,
 size_t, void*, size_t, int*) {
  return Call(handle, "geev", n, n);
}

// Functions of one name in four types: L is the letter, T the type of the matrices, R that of real numbers beside
// them.
#define FACTORISATIONS(L, T)                                                                                      \
  SOLVER(L##potrf_bufferSize)(cusolverDnHandle_t, cublasFillMode_t, int, T*, int, int* elements) {                \
    return NoWorkspace(elements);                                                                                 \
  }                                                                                                               \
  SOLVER(L##potrf)(cusolverDnHandle_t handle, cublasFillMode_t, int n, T*, int, T*, int, int*) {                  \
    return Call(handle, "potrf", n, n);                                                                           \
  }                                                                                                               \
  SOLVER(L##potrfBatched)(cusolverDnHandle_t handle, cublasFillMode_t, int n, T*[], int, int*, int batch) {       \
    return Call(handle, "potrf", n, n, batch);                                                                    \
  }                                                                                                               \
  SOLVER(L##potrs)(cusolverDnHandle_t handle, cublasFillMode_t, int n, int right, const T*, int, T*, int, int*) { \
    return Call(handle, "potrs", n, right);                                                                       \
  }                                                                                                               \
  SOLVER(L##potrsBatched)                                                                                         \
  (cusolverDnHandle_t handle, cublasFillMode_t, int n, int right, T*[], int, T*[], int, int*, int batch) {        \
    return Call(handle, "potrs", n, right, batch);                                                                \
  }                                                                                                               \
  SOLVER(L##getrf_bufferSize)(cusolverDnHandle_t, int, int, T*, int, int* elements) {                             \
    return NoWorkspace(elements);                                                                                 \
  }                                                                                                               \
  SOLVER(L##getrf)(cusolverDnHandle_t handle, int m, int n, T*, int, T*, int*, int*) {                            \
    return Call(handle, "getrf", m, n);                                                                           \
  }                                                                                                               \
  SOLVER(L##getrs)                                                                                                \
  (cusolverDnHandle_t handle, cublasOperation_t, int n, int right, const T*, int, const int*, T*, int, int*) {    \
    return Call(handle, "getrs", n, right);                                                                       \
  }                                                                                                               \
  SOLVER(L##geqrf_bufferSize)(cusolverDnHandle_t, int, int, T*, int, int* elements) {                             \
    return NoWorkspace(elements);                                                                                 \
  }                                                                                                               \
  SOLVER(L##geqrf)(cusolverDnHandle_t handle, int m, int n, T*, int, T*, T*, int, int*) {                         \
    return Call(handle, "geqrf", m, n);                                                                           \
  }
FACTORISATIONS(S, float)
FACTORISATIONS(D, double)
FACTORISATIONS(C, cuComplex)
FACTORISATIONS(Z, cuDoubleComplex)

// The two products by the Q of a factorisation, which are called otherwise for complex numbers.
#define ORTHOGONAL(L, make, multiply, T)                                                                           \
  SOLVER(L##make##_bufferSize)(cusolverDnHandle_t, int, int, int, const T*, int, const T*, int* elements) {        \
    return NoWorkspace(elements);                                                                                  \
  }                                                                                                                \
  SOLVER(L##make)(cusolverDnHandle_t handle, int m, int n, int, T*, int, const T*, T*, int, int*) {                \
    return Call(handle, #make, m, n);                                                                              \
  }                                                                                                                \
  SOLVER(L##multiply##_bufferSize)                                                                                 \
  (cusolverDnHandle_t, cublasSideMode_t, cublasOperation_t, int, int, int, const T*, int, const T*, const T*, int, \
   int* elements) {                                                                                                \
    return NoWorkspace(elements);                                                                                  \
  }                                                                                                                \
  SOLVER(L##multiply)                                                                                              \
  (cusolverDnHandle_t handle, cublasSideMode_t, cublasOperation_t, int m, int n, int, const T*, int, const T*, T*, \
   int, T*, int, int*) {                                                                                           \
    return Call(handle, #multiply, m, n);                                                                          \
  }
ORTHOGONAL(S, orgqr, ormqr, float)
ORTHOGONAL(D, orgqr, ormqr, double)
ORTHOGONAL(C, ungqr, unmqr, cuComplex)
ORTHOGONAL(Z, ungqr, unmqr, cuDoubleComplex)

// Eigenvalues of symmetric matrices, by division of the problem and by Jacobi's method.
#define EIGENVALUES(L, form, T, R)                                                                                   \
  SOLVER(L##form##evd_bufferSize)                                                                                    \
  (cusolverDnHandle_t, cusolverEigMode_t, cublasFillMode_t, int, const T*, int, const R*, int* elements) {           \
    return NoWorkspace(elements);                                                                                    \
  }                                                                                                                  \
  SOLVER(L##form##evd)                                                                                               \
  (cusolverDnHandle_t handle, cusolverEigMode_t, cublasFillMode_t, int n, T*, int, R*, T*, int, int*) {              \
    return Call(handle, "syevd", n, n);                                                                              \
  }                                                                                                                  \
  SOLVER(L##form##evj_bufferSize)                                                                                    \
  (cusolverDnHandle_t, cusolverEigMode_t, cublasFillMode_t, int, const T*, int, const R*, int* elements,             \
   syevjInfo_t) {                                                                                                    \
    return NoWorkspace(elements);                                                                                    \
  }                                                                                                                  \
  SOLVER(L##form##evj)                                                                                               \
  (cusolverDnHandle_t handle, cusolverEigMode_t, cublasFillMode_t, int n, T*, int, R*, T*, int, int*, syevjInfo_t) { \
    return Call(handle, "syevj", n, n);                                                                              \
  }                                                                                                                  \
  SOLVER(L##form##evjBatched_bufferSize)                                                                             \
  (cusolverDnHandle_t, cusolverEigMode_t, cublasFillMode_t, int, const T*, int, const R*, int* elements,             \
   syevjInfo_t, int) {                                                                                               \
    return NoWorkspace(elements);                                                                                    \
  }                                                                                                                  \
  SOLVER(L##form##evjBatched)                                                                                        \
  (cusolverDnHandle_t handle, cusolverEigMode_t, cublasFillMode_t, int n, T*, int, R*, T*, int, int*, syevjInfo_t,   \
   int batch) {                                                                                                      \
    return Call(handle, "syevj", n, n, batch);                                                                       \
  }
EIGENVALUES(S, sy, float, float)
EIGENVALUES(D, sy, double, double)
EIGENVALUES(C, he, cuComplex, float)
EIGENVALUES(Z, he, cuDoubleComplex, double)

// Singular values: by QR, by Jacobi's method, and approximately.
#define SINGULAR_VALUES(L, T, R)                                                                                  \
  SOLVER(L##gesvd_bufferSize)(cusolverDnHandle_t, int, int, int* elements) { return NoWorkspace(elements); }      \
  SOLVER(L##gesvd)                                                                                                \
  (cusolverDnHandle_t handle, signed char, signed char, int m, int n, T*, int, R*, T*, int, T*, int, T*, int, R*, \
   int*) {                                                                                                        \
    return Call(handle, "gesvd", m, n);                                                                           \
  }                                                                                                               \
  SOLVER(L##gesvdj_bufferSize)                                                                                    \
  (cusolverDnHandle_t, cusolverEigMode_t, int, int, int, const T*, int, const R*, const T*, int, const T*, int,   \
   int* elements, gesvdjInfo_t) {                                                                                 \
    return NoWorkspace(elements);                                                                                 \
  }                                                                                                               \
  SOLVER(L##gesvdj)                                                                                               \
  (cusolverDnHandle_t handle, cusolverEigMode_t, int, int m, int n, T*, int, R*, T*, int, T*, int, T*, int, int*, \
   gesvdjInfo_t) {                                                                                                \
    return Call(handle, "gesvdj", m, n);                                                                          \
  }                                                                                                               \
  SOLVER(L##gesvdjBatched_bufferSize)                                                                             \
  (cusolverDnHandle_t, cusolverEigMode_t, int, int, const T*, int, const R*, const T*, int, const T*, int,        \
   int* elements, gesvdjInfo_t, int) {                                                                            \
    return NoWorkspace(elements);                                                                                 \
  }                                                                                                               \
  SOLVER(L##gesvdjBatched)                                                                                        \
  (cusolverDnHandle_t handle, cusolverEigMode_t, int m, int n, T*, int, R*, T*, int, T*, int, T*, int, int*,      \
   gesvdjInfo_t, int batch) {                                                                                     \
    return Call(handle, "gesvdj", m, n, batch);                                                                   \
  }                                                                                                               \
  SOLVER(L##gesvdaStridedBatched_bufferSize)                                                                      \
  (cusolverDnHandle_t, cusolverEigMode_t, int, int, int, const T*, int, long long, const R*, long long, const T*, \
   int, long long, const T*, int, long long, int* elements, int) {                                                \
    return NoWorkspace(elements);                                                                                 \
  }                                                                                                               \
  SOLVER(L##gesvdaStridedBatched)                                                                                 \
  (cusolverDnHandle_t handle, cusolverEigMode_t, int, int m, int n, const T*, int, long long, R*, long long, T*,  \
   int, long long, T*, int, long long, T*, int, int*, double*, int batch) {                                       \
    return Call(handle, "gesvda", m, n, batch);                                                                   \
  }
SINGULAR_VALUES(S, float, float)
SINGULAR_VALUES(D, double, double)
SINGULAR_VALUES(C, cuComplex, float)
SINGULAR_VALUES(Z, cuDoubleComplex, double)
