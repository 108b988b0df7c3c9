// Every function of the public headers of CUDA's runtime and libraries that is not carried out: it is there, so that
// what is linked with it loads, says its name, and fails with what its library has for "not supported".
#include "virtual_gpu/runtime/missing.h"
#include "virtual_gpu/symbols/stubs.h"

namespace rfinject::virtual_gpu::missing {
namespace {

int cudart(const char* name) { return RuntimeMissing(name, 801); }                 // cudaErrorNotSupported
int cublas(const char* name) { return rfinject_virtual_gpu_missing(name, 15); }    // CUBLAS_STATUS_NOT_SUPPORTED
int cublaslt(const char* name) { return rfinject_virtual_gpu_missing(name, 15); }  // CUBLAS_STATUS_NOT_SUPPORTED
int cudnn(const char* name) { return rfinject_virtual_gpu_missing(name, 3000); }   // CUDNN_STATUS_NOT_SUPPORTED
int cufft(const char* name) { return rfinject_virtual_gpu_missing(name, 16); }     // CUFFT_NOT_SUPPORTED
int cufile(const char* name) { return rfinject_virtual_gpu_missing(name, 5007); }  // CU_FILE_PLATFORM_NOT_SUPPORTED
int curand(const char* name) { return rfinject_virtual_gpu_missing(name, 999); }   // CURAND_STATUS_INTERNAL_ERROR
int cusolver(const char* name) { return rfinject_virtual_gpu_missing(name, 9); }   // CUSOLVER_STATUS_NOT_SUPPORTED
int cusparse(const char* name) { return rfinject_virtual_gpu_missing(name, 10); }  // CUSPARSE_STATUS_NOT_SUPPORTED
int nccl(const char* name) { return rfinject_virtual_gpu_missing(name, 5); }       // ncclInvalidUsage
int nvrtc(const char* name) { return rfinject_virtual_gpu_missing(name, 11); }     // NVRTC_ERROR_INTERNAL_ERROR

}  // namespace
}  // namespace rfinject::virtual_gpu::missing

#include "virtual_gpu/symbols/libraries.csv.inc"
