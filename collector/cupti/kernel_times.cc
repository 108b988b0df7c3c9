// File: kernel_times.cc
#include "collector/cupti/kernel_times.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "collector/cupti/api.h"

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

}  // namespace

KernelTimes::KernelTimes(const Api& api) : api_(api) { pool_.reserve(kMaxBuffers); }

int KernelTimes::Register() {
  // All three are hints: an older CUPTI that does not know one refuses it and works on. Zeroed buffers save CUPTI a
  // memset on the application's thread; per-thread buffers would need one buffer a thread for a window of one step.
  uint8_t on = 1, off = 0;
  size_t size = sizeof on;
  api_.cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &on);
  size = sizeof off;
  api_.cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &off);
  g_times.store(this, std::memory_order_release);
  return api_.cuptiActivityRegisterCallbacks(&OnRequest, &OnComplete);
}

int KernelTimes::Begin() {
  records_.clear();
  invalid_ = dropped_ = 0;
  CUptiResult result = api_.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  open_ = result == CUPTI_SUCCESS;
  return result;
}

int KernelTimes::End(std::vector<Record>* records, uint64_t* invalid, uint64_t* dropped) {
  if (!open_) return CUPTI_ERROR_INVALID_OPERATION;
  // Forced: without it only full buffers come. Nothing is running any more, so no record is cut short.
  CUptiResult flushed = api_.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  CUptiResult disabled = api_.cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  if (disabled != CUPTI_SUCCESS) disabled = api_.cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  open_ = disabled != CUPTI_SUCCESS;
  if (mutex_.LockFor(1'000'000'000)) {
    records->swap(records_);
    records_.clear();
    *invalid = invalid_;
    *dropped = dropped_;
    mutex_.Unlock();
  }
  return flushed != CUPTI_SUCCESS ? flushed : disabled;
}

void KernelTimes::RequestBuffer(uint8_t** buffer, size_t* size, size_t* max_records) noexcept {
  *max_records = 0;  // as many as fit
  *size = kBufferSize;
  bool may_refuse = api_.version >= 27;  // before 12.9 CUPTI dereferences a null buffer
  if (mutex_.LockFor(1'000'000'000)) {
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
    mutex_.Unlock();
  }
  if (*buffer == nullptr) *size = 0;
}

void KernelTimes::CompleteBuffer(uint8_t* buffer, size_t size, size_t valid) noexcept {
  if (buffer == nullptr) return;
  if (!mutex_.LockFor(1'000'000'000)) return;  // a leak of one buffer rather than a program that waits
  CUpti_Activity* record = nullptr;
  while (valid > 0 && api_.cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && record->kind != CUPTI_ACTIVITY_KIND_KERNEL) continue;
    KernelRecordPrefix kernel;
    std::memcpy(&kernel, record, sizeof kernel);  // records are not aligned to their members
    if (!HasValidTime(kernel)) {
      ++invalid_;
      continue;
    }
    try {
      records_.push_back({kernel.correlation_id, kernel.end - kernel.start});
    } catch (...) {
      ++dropped_;
    }
  }
  size_t lost = 0;
  if (api_.cuptiActivityGetNumDroppedRecords != nullptr &&
      api_.cuptiActivityGetNumDroppedRecords(nullptr, 0, &lost) == CUPTI_SUCCESS) {
    dropped_ += lost;
  }
  if (size == kBufferSize && pool_.size() < kMaxBuffers) {
    std::memset(buffer, 0, valid);
    pool_.push_back(buffer);
  } else {
    munmap(buffer, kBufferSize);
    --buffers_;
  }
  mutex_.Unlock();
}

}  // namespace rfinject::cupti
