// cuSPARSE: the calls that PyTorch makes for products with sparse matrices, for sums of them, and for the conversions
// on the way there. Each that would run kernels launches one. None wants workspace, and none looks at an index.
#include <cusparse.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "virtual_gpu/libraries/gemm.h"
#include "virtual_gpu/libraries/launch.h"
#include "virtual_gpu/virtual_gpu.h"

using namespace rfinject::virtual_gpu;

#if CUSPARSE_VERSION < 12000  // which takes what it only reads as what it writes
using cusparseConstSpMatDescr_t = cusparseSpMatDescr_t;
using cusparseConstDnMatDescr_t = cusparseDnMatDescr_t;
using cusparseConstDnVecDescr_t = cusparseDnVecDescr_t;
#endif

struct cusparseContext {
  CUstream stream = nullptr;
  cusparsePointerMode_t pointers = CUSPARSE_POINTER_MODE_HOST;
};
struct cusparseMatDescr {};
struct cusparseSpGEMMDescr {};
struct cusparseSpMatDescr {
  int64_t rows = 0, columns = 0, nonzero = 0;
  double element_bytes = 0;
  double index_bytes = 0;  // of all indices
  int64_t batch = 1;
};
struct cusparseDnMatDescr {
  int64_t rows = 0, columns = 0;
  double element_bytes = 0;
  int64_t batch = 1;
};
struct cusparseDnVecDescr {
  int64_t size = 0;
  double element_bytes = 0;
};

namespace {

cusparseStatus_t Launch(cusparseHandle_t handle, const char* name, int64_t elements, double flop = 0,
                        double bytes = 0) {
  constexpr int64_t kThreads = 256;
  LaunchStandin(std::string("standin_cusparse_") + name,
                {.blocks = Blocks(elements, kThreads), .flop = flop, .bytes = bytes}, handle->stream);
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t NoWorkspace(size_t* bytes) { return Set(bytes, 0); }

template <typename Object, typename Pointer>
cusparseStatus_t Make(Pointer* to, const Object& object) {
  return Set(to, new Object(object));
}

template <typename Object>
cusparseStatus_t SetBatch(Object* object, int batch) {
  return Set(&object->batch, std::max(batch, 1));
}

double IndexBytes(cusparseIndexType_t type) { return type == CUSPARSE_INDEX_64I ? 8 : 4; }

cusparseSpMatDescr Sparse(int64_t rows, int64_t columns, int64_t nonzero, double index_bytes, cudaDataType type) {
  return {.rows = rows,
          .columns = columns,
          .nonzero = nonzero,
          .element_bytes = ElementBytes(type),
          .index_bytes = index_bytes};
}

double Compressed(int64_t lines, cusparseIndexType_t offset, int64_t nonzero, cusparseIndexType_t index) {
  return static_cast<double>(lines + 1) * IndexBytes(offset) + static_cast<double>(nonzero) * IndexBytes(index);
}

double Bytes(const cusparseSpMatDescr* a) {
  return (static_cast<double>(a->nonzero) * a->element_bytes + a->index_bytes) * static_cast<double>(a->batch);
}
double Bytes(const cusparseDnMatDescr* a) {
  return static_cast<double>(a->rows) * static_cast<double>(a->columns) * a->element_bytes *
         static_cast<double>(a->batch);
}
double Bytes(const cusparseDnVecDescr* a) { return static_cast<double>(a->size) * a->element_bytes; }

// The numbers that meet in a product of two sparse matrices, if both hold theirs evenly spread.
double Products(const cusparseSpMatDescr* a, const cusparseSpMatDescr* b) {
  return static_cast<double>(a->nonzero) * static_cast<double>(b->nonzero) /
         static_cast<double>(std::max<int64_t>(a->columns, 1));
}

// How many numbers that product holds, which the caller gives out memory for: what PyTorch's operator is known to
// give, else how many places that many products fall on by chance. No more than 32 bits can say, as torch takes it.
int64_t NumbersOfProduct(const cusparseSpMatDescr* a, const cusparseSpMatDescr* b) {
  int64_t answer = 0;
  if (rfinject_virtual_gpu_answered(&answer) != 0) return answer;
  const double places = static_cast<double>(a->rows) * static_cast<double>(b->columns);
  if (!(places > 0)) return 0;
  const double numbers = -places * std::expm1(-Products(a, b) / places);
  return static_cast<int64_t>(std::min<double>(std::ceil(numbers), std::numeric_limits<int>::max()));
}

}  // namespace

#define SPARSE(name) RFINJECT_STANDIN cusparseStatus_t cusparse##name

SPARSE(Create)(cusparseHandle_t* handle) { return Make(handle, cusparseContext()); }
SPARSE(Destroy)(cusparseHandle_t handle) { return Unmake(handle); }
SPARSE(SetStream)(cusparseHandle_t handle, cudaStream_t stream) { return Set(&handle->stream, stream); }
SPARSE(GetStream)(cusparseHandle_t handle, cudaStream_t* stream) { return Set(stream, handle->stream); }
SPARSE(SetPointerMode)(cusparseHandle_t handle, cusparsePointerMode_t mode) { return Set(&handle->pointers, mode); }
SPARSE(GetPointerMode)(cusparseHandle_t handle, cusparsePointerMode_t* mode) { return Set(mode, handle->pointers); }
SPARSE(GetVersion)(cusparseHandle_t, int* version) { return Set(version, CUSPARSE_VERSION); }

// What a matrix is said to be, in the older calls.
SPARSE(CreateMatDescr)(cusparseMatDescr_t* matrix) { return Make(matrix, cusparseMatDescr()); }
SPARSE(DestroyMatDescr)(cusparseMatDescr_t matrix) { return Unmake(matrix); }
SPARSE(SetMatType)(cusparseMatDescr_t, cusparseMatrixType_t) { return CUSPARSE_STATUS_SUCCESS; }
SPARSE(SetMatIndexBase)(cusparseMatDescr_t, cusparseIndexBase_t) { return CUSPARSE_STATUS_SUCCESS; }
SPARSE(SetMatFillMode)(cusparseMatDescr_t, cusparseFillMode_t) { return CUSPARSE_STATUS_SUCCESS; }
SPARSE(SetMatDiagType)(cusparseMatDescr_t, cusparseDiagType_t) { return CUSPARSE_STATUS_SUCCESS; }

// Conversions between lists of coordinates and compressed rows, and sorting.
SPARSE(Xcoo2csr)(cusparseHandle_t handle, const int*, int nonzero, int, int*, cusparseIndexBase_t) {
  return Launch(handle, "coo2csr", nonzero);
}
SPARSE(Xcsr2coo)(cusparseHandle_t handle, const int*, int nonzero, int, int*, cusparseIndexBase_t) {
  return Launch(handle, "csr2coo", nonzero);
}
SPARSE(Xcoosort_bufferSizeExt)(cusparseHandle_t, int, int, int, const int*, const int*, size_t* bytes) {
  return NoWorkspace(bytes);
}
SPARSE(XcoosortByRow)(cusparseHandle_t handle, int, int, int nonzero, int*, int*, int*, void*) {
  return Launch(handle, "coosort", nonzero);
}
SPARSE(Xcsrsort_bufferSizeExt)(cusparseHandle_t, int, int, int, const int*, const int*, size_t* bytes) {
  return NoWorkspace(bytes);
}
SPARSE(Xcsrsort)
(cusparseHandle_t handle, int, int, int nonzero, const cusparseMatDescr_t, const int*, int*, int*, void*) {
  return Launch(handle, "csrsort", nonzero);
}
SPARSE(CreateIdentityPermutation)(cusparseHandle_t handle, int count, int*) {
  return Launch(handle, "identity", count);
}

// Sums of two matrices in compressed rows. How many places both hold is not known: the sum is given as if none, which
// is room enough.
SPARSE(Xcsrgeam2Nnz)
(cusparseHandle_t handle, int, int, const cusparseMatDescr_t, int a, const int*, const int*, const cusparseMatDescr_t,
 int b, const int*, const int*, const cusparseMatDescr_t, int*, int* total, void*) {
  int64_t answer = 0;
  if (rfinject_virtual_gpu_answered(&answer) == 0) answer = int64_t{a} + b;
  if (handle->pointers == CUSPARSE_POINTER_MODE_HOST) {
    *total = static_cast<int>(std::min<int64_t>(answer, std::numeric_limits<int>::max()));
  }
  return Launch(handle, "csrgeam_nnz", int64_t{a} + b);
}
#define SUM(letter, type)                                                                                       \
  SPARSE(letter##csrgeam2_bufferSizeExt)                                                                        \
  (cusparseHandle_t, int, int, const type*, const cusparseMatDescr_t, int, const type*, const int*, const int*, \
   const type*, const cusparseMatDescr_t, int, const type*, const int*, const int*, const cusparseMatDescr_t,   \
   const type*, const int*, const int*, size_t* bytes) {                                                        \
    return NoWorkspace(bytes);                                                                                  \
  }                                                                                                             \
  SPARSE(letter##csrgeam2)                                                                                      \
  (cusparseHandle_t handle, int, int, const type*, const cusparseMatDescr_t, int a, const type*, const int*,    \
   const int*, const type*, const cusparseMatDescr_t, int b, const type*, const int*, const int*,               \
   const cusparseMatDescr_t, type*, int*, int*, void*) {                                                        \
    return Launch(handle, "csrgeam", int64_t{a} + b);                                                           \
  }
SUM(S, float)
SUM(D, double)
SUM(C, cuComplex)
SUM(Z, cuDoubleComplex)

// Matrices and vectors.
SPARSE(CreateCoo)
(cusparseSpMatDescr_t* matrix, int64_t rows, int64_t columns, int64_t nonzero, void*, void*, void*,
 cusparseIndexType_t index, cusparseIndexBase_t, cudaDataType type) {
  return Make(matrix, Sparse(rows, columns, nonzero, 2 * static_cast<double>(nonzero) * IndexBytes(index), type));
}
SPARSE(CreateCsr)
(cusparseSpMatDescr_t* matrix, int64_t rows, int64_t columns, int64_t nonzero, void*, void*, void*,
 cusparseIndexType_t offset, cusparseIndexType_t index, cusparseIndexBase_t, cudaDataType type) {
  return Make(matrix, Sparse(rows, columns, nonzero, Compressed(rows, offset, nonzero, index), type));
}
SPARSE(CreateCsc)
(cusparseSpMatDescr_t* matrix, int64_t rows, int64_t columns, int64_t nonzero, void*, void*, void*,
 cusparseIndexType_t offset, cusparseIndexType_t index, cusparseIndexBase_t, cudaDataType type) {
  return Make(matrix, Sparse(rows, columns, nonzero, Compressed(columns, offset, nonzero, index), type));
}
SPARSE(DestroySpMat)(cusparseConstSpMatDescr_t matrix) { return Unmake(matrix); }
SPARSE(SpMatGetSize)(cusparseConstSpMatDescr_t matrix, int64_t* rows, int64_t* columns, int64_t* nonzero) {
  *rows = matrix->rows;
  *columns = matrix->columns;
  *nonzero = matrix->nonzero;
  return CUSPARSE_STATUS_SUCCESS;
}
SPARSE(SpMatSetAttribute)(cusparseSpMatDescr_t, cusparseSpMatAttribute_t, void*, size_t) {
  return CUSPARSE_STATUS_SUCCESS;
}
SPARSE(CsrSetPointers)(cusparseSpMatDescr_t, void*, void*, void*) { return CUSPARSE_STATUS_SUCCESS; }
SPARSE(CsrSetStridedBatch)(cusparseSpMatDescr_t matrix, int batch, int64_t, int64_t) {
  return SetBatch(matrix, batch);
}
SPARSE(CooSetStridedBatch)(cusparseSpMatDescr_t matrix, int batch, int64_t) { return SetBatch(matrix, batch); }
SPARSE(CreateDnMat)
(cusparseDnMatDescr_t* matrix, int64_t rows, int64_t columns, int64_t, void*, cudaDataType type, cusparseOrder_t) {
  return Make(matrix, cusparseDnMatDescr{.rows = rows, .columns = columns, .element_bytes = ElementBytes(type)});
}
SPARSE(DestroyDnMat)(cusparseConstDnMatDescr_t matrix) { return Unmake(matrix); }
SPARSE(DnMatSetStridedBatch)(cusparseDnMatDescr_t matrix, int batch, int64_t) { return SetBatch(matrix, batch); }
SPARSE(CreateDnVec)(cusparseDnVecDescr_t* vector, int64_t size, void*, cudaDataType type) {
  return Make(vector, cusparseDnVecDescr{.size = size, .element_bytes = ElementBytes(type)});
}
SPARSE(DestroyDnVec)(cusparseConstDnVecDescr_t vector) { return Unmake(vector); }

// Products of a sparse matrix with a vector, with a dense matrix, and with another sparse one; and those elements of
// a product of dense ones that a sparse matrix has.
SPARSE(SpMV_bufferSize)
(cusparseHandle_t, cusparseOperation_t, const void*, cusparseConstSpMatDescr_t, cusparseConstDnVecDescr_t,
 const void*, cusparseDnVecDescr_t, cudaDataType, cusparseSpMVAlg_t, size_t* bytes) {
  return NoWorkspace(bytes);
}
SPARSE(SpMV)
(cusparseHandle_t handle, cusparseOperation_t, const void*, cusparseConstSpMatDescr_t matrix,
 cusparseConstDnVecDescr_t vector, const void*, cusparseDnVecDescr_t result, cudaDataType, cusparseSpMVAlg_t, void*) {
  return Launch(handle, "spmv", result->size, 2 * static_cast<double>(matrix->nonzero),
                Bytes(matrix) + Bytes(vector) + Bytes(result));
}
SPARSE(SpMM_bufferSize)
(cusparseHandle_t, cusparseOperation_t, cusparseOperation_t, const void*, cusparseConstSpMatDescr_t,
 cusparseConstDnMatDescr_t, const void*, cusparseDnMatDescr_t, cudaDataType, cusparseSpMMAlg_t, size_t* bytes) {
  return NoWorkspace(bytes);
}
SPARSE(SpMM)
(cusparseHandle_t handle, cusparseOperation_t, cusparseOperation_t, const void*, cusparseConstSpMatDescr_t matrix,
 cusparseConstDnMatDescr_t dense, const void*, cusparseDnMatDescr_t result, cudaDataType, cusparseSpMMAlg_t, void*) {
  const double products = static_cast<double>(matrix->nonzero) * static_cast<double>(result->columns * result->batch);
  return Launch(handle, "spmm", result->rows * result->columns * result->batch, 2 * products,
                Bytes(matrix) + Bytes(dense) + Bytes(result));
}
SPARSE(SDDMM_bufferSize)
(cusparseHandle_t, cusparseOperation_t, cusparseOperation_t, const void*, cusparseConstDnMatDescr_t,
 cusparseConstDnMatDescr_t, const void*, cusparseSpMatDescr_t, cudaDataType, cusparseSDDMMAlg_t, size_t* bytes) {
  return NoWorkspace(bytes);
}
SPARSE(SDDMM_preprocess)
(cusparseHandle_t, cusparseOperation_t, cusparseOperation_t, const void*, cusparseConstDnMatDescr_t,
 cusparseConstDnMatDescr_t, const void*, cusparseSpMatDescr_t, cudaDataType, cusparseSDDMMAlg_t, void*) {
  return CUSPARSE_STATUS_SUCCESS;
}
SPARSE(SDDMM)
(cusparseHandle_t handle, cusparseOperation_t operation, cusparseOperation_t, const void*,
 cusparseConstDnMatDescr_t left, cusparseConstDnMatDescr_t right, const void*, cusparseSpMatDescr_t result,
 cudaDataType, cusparseSDDMMAlg_t, void*) {
  const int64_t inner = operation == CUSPARSE_OPERATION_NON_TRANSPOSE ? left->columns : left->rows;
  return Launch(handle, "sddmm", result->nonzero * result->batch,
                2 * static_cast<double>(result->nonzero) * static_cast<double>(inner * result->batch),
                Bytes(left) + Bytes(right) + Bytes(result));
}
SPARSE(SpGEMM_createDescr)(cusparseSpGEMMDescr_t* description) { return Make(description, cusparseSpGEMMDescr()); }
SPARSE(SpGEMM_destroyDescr)(cusparseSpGEMMDescr_t description) { return Unmake(description); }
SPARSE(SpGEMM_workEstimation)
(cusparseHandle_t, cusparseOperation_t, cusparseOperation_t, const void*, cusparseConstSpMatDescr_t,
 cusparseConstSpMatDescr_t, const void*, cusparseSpMatDescr_t, cudaDataType, cusparseSpGEMMAlg_t,
 cusparseSpGEMMDescr_t, size_t* bytes, void*) {
  return NoWorkspace(bytes);
}
// Called first for the size of its workspace, and again with that: both are without one, and the second is no other
// call. So the work is that of the copy, which ends each product.
SPARSE(SpGEMM_compute)
(cusparseHandle_t, cusparseOperation_t, cusparseOperation_t, const void*, cusparseConstSpMatDescr_t a,
 cusparseConstSpMatDescr_t b, const void*, cusparseSpMatDescr_t result, cudaDataType, cusparseSpGEMMAlg_t,
 cusparseSpGEMMDescr_t, size_t* bytes, void*) {
  result->nonzero = NumbersOfProduct(a, b);
  return NoWorkspace(bytes);
}
SPARSE(SpGEMM_copy)
(cusparseHandle_t handle, cusparseOperation_t, cusparseOperation_t, const void*, cusparseConstSpMatDescr_t a,
 cusparseConstSpMatDescr_t b, const void*, cusparseSpMatDescr_t result, cudaDataType, cusparseSpGEMMAlg_t,
 cusparseSpGEMMDescr_t) {
  return Launch(handle, "spgemm", result->nonzero, 2 * Products(a, b), Bytes(a) + Bytes(b) + Bytes(result));
}
