// File: sim_cupti.cc
//
// libcupti.so of the simulated GPU. Callbacks, activity records of the process and, as from CUPTI 13.3 on, of each of
// several subscribers (here), ranges (sim_cupti_range.cc) and samples
// (sim_cupti_pm.cc) work on what the simulated driver launches; planning is the real CUPTI's (SIM_REAL_CUPTI names
// its folder), so that groups and passes are the real ones; evaluation answers from the kernels' known metrics. Each
// call is checked as the headers demand: size of the structure, NULL where NULL must be, and order.
#include <cupti.h>
#include <cupti_activity.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <list>
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
// The callbacks of one subscriber's records (13.3).
using SimRecordsRequest = void(CUPTIAPI*)(uint8_t**, size_t*, size_t*, void*);
using SimRecordsComplete = void(CUPTIAPI*)(uint8_t*, size_t, size_t, void*);
// Two moments of the tool's clock (cuptiActivityRegisterTimestampCallback) give the line to it from ours.
struct Moment {
  uint64_t ours, theirs;
};

// The activity records of the process, or of a subscriber.
struct Records {
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  SimRecordsRequest own_request = nullptr;
  SimRecordsComplete own_complete = nullptr;
  std::set<int> kinds;
  uint8_t* buffer = nullptr;
  size_t buffer_size = 0, buffer_used = 0;
  std::deque<Pending> pending;
};

struct Subscriber {
  CUpti_CallbackFunc callback = nullptr;
  void* user = nullptr;
  bool allows_others = false;
  // Flat, so that a call costs the same however many a tool hears of.
  std::array<std::vector<bool>, CUPTI_CB_DOMAIN_SIZE> enabled;
  Records records;

  bool Hears(CUpti_CallbackDomain domain, uint32_t cbid) const {
    return callback != nullptr && cbid < enabled[domain].size() && enabled[domain][cbid];
  }
};

enum class Scope { kNone, kProcess, kSubscriber };

struct World {
  std::mutex flushing;  // whose call returns has everything that had come
  std::mutex mutex;
  // One that has unsubscribed stays, without a callback: its handle may not become another's.
  std::list<Subscriber> subscribers;
  Records records;
  Scope scope = Scope::kNone;  // of the activity calls so far
  bool profiler_initialised = false;
  std::mutex stamp_mutex;
  CUpti_TimestampCallbackFunc stamp = nullptr;
  Moment stamped = {};
};
World& W() {
  static World* world = new World;
  return *world;
}

constexpr size_t kRecordSize = sizeof(CUpti_ActivityKernel10);  // the longest
constexpr uint32_t kMostCalls = 10'000;                         // more than a domain has
constexpr size_t kManyRecords = 1000;                           // that CUPTI keeps before it hands a full buffer back

thread_local bool t_destroying = false;  // inside the callback of a context that goes

#define SIM_PARAMS(name, type) \
  SIM_ENTER(name);             \
  SIM_CHECK_PARAMS(name, type)

// The subscriber whose handle this is; null where there is none. The mutex is held.
Subscriber* Find(CUpti_SubscriberHandle handle) {
  for (Subscriber& one : W().subscribers) {
    if (reinterpret_cast<CUpti_SubscriberHandle>(&one) == handle && one.callback != nullptr) return &one;
  }
  return nullptr;
}

// Those who want to be called, with what they want to be called with.
std::vector<std::pair<CUpti_CallbackFunc, void*>> Callbacks(CUpti_CallbackDomain domain, uint32_t cbid) {
  std::vector<std::pair<CUpti_CallbackFunc, void*>> found;
  std::lock_guard lock(W().mutex);
  for (const Subscriber& one : W().subscribers) {
    if (one.Hears(domain, cbid)) found.emplace_back(one.callback, one.user);
  }
  return found;
}

void Callback(const SimLaunch* launch, CUpti_ApiCallbackSite site, uint64_t* correlation_data,
              const CUresult* result) {
  const auto callbacks = Callbacks(CUPTI_CB_DOMAIN_DRIVER_API, launch->cbid);
  if (callbacks.empty()) return;
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
  for (const auto& [callback, user] : callbacks) callback(user, CUPTI_CB_DOMAIN_DRIVER_API, launch->cbid, &data);
}

// The records that are kept for somebody. The mutex is held.
std::vector<Records*> AllRecords() {
  std::vector<Records*> all = {&W().records};
  for (Subscriber& one : W().subscribers) all.push_back(&one.records);
  return all;
}

void HandBack(Records& of) {  // mutex held
  if (of.buffer == nullptr) return;
  uint8_t* buffer = std::exchange(of.buffer, nullptr);
  size_t size = of.buffer_size, used = of.buffer_used;
  W().mutex.unlock();
  if (of.own_complete != nullptr) {
    of.own_complete(buffer, size, used, nullptr);
  } else {
    of.complete(nullptr, 0, buffer, size, used);
  }
  W().mutex.lock();
}

// Whether there is a buffer with room for a record; the tool is asked for one if need be. The mutex is held.
bool HaveRoom(Records& of, std::unique_lock<std::mutex>& lock) {
  if (of.buffer != nullptr && of.buffer_used + kRecordSize > of.buffer_size) HandBack(of);
  if (of.buffer != nullptr) return true;
  size_t records = 0;
  uint8_t* buffer = nullptr;
  size_t size = 0;
  lock.unlock();
  if (of.own_request != nullptr) {
    of.own_request(&buffer, &size, &records, nullptr);
  } else {
    of.request(&buffer, &size, &records);
  }
  lock.lock();
  if (buffer == nullptr) return false;
  if (std::any_of(buffer, buffer + size, [](uint8_t byte) { return byte != 0; })) {
    sim::Violation("buffer request", "the buffer is not zeroed although the attribute says so");
  }
  of.buffer = buffer;
  of.buffer_size = size;
  of.buffer_used = 0;
  return true;
}

// Writes the records of what has ended into the tool's buffers. If `forced`, also of what has begun, which then has
// no end and is lost. The mutex is held.
void Drain(Records& of, std::unique_lock<std::mutex>& lock, bool forced) {
  const uint64_t now = sim_now();
  std::deque<Pending> ended;
  for (Pending one : std::exchange(of.pending, {})) {
    const bool running = one.span.start <= now && one.span.end > now;
    if (forced && running) one.span.end = 0;
    (one.span.end <= now ? ended : of.pending).push_back(one);
  }
  for (const Pending& one : ended) {
    const SimSpan span = {SimStamp(one.span.start), one.span.end == 0 ? 0 : SimStamp(one.span.end)};
    if (!HaveRoom(of, lock)) continue;
    sim::WriteRecord(one.launch, one.node, span, of.buffer + of.buffer_used);
    of.buffer_used += kRecordSize;
  }
}

// Whether anybody wants records. Where nobody does, a launch costs the same whatever it launches.
bool IsRecorded() {
  std::lock_guard lock(W().mutex);
  const auto all = AllRecords();
  return std::any_of(all.begin(), all.end(), [](const Records* of) { return !of->kinds.empty(); });
}

void Record(const SimLaunch* launch, const SimNode& node, SimSpan span) {
  std::unique_lock lock(W().mutex);
  for (Records* of : AllRecords()) {
    const bool copies = of->kinds.count(CUPTI_ACTIVITY_KIND_MEMCPY) != 0;
    const bool kernels = of->kinds.count(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != 0;
    if (node.transfer_ns != 0 ? !copies : !kernels || node.kernel == nullptr) continue;
    of->pending.push_back({*launch, node, span});
    // The tool is asked for a buffer by the first launch, and gets one back when it is full.
    HaveRoom(*of, lock);
    if (of->pending.size() > kManyRecords) Drain(*of, lock, false);
  }
}

void OnEnter(const SimLaunch* launch, uint64_t* data) { Callback(launch, CUPTI_API_ENTER, data, nullptr); }
void OnExit(const SimLaunch* launch, uint64_t* data, const CUresult* result) {
  Callback(launch, CUPTI_API_EXIT, data, result);
}
SimSlow OnBegin(const SimLaunch* launch) { return SimRangeBegin(*launch); }
void OnRun(const SimLaunch* launch, const SimSpan* spans) {
  sim::LegacyRun(launch);
  if (!IsRecorded()) return SimRangeRun(*launch);
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
  CUpti_ResourceData data = {};
  data.resourceDescriptor = &graph;
  for (const auto& [callback, user] : Callbacks(CUPTI_CB_DOMAIN_RESOURCE, cbid)) {
    callback(user, CUPTI_CB_DOMAIN_RESOURCE, cbid, &data);
  }
}
void OnContextDestroy(CUcontext context) {
  constexpr CUpti_CallbackId kGoes = CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING;
  CUpti_ResourceData data = {};
  data.context = context;
  for (const auto& [callback, user] : Callbacks(CUPTI_CB_DOMAIN_RESOURCE, kGoes)) {
    t_destroying = true;  // the driver must not be called now, so the context is whatever it is
    callback(user, CUPTI_CB_DOMAIN_RESOURCE, kGoes, &data);
    t_destroying = false;
  }
  if (SimRangeSession(context)) sim::Violation("cuCtxDestroy", "a range profiler session is still enabled");
  if (sim::LegacySession(context)) sim::Violation("cuCtxDestroy", "a session of the legacy profiler is still open");
}

// Whether the calls of this scope may go on. The mutex is held.
bool Takes(Scope scope) {
  if (W().scope == Scope::kNone) W().scope = scope;
  return W().scope == scope;
}

CUptiResult Subscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback, void* user,
                      bool allows_others) {
  std::lock_guard lock(W().mutex);
  for (const Subscriber& one : W().subscribers) {
    const bool there = one.callback != nullptr;
    if (there && !(one.allows_others && allows_others)) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  if (W().subscribers.empty()) sim_set_callback(reinterpret_cast<void*>(callback));
  Subscriber& one = W().subscribers.emplace_back();
  one.callback = callback;
  one.user = user;
  one.allows_others = allows_others;
  *subscriber = reinterpret_cast<CUpti_SubscriberHandle>(&one);
  SimHookIn();
  return CUPTI_SUCCESS;
}

// The mutex is held.
CUptiResult EnableKind(const char* name, Records& of, CUpti_ActivityKind kind) {
  SIM_CHECK(name, of.request != nullptr || of.own_request != nullptr, CUPTI_ERROR_INVALID_OPERATION);
  SIM_CHECK(name,
            kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || kind == CUPTI_ACTIVITY_KIND_MEMCPY ||
                kind == CUPTI_ACTIVITY_KIND_MEMSET,
            CUPTI_ERROR_INVALID_KIND);
  SIM_CHECK(name, !SimRangeIsRunning(), CUPTI_ERROR_NOT_COMPATIBLE);
  SIM_CHECK(name, !sim::LegacyEnabled(), CUPTI_ERROR_NOT_COMPATIBLE);
  SimHookIn();  // records need no subscriber
  of.kinds.insert(kind);
  return CUPTI_SUCCESS;
}

CUptiResult NextRecord(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
  uint8_t* next = *record == nullptr ? buffer : reinterpret_cast<uint8_t*>(*record) + kRecordSize;
  if (next + kRecordSize > buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}

const SimHooks kHooks = {&OnEnter, &OnBegin, &OnRun, &OnExit, &OnContextDestroy, &OnNode};

}  // namespace

bool sim::ProfilerInitialised() { return W().profiler_initialised; }
bool sim::KernelRecordsOn() {
  std::lock_guard lock(W().mutex);
  const auto all = AllRecords();
  return std::any_of(all.begin(), all.end(),
                     [](const Records* one) { return one->kinds.count(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != 0; });
}
bool SimProfilerIsInitialised() { return W().profiler_initialised; }
bool SimIsDestroying() { return t_destroying; }
void SimHookIn() { sim_set_hooks(&kHooks); }
// Both clocks at once, as nearly as a thread can read them that may be interrupted.
static Moment ReadMoment(CUpti_TimestampCallbackFunc stamp) {
  Moment moment = {};
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < 10 && least > 1'000; ++i) {
    const uint64_t before = sim_now(), theirs = stamp(), after = sim_now();
    if (after - before >= least) continue;
    least = after - before;
    moment = {before + least / 2, theirs};
  }
  return moment;
}
uint64_t SimStamp(uint64_t ns) {
  std::lock_guard lock(W().stamp_mutex);
  if (W().stamp == nullptr) return ns;
  const Moment first = W().stamped, now = ReadMoment(W().stamp);
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
  return Subscribe(subscriber, callback, user, false);
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
  // The structure of 13.3 has eight bytes more, the first of which allows others.
  constexpr size_t kSize = CUpti_SubscriberParams_STRUCT_SIZE;
  const bool longer = SIM_CUPTI_API_VERSION >= 130300 && params != nullptr && params->structSize == kSize + 8;
  SIM_CHECK("cuptiSubscribe_v2", params == nullptr || params->structSize == kSize || longer,
            CUPTI_ERROR_INVALID_PARAMETER);
  const bool allows_others = longer && reinterpret_cast<const uint8_t*>(params)[kSize] != 0;
  SIM_ENTER("cuptiSubscribe");
  return Subscribe(subscriber, callback, user, allows_others);
}
#endif
CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
  SIM_ENTER("cuptiUnsubscribe");
  std::lock_guard lock(W().mutex);
  Subscriber* const found = Find(subscriber);
  SIM_CHECK("cuptiUnsubscribe", found != nullptr, CUPTI_ERROR_INVALID_PARAMETER);
  *found = {};
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                         CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  SIM_ENTER("cuptiEnableCallback");
  if (domain == CUPTI_CB_DOMAIN_RESOURCE && !sim::KnowsResource(cbid)) return CUPTI_ERROR_INVALID_PARAMETER;
  std::lock_guard lock(W().mutex);
  Subscriber* const found = Find(subscriber);
  SIM_CHECK("cuptiEnableCallback", found != nullptr, CUPTI_ERROR_INVALID_PARAMETER);
  SIM_CHECK("cuptiEnableCallback", domain < CUPTI_CB_DOMAIN_SIZE && cbid < kMostCalls, CUPTI_ERROR_INVALID_PARAMETER);
  std::vector<bool>& enabled = found->enabled[domain];
  if (cbid >= enabled.size()) enabled.resize(cbid + 1);
  enabled[cbid] = enable != 0;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetDeviceId(CUcontext context, uint32_t* device) {
  SIM_ENTER("cuptiGetDeviceId");
  SIM_CHECK("cuptiGetDeviceId", context != nullptr && device != nullptr, CUPTI_ERROR_INVALID_PARAMETER);
  *device = static_cast<uint32_t>(sim_device_of(context));
  return CUPTI_SUCCESS;
}

// Records of the process: refused where there were those of a subscriber.
#define SIM_PROCESS_SCOPE(name)     \
  std::unique_lock lock(W().mutex); \
  SIM_CHECK(name, Takes(Scope::kProcess), CUPTI_ERROR_NOT_COMPATIBLE)

CUptiResult CUPTIAPI cuptiActivitySetAttribute(CUpti_ActivityAttribute, size_t* size, void* value) {
  SIM_ENTER("cuptiActivitySetAttribute");
  SIM_CHECK("cuptiActivitySetAttribute", size != nullptr && value != nullptr, CUPTI_ERROR_INVALID_PARAMETER);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                                    CUpti_BuffersCallbackCompleteFunc complete) {
  SIM_ENTER("cuptiActivityRegisterCallbacks");
  SIM_PROCESS_SCOPE("cuptiActivityRegisterCallbacks");
  W().records.request = request;
  W().records.complete = complete;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind) {
  SIM_ENTER("cuptiActivityEnable");
  SIM_PROCESS_SCOPE("cuptiActivityEnable");
  return EnableKind("cuptiActivityEnable", W().records, kind);
}
CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind) {
  SIM_ENTER("cuptiActivityDisable");
  SIM_PROCESS_SCOPE("cuptiActivityDisable");
  W().records.kinds.erase(kind);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t flag) {
  SIM_ENTER("cuptiActivityFlushAll");
  std::lock_guard flushing(W().flushing);
  std::unique_lock lock(W().mutex);
  for (Records* of : AllRecords()) {
    Drain(*of, lock, (flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0);
    charged.Each(of->buffer_used / kRecordSize);
    HandBack(*of);
  }
  return CUPTI_SUCCESS;
}
// As torch.profiler does: times are then ticks of the processor's counter (pm/sessions_and_sampling.txt, E).
CUptiResult CUPTIAPI cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc callback) {
  SIM_ENTER("cuptiActivityRegisterTimestampCallback");
  SIM_CHECK("cuptiActivityRegisterTimestampCallback", callback != nullptr, CUPTI_ERROR_INVALID_PARAMETER);
  { SIM_PROCESS_SCOPE("cuptiActivityRegisterTimestampCallback"); }
  std::lock_guard lock(W().stamp_mutex);
  W().stamped = ReadMoment(callback);
  W().stamp = callback;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiGetTimestamp(uint64_t* timestamp) {
  SIM_ENTER("cuptiGetTimestamp");
  SIM_CHECK("cuptiGetTimestamp", timestamp != nullptr, CUPTI_ERROR_INVALID_PARAMETER);
  { SIM_PROCESS_SCOPE("cuptiGetTimestamp"); }
  *timestamp = SimStamp(sim_now());
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
  SIM_ENTER("cuptiActivityGetNextRecord");
  { SIM_PROCESS_SCOPE("cuptiActivityGetNextRecord"); }
  return NextRecord(buffer, valid, record);
}
CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
  SIM_ENTER("cuptiActivityGetNumDroppedRecords");
  SIM_PROCESS_SCOPE("cuptiActivityGetNumDroppedRecords");
  *dropped = 0;
  return CUPTI_SUCCESS;
}
// What PyTorch's profiler calls beside these.
CUptiResult CUPTIAPI cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind, uint64_t) {
  SIM_ENTER("cuptiActivityPushExternalCorrelationId");
  SIM_PROCESS_SCOPE("cuptiActivityPushExternalCorrelationId");
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind, uint64_t* id) {
  SIM_ENTER("cuptiActivityPopExternalCorrelationId");
  SIM_PROCESS_SCOPE("cuptiActivityPopExternalCorrelationId");
  if (id != nullptr) *id = 0;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityEnableRuntimeApi(CUpti_CallbackId, uint8_t) {
  SIM_ENTER("cuptiActivityEnableRuntimeApi");
  SIM_PROCESS_SCOPE("cuptiActivityEnableRuntimeApi");
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityEnableDriverApi(CUpti_CallbackId, uint8_t) {
  SIM_ENTER("cuptiActivityEnableDriverApi");
  SIM_PROCESS_SCOPE("cuptiActivityEnableDriverApi");
  return CUPTI_SUCCESS;
}

#if SIM_CUPTI_API_VERSION >= 130300
// Records of a subscriber: refused where there were those of the process.
#define SIM_SUBSCRIBER_SCOPE(name)                                       \
  std::unique_lock lock(W().mutex);                                      \
  Subscriber* const subscriber = Find(handle);                           \
  SIM_CHECK(name, subscriber != nullptr, CUPTI_ERROR_INVALID_PARAMETER); \
  SIM_CHECK(name, Takes(Scope::kSubscriber), CUPTI_ERROR_NOT_COMPATIBLE)

CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks_v2(CUpti_SubscriberHandle handle, SimRecordsRequest request,
                                                       SimRecordsComplete complete) {
  SIM_ENTER("cuptiActivityRegisterCallbacks_v2");
  SIM_SUBSCRIBER_SCOPE("cuptiActivityRegisterCallbacks_v2");
  SIM_CHECK("cuptiActivityRegisterCallbacks_v2", subscriber->records.own_request == nullptr,
            CUPTI_ERROR_INVALID_OPERATION);
  subscriber->records.own_request = request;
  subscriber->records.own_complete = complete;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityEnable_v2(CUpti_SubscriberHandle handle, CUpti_ActivityKind kind, void*) {
  SIM_ENTER("cuptiActivityEnable_v2");
  SIM_SUBSCRIBER_SCOPE("cuptiActivityEnable_v2");
  return EnableKind("cuptiActivityEnable_v2", subscriber->records, kind);
}
CUptiResult CUPTIAPI cuptiActivityDisable_v2(CUpti_SubscriberHandle handle, CUpti_ActivityKind kind, void*) {
  SIM_ENTER("cuptiActivityDisable_v2");
  SIM_SUBSCRIBER_SCOPE("cuptiActivityDisable_v2");
  subscriber->records.kinds.erase(kind);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityGetNextRecord_v2(CUpti_SubscriberHandle handle, uint8_t* buffer, size_t valid,
                                                   CUpti_Activity** record) {
  SIM_ENTER("cuptiActivityGetNextRecord_v2");
  SIM_SUBSCRIBER_SCOPE("cuptiActivityGetNextRecord_v2");
  return NextRecord(buffer, valid, record);
}
CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords_v2(CUpti_SubscriberHandle handle, CUcontext, uint32_t,
                                                          size_t* dropped) {
  SIM_ENTER("cuptiActivityGetNumDroppedRecords_v2");
  SIM_SUBSCRIBER_SCOPE("cuptiActivityGetNumDroppedRecords_v2");
  *dropped = 0;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivitySetAttribute_v2(CUpti_SubscriberHandle handle, CUpti_ActivityAttribute,
                                                  size_t* size, void* value) {
  SIM_ENTER("cuptiActivitySetAttribute_v2");
  SIM_SUBSCRIBER_SCOPE("cuptiActivitySetAttribute_v2");
  SIM_CHECK("cuptiActivitySetAttribute_v2", size != nullptr && value != nullptr, CUPTI_ERROR_INVALID_PARAMETER);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityPushExternalCorrelationId_v2(CUpti_SubscriberHandle handle,
                                                               CUpti_ExternalCorrelationKind, uint64_t) {
  SIM_ENTER("cuptiActivityPushExternalCorrelationId_v2");
  SIM_SUBSCRIBER_SCOPE("cuptiActivityPushExternalCorrelationId_v2");
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityPopExternalCorrelationId_v2(CUpti_SubscriberHandle handle,
                                                              CUpti_ExternalCorrelationKind, uint64_t* id) {
  SIM_ENTER("cuptiActivityPopExternalCorrelationId_v2");
  SIM_SUBSCRIBER_SCOPE("cuptiActivityPopExternalCorrelationId_v2");
  if (id != nullptr) *id = 0;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityEnableRuntimeApi_v2(CUpti_SubscriberHandle handle, CUpti_CallbackId, uint8_t) {
  SIM_ENTER("cuptiActivityEnableRuntimeApi_v2");
  SIM_SUBSCRIBER_SCOPE("cuptiActivityEnableRuntimeApi_v2");
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityEnableDriverApi_v2(CUpti_SubscriberHandle handle, CUpti_CallbackId, uint8_t) {
  SIM_ENTER("cuptiActivityEnableDriverApi_v2");
  SIM_SUBSCRIBER_SCOPE("cuptiActivityEnableDriverApi_v2");
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiGetTimestamp_v2(CUpti_SubscriberHandle handle, uint64_t* timestamp) {
  SIM_ENTER("cuptiGetTimestamp_v2");
  SIM_SUBSCRIBER_SCOPE("cuptiGetTimestamp_v2");
  SIM_CHECK("cuptiGetTimestamp_v2", timestamp != nullptr, CUPTI_ERROR_INVALID_PARAMETER);
  *timestamp = sim_now();
  return CUPTI_SUCCESS;
}
#endif

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
