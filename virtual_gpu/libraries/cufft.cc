// cuFFT: a plan keeps the sizes that it was made for; an execution launches one kernel.
#include <cufftXt.h>

#include <map>

#include "virtual_gpu/libraries/launch.h"
#include "virtual_gpu/shared_lock.h"

using namespace rfinject::virtual_gpu;

namespace {

struct Plan {
  int64_t elements = 1;
  CUstream stream = nullptr;
};

// Plans are numbers in cuFFT's interface. Guarded by SharedLock.
std::map<cufftHandle, Plan>& Plans() {
  static auto* const plans = new std::map<cufftHandle, Plan>;
  return *plans;
}

}  // namespace

RFINJECT_STANDIN cufftResult cufftCreate(cufftHandle* handle) {
  const SharedLock lock;
  *handle = Plans().empty() ? 1 : Plans().rbegin()->first + 1;
  Plans()[*handle] = {};
  return CUFFT_SUCCESS;
}
RFINJECT_STANDIN cufftResult cufftDestroy(cufftHandle handle) {
  const SharedLock lock;
  return Plans().erase(handle) == 1 ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}
RFINJECT_STANDIN cufftResult cufftSetAutoAllocation(cufftHandle, int) { return CUFFT_SUCCESS; }
RFINJECT_STANDIN cufftResult cufftSetWorkArea(cufftHandle, void*) { return CUFFT_SUCCESS; }
RFINJECT_STANDIN cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream) {
  const SharedLock lock;
  Plans()[handle].stream = stream;
  return CUFFT_SUCCESS;
}
RFINJECT_STANDIN cufftResult cufftXtMakePlanMany(cufftHandle handle, int rank, long long int* extents, long long int*,
                                                 long long int, long long int, cudaDataType, long long int*,
                                                 long long int, long long int, cudaDataType, long long int batch,
                                                 size_t* workspace, cudaDataType) {
  int64_t elements = batch;
  for (int i = 0; i < rank; ++i) elements *= extents[i];
  const SharedLock lock;
  Plans()[handle].elements = elements;
  *workspace = 0;
  return CUFFT_SUCCESS;
}
RFINJECT_STANDIN cufftResult cufftXtExec(cufftHandle handle, void*, void*, int) {
  Plan plan;
  {
    const SharedLock lock;
    const auto at = Plans().find(handle);
    if (at == Plans().end()) return CUFFT_INVALID_PLAN;
    plan = at->second;
  }
  LaunchStandin(std::string("standin_cufft_") + ChipWord(), {.blocks = Blocks(plan.elements, 4096)}, plan.stream);
  return CUFFT_SUCCESS;
}
