// File: shared_lock.h
//
// SharedLock: holds the virtual GPU's one lock (driver/state.h) as long as it lives, from the libraries beside the
// driver. A lock of their own would have to be freed in a child of fork, too.
#ifndef RFINJECT_VIRTUAL_GPU_SHARED_LOCK_H_
#define RFINJECT_VIRTUAL_GPU_SHARED_LOCK_H_

#include "virtual_gpu/virtual_gpu.h"

namespace rfinject::virtual_gpu {

class SharedLock {
 public:
  SharedLock() { rfinject_virtual_gpu_lock(); }
  ~SharedLock() { rfinject_virtual_gpu_unlock(); }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;
};

}  // namespace rfinject::virtual_gpu

#endif  // RFINJECT_VIRTUAL_GPU_SHARED_LOCK_H_
