// File: lock_waits.h
//
// How long each kind of caller waits for a lock of the hardware source, in ns of the monotonic clock. No wait is
// without bound (collector/sync.h). A lock is held for microseconds as a rule, so that a bound is reached only where
// the thread that holds it is stuck or gone; each bound is as long as its caller can stand, and no longer.
#ifndef RFINJECT_COLLECTOR_CUPTI_LOCK_WAITS_H_
#define RFINJECT_COLLECTOR_CUPTI_LOCK_WAITS_H_

#include <cstdint>

namespace rfinject::cupti {

// For a thread of the program that allocates device memory. The driver's own call takes about a millisecond; an
// allocation that cannot be noted within ten shows in the driver's next answer all the same.
inline constexpr int64_t kAllocationLockWaitNs = 10'000'000;

// For a thread of the program that launches something for the first time (a new key, a new context). It may have to
// wait while a vector grows on another thread, which is far below this; a launch that gets no key is not attributed.
inline constexpr int64_t kLaunchLockWaitNs = 100'000'000;

// For the thread that ends a step, and CUPTI's threads that hand over a buffer. A buffer of 5000 records is read
// under the lock in about a millisecond; a machine that is short of CPU may stretch that to some 100 ms, and a
// second's wait between two steps is still better than the loss of what the step measured.
inline constexpr int64_t kStepLockWaitNs = 1'000'000'000;

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_LOCK_WAITS_H_
