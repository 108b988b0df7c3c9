// File: sim_cupti.cc
//
// libcupti.so of the simulated GPU. Callbacks, activity records and the range profiler work on what the simulated
// driver launches; planning is the real CUPTI's (SIM_REAL_CUPTI names its folder), so that groups and passes are the
// real ones; evaluation answers from the kernels' known metrics. Each call is checked as the headers demand: size of
// the structure, NULL where NULL must be, and order.
#include <cupti.h>
#include <cupti_activity.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "integration_tests/simulated_gpu/sim_checks.h"
#include "integration_tests/simulated_gpu/sim_cupti_graphs.h"
#include "integration_tests/simulated_gpu/sim_cupti_pm.h"
#include "integration_tests/simulated_gpu/sim_legacy.h"
#include "integration_tests/simulated_gpu/simulator.h"

#ifndef SIM_CUPTI_API_VERSION
#define SIM_CUPTI_API_VERSION 130001
#endif

using SimRange = sim::LegacyRange;

struct CUpti_RangeProfiler_Object {
  CUcontext context;
  bool configured, running, enabled, decoded;
  size_t max_ranges;
  uint8_t* image;
  size_t image_size;
  CUpti_ProfilerRange mode;
  std::vector<SimRange*> ranges;
  SimRange* open;  // of user ranges
  size_t dropped;
};

namespace {

[[maybe_unused]] constexpr uint64_t kImageMagic = 0x53494D5F494D4147u;
struct ImageHeader {
  uint64_t magic;
  uint64_t max_ranges;
  uint64_t ranges;
  uint64_t filled;
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
  bool session_known_unsupported = false;
  std::vector<CUpti_RangeProfiler_Object*> sessions;
};
World& W() {
  static World* world = new World;
  return *world;
}

thread_local bool t_destroying = false;  // inside the callback of a context that goes

#define SIM_PARAMS(name, type) \
  SIM_ENTER(name);             \
  SIM_CHECK_PARAMS(name, type)

CUpti_RangeProfiler_Object* SessionOf(CUcontext context) {
  for (auto* session : W().sessions) {
    if (session->context == context && session->enabled) return session;
  }
  return nullptr;
}

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

// Returns where the next record goes; null when there is no room. The mutex is held.
uint8_t* NextRecord(std::unique_lock<std::mutex>& lock) {
  if (W().buffer != nullptr && W().buffer_used + sizeof(CUpti_ActivityKernel10) > W().buffer_size) HandBack();
  if (W().buffer == nullptr) {
    size_t records = 0;
    uint8_t* buffer = nullptr;
    size_t size = 0;
    lock.unlock();
    W().request(&buffer, &size, &records);
    lock.lock();
    if (buffer == nullptr) return nullptr;
    if (std::any_of(buffer, buffer + size, [](uint8_t byte) { return byte != 0; })) {
      sim::Violation("buffer request", "the buffer is not zeroed although the attribute says so");
    }
    W().buffer = buffer;
    W().buffer_size = size;
    W().buffer_used = 0;
  }
  return W().buffer + std::exchange(W().buffer_used, W().buffer_used + sizeof(CUpti_ActivityKernel10));
}

void Record(const SimLaunch* launch, const SimNode& node, uint64_t start) {
  std::unique_lock lock(W().mutex);
  const bool copies = W().kinds.count(CUPTI_ACTIVITY_KIND_MEMCPY) != 0;
  if (node.transfer_ns != 0 ? !copies : !W().kernels_enabled || node.kernel == nullptr) return;
  if (uint8_t* const at = NextRecord(lock)) sim::WriteRecord(*launch, node, start, at);
}

void OnEnter(const SimLaunch* launch, uint64_t* data) { Callback(launch, CUPTI_API_ENTER, data, nullptr); }
void OnExit(const SimLaunch* launch, uint64_t* data, const CUresult* result) {
  Callback(launch, CUPTI_API_EXIT, data, result);
}
void OnRun(const SimLaunch* launch) {
  {
    std::lock_guard lock(W().mutex);
    CUpti_RangeProfiler_Object* session = SessionOf(launch->context);
    if (session != nullptr && session->running && session->mode == CUPTI_UserRange) {
      // What is launched outside of all ranges is counted in none.
      if (session->open != nullptr) {
        if (launch->kernel != nullptr) session->open->kernels.push_back(launch->kernel);
        for (size_t i = 0; launch->graph != nullptr && i < launch->graph->count; ++i) {
          const SimKernel* kernel = launch->graph->nodes[i].kernel;
          if (kernel != nullptr) session->open->kernels.push_back(kernel);
        }
      }
    } else if (session != nullptr && session->running && launch->kernel != nullptr) {
      if (session->ranges.size() < session->max_ranges) {
        session->ranges.push_back(new SimRange{std::to_string(session->ranges.size()), {launch->kernel}});
      } else {
        ++session->dropped;
      }
    }
  }
  sim::LegacyRun(launch);
  uint64_t start = sim_clock();
  if (launch->graph == nullptr) {
    Record(launch, sim::NodeOf(*launch), start);
    return SimPmOnRun(launch->kernel);
  }
  for (const SimNode& node : sim::Recorded(*launch->graph)) {
    Record(launch, node, start);
    start += node.kernel != nullptr ? node.kernel->ns : node.transfer_ns;
    if (node.kernel != nullptr) SimPmOnRun(node.kernel);
  }
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
  if (SessionOf(context) != nullptr) sim::Violation("cuCtxDestroy", "a range profiler session is still enabled");
  if (sim::LegacySession(context)) sim::Violation("cuCtxDestroy", "a session of the legacy profiler is still open");
}

const SimHooks kHooks = {&OnEnter, &OnRun, &OnExit, &OnContextDestroy, &OnNode};

#ifndef SIM_CUPTI_LEGACY
const SimRange* RangeOf(const uint8_t* image, size_t index) {
  const SimRange* range = nullptr;
  memcpy(static_cast<void*>(&range), image + sizeof(ImageHeader) + index * sizeof range, sizeof range);
  return range;
}
#endif

}  // namespace

bool sim::ProfilerInitialised() { return W().profiler_initialised; }
bool sim::KernelRecordsOn() {
  std::lock_guard lock(W().mutex);
  return W().kernels_enabled;
}
bool SimProfilerIsInitialised() { return W().profiler_initialised; }
bool SimRangeSessionIsEnabled() {
  for (auto* session : W().sessions) {
    if (session->enabled) return true;
  }
  return false;
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
  sim_set_hooks(&kHooks);
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
  for (auto* session : W().sessions) {
    SIM_CHECK("cuptiActivityEnable", !session->running, CUPTI_ERROR_NOT_COMPATIBLE);
  }
  SIM_CHECK("cuptiActivityEnable", !sim::LegacyEnabled(), CUPTI_ERROR_NOT_COMPATIBLE);
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
CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t) {
  SIM_ENTER("cuptiActivityFlushAll");
  std::unique_lock lock(W().mutex);
  HandBack();
  lock.release();
  W().mutex.unlock();
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
  SIM_ENTER("cuptiActivityGetNextRecord");
  uint8_t* next = *record == nullptr ? buffer : reinterpret_cast<uint8_t*>(*record) + sizeof(CUpti_ActivityKernel10);
  if (next + sizeof(CUpti_ActivityKernel10) > buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
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
  SIM_CHECK("cuptiProfilerGetCounterAvailability",
            SessionOf(params->ctx) == nullptr && !sim::LegacySession(params->ctx), CUPTI_ERROR_INVALID_OPERATION);
  if (params->pCounterAvailabilityImage == nullptr) {
    params->counterAvailabilityImageSize = 64;
  } else {
    SIM_CHECK("cuptiProfilerGetCounterAvailability", params->counterAvailabilityImageSize >= 64,
              CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
    memset(params->pCounterAvailabilityImage, 0, 64);
  }
  return CUPTI_SUCCESS;
}

#ifndef SIM_CUPTI_LEGACY  // CUPTI before 12.6 has none of what follows
CUptiResult CUPTIAPI cuptiProfilerHostEvaluateToGpuValues(CUpti_Profiler_Host_EvaluateToGpuValues_Params* params) {
  SIM_PARAMS("cuptiProfilerHostEvaluateToGpuValues", CUpti_Profiler_Host_EvaluateToGpuValues_Params);
  if (SimPmOwns(params->pCounterDataImage, params->counterDataImageSize)) return SimPmEvaluate(params);
  SIM_CHECK("Evaluate", params->counterDataImageSize >= sizeof(ImageHeader), CUPTI_ERROR_INVALID_PARAMETER);
  ImageHeader header;
  memcpy(&header, params->pCounterDataImage, sizeof header);
  SIM_CHECK("Evaluate", header.magic == kImageMagic, CUPTI_ERROR_INVALID_PARAMETER);
  SIM_CHECK("Evaluate", params->rangeIndex < header.filled, CUPTI_ERROR_INVALID_PARAMETER);
  const SimRange* range = RangeOf(params->pCounterDataImage, params->rangeIndex);
  for (size_t i = 0; i < params->numMetrics; ++i) {
    params->pMetricValues[i] = sim::ValueOf(range->kernels, params->ppMetricNames[i]);
  }
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiRangeProfilerEnable(CUpti_RangeProfiler_Enable_Params* params) {
  SIM_PARAMS("cuptiRangeProfilerEnable", CUpti_RangeProfiler_Enable_Params);
  SIM_CHECK("cuptiRangeProfilerEnable", W().profiler_initialised, CUPTI_ERROR_NOT_INITIALIZED);
  SIM_CHECK("cuptiRangeProfilerEnable", SessionOf(params->ctx) == nullptr, CUPTI_ERROR_INVALID_OPERATION);
  SIM_CHECK("cuptiRangeProfilerEnable", sim_is_current(params->ctx), CUPTI_ERROR_INVALID_CONTEXT);
  SIM_CHECK("cuptiRangeProfilerEnable", !W().kernels_enabled, CUPTI_ERROR_NOT_COMPATIBLE);
  SIM_CHECK("cuptiRangeProfilerEnable", !SimPmIsEnabled(), CUPTI_ERROR_INVALID_OPERATION);
  sim_set_hooks(&kHooks);  // a session needs no subscriber
  auto* session = new CUpti_RangeProfiler_Object{};
  session->context = params->ctx;
  session->enabled = true;
  std::lock_guard lock(W().mutex);
  W().sessions.push_back(session);
  params->pRangeProfilerObject = session;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiRangeProfilerDisable(CUpti_RangeProfiler_Disable_Params* params) {
  // The real one gives the device back even when it complains.
  if (params != nullptr && params->pRangeProfilerObject != nullptr) params->pRangeProfilerObject->enabled = false;
  SIM_PARAMS("cuptiRangeProfilerDisable", CUpti_RangeProfiler_Disable_Params);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiRangeProfilerGetCounterDataSize(CUpti_RangeProfiler_GetCounterDataSize_Params* params) {
  SIM_PARAMS("cuptiRangeProfilerGetCounterDataSize", CUpti_RangeProfiler_GetCounterDataSize_Params);
  SIM_CHECK("GetCounterDataSize", params->pRangeProfilerObject->enabled, CUPTI_ERROR_INVALID_OPERATION);
  SIM_CHECK("GetCounterDataSize", params->maxNumRangeTreeNodes >= params->maxNumOfRanges,
            CUPTI_ERROR_INVALID_PARAMETER);
  SIM_CHECK("GetCounterDataSize", params->numMetrics > 0, CUPTI_ERROR_INVALID_PARAMETER);
  params->pRangeProfilerObject->max_ranges = params->maxNumOfRanges;
  params->counterDataSize = sizeof(ImageHeader) + params->maxNumOfRanges * sizeof(SimRange*);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI
cuptiRangeProfilerCounterDataImageInitialize(CUpti_RangeProfiler_CounterDataImage_Initialize_Params* params) {
  SIM_PARAMS("cuptiRangeProfilerCounterDataImageInitialize", CUpti_RangeProfiler_CounterDataImage_Initialize_Params);
  ImageHeader header = {kImageMagic, params->pRangeProfilerObject->max_ranges, 0, 0};
  SIM_CHECK("CounterDataImageInitialize",
            params->counterDataSize == sizeof header + header.max_ranges * sizeof(SimRange*),
            CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
  memcpy(params->pCounterData, &header, sizeof header);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiRangeProfilerSetConfig(CUpti_RangeProfiler_SetConfig_Params* params) {
  SIM_PARAMS("cuptiRangeProfilerSetConfig", CUpti_RangeProfiler_SetConfig_Params);
  auto* session = params->pRangeProfilerObject;
  SIM_CHECK("SetConfig", session->enabled && !session->running, CUPTI_ERROR_INVALID_OPERATION);
  SIM_CHECK("SetConfig", params->configSize > 0 && params->pConfig != nullptr, CUPTI_ERROR_INVALID_PARAMETER);
  SIM_CHECK("SetConfig", params->range == CUPTI_AutoRange || params->range == CUPTI_UserRange,
            CUPTI_ERROR_INVALID_PARAMETER);
  // Replaying kernels is for automatic ranges, and would run the program's kernels again.
  SIM_CHECK("SetConfig", params->replayMode == CUPTI_UserReplay, CUPTI_ERROR_INVALID_OPERATION);
  session->mode = params->range;
  SIM_CHECK("SetConfig", params->numNestingLevels == 1, CUPTI_ERROR_INVALID_PARAMETER);
  CUpti_Profiler_Host_GetNumOfPasses_Params passes = {CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE};
  passes.configImageSize = params->configSize;
  passes.pConfigImage = const_cast<uint8_t*>(params->pConfig);
  if (SimPassesOf(&passes) != CUPTI_SUCCESS || passes.numOfPasses != 1) {
    sim::Violation("SetConfig", "the configuration needs more than one pass");
  }
  session->image = params->pCounterDataImage;
  session->image_size = params->counterDataImageSize;
  session->max_ranges = params->maxRangesPerPass;
  session->configured = true;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiRangeProfilerStart(CUpti_RangeProfiler_Start_Params* params) {
  SIM_PARAMS("cuptiRangeProfilerStart", CUpti_RangeProfiler_Start_Params);
  auto* session = params->pRangeProfilerObject;
  SIM_CHECK("Start", sim_is_current(session->context), CUPTI_ERROR_INVALID_CONTEXT);
  SIM_CHECK("Start", session->enabled && session->configured && !session->running, CUPTI_ERROR_INVALID_OPERATION);
  std::lock_guard lock(W().mutex);
  session->ranges.clear();
  session->open = nullptr;
  session->dropped = 0;
  session->running = true;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiRangeProfilerStop(CUpti_RangeProfiler_Stop_Params* params) {
  if (params != nullptr && params->pRangeProfilerObject != nullptr) {
    std::lock_guard lock(W().mutex);
    if (!params->pRangeProfilerObject->running) sim::Violation("Stop", "nothing was started");
    if (params->pRangeProfilerObject->open != nullptr) sim::Violation("Stop", "a range is open");
    if (!sim_is_current(params->pRangeProfilerObject->context) && !t_destroying)
      sim::Violation("Stop", "another context is current");
    params->pRangeProfilerObject->running = false;
  }
  SIM_PARAMS("cuptiRangeProfilerStop", CUpti_RangeProfiler_Stop_Params);
  params->isAllPassSubmitted = 1;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiRangeProfilerPushRange(CUpti_RangeProfiler_PushRange_Params* params) {
  SIM_PARAMS("cuptiRangeProfilerPushRange", CUpti_RangeProfiler_PushRange_Params);
  auto* session = params->pRangeProfilerObject;
  std::lock_guard lock(W().mutex);
  SIM_CHECK("PushRange", session->enabled && session->running && session->mode == CUPTI_UserRange,
            CUPTI_ERROR_INVALID_OPERATION);
  SIM_CHECK("PushRange", sim_is_current(session->context), CUPTI_ERROR_INVALID_CONTEXT);
  SIM_CHECK("PushRange", session->open == nullptr, CUPTI_ERROR_INVALID_OPERATION);  // one nesting level
  SIM_CHECK("PushRange", params->pRangeName != nullptr, CUPTI_ERROR_INVALID_PARAMETER);
  for (const SimRange* range : session->ranges) {
    SIM_CHECK("PushRange", range->name != params->pRangeName, CUPTI_ERROR_INVALID_PARAMETER);
  }
  session->open = new SimRange{params->pRangeName, {}};
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiRangeProfilerPopRange(CUpti_RangeProfiler_PopRange_Params* params) {
  if (params != nullptr && params->pRangeProfilerObject != nullptr) {
    // This is done even when it returns an error: there is no other way to close it.
    std::lock_guard lock(W().mutex);
    auto* session = params->pRangeProfilerObject;
    SIM_CHECK("PopRange", session->running && session->open != nullptr, CUPTI_ERROR_INVALID_OPERATION);
    SimRange* range = std::exchange(session->open, nullptr);
    if (session->ranges.size() < session->max_ranges) {
      session->ranges.push_back(range);
    } else {
      ++session->dropped;
    }
  }
  SIM_PARAMS("cuptiRangeProfilerPopRange", CUpti_RangeProfiler_PopRange_Params);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiRangeProfilerDecodeData(CUpti_RangeProfiler_DecodeData_Params* params) {
  SIM_PARAMS("cuptiRangeProfilerDecodeData", CUpti_RangeProfiler_DecodeData_Params);
  auto* session = params->pRangeProfilerObject;
  SIM_CHECK("DecodeData", sim_is_current(session->context), CUPTI_ERROR_INVALID_CONTEXT);
  SIM_CHECK("DecodeData", session->enabled && !session->running && session->image != nullptr,
            CUPTI_ERROR_INVALID_OPERATION);
  std::lock_guard lock(W().mutex);
  ImageHeader header;
  memcpy(&header, session->image, sizeof header);
  header.filled = session->ranges.size();
  memcpy(session->image, &header, sizeof header);
  // A tree of names has an order of its own, so a reader must look at the names.
  std::vector<SimRange*> order = session->ranges;
  if (session->mode == CUPTI_UserRange) {
    std::sort(order.begin(), order.end(), [](const SimRange* a, const SimRange* b) { return a->name < b->name; });
  }
  memcpy(session->image + sizeof header, static_cast<const void*>(order.data()), header.filled * sizeof(SimRange*));
  params->numOfRangeDropped = session->dropped;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiRangeProfilerGetCounterDataInfo(CUpti_RangeProfiler_GetCounterDataInfo_Params* params) {
  SIM_PARAMS("cuptiRangeProfilerGetCounterDataInfo", CUpti_RangeProfiler_GetCounterDataInfo_Params);
  ImageHeader header;
  memcpy(&header, params->pCounterDataImage, sizeof header);
  params->numTotalRanges = header.filled;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI
cuptiRangeProfilerCounterDataGetRangeInfo(CUpti_RangeProfiler_CounterData_GetRangeInfo_Params* params) {
  SIM_PARAMS("cuptiRangeProfilerCounterDataGetRangeInfo", CUpti_RangeProfiler_CounterData_GetRangeInfo_Params);
  SIM_CHECK("GetRangeInfo", params->rangeDelimiter != nullptr, CUPTI_ERROR_INVALID_PARAMETER);
  ImageHeader header;
  memcpy(&header, params->pCounterDataImage, sizeof header);
  SIM_CHECK("GetRangeInfo", header.magic == kImageMagic && params->rangeIndex < header.filled,
            CUPTI_ERROR_INVALID_PARAMETER);
  params->rangeName = RangeOf(params->pCounterDataImage, params->rangeIndex)->name.c_str();
  return CUPTI_SUCCESS;
}
#endif
}
