#include "collector/cupti/subscription.h"

#include <dlfcn.h>

#include "collector/program_profiler.h"

namespace rfinject::cupti {
namespace {

// The first version that has several subscribers; 13.2 has some of its functions.
constexpr uint32_t kCuptiVersion = 130300;

// CUpti_SubscriberParams of 13.3: an older CUPTI reads no further than its own size.
struct Params {
  CUpti_SubscriberParams old;
  uint8_t allow_others;
  uint8_t unused[7];
};

// Whether the program's libraries find our functions of CUPTI's before CUPTI's own (guest_exports.cc).
bool GuestsComeToUs() {
  Dl_info found, ours;
  const void* const function = dlsym(RTLD_DEFAULT, "cuptiActivityEnable");
  return function != nullptr && dladdr(function, &found) != 0 &&
         dladdr(reinterpret_cast<const void*>(&GuestsComeToUs), &ours) != 0 && found.dli_fbase == ours.dli_fbase;
}

bool MayHaveOwnRecords(const Api& api) {
  return api.has(kSubscribeV2 | kOwnRecords) && api.version >= kCuptiVersion && g_program_subscribes.load() &&
         GuestsComeToUs() && !g_program_has_records.load();
}

CUptiResult SubscribeNamed(const Api& api, const char* name, bool beside_others, CUpti_CallbackFunc callback,
                           void* user, CUpti_SubscriberHandle* handle, SubscriberName* holder) {
  Params params = {};
  params.old.structSize = beside_others ? offsetof(Params, unused) + sizeof params.unused
                                        : static_cast<size_t>(CUpti_SubscriberParams_STRUCT_SIZE);
  params.old.subscriberName = name;
  if (holder != nullptr) {
    params.old.oldSubscriberName = holder->data();
    params.old.oldSubscriberSize = holder->size() - 1;
  }
  params.allow_others = beside_others ? 1 : 0;
  return api.cuptiSubscribe_v2(handle, callback, user, &params.old);
}

}  // namespace

CUptiResult Subscribe(const Api& api, CUpti_CallbackFunc callback, Subscription* subscription,
                      SubscriberName* holder) {
  *subscription = {};
  holder->fill('\0');
  if (!api.has(kSubscribeV2)) return api.cuptiSubscribe(&subscription->handle, callback, nullptr);
  const auto subscribe = [&](bool beside_others) {
    *subscription = {.own_records = beside_others};
    const CUptiResult result =
        SubscribeNamed(api, "rfinject", beside_others, callback, nullptr, &subscription->handle, holder);
    if (result != CUPTI_SUCCESS) *subscription = {};
    return result;
  };
  // An older driver has one subscriber whatever CUPTI can do.
  if (MayHaveOwnRecords(api) && subscribe(true) == CUPTI_SUCCESS) return CUPTI_SUCCESS;
  return subscribe(false);
}

CUptiResult SubscribeGuest(const Api& api, CUpti_CallbackFunc callback, void* user, CUpti_SubscriberHandle* handle) {
  return SubscribeNamed(api, "a guest of rfinject", true, callback, user, handle, nullptr);
}

}  // namespace rfinject::cupti
