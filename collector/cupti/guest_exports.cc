// File: guest_exports.cc
//
// The functions of CUPTI's by which a profiler of the program's becomes our guest (guest_subscriber.h). The library
// is preloaded, so the program's libraries find these before CUPTI's own; what is not about a guest is passed on. A
// library that asks dlsym, or a process that came to know us by CUDA_INJECTION64_PATH alone, does not come through
// here.
#include <dlfcn.h>
#include <link.h>

#include <array>
#include <climits>
#include <cstddef>
#include <cstring>

#include "collector/cupti/guest_subscriber.h"

namespace rfinject::cupti {
namespace {

void* InLibrary(const char* path, const char* name) {
  void* const library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* const found = dlsym(library, name);
  dlclose(library);  // it stays loaded: it was before
  return found;
}

using Path = std::array<char, PATH_MAX>;

// Notes the path of the CUPTI that is loaded. Nothing is opened here: the loader's lock is held meanwhile.
int NoteCupti(dl_phdr_info* info, size_t, void* user) {
  if (info->dlpi_name == nullptr || strstr(info->dlpi_name, "/libcupti.so") == nullptr) return 0;
  auto& path = *static_cast<Path*>(user);
  if (strlen(info->dlpi_name) >= path.size()) return 0;
  strcpy(path.data(), info->dlpi_name);
  return 1;
}

// CUPTI's function, as the library would have found it in which `caller` lies. Where that is not known, since a call
// that ends a function leaves no address of it, it is that of the CUPTI that is loaded.
template <typename Function>
Function Next(const char* name, const void* caller, Function ours) {
  void* found = nullptr;
  Dl_info info;
  if (dladdr(caller, &info) != 0 && info.dli_fname != nullptr) found = InLibrary(info.dli_fname, name);
  if (found == nullptr || found == reinterpret_cast<void*>(ours)) {
    Path path{};
    found = dl_iterate_phdr(&NoteCupti, &path) != 0 ? InLibrary(path.data(), name) : nullptr;
  }
  return reinterpret_cast<Function>(found);
}

}  // namespace

extern "C" {

#define RFINJECT_NEXT(function) Next<decltype(&::function)>(#function, __builtin_return_address(0), &::function)
#define RFINJECT_EXPORTED [[gnu::visibility("default"), gnu::used]]

RFINJECT_EXPORTED CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                                                      void* user) {
  const auto next = RFINJECT_NEXT(cuptiSubscribe);
  if (next == nullptr) return CUPTI_ERROR_NOT_INITIALIZED;
  return AdmitGuest(next(subscriber, callback, user), subscriber, callback, user);
}

RFINJECT_EXPORTED CUptiResult CUPTIAPI cuptiSubscribe_v2(CUpti_SubscriberHandle* subscriber,
                                                         CUpti_CallbackFunc callback, void* user,
                                                         CUpti_SubscriberParams* params) {
  const auto next = RFINJECT_NEXT(cuptiSubscribe_v2);
  if (next == nullptr) return CUPTI_ERROR_NOT_INITIALIZED;
  return AdmitGuest(next(subscriber, callback, user, params), subscriber, callback, user);
}

RFINJECT_EXPORTED CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
  if (IsGuest(subscriber)) return DismissGuest();
  const auto next = RFINJECT_NEXT(cuptiUnsubscribe);
  return next != nullptr ? next(subscriber) : CUPTI_ERROR_NOT_INITIALIZED;
}

RFINJECT_EXPORTED CUptiResult CUPTIAPI cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                                           CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  if (IsGuest(subscriber)) return EnableForGuest(enable != 0, domain, cbid);
  const auto next = RFINJECT_NEXT(cuptiEnableCallback);
  return next != nullptr ? next(enable, subscriber, domain, cbid) : CUPTI_ERROR_NOT_INITIALIZED;
}

// A guest gets no domain as a whole: PyTorch's profiler asks for one to finalise CUPTI from inside of a callback
// (TEARDOWN_CUPTI=1), and lets it be where that fails.
RFINJECT_EXPORTED CUptiResult CUPTIAPI cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                                         CUpti_CallbackDomain domain) {
  if (IsGuest(subscriber)) return CUPTI_ERROR_NOT_SUPPORTED;
  const auto next = RFINJECT_NEXT(cuptiEnableDomain);
  return next != nullptr ? next(enable, subscriber, domain) : CUPTI_ERROR_NOT_INITIALIZED;
}

}  // extern "C"

}  // namespace rfinject::cupti
