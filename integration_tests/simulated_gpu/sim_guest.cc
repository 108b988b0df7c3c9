// File: sim_guest.cc
//
// What PyTorch's profiler (Kineto) does with CUPTI, linked with CUPTI as libtorch is. Until 2026 it subscribed, and
// where it is refused it records nothing of the GPU. Its records are those of the process, by a clock of its own.
#include <cuda.h>
#include <cupti.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

extern "C" [[gnu::weak]] CUptiResult CUPTIAPI cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                                                CUpti_CallbackDomain domain);

#ifdef SIM_GUEST_ASKS_DLSYM
#define CUPTI(name) reinterpret_cast<decltype(&name)>(dlsym(dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD), #name))
#else
#define CUPTI(name) name
#endif

namespace {

CUpti_SubscriberHandle g_subscriber = nullptr;
int g_contexts = 0;

void CUPTIAPI OnCallback(void* user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void*) {
  if (domain == CUPTI_CB_DOMAIN_RESOURCE && cbid == CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING)
    ++*static_cast<int*>(user);
}

// Some clock, at twice the speed of CUPTI's, as the processor's counter would be.
uint64_t (*g_now)() = nullptr;
constexpr uint64_t kSpeed = 2, kAhead = 1'000'000'000'000'000'000;
uint64_t CUPTIAPI Ticks() { return kSpeed * g_now() + kAhead; }

std::atomic<uint64_t> g_records{0}, g_longest_ns{0}, g_out_of_time{0};
uint64_t g_begun = 0;

void CUPTIAPI OnRequest(uint8_t** buffer, size_t* size, size_t* max_records) {
  *size = size_t{1} << 20;
  *buffer = static_cast<uint8_t*>(calloc(1, *size));
  *max_records = 0;
}

void CUPTIAPI OnComplete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  const uint64_t now = Ticks();
  CUpti_Activity* record = nullptr;
  while (CUPTI(cuptiActivityGetNextRecord)(buffer, valid, &record) == CUPTI_SUCCESS) {
    const auto& kernel = *reinterpret_cast<const CUpti_ActivityKernel10*>(record);
    g_records += 1;
    g_out_of_time += kernel.start < g_begun || kernel.end > now || kernel.end < kernel.start;
    const uint64_t ns = (kernel.end - kernel.start) / kSpeed;
    if (ns > g_longest_ns) g_longest_ns = ns;
  }
  size_t dropped = 0;
  CUPTI(cuptiActivityGetNumDroppedRecords)(nullptr, 0, &dropped);
  free(buffer);
}

}  // namespace

extern "C" {

// The CUptiResult of subscribing.
int sim_guest_begin(void) {
  const CUptiResult result = CUPTI(cuptiSubscribe)(&g_subscriber, &OnCallback, &g_contexts);
  if (result != CUPTI_SUCCESS) return result;
  return CUPTI(cuptiEnableCallback)(1, g_subscriber, CUPTI_CB_DOMAIN_RESOURCE,
                                    CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
}
// How many contexts it was told to go.
int sim_guest_contexts(void) { return g_contexts; }
// It asks for a domain where it means to finalise CUPTI. The simulated CUPTI has no such function: -1.
int sim_guest_domain(void) {
  return cuptiEnableDomain != nullptr ? cuptiEnableDomain(1, g_subscriber, CUPTI_CB_DOMAIN_RUNTIME_API) : -1;
}
int sim_guest_end(void) { return CUPTI(cuptiUnsubscribe)(g_subscriber); }

// The first CUptiResult that is not 0 of recording kernels from now on. `now`: the simulator's clock.
int sim_guest_record(uint64_t (*now)()) {
  g_now = now;
  g_records = g_longest_ns = g_out_of_time = 0;
  uint8_t zeroed = 0;
  size_t size = sizeof zeroed;
  CUptiResult result = CUPTI(cuptiActivityRegisterTimestampCallback)(&Ticks);
  g_begun = Ticks();
  if (result == 0)
    result = CUPTI(cuptiActivitySetAttribute)(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &zeroed);
  if (result == 0) result = CUPTI(cuptiActivityRegisterCallbacks)(&OnRequest, &OnComplete);
  if (result == 0) result = CUPTI(cuptiActivityEnableRuntimeApi)(1, 0);
  if (result == 0) result = CUPTI(cuptiActivityEnable)(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  if (result == 0) result = CUPTI(cuptiActivityPushExternalCorrelationId)(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 7);
  uint64_t id = 0;
  if (result == 0)
    result = CUPTI(cuptiActivityPopExternalCorrelationId)(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &id);
  return result;
}
int sim_guest_stop(void) {
  const CUptiResult flushed = CUPTI(cuptiActivityFlushAll)(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  const CUptiResult disabled = CUPTI(cuptiActivityDisable)(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  return flushed != CUPTI_SUCCESS ? flushed : disabled;
}
// What was recorded: kernels, those not between the beginning and the end by the guest's clock, the longest in ns.
uint64_t sim_guest_records(void) { return g_records; }
uint64_t sim_guest_out_of_time(void) { return g_out_of_time; }
uint64_t sim_guest_longest_ns(void) { return g_longest_ns; }

}  // extern "C"
