// File: subscription.h
//
// Subscribes the library to CUPTI, and decides whose its activity records are.
//
// Until 13.2 CUPTI has one subscriber in a process, and activity records are the process's: whoever registered
// callbacks last gets all of them. From 13.3 on there may be several subscribers, if each allows others, and each may
// have records of its own. But CUPTI refuses the calls of the one kind where those of the other were used before (14,
// "Cannot mix global-scope and subscriber-scope activity APIs"; pytorch PR 192094).
//
// PyTorch's profiler up to torch 2.15, Kineto, uses the process's records; its newer engine, which needs the package
// cupti-python, and JAX use their own, and fail where there is a subscriber that allows no other. So records are our
// own only where the program may have such an engine, and Kineto can be given some, too (guest_records.h).
#ifndef RFINJECT_COLLECTOR_CUPTI_SUBSCRIPTION_H_
#define RFINJECT_COLLECTOR_CUPTI_SUBSCRIPTION_H_

#include <array>
#include <atomic>

#include "collector/cupti/api.h"

namespace rfinject::cupti {

struct Subscription {
  CUpti_SubscriberHandle handle = nullptr;
  bool own_records = false;  // the subscriber's; else the process's
};

// The name of another subscriber, ending in a zero; empty where CUPTI does not tell it.
using SubscriberName = std::array<char, 65>;

// Subscribes. Returns CUPTI's result; where that is that another tool has the only subscription, `holder` is its
// name.
CUptiResult Subscribe(const Api& api, CUpti_CallbackFunc callback, Subscription* subscription,
                      SubscriberName* holder);
// Subscribes on behalf of a profiler of the program's, beside us.
CUptiResult SubscribeGuest(const Api& api, CUpti_CallbackFunc callback, void* user, CUpti_SubscriberHandle* handle);

// Set where the program has used the process's records before we subscribed.
inline constinit std::atomic<bool> g_program_has_records{false};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_SUBSCRIPTION_H_
