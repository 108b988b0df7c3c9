// File: guest_subscriber.h
//
// CUPTI has one subscriber in a process, and while we are it, a profiler of the program's is refused. PyTorch's own,
// up to torch 2.12, records nothing of the GPU then (docs/measurements/h200). So the program's subscriber is our
// guest: it gets a handle of ours, and the callbacks that it asks for out of our subscription.
//
// guest_exports.cc has the functions by which the program's libraries come here.
#ifndef RFINJECT_COLLECTOR_CUPTI_GUEST_SUBSCRIBER_H_
#define RFINJECT_COLLECTOR_CUPTI_GUEST_SUBSCRIBER_H_

#include <atomic>

#include "collector/cupti/api.h"

namespace rfinject::cupti {

inline constinit std::atomic<bool> g_has_guest{false};

// From now on a subscriber that CUPTI refuses is the guest of `subscriber`. `reenable` asks for our own callbacks
// again. Both must live as long as the process.
void HostGuest(const Api& api, CUpti_SubscriberHandle subscriber);

// Tells the guest of a callback, if it asked for such.
void TellGuest(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* data) noexcept;

bool IsGuest(CUpti_SubscriberHandle subscriber);
// What subscribing returns: where CUPTI's `result` was that there is a subscriber, and we are it, the caller becomes
// the guest. There is one.
CUptiResult AdmitGuest(CUptiResult result, CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                       void* user);
CUptiResult DismissGuest();
// The guest asks for a callback, or no more.
CUptiResult EnableForGuest(bool enable, CUpti_CallbackDomain domain, CUpti_CallbackId cbid);

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_GUEST_SUBSCRIBER_H_
