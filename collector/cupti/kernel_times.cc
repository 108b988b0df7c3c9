#include "collector/cupti/kernel_times.h"

#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <utility>

#include "collector/cupti/api.h"
#include "collector/cupti/launch_keys.h"
#include "collector/cupti/lock_waits.h"

namespace rfinject::cupti {
namespace {

std::atomic<KernelTimes*> g_times{nullptr};

void CUPTIAPI OnRequest(uint8_t** buffer, size_t* size, size_t* max_records) {
  *buffer = nullptr;
  *size = 0;
  *max_records = 0;
  if (KernelTimes* times = g_times.load(std::memory_order_acquire)) times->RequestBuffer(buffer, size, max_records);
}

void CUPTIAPI OnComplete(CUcontext, uint32_t, uint8_t* buffer, size_t size, size_t valid) {
  if (KernelTimes* times = g_times.load(std::memory_order_acquire)) times->CompleteBuffer(buffer, size, valid);
}
void CUPTIAPI OnOwnRequest(uint8_t** buffer, size_t* size, size_t* max_records, void*) {
  OnRequest(buffer, size, max_records);
}
void CUPTIAPI OnOwnComplete(uint8_t* buffer, size_t size, size_t valid, void*) {
  OnComplete(nullptr, 0, buffer, size, valid);
}

// Copies what a record begins with, which is not aligned to its members, and sets what all kinds have; no start where
// the record has no time.
template <typename Prefix>
Prefix ReadPrefix(const CUpti_Activity* record, KernelTimes::Record* found) {
  Prefix prefix;
  std::memcpy(&prefix, record, sizeof prefix);
  if (!HasValidTime(prefix)) return prefix;
  found->correlation_id = prefix.correlation_id;
  found->ns = prefix.end - prefix.start;
  found->start_ns = prefix.start;
  found->node_id = prefix.graph_node_id;
  found->device = prefix.device_id;
  found->stream = prefix.stream_id;
  return prefix;
}

}  // namespace

KernelTimes::KernelTimes(const Api& api, const Subscription& subscription, LaunchKeys& keys)
    : api_(api), activity_(api, subscription), keys_(keys) {
  pool_.reserve(kMaxBuffers);
}

int KernelTimes::Register() {
  // Both attributes are hints: an older CUPTI that does not know one refuses it and works on. Zeroed buffers
  // save CUPTI a memset on the application's thread; per-thread buffers would need one buffer a thread for a window
  // of one step.
  activity_.Set(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, 1);
  activity_.Set(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, 0);
  g_times.store(this, std::memory_order_release);
  return activity_.Register(&OnRequest, &OnComplete, &OnOwnRequest, &OnOwnComplete);
}

// Kernels come first: without them a window is worth nothing.
constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                         CUPTI_ACTIVITY_KIND_MEMSET};

// Disables each kind, and tries twice. Returns the last failure, or success.
int KernelTimes::DisableAll() {
  CUptiResult failure = CUPTI_SUCCESS;
  for (CUpti_ActivityKind kind : kKinds) {
    CUptiResult result = activity_.Disable(kind);
    if (result != CUPTI_SUCCESS) result = activity_.Disable(kind);
    if (result != CUPTI_SUCCESS) failure = result;
  }
  open_ = failure != CUPTI_SUCCESS;
  return failure;
}

int KernelTimes::Begin() {
  if (left_) return CUPTI_ERROR_INVALID_OPERATION;
  if (lock_.LockFor(kStepLockWaitNs)) {
    const HeldLock held(lock_);
    records_.clear();
    invalid_ = dropped_ = 0;
    requests_ = 0;
  }
  for (CUpti_ActivityKind kind : kKinds) {
    const CUptiResult result = activity_.Enable(kind);
    if (result == CUPTI_SUCCESS) continue;
    DisableAll();
    return result;
  }
  open_ = true;
  return CUPTI_SUCCESS;
}

int KernelTimes::End() { return open_ ? DisableAll() : CUPTI_ERROR_INVALID_OPERATION; }

int KernelTimes::Flush(bool all) { return activity_.Flush(all); }

size_t KernelTimes::received() noexcept {
  if (!lock_.LockFor(kStepLockWaitNs)) return 0;
  const HeldLock held(lock_);
  return records_.size() + invalid_ + dropped_;
}

void KernelTimes::Take(std::vector<Record>* records, uint64_t* invalid, uint64_t* dropped) noexcept {
  if (!lock_.LockFor(kStepLockWaitNs)) return;
  const HeldLock held(lock_);
  records->swap(records_);
  records_.clear();
  *invalid = std::exchange(invalid_, 0);
  *dropped = std::exchange(dropped_, 0);
}

bool KernelTimes::OthersHaveIt() noexcept {
  if (activity_.own() || !lock_.LockFor(kStepLockWaitNs)) return false;
  const HeldLock held(lock_);
  return requests_ == 0 && in_cupti_ == 0;
}

void KernelTimes::Leave() noexcept {
  if (activity_.own() && open_) DisableAll();
  left_ = open_;
  open_ = false;
}

int KernelTimes::TakeBack() {
  int result = CUPTI_SUCCESS;
  if (left_) {
    result = DisableAll();
    left_ = false;
    // A buffer of the other's that is not full would get our records.
    Flush(true);
  }
  if (lock_.LockFor(kStepLockWaitNs)) {
    const HeldLock held(lock_);
    in_cupti_ = 0;  // what CUPTI had of ours went to the other's callback
  }
  // Nobody takes the callbacks of our own records, and CUPTI 13.3 may refuse them a second time (jax PR 38464).
  const int registered = activity_.own() ? CUPTI_SUCCESS : Register();
  return result != CUPTI_SUCCESS ? result : registered;
}

void KernelTimes::RequestBuffer(uint8_t** buffer, size_t* size, size_t* max_records) noexcept {
  *max_records = 0;  // as many as fit
  *size = kBufferSize;
  bool may_refuse = api_.version >= 27;  // before 12.9 CUPTI dereferences a null buffer
  if (lock_.LockFor(kStepLockWaitNs)) {
    const HeldLock held(lock_);
    if (!pool_.empty()) {
      *buffer = pool_.back();
      pool_.pop_back();
    } else if (buffers_ < kMaxBuffers || !may_refuse) {
      void* memory = mmap(nullptr, kBufferSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory != MAP_FAILED) {
        *buffer = static_cast<uint8_t*>(memory);
        ++buffers_;
      }
    }
    ++requests_;
    if (*buffer != nullptr) ++in_cupti_;
  }
  if (*buffer == nullptr) *size = 0;
}

void KernelTimes::CompleteBuffer(uint8_t* buffer, size_t size, size_t valid) noexcept {
  if (buffer == nullptr) return;
  if (!lock_.LockFor(kStepLockWaitNs)) return;  // a leak of one buffer rather than a program that waits
  const HeldLock held(lock_);
  if (in_cupti_ > 0) --in_cupti_;
  ReadRecords(buffer, valid);
  dropped_ += activity_.Dropped();
  if (size == kBufferSize && pool_.size() < kMaxBuffers) {
    std::memset(buffer, 0, valid);
    pool_.push_back(buffer);
  } else {
    munmap(buffer, kBufferSize);
    --buffers_;
  }
}

void KernelTimes::ReadRecords(uint8_t* buffer, size_t valid) noexcept {
  CUpti_Activity* record = nullptr;
  while (valid > 0 && activity_.Next(buffer, valid, &record) == CUPTI_SUCCESS) {
    Record found = {};
    switch (record->kind) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      case CUPTI_ACTIVITY_KIND_KERNEL: {
        const auto kernel = ReadPrefix<KernelRecordPrefix>(record, &found);
        if (found.node_id == 0) found.kernel = keys_.FindKernel(kernel.name);  // else its number tells which it is
        for (int i = 0; i < 3; ++i) {
          found.grid[i] = static_cast<uint32_t>(kernel.grid[i]);
          found.block[i] = static_cast<uint32_t>(kernel.block[i]);
        }
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY:
      case CUPTI_ACTIVITY_KIND_MEMSET:
        ReadPrefix<TransferRecordPrefix>(record, &found);
        found.transfer = true;
        break;
      default:
        continue;
    }
    if (found.start_ns == 0) {
      ++invalid_;
      continue;
    }
    try {
      records_.push_back(found);
    } catch (...) {
      ++dropped_;
    }
  }
}

}  // namespace rfinject::cupti
