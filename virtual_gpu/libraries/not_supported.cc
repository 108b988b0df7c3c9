// Every function of the public headers of CUDA's runtime and libraries that is not carried out: it is there, so that
// what is linked with it loads, says its name, and fails with what its library has for "not supported".
#include "virtual_gpu/runtime/missing.h"
#include "virtual_gpu/symbols/stubs.h"

#undef RFINJECT_STUB_MISSING
#define RFINJECT_STUB_MISSING ::rfinject::virtual_gpu::RuntimeMissing
#define RFINJECT_NOT_SUPPORTED 801  // cudaErrorNotSupported
#include "virtual_gpu/symbols/cudart.inc"
#undef RFINJECT_NOT_SUPPORTED
#undef RFINJECT_STUB_MISSING
#define RFINJECT_STUB_MISSING rfinject_virtual_gpu_missing

#define RFINJECT_NOT_SUPPORTED 15  // CUBLAS_STATUS_NOT_SUPPORTED
#include "virtual_gpu/symbols/cublas.inc"
#undef RFINJECT_NOT_SUPPORTED

#define RFINJECT_NOT_SUPPORTED 15  // CUBLAS_STATUS_NOT_SUPPORTED
#include "virtual_gpu/symbols/cublaslt.inc"
#undef RFINJECT_NOT_SUPPORTED

#define RFINJECT_NOT_SUPPORTED 3000  // CUDNN_STATUS_NOT_SUPPORTED
#include "virtual_gpu/symbols/cudnn.inc"
#undef RFINJECT_NOT_SUPPORTED

#define RFINJECT_NOT_SUPPORTED 16  // CUFFT_NOT_SUPPORTED
#include "virtual_gpu/symbols/cufft.inc"
#undef RFINJECT_NOT_SUPPORTED

#define RFINJECT_NOT_SUPPORTED 5007  // CU_FILE_PLATFORM_NOT_SUPPORTED
#include "virtual_gpu/symbols/cufile.inc"
#undef RFINJECT_NOT_SUPPORTED

#define RFINJECT_NOT_SUPPORTED 999  // CURAND_STATUS_INTERNAL_ERROR
#include "virtual_gpu/symbols/curand.inc"
#undef RFINJECT_NOT_SUPPORTED

#define RFINJECT_NOT_SUPPORTED 9  // CUSOLVER_STATUS_NOT_SUPPORTED
#include "virtual_gpu/symbols/cusolver.inc"
#undef RFINJECT_NOT_SUPPORTED

#define RFINJECT_NOT_SUPPORTED 10  // CUSPARSE_STATUS_NOT_SUPPORTED
#include "virtual_gpu/symbols/cusparse.inc"
#undef RFINJECT_NOT_SUPPORTED

#define RFINJECT_NOT_SUPPORTED 5  // ncclInvalidUsage
#include "virtual_gpu/symbols/nccl.inc"
#undef RFINJECT_NOT_SUPPORTED

#define RFINJECT_NOT_SUPPORTED 11  // NVRTC_ERROR_INTERNAL_ERROR
#include "virtual_gpu/symbols/nvrtc.inc"
#undef RFINJECT_NOT_SUPPORTED
