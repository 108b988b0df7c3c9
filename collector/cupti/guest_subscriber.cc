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
  Subscription subscription;
};
constinit Mutex g_mutex;
constinit Host g_host RFINJECT_GUARDED_BY(g_mutex);
constinit std::atomic<const Api*> g_guests_api{nullptr};
constinit std::atomic<CUpti_SubscriberHandle> g_own{nullptr};  // the guest's
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

void CUPTIAPI NoCallback(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

// What the guest's subscription is, which is made if need be. The lock is held.
CUptiResult SubscribeOwn(CUpti_CallbackFunc callback, void* user) RFINJECT_REQUIRES(g_mutex) {
  CUpti_SubscriberHandle own = nullptr;
  const CUptiResult result = SubscribeGuest(*g_host.api, callback, user, &own);
  if (result == CUPTI_SUCCESS) g_own.store(own);
  return result;
}

}  // namespace

void HostGuest(const Api& api, const Subscription& subscription) {
  if (!g_mutex.LockFor(kStepLockWaitNs)) return;
  const HeldLock held(g_mutex);
  g_host = {&api, subscription};
  if (subscription.own_records) g_guests_api.store(&api, std::memory_order_release);
}

const Api* GuestsApi() noexcept { return g_guests_api.load(std::memory_order_acquire); }

CUpti_SubscriberHandle GuestsOwn() {
  if (CUpti_SubscriberHandle own = g_own.load(); own != nullptr || GuestsApi() == nullptr) return own;
  if (!g_mutex.LockFor(kStepLockWaitNs)) return nullptr;
  const HeldLock held(g_mutex);
  if (g_own.load() == nullptr) SubscribeOwn(&NoCallback, nullptr);
  return g_own.load();
}

void TellGuest(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* data) noexcept {
  if (domain >= kDomains || cbid >= kCallbackIds || !g_wanted[domain][cbid].load(std::memory_order_relaxed)) return;
  const CUpti_CallbackFunc callback = g_callback.load(std::memory_order_acquire);
  if (callback != nullptr) callback(g_user.load(), domain, cbid, data);
}

bool IsGuest(CUpti_SubscriberHandle subscriber) {
  return subscriber != nullptr && ((subscriber == GuestHandle() && g_has_guest.load()) || subscriber == g_own.load());
}

CUptiResult AdmitGuest(CUptiResult result, CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                       void* user) {
  if (result != CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED || subscriber == nullptr || callback == nullptr) {
    return result;
  }
  if (!g_mutex.LockFor(kStepLockWaitNs)) return result;
  const HeldLock held(g_mutex);
  if (g_host.api == nullptr || g_has_guest.load() || g_own.load() != nullptr) return result;
  if (g_host.subscription.own_records) {
    const CUptiResult subscribed = SubscribeOwn(callback, user);
    *subscriber = g_own.load();
    return subscribed;
  }
  g_user.store(user);
  g_callback.store(callback);
  g_has_guest.store(true, std::memory_order_release);
  *subscriber = GuestHandle();
  return CUPTI_SUCCESS;
}

CUptiResult DismissGuest() {
  if (!g_mutex.LockFor(kStepLockWaitNs)) return CUPTI_ERROR_UNKNOWN;
  const HeldLock held(g_mutex);
  if (CUpti_SubscriberHandle own = g_own.exchange(nullptr); own != nullptr) return g_host.api->cuptiUnsubscribe(own);
  Forget();
  g_callback.store(nullptr);
  g_has_guest.store(false);
  return CUPTI_SUCCESS;
}

// What a guest does not want any more may still be wanted by us: it is not told of it.
CUptiResult EnableForGuest(bool enable, CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  if (!g_mutex.LockFor(kStepLockWaitNs)) return CUPTI_ERROR_UNKNOWN;
  const HeldLock held(g_mutex);
  if (CUpti_SubscriberHandle own = g_own.load(); own != nullptr) {
    return g_host.api->cuptiEnableCallback(enable ? 1 : 0, own, domain, cbid);
  }
  if (domain >= kDomains || cbid >= kCallbackIds) return CUPTI_ERROR_INVALID_PARAMETER;
  if (enable) {
    const CUptiResult result = g_host.api->cuptiEnableCallback(1, g_host.subscription.handle, domain, cbid);
    if (result != CUPTI_SUCCESS) return result;
  }
  g_wanted[domain][cbid].store(enable);
  return CUPTI_SUCCESS;
}

}  // namespace rfinject::cupti
