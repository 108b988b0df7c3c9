// File: sim_cupti.cc
//
// libcupti.so of the simulated GPU. Callbacks, activity records (here), ranges (sim_cupti_range.cc) and samples
// (sim_cupti_pm.cc) work on what the simulated driver launches; planning is the real CUPTI's (SIM_REAL_CUPTI names
// its folder), so that groups and passes are the real ones; evaluation answers from the kernels' known metrics. Each
// call is checked as the headers demand: size of the structure, NULL where NULL must be, and order.
#include <cupti.h>
#include <cupti_activity.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "integration_tests/simulated_gpu/sim_checks.h"
#include "integration_tests/simulated_gpu/sim_cupti_graphs.h"
#include "integration_tests/simulated_gpu/sim_cupti_parts.h"
#include "integration_tests/simulated_gpu/sim_legacy.h"
#include "integration_tests/simulated_gpu/simulator.h"

#ifndef SIM_CUPTI_API_VERSION
#define SIM_CUPTI_API_VERSION 130001
#endif

namespace {

// A record that CUPTI keeps until its kernel has ended and the tool's buffer is wanted.
struct Pending {
  SimLaunch launch;
  SimNode node;
  SimSpan span;
};
// Two moments of the tool's clock (cuptiActivityRegisterTimestampCallback) give the line to it from ours.
struct Moment {
  uint64_t ours, theirs;
};

struct World {
  std::mutex mutex;
  CUpti_CallbackFunc callback = nullptr;
  void* user = nullptr;
  std::set<std::pair<int, uint32_t>> enabled;
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  std::set<int> kinds;
  bool kernels_enabled = false;
  uint8_t* buffer = nullptr;
  size_t buffer_size = 0, buffer_used = 0;
  bool profiler_initialised = false;
  std::deque<Pending> pending;
  std::mutex stamp_mutex;
  CUpti_TimestampCallbackFunc stamp = nullptr;
  Moment stamped = {};
};
World& W() {
  static World* world = new World;
  return *world;
}

constexpr size_t kRecordSize = sizeof(CUpti_ActivityKernel10);  // the longest
constexpr size_t kManyRecords = 1000;                           // that CUPTI keeps before it hands a full buffer back

thread_local bool t_destroying = false;  // inside the callback of a context that goes

#define SIM_PARAMS(name, type) \
  SIM_ENTER(name);             \
  SIM_CHECK_PARAMS(name, type)

void Callback(const SimLaunch* launch, CUpti_ApiCallbackSite site, uint64_t* correlation_data,
              const CUresult* result) {
  CUpti_CallbackFunc callback = nullptr;
  {
    std::lock_guard lock(W().mutex);
    if (W().enabled.count({CUPTI_CB_DOMAIN_DRIVER_API, launch->cbid}) == 0) return;
    callback = W().callback;
  }
  if (callback == nullptr) return;
  CUpti_CallbackData data = {};
  data.callbackSite = site;
  data.functionName = launch->function_name;
  data.functionParams = launch->params;
  CUresult copy = result != nullptr ? *result : CUDA_SUCCESS;
  data.functionReturnValue = site == CUPTI_API_EXIT ? &copy : nullptr;
  data.symbolName = launch->symbol != nullptr   ? launch->symbol
                    : launch->kernel != nullptr ? launch->kernel->name
                                                : nullptr;
  data.context = launch->context;
  data.contextUid = 1;
  data.correlationData = correlation_data;
  data.correlationId = launch->correlation_id;
  callback(W().user, CUPTI_CB_DOMAIN_DRIVER_API, launch->cbid, &data);
}

void HandBack() {  // mutex held
  if (W().buffer == nullptr) return;
  uint8_t* buffer = std::exchange(W().buffer, nullptr);
  size_t size = W().buffer_size, used = W().buffer_used;
  W().mutex.unlock();
  W().complete(nullptr, 0, buffer, size, used);
  W().mutex.lock();
}

// Whether there is a buffer with room for a record; the tool is asked for one if need be. The mutex is held.
bool HaveRoom(std::unique_lock<std::mutex>& lock) {
  if (W().buffer != nullptr && W().buffer_used + kRecordSize > W().buffer_size) HandBack();
  if (W().buffer != nullptr) return true;
  size_t records = 0;
  uint8_t* buffer = nullptr;
  size_t size = 0;
  lock.unlock();
  W().request(&buffer, &size, &records);
  lock.lock();
  if (buffer == nullptr) return false;
  if (std::any_of(buffer, buffer + size, [](uint8_t byte) { return byte != 0; })) {
    sim::Violation("buffer request", "the buffer is not zeroed although the attribute says so");
  }
  W().buffer = buffer;
  W().buffer_size = size;
  W().buffer_used = 0;
  return true;
}

// Writes the records of what has ended into the tool's buffers. If `forced`, also of what has begun, which then has
// no end and is lost. The mutex is held.
void Drain(std::unique_lock<std::mutex>& lock, bool forced) {
  const uint64_t now = sim_now();
  std::deque<Pending> ended;
  for (Pending one : std::exchange(W().pending, {})) {
    const bool running = one.span.start <= now && one.span.end > now;
    if (forced && running) one.span.end = 0;
    (one.span.end <= now ? ended : W().pending).push_back(one);
  }
  for (const Pending& one : ended) {
    const SimSpan span = {SimStamp(one.span.start), one.span.end == 0 ? 0 : SimStamp(one.span.end)};
    if (!HaveRoom(lock)) continue;
    sim::WriteRecord(one.launch, one.node, span, W().buffer + W().buffer_used);
    W().buffer_used += kRecordSize;
  }
}

void Record(const SimLaunch* launch, const SimNode& node, SimSpan span) {
  std::unique_lock lock(W().mutex);
  const bool copies = W().kinds.count(CUPTI_ACTIVITY_KIND_MEMCPY) != 0;
  if (node.transfer_ns != 0 ? !copies : !W().kernels_enabled || node.kernel == nullptr) return;
  W().pending.push_back({*launch, node, span});
  // The tool is asked for a buffer by the first launch, and gets one back when it is full.
  HaveRoom(lock);
  if (W().pending.size() > kManyRecords) Drain(lock, false);
}

void OnEnter(const SimLaunch* launch, uint64_t* data) { Callback(launch, CUPTI_API_ENTER, data, nullptr); }
void OnExit(const SimLaunch* launch, uint64_t* data, const CUresult* result) {
  Callback(launch, CUPTI_API_EXIT, data, result);
}
SimSlow OnBegin(const SimLaunch* launch) { return SimRangeBegin(*launch); }
void OnRun(const SimLaunch* launch, const SimSpan* spans) {
  sim::LegacyRun(launch);
  if (launch->graph == nullptr) {
    Record(launch, sim::NodeOf(*launch), *spans);
  } else {
    for (const SimNode& node : sim::Recorded(*launch->graph)) Record(launch, node, *spans++);
  }
  SimRangeRun(*launch);
}
void OnNode(const SimNodeEvent* event) {
  CUpti_GraphData graph;
  const CUpti_CallbackId cbid = sim::NumberNode(*event, &graph);
  CUpti_CallbackFunc callback = nullptr;
  {
    std::lock_guard lock(W().mutex);
    if (W().enabled.count({CUPTI_CB_DOMAIN_RESOURCE, cbid}) != 0) callback = W().callback;
  }
  CUpti_ResourceData data = {};
  data.resourceDescriptor = &graph;
  if (callback != nullptr) callback(W().user, CUPTI_CB_DOMAIN_RESOURCE, cbid, &data);
}
void OnContextDestroy(CUcontext context) {
  if (W().callback != nullptr &&
      W().enabled.count({CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING}) != 0) {
    CUpti_ResourceData data = {};
    data.context = context;
    t_destroying = true;  // the driver must not be called now, so the context is whatever it is
    W().callback(W().user, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING, &data);
    t_destroying = false;
  }
  if (SimRangeSession(context)) sim::Violation("cuCtxDestroy", "a range profiler session is still enabled");
  if (sim::LegacySession(context)) sim::Violation("cuCtxDestroy", "a session of the legacy profiler is still open");
}

const SimHooks kHooks = {&OnEnter, &OnBegin, &OnRun, &OnExit, &OnContextDestroy, &OnNode};

}  // namespace

bool sim::ProfilerInitialised() { return W().profiler_initialised; }
bool sim::KernelRecordsOn() {
  std::lock_guard lock(W().mutex);
  return W().kernels_enabled;
}
bool SimProfilerIsInitialised() { return W().profiler_initialised; }
bool SimIsDestroying() { return t_destroying; }
void SimHookIn() { sim_set_hooks(&kHooks); }
uint64_t SimStamp(uint64_t ns) {
  std::lock_guard lock(W().stamp_mutex);
  if (W().stamp == nullptr) return ns;
  const Moment first = W().stamped, now = {sim_now(), W().stamp()};
  if (now.ours == first.ours) return now.theirs;
  const double rate = static_cast<double>(now.theirs - first.theirs) / static_cast<double>(now.ours - first.ours);
  const double since = static_cast<double>(static_cast<int64_t>(ns - first.ours));
  return first.theirs + static_cast<uint64_t>(static_cast<int64_t>(rate * since));
}

extern "C" {

CUptiResult CUPTIAPI cuptiGetVersion(uint32_t* version) {
  SIM_ENTER("cuptiGetVersion");
  *version = SIM_CUPTI_API_VERSION;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback, void* user) {
  SIM_ENTER("cuptiSubscribe");
  std::lock_guard lock(W().mutex);
  if (W().callback != nullptr) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  W().callback = callback;
  W().user = user;
  *subscriber = reinterpret_cast<CUpti_SubscriberHandle>(&W());
  SimHookIn();
  sim_set_callback(reinterpret_cast<void*>(callback));
  return CUPTI_SUCCESS;
}
#if SIM_CUPTI_API_VERSION >= 130000
CUptiResult CUPTIAPI cuptiSubscribe_v2(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback, void* user,
                                       CUpti_SubscriberParams* params) {
  if (int code = sim_take_failure("cuptiSubscribe_v2"); code != 0) {
    if (code == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED && params != nullptr &&
        params->oldSubscriberName != nullptr) {
      snprintf(params->oldSubscriberName, params->oldSubscriberSize, "CUPTI for Simulated Tool");
    }
    return static_cast<CUptiResult>(code);
  }
  SIM_CHECK("cuptiSubscribe_v2", params == nullptr || params->structSize == CUpti_SubscriberParams_STRUCT_SIZE,
            CUPTI_ERROR_INVALID_PARAMETER);
  return cuptiSubscribe(subscriber, callback, user);
}
#endif
CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle) {
  SIM_ENTER("cuptiUnsubscribe");
  std::lock_guard lock(W().mutex);
  W().callback = nullptr;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                         CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  SIM_ENTER("cuptiEnableCallback");
  SIM_CHECK("cuptiEnableCallback", subscriber == reinterpret_cast<CUpti_SubscriberHandle>(&W()),
            CUPTI_ERROR_INVALID_PARAMETER);
  if (domain == CUPTI_CB_DOMAIN_RESOURCE && !sim::KnowsResource(cbid)) return CUPTI_ERROR_INVALID_PARAMETER;
  std::lock_guard lock(W().mutex);
  if (enable != 0) {
    W().enabled.insert({domain, cbid});
  } else {
    W().enabled.erase({domain, cbid});
  }
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetDeviceId(CUcontext context, uint32_t* device) {
  SIM_ENTER("cuptiGetDeviceId");
  SIM_CHECK("cuptiGetDeviceId", context != nullptr && device != nullptr, CUPTI_ERROR_INVALID_PARAMETER);
  *device = static_cast<uint32_t>(sim_device_of(context));
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivitySetAttribute(CUpti_ActivityAttribute, size_t* size, void* value) {
  SIM_ENTER("cuptiActivitySetAttribute");
  SIM_CHECK("cuptiActivitySetAttribute", size != nullptr && value != nullptr, CUPTI_ERROR_INVALID_PARAMETER);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                                    CUpti_BuffersCallbackCompleteFunc complete) {
  SIM_ENTER("cuptiActivityRegisterCallbacks");
  std::lock_guard lock(W().mutex);
  W().request = request;
  W().complete = complete;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind) {
  SIM_ENTER("cuptiActivityEnable");
  std::lock_guard lock(W().mutex);
  SIM_CHECK("cuptiActivityEnable", W().request != nullptr, CUPTI_ERROR_INVALID_OPERATION);
  SIM_CHECK("cuptiActivityEnable",
            kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || kind == CUPTI_ACTIVITY_KIND_MEMCPY ||
                kind == CUPTI_ACTIVITY_KIND_MEMSET,
            CUPTI_ERROR_INVALID_KIND);
  SIM_CHECK("cuptiActivityEnable", !SimRangeIsRunning(), CUPTI_ERROR_NOT_COMPATIBLE);
  SIM_CHECK("cuptiActivityEnable", !sim::LegacyEnabled(), CUPTI_ERROR_NOT_COMPATIBLE);
  SimHookIn();  // records need no subscriber
  W().kinds.insert(kind);
  W().kernels_enabled = W().kinds.count(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != 0;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind) {
  SIM_ENTER("cuptiActivityDisable");
  std::lock_guard lock(W().mutex);
  W().kinds.erase(kind);
  W().kernels_enabled = W().kinds.count(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != 0;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t flag) {
  SIM_ENTER("cuptiActivityFlushAll");
  std::unique_lock lock(W().mutex);
  Drain(lock, (flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0);
  charged.Each(W().buffer_used / kRecordSize);
  HandBack();
  return CUPTI_SUCCESS;
}
// As torch.profiler does: times are then ticks of the processor's counter (pm/sessions_and_sampling.txt, E).
CUptiResult CUPTIAPI cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc callback) {
  SIM_ENTER("cuptiActivityRegisterTimestampCallback");
  SIM_CHECK("cuptiActivityRegisterTimestampCallback", callback != nullptr, CUPTI_ERROR_INVALID_PARAMETER);
  std::lock_guard lock(W().stamp_mutex);
  W().stamped = {sim_now(), callback()};
  W().stamp = callback;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiGetTimestamp(uint64_t* timestamp) {
  SIM_ENTER("cuptiGetTimestamp");
  SIM_CHECK("cuptiGetTimestamp", timestamp != nullptr, CUPTI_ERROR_INVALID_PARAMETER);
  *timestamp = SimStamp(sim_now());
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
  SIM_ENTER("cuptiActivityGetNextRecord");
  uint8_t* next = *record == nullptr ? buffer : reinterpret_cast<uint8_t*>(*record) + kRecordSize;
  if (next + kRecordSize > buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
  SIM_ENTER("cuptiActivityGetNumDroppedRecords");
  *dropped = 0;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiProfilerInitialize(CUpti_Profiler_Initialize_Params* params) {
  SIM_PARAMS("cuptiProfilerInitialize", CUpti_Profiler_Initialize_Params);
  if (!W().profiler_initialised) charged.Add("cuptiProfilerInitialize, first");
  W().profiler_initialised = true;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiDeviceGetChipName(CUpti_Device_GetChipName_Params* params) {
  SIM_PARAMS("cuptiDeviceGetChipName", CUpti_Device_GetChipName_Params);
  params->pChipName = sim_chip();
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiProfilerGetCounterAvailability(CUpti_Profiler_GetCounterAvailability_Params* params) {
  SIM_PARAMS("cuptiProfilerGetCounterAvailability", CUpti_Profiler_GetCounterAvailability_Params);
  SIM_CHECK("cuptiProfilerGetCounterAvailability", W().profiler_initialised, CUPTI_ERROR_NOT_INITIALIZED);
  SIM_CHECK("cuptiProfilerGetCounterAvailability", !SimRangeSession(params->ctx) && !sim::LegacySession(params->ctx),
            CUPTI_ERROR_INVALID_OPERATION);
  if (params->pCounterAvailabilityImage == nullptr) {
    params->counterAvailabilityImageSize = 64;
  } else {
    SIM_CHECK("cuptiProfilerGetCounterAvailability", params->counterAvailabilityImageSize >= 64,
              CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
    memset(params->pCounterAvailabilityImage, 0, 64);
    charged.Add("cuptiProfilerGetCounterAvailability, image");
  }
  return CUPTI_SUCCESS;
}
}
