// Every function of the driver's public headers that is not carried out: it is there, because programs and libraries
// look for it before they use any, says its name, and fails.
#include "virtual_gpu/symbols/stubs.h"

#define RFINJECT_NOT_SUPPORTED 801  // CUDA_ERROR_NOT_SUPPORTED
#include "virtual_gpu/symbols/cuda.inc"
