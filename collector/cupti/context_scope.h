// File: context_scope.h
//
// ContextScope makes a CUDA context current on the calling thread for as long as it lives, unless it is already. Used
// by the thread that ends the steps, between two steps; it calls the driver, so never in a callback.
#ifndef RFINJECT_COLLECTOR_CUPTI_CONTEXT_SCOPE_H_
#define RFINJECT_COLLECTOR_CUPTI_CONTEXT_SCOPE_H_

#include "collector/cupti/api.h"

namespace rfinject::cupti {

class ContextScope {
 public:
  ContextScope(const Api& api, const void* context) noexcept : api_(api) {
    CUcontext current = nullptr;
    if (context == nullptr || api.cuCtxPushCurrent == nullptr || api.cuCtxPopCurrent == nullptr) return;
    if (api.cuCtxGetCurrent != nullptr && api.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == context) {
      ok_ = true;
      return;
    }
    ok_ = pushed_ = api.cuCtxPushCurrent(static_cast<CUcontext>(const_cast<void*>(context))) == CUDA_SUCCESS;
  }
  ~ContextScope() {
    CUcontext popped = nullptr;
    if (pushed_) api_.cuCtxPopCurrent(&popped);
  }
  // False when the context could not be made current; nothing may be asked of it then.
  bool ok() const noexcept { return ok_; }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  const Api& api_;
  bool pushed_ = false;
  bool ok_ = false;
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_CONTEXT_SCOPE_H_
