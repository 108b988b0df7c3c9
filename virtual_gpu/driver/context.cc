// Contexts: each device has one primary context, and each thread a stack of current ones.
#include <cudaProfiler.h>

#include <atomic>

#include "virtual_gpu/driver/state.h"
#include "virtual_gpu/virtual_gpu.h"

using namespace rfinject::virtual_gpu;

namespace {

// The contexts that a thread has pushed. This is plain memory, because exit handlers call the driver when the
// thread's own objects are gone.
class Stack {
 public:
  bool empty() const { return depth_ == 0; }
  CUcontext back() const { return contexts_[depth_ - 1]; }
  bool push_back(CUcontext context) {
    if (depth_ == kMost) return false;
    contexts_[depth_++] = context;
    return true;
  }
  void pop_back() { --depth_; }

 private:
  static constexpr int kMost = 64;
  CUcontext contexts_[kMost] = {};
  int depth_ = 0;
};
thread_local constinit Stack t_stack;

CUcontext Primary(int device) {
  static auto* const contexts = new std::map<int, CUcontext>;
  const Lock lock(StateLock());
  CUcontext& context = (*contexts)[device];
  if (context == nullptr) {
    context = new CUctx_st;
    context->device = device;
    context->id = NewId();
  }
  return context;
}

std::atomic<bool> g_in_use{false};

constexpr size_t kLimitCount = sizeof(CUctx_st::limits) / sizeof(size_t);

}  // namespace

namespace rfinject::virtual_gpu {

CUcontext Current() { return t_stack.empty() ? nullptr : t_stack.back(); }

CUstream RealStream(CUstream stream) {
  if (reinterpret_cast<uintptr_t>(stream) > reinterpret_cast<uintptr_t>(CU_STREAM_PER_THREAD)) return stream;
  CUcontext context = Current() != nullptr ? Current() : Primary(0);
  const Lock lock(StateLock());
  if (context->default_stream == nullptr) {
    context->default_stream = new CUstream_st;
    context->default_stream->context = context;
    context->default_stream->id = NewId();
  }
  return context->default_stream;
}

}  // namespace rfinject::virtual_gpu

RFINJECT_CUDA cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  if (!IsDevice(device)) {
    SayOnce("the program asks for GPU " + std::to_string(device) + "; there are " +
            std::to_string(TheBoard().devices) + " virtual ones (--virtual-gpus N)");
    return CUDA_ERROR_INVALID_DEVICE;
  }
  *context = Primary(device);
  (*context)->alive = true;
  g_in_use.store(true, std::memory_order_release);
  return CUDA_SUCCESS;
}
RFINJECT_CUDA cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }
RFINJECT_CUDA cuDevicePrimaryCtxReset(CUdevice) { return CUDA_SUCCESS; }
RFINJECT_CUDA cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  return Set(&Primary(device)->flags, flags);
}
RFINJECT_CUDA cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (flags != nullptr) *flags = Primary(device)->flags;
  if (active != nullptr) *active = Primary(device)->alive;
  return CUDA_SUCCESS;
}

RFINJECT_CUDA cuCtxGetCurrent(CUcontext* context) { return Set(context, Current()); }
RFINJECT_CUDA cuCtxSetCurrent(CUcontext context) {
  if (!t_stack.empty()) t_stack.pop_back();
  if (context != nullptr) t_stack.push_back(context);
  return CUDA_SUCCESS;
}
RFINJECT_CUDA cuCtxPushCurrent(CUcontext context) {
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return t_stack.push_back(context) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}
RFINJECT_CUDA cuCtxPopCurrent(CUcontext* context) {
  if (t_stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context != nullptr) *context = t_stack.back();
  t_stack.pop_back();
  return CUDA_SUCCESS;
}
RFINJECT_CUDA cuCtxGetDevice(CUdevice* device) {
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return Set(device, Current()->device);
}
RFINJECT_CUDA cuCtxGetFlags(unsigned* flags) {
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return Set(flags, Current()->flags);
}
RFINJECT_CUDA cuCtxGetId(CUcontext context, unsigned long long* id) {
  if (context == nullptr) context = Current();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return Set(id, context->id);
}
RFINJECT_CUDA cuCtxGetApiVersion(CUcontext, unsigned* version) { return Set(version, 3020); }
RFINJECT_CUDA cuCtxSetLimit(CUlimit limit, size_t value) {
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (static_cast<size_t>(limit) >= kLimitCount) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  Current()->limits[limit] = value;
  return CUDA_SUCCESS;
}
RFINJECT_CUDA cuCtxGetLimit(size_t* value, CUlimit limit) {
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (static_cast<size_t>(limit) >= kLimitCount) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  *value = Current()->limits[limit];
  if (*value == 0 && limit == CU_LIMIT_STACK_SIZE) *value = 1024;
  if (*value == 0 && limit == CU_LIMIT_PRINTF_FIFO_SIZE) *value = 1 << 20;
  if (*value == 0 && limit == CU_LIMIT_MALLOC_HEAP_SIZE) *value = 8 << 20;
  return CUDA_SUCCESS;
}
RFINJECT_CUDA cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return CUDA_SUCCESS;
}
RFINJECT_CUDA cuCtxEnablePeerAccess(CUcontext, unsigned) { return CUDA_SUCCESS; }
RFINJECT_CUDA cuCtxDisablePeerAccess(CUcontext) { return CUDA_SUCCESS; }
RFINJECT_CUDA cuProfilerStart() { return CUDA_SUCCESS; }
RFINJECT_CUDA cuProfilerStop() { return CUDA_SUCCESS; }

RFINJECT_DOOR int rfinject_virtual_gpu_in_use() { return g_in_use.load(std::memory_order_acquire) ? 1 : 0; }
