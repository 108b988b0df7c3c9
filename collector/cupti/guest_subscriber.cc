#include "collector/cupti/guest_subscriber.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "collector/cupti/lock_waits.h"
#include "collector/sync.h"

namespace rfinject::cupti {
namespace {

// Callbacks of a domain are numbered from 1; CUDA 13 has some 800 in the largest.
constexpr size_t kDomains = CUPTI_CB_DOMAIN_SIZE, kCallbackIds = 2048;

struct Host {
  const Api* api = nullptr;
  CUpti_SubscriberHandle subscriber = nullptr;
};
constinit Mutex g_mutex;
constinit Host g_host RFINJECT_GUARDED_BY(g_mutex);
constinit std::atomic<CUpti_CallbackFunc> g_callback{nullptr};
constinit std::atomic<void*> g_user{nullptr};
constinit std::array<std::array<std::atomic<bool>, kCallbackIds>, kDomains> g_wanted{};

// Any address that CUPTI cannot have.
CUpti_SubscriberHandle GuestHandle() { return reinterpret_cast<CUpti_SubscriberHandle>(&g_mutex); }

void Forget() {
  for (auto& domain : g_wanted) {
    for (auto& one : domain) one.store(false, std::memory_order_relaxed);
  }
}

}  // namespace

void HostGuest(const Api& api, CUpti_SubscriberHandle subscriber) {
  if (!g_mutex.LockFor(kStepLockWaitNs)) return;
  const HeldLock held(g_mutex);
  g_host = {&api, subscriber};
}

void TellGuest(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* data) noexcept {
  if (domain >= kDomains || cbid >= kCallbackIds || !g_wanted[domain][cbid].load(std::memory_order_relaxed)) return;
  const CUpti_CallbackFunc callback = g_callback.load(std::memory_order_acquire);
  if (callback != nullptr) callback(g_user.load(), domain, cbid, data);
}

bool IsGuest(CUpti_SubscriberHandle subscriber) { return subscriber == GuestHandle() && g_has_guest.load(); }

CUptiResult AdmitGuest(CUptiResult result, CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                       void* user) {
  if (result != CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED || subscriber == nullptr || callback == nullptr) {
    return result;
  }
  if (!g_mutex.LockFor(kStepLockWaitNs)) return result;
  const HeldLock held(g_mutex);
  if (g_host.api == nullptr || g_has_guest.load()) return result;
  g_user.store(user);
  g_callback.store(callback);
  g_has_guest.store(true, std::memory_order_release);
  *subscriber = GuestHandle();
  return CUPTI_SUCCESS;
}

CUptiResult DismissGuest() {
  if (!g_mutex.LockFor(kStepLockWaitNs)) return CUPTI_ERROR_UNKNOWN;
  const HeldLock held(g_mutex);
  Forget();
  g_callback.store(nullptr);
  g_has_guest.store(false);
  return CUPTI_SUCCESS;
}

// What a guest does not want any more may still be wanted by us: it is not told of it.
CUptiResult EnableForGuest(bool enable, CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  if (!g_mutex.LockFor(kStepLockWaitNs)) return CUPTI_ERROR_UNKNOWN;
  const HeldLock held(g_mutex);
  if (domain >= kDomains || cbid >= kCallbackIds) return CUPTI_ERROR_INVALID_PARAMETER;
  if (enable) {
    const CUptiResult result = g_host.api->cuptiEnableCallback(1, g_host.subscriber, domain, cbid);
    if (result != CUPTI_SUCCESS) return result;
  }
  g_wanted[domain][cbid].store(enable);
  return CUPTI_SUCCESS;
}

}  // namespace rfinject::cupti
