// File: guest_subscriber.h
//
// While we are CUPTI's subscriber, a profiler of the program's is refused. PyTorch's own, up to torch 2.12, records
// nothing of the GPU then (docs/measurements/h200). So the program's subscriber is our guest. Where CUPTI has one
// subscriber, the guest gets a handle of ours, and the callbacks that it asks for out of our subscription; where it
// has several, a subscription of its own.
//
// guest_exports.cc has the functions by which the program's libraries come here, guest_records.h the guest's records.
#ifndef RFINJECT_COLLECTOR_CUPTI_GUEST_SUBSCRIBER_H_
#define RFINJECT_COLLECTOR_CUPTI_GUEST_SUBSCRIBER_H_

#include <atomic>

#include "collector/cupti/subscription.h"

namespace rfinject::cupti {

// Whether there is a guest whose callbacks come through us.
inline constinit std::atomic<bool> g_has_guest{false};

// From now on a subscriber that CUPTI refuses is the guest of `subscription`. Both must live as long as the process.
void HostGuest(const Api& api, const Subscription& subscription);

// Tells the guest of a callback, if it asked for such.
void TellGuest(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* data) noexcept;

bool IsGuest(CUpti_SubscriberHandle subscriber);
// What subscribing returns: where CUPTI's `result` was that there is a subscriber, and we are it, the caller becomes
// the guest. There is one.
CUptiResult AdmitGuest(CUptiResult result, CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                       void* user);
CUptiResult DismissGuest();
// The subscription of the guest, which is made for one that has none and only wants records; null where CUPTI has one
// subscriber, or refuses.
CUpti_SubscriberHandle GuestsOwn();
// Where guests have subscriptions of their own, CUPTI's functions; else null.
const Api* GuestsApi() noexcept;
// The guest asks for a callback, or no more.
CUptiResult EnableForGuest(bool enable, CUpti_CallbackDomain domain, CUpti_CallbackId cbid);

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_GUEST_SUBSCRIBER_H_
