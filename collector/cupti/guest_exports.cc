// File: guest_exports.cc
//
// The functions of CUPTI's by which a profiler of the program's becomes our guest (guest_subscriber.h) and gets its
// records (guest_records.h). The library is preloaded, so the program's libraries find these before CUPTI's own; what
// is not about a guest is passed on. A library that asks dlsym, or a process that came to know us by
// CUDA_INJECTION64_PATH alone, does not come through here.
#include <dlfcn.h>
#include <link.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstddef>
#include <cstring>

#include "collector/cupti/guest_records.h"
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
// that ends a function leaves no address of it, it is that of the CUPTI that is loaded. It is looked for once: Kineto
// calls some of these for each operator and each record.
void* Next(const char* name, const void* caller, const void* ours, std::atomic<void*>* known) {
  if (void* const next = known->load(std::memory_order_acquire); next != nullptr) return next;
  void* found = nullptr;
  Dl_info info;
  if (dladdr(caller, &info) != 0 && info.dli_fname != nullptr) found = InLibrary(info.dli_fname, name);
  if (found == nullptr || found == ours) {
    Path path{};
    found = dl_iterate_phdr(&NoteCupti, &path) != 0 ? InLibrary(path.data(), name) : nullptr;
  }
  known->store(found, std::memory_order_release);
  return found;
}

}  // namespace

extern "C" {

#define RFINJECT_EXPORTED [[gnu::visibility("default"), gnu::used]]
// CUPTI's own function.
#define RFINJECT_NEXT(function)                                                         \
  reinterpret_cast<decltype(&::function)>([caller = __builtin_return_address(0)] {      \
    static constinit std::atomic<void*> known{nullptr};                                 \
    return Next(#function, caller, reinterpret_cast<const void*>(&::function), &known); \
  }())
// Passes a call on; the process's records are the program's then.
#define RFINJECT_PASS_ON(function, ...)      \
  const auto next = RFINJECT_NEXT(function); \
  return next != nullptr ? next(__VA_ARGS__) : CUPTI_ERROR_NOT_INITIALIZED

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
  RFINJECT_PASS_ON(cuptiUnsubscribe, subscriber);
}

RFINJECT_EXPORTED CUptiResult CUPTIAPI cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                                           CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  if (IsGuest(subscriber)) return EnableForGuest(enable != 0, domain, cbid);
  RFINJECT_PASS_ON(cuptiEnableCallback, enable, subscriber, domain, cbid);
}

// A guest gets no domain as a whole: PyTorch's profiler asks for one to finalise CUPTI from inside of a callback
// (TEARDOWN_CUPTI=1), and lets it be where that fails.
RFINJECT_EXPORTED CUptiResult CUPTIAPI cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                                         CUpti_CallbackDomain domain) {
  if (IsGuest(subscriber)) return CUPTI_ERROR_NOT_SUPPORTED;
  RFINJECT_PASS_ON(cuptiEnableDomain, enable, subscriber, domain);
}

// --- Activity records of the process.

RFINJECT_EXPORTED CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                                                      CUpti_BuffersCallbackCompleteFunc complete) {
  if (GuestsApi() != nullptr) return RegisterGuestsCallbacks(request, complete);
  g_program_has_records.store(true);
  RFINJECT_PASS_ON(cuptiActivityRegisterCallbacks, request, complete);
}

RFINJECT_EXPORTED CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind) {
  if (GuestsApi() != nullptr) return EnableGuestsKind(true, kind);
  g_program_has_records.store(true);
  RFINJECT_PASS_ON(cuptiActivityEnable, kind);
}

RFINJECT_EXPORTED CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind) {
  if (GuestsApi() != nullptr) return EnableGuestsKind(false, kind);
  RFINJECT_PASS_ON(cuptiActivityDisable, kind);
}

RFINJECT_EXPORTED CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid,
                                                                  CUpti_Activity** record) {
  if (GuestsApi() != nullptr) return NextRecordOfGuest(buffer, valid, record);
  RFINJECT_PASS_ON(cuptiActivityGetNextRecord, buffer, valid, record);
}

RFINJECT_EXPORTED CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream,
                                                                         size_t* dropped) {
  if (GuestsApi() != nullptr) return DroppedRecordsOfGuest(context, stream, dropped);
  RFINJECT_PASS_ON(cuptiActivityGetNumDroppedRecords, context, stream, dropped);
}

RFINJECT_EXPORTED CUptiResult CUPTIAPI cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute, size_t* size,
                                                                 void* value) {
  if (GuestsApi() != nullptr) return SetGuestsAttribute(attribute, size, value);
  RFINJECT_PASS_ON(cuptiActivitySetAttribute, attribute, size, value);
}

RFINJECT_EXPORTED CUptiResult CUPTIAPI cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                                              uint64_t id) {
  if (GuestsApi() != nullptr) return PushGuestsCorrelation(kind, id);
  RFINJECT_PASS_ON(cuptiActivityPushExternalCorrelationId, kind, id);
}

RFINJECT_EXPORTED CUptiResult CUPTIAPI cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                                             uint64_t* id) {
  if (GuestsApi() != nullptr) return PopGuestsCorrelation(kind, id);
  RFINJECT_PASS_ON(cuptiActivityPopExternalCorrelationId, kind, id);
}

RFINJECT_EXPORTED CUptiResult CUPTIAPI cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc clock) {
  if (GuestsApi() != nullptr) return SetGuestsClock(clock);
  g_program_has_records.store(true);
  RFINJECT_PASS_ON(cuptiActivityRegisterTimestampCallback, clock);
}

RFINJECT_EXPORTED CUptiResult CUPTIAPI cuptiGetTimestamp(uint64_t* time) {
  if (GuestsApi() != nullptr) return TimeOfGuest(time);
  RFINJECT_PASS_ON(cuptiGetTimestamp, time);
}

RFINJECT_EXPORTED CUptiResult CUPTIAPI cuptiActivityEnableRuntimeApi(CUpti_CallbackId cbid, uint8_t enable) {
  if (GuestsApi() != nullptr) return EnableGuestsRuntimeApi(cbid, enable != 0);
  RFINJECT_PASS_ON(cuptiActivityEnableRuntimeApi, cbid, enable);
}

RFINJECT_EXPORTED CUptiResult CUPTIAPI cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t enable) {
  if (GuestsApi() != nullptr) return EnableGuestsDriverApi(cbid, enable != 0);
  RFINJECT_PASS_ON(cuptiActivityEnableDriverApi, cbid, enable);
}

}  // extern "C"

}  // namespace rfinject::cupti
