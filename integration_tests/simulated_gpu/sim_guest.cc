// File: sim_guest.cc
//
// What PyTorch's profiler (Kineto) did with CUPTI's callbacks until 2026, linked with CUPTI as libtorch is: where it
// is refused it records nothing of the GPU.
#include <cuda.h>
#include <cupti.h>

extern "C" [[gnu::weak]] CUptiResult CUPTIAPI cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                                                CUpti_CallbackDomain domain);

namespace {

CUpti_SubscriberHandle g_subscriber = nullptr;
int g_contexts = 0;

void CUPTIAPI OnCallback(void* user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void*) {
  if (domain == CUPTI_CB_DOMAIN_RESOURCE && cbid == CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING)
    ++*static_cast<int*>(user);
}

}  // namespace

extern "C" {

// The CUptiResult of subscribing.
int sim_guest_begin(void) {
  const CUptiResult result = cuptiSubscribe(&g_subscriber, &OnCallback, &g_contexts);
  if (result != CUPTI_SUCCESS) return result;
  return cuptiEnableCallback(1, g_subscriber, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
}
// How many contexts it was told to go.
int sim_guest_contexts(void) { return g_contexts; }
// It asks for a domain where it means to finalise CUPTI. The simulated CUPTI has no such function: -1.
int sim_guest_domain(void) {
  return cuptiEnableDomain != nullptr ? cuptiEnableDomain(1, g_subscriber, CUPTI_CB_DOMAIN_RUNTIME_API) : -1;
}
int sim_guest_end(void) { return cuptiUnsubscribe(g_subscriber); }

}  // extern "C"
