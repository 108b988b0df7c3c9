// Every function of the driver's public headers that is not carried out: it is there, because programs and libraries
// look for it before they use any, says its name, and fails.
#include "virtual_gpu/symbols/stubs.h"

namespace rfinject::virtual_gpu::missing {
namespace {

int cuda(const char* name) { return rfinject_virtual_gpu_missing(name, 801); }  // CUDA_ERROR_NOT_SUPPORTED

}  // namespace
}  // namespace rfinject::virtual_gpu::missing

#include "virtual_gpu/symbols/driver.csv.inc"
