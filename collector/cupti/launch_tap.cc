#include "collector/cupti/launch_tap.h"

#include <pthread.h>
#include <time.h>

#include <cstring>
#include <utility>

#include "collector/compiled_code.h"
#include "collector/cupti/condition_report.h"
#include "collector/cupti/guest_subscriber.h"
#include "collector/cupti/launch_call.h"
#include "collector/cupti/launch_waits.h"
#include "collector/cupti/lock_waits.h"
#include "collector/cupti/tick_clock.h"
#include "collector/step_end.h"
#include "collector/step_waits.h"

namespace rfinject::cupti {
namespace {

// The object that the callback and the fork handler use; null while nothing is tapped. CUPTI could give its callback
// a pointer, but that could not be taken back while a callback runs.
constinit std::atomic<LaunchTap*> g_tap{nullptr};

// The launch that this thread is in, if it is captured.
struct Captured {
  bool open = false;
  bool transfer = false;
  bool created = false;  // it became a node
  Phase phase = Phase::kOther;
  uint32_t key = LaunchKeys::kNoKey;
  const void* executable = nullptr;  // a graph is launched
  const void* graph = nullptr;       // that the node is of, and its number
  uint64_t node = 0;
};
[[gnu::tls_model("initial-exec")]] constinit thread_local Captured t_captured;
// This thread launches a graph that holds the optimizer's step.
[[gnu::tls_model("initial-exec")]] constinit thread_local bool t_ends_step = false;

// Whether the driver's function of this name moves nothing between the host and the GPU.
bool StaysOnGpu(const char* function) {
  return function != nullptr &&
         (std::strncmp(function, "cuMemset", 8) == 0 || std::strncmp(function, "cuMemcpyDtoD", 12) == 0);
}

bool IsGraphLaunch(CUpti_CallbackId cbid) {
  return cbid == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch || cbid == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz;
}

}  // namespace

// --- The callback.

void CUPTIAPI LaunchTap::OnCupti(void*, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* data) {
  if (g_has_guest.load(std::memory_order_relaxed)) TellGuest(domain, cbid, data);
  LaunchTap* tap = g_tap.load(std::memory_order_acquire);
  if (tap == nullptr || data == nullptr) return;
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API) {
    const auto& call = *static_cast<const CUpti_CallbackData*>(data);
    tap->OnDriverCall(cbid, call);
  } else if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
    const auto& resource = *static_cast<const CUpti_ResourceData*>(data);
    if (cbid == CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING) {
      tap->listener_.OnContextDestroyed(resource.context);
    } else {
      tap->OnGraphResource(cbid, resource);
    }
  }
}

void LaunchTap::OnDriverCall(CUpti_CallbackId cbid, const CUpti_CallbackData& call) noexcept {
  switch (ListOf(cbid)) {
    case CallList::kWait:
      return OnWait(call);
    case CallList::kMemory:
      if (recording_.load(std::memory_order_acquire)) memory_->OnCall(cbid, call);
      return;
    case CallList::kCapture:
      return OnCaptureCall(cbid, call);
    case CallList::kGraph:
      return NoteGraphCall(cbid, call, graphs_);
    case CallList::kCopyToHost:
      OnWait(call);
      break;
    case CallList::kNone:
      break;
  }
  call.callbackSite == CUPTI_API_ENTER ? OnLaunch(cbid, call) : OnExit(call);
}

void LaunchTap::OnWait(const CUpti_CallbackData& data) noexcept {
  if (data.callbackSite == CUPTI_API_ENTER) return BeginWait(kGpuWaits);
  EndWait(kGpuWaits);
  NoteEmptyQueue();
}

// Finds out what is launched, and from where. Returns false for what the driver will refuse.
bool LaunchTap::Decode(CUpti_CallbackId cbid, const CUpti_CallbackData& data, Call* call) noexcept {
  if (!DecodeLaunch(cbid, data, &call->call, &call->kind, &call->name)) return false;
  if (recording_.load(std::memory_order_acquire)) {
    call->context = contexts_.Find(data.context);
    call->call.device = call->context != nullptr ? call->context->device() : device_;
  } else if (api_.cuptiGetDeviceId != nullptr) {
    api_.cuptiGetDeviceId(data.context, &call->call.device);
  }
  ReadCurrentSite(&call->call.site);
  const CompiledPlace place = CurrentCompiledPlace(call->call.site.layer);
  call->call.site.layer = place.layer;
  if (call->call.site.op == 0) call->compiled = place.work;
  // An operator is known only while operators are observed, and a key is the same in all steps.
  call->call.site.op = 0;
  // A copy inside a layer belongs to the layer; one outside, between host and GPU, belongs to the phase `data`.
  if (call->kind == CallKind::kTransfer && call->call.site.phase == Phase::kOther && !StaysOnGpu(call->name)) {
    call->call.site.phase = Phase::kData;
  }
  return true;
}

void LaunchTap::OnLaunch(CUpti_CallbackId cbid, const CUpti_CallbackData& data) noexcept {
  const bool recording = recording_.load(std::memory_order_acquire), captured = capturing();
  if (!recording && !captured && !IsGraphLaunch(cbid)) return;
  Call call;
  if (!Decode(cbid, data, &call)) return;
  // What is captured does not run now; the launch of the graph is what runs it.
  if (captured) return BeginCaptured(&call);
  if (!recording) {
    t_ends_step = call.kind == CallKind::kGraph && graphs_.Find(call.call.function).optimizer;
    return;
  }
  RecordLaunch(&call, data.correlationId);
  // What follows is the driver's. A copy to the host is a wait as a whole.
  if (ListOf(cbid) != CallList::kCopyToHost) BeginLaunchWait(call.kind, call.call.site.phase == Phase::kBackward);
}

void LaunchTap::RecordLaunch(Call* call, uint32_t correlation_id) noexcept {
  uint32_t number = LaunchLog::kNoGraph;
  if (call->kind == CallKind::kGraph) {
    number = RecordGraph(call);
  } else {
    call->key = keys_.Find(call->call, call->name, recorder_, &call->identity);
    if (call->key != LaunchKeys::kNoKey) {
      recorder_.RecordLaunch(*call->identity);
      operators_.NoteLaunch(call->key, *call->identity, call->compiled);
    }
    if (keys_.IsScaleUpdate(*call->identity)) NoteScaleUpdate();
  }
  if (log_.open()) log_.Add(call->key, correlation_id, number);
  if (call->context == nullptr) return;
  const bool communicates = call->identity->site.phase == Phase::kCommunication;
  if (communicates && !LaunchKeys::IsCollective(call->name)) call->context->gate().Bar();
  const bool counted = call->kind != CallKind::kTransfer && !communicates;
  call->context->gate().Enter(call->key, number, counted);
}

// Records the launch of a graph, as one record whatever the graph holds. Returns LaunchLog::Entry::graph.
uint32_t LaunchTap::RecordGraph(Call* call) noexcept {
  CapturedGraphs::Launch graph = graphs_.Find(call->call.function);
  if (graph.number == 0) {
    call->key = keys_.Find(call->call, call->name, recorder_, &call->identity);
    if (call->key != LaunchKeys::kNoKey && graph.is_new) {
      graph = graphs_.Define(call->call.function, call->key, *call->identity);
    }
  }
  t_ends_step = graph.optimizer;
  if (graph.number == 0) {
    if (call->key != LaunchKeys::kNoKey) recorder_.RecordLaunch(*call->identity);
    return LaunchLog::kUnknownGraph;
  }
  call->key = graph.whole;
  RecordNumber(graph.number);
  return graph.number;
}

void LaunchTap::OnExit(const CUpti_CallbackData& data) noexcept {
  const auto* result = static_cast<const CUresult*>(data.functionReturnValue);
  const bool done = result == nullptr || *result == CUDA_SUCCESS;
  EndLaunchWait(done);
  if (t_captured.open) return EndCaptured(done, data.correlationId);
  RangeGate::Exit(!done);
  if (std::exchange(t_ends_step, false) && done) EndStepSoon();
}

// --- What is captured into graphs.

void LaunchTap::BeginCaptured(Call* call) noexcept {
  t_captured = {.open = true, .transfer = call->kind == CallKind::kTransfer};
  if (call->kind == CallKind::kGraph) {
    t_captured.executable = call->call.function;
    return;
  }
  t_captured.key = keys_.Find(call->call, call->name, recorder_, &call->identity);
  t_captured.phase = call->identity->site.phase;
  if (t_captured.key != LaunchKeys::kNoKey) operators_.NoteLaunch(t_captured.key, *call->identity, call->compiled);
}

void LaunchTap::EndCaptured(bool done, uint32_t correlation_id) noexcept {
  const Captured captured = std::exchange(t_captured, Captured());
  if (!done) return;
  // It was no part of the capture, which another thread makes, if it became no node.
  const bool ran = !captured.created && numbers_nodes_.load(std::memory_order_relaxed);
  if (captured.executable != nullptr) {
    return ran ? RecordLateGraph(captured.executable) : graphs_.AddGraphLaunch(captured.executable);
  }
  if (ran) return RecordLate(captured.key, correlation_id);
  graphs_.AddLaunch(captured.graph, {.id = captured.node, .key = captured.key, .transfer = captured.transfer},
                    captured.phase);
}

void LaunchTap::RecordLateGraph(const void* executable) noexcept {
  const CapturedGraphs::Launch graph = graphs_.Find(executable);
  if (graph.optimizer) EndStepSoon();
  if (graph.number != 0 && recording_.load(std::memory_order_acquire)) RecordNumber(graph.number);
}

void LaunchTap::RecordNumber(uint32_t graph) noexcept {
  LaunchIdentity launched;
  launched.kernel = graph;
  recorder_.RecordLaunch(launched, LaunchRecord::kGraph);
}

void LaunchTap::RecordLate(uint32_t key, uint32_t correlation_id) noexcept {
  if (key == LaunchKeys::kNoKey || !recording_.load(std::memory_order_acquire)) return;
  recorder_.RecordLaunch(keys_.Identity(key));
  if (log_.open()) log_.Add(key, correlation_id, LaunchLog::kNoGraph);
}

uint64_t LaunchTap::NodeId(CUgraphNode node) const noexcept {
  uint64_t id = 0;
  if (node == nullptr || api_.cuptiGetGraphNodeId == nullptr) return 0;
  return api_.cuptiGetGraphNodeId(node, &id) == CUPTI_SUCCESS ? id : 0;
}

void LaunchTap::OnGraphResource(CUpti_CallbackId cbid, const CUpti_ResourceData& data) noexcept {
  const auto* of = static_cast<const CUpti_GraphData*>(data.resourceDescriptor);
  if (of == nullptr) return;
  switch (cbid) {
    case CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING:
      return graphs_.DestroyGraph(of->graph);
    case CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING:
      return graphs_.DestroyExecutable(of->graphExec);
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED:
      return graphs_.AddClone(of->graph, NodeId(of->node), NodeId(of->originalNode));
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED:
      return OnNodeCreated(*of);
    default:
      return;
  }
}

void LaunchTap::OnNodeCreated(const CUpti_GraphData& data) noexcept {
  if (CapturedGraphs::instantiating()) return;  // they are clones
  if (t_captured.executable != nullptr) {
    t_captured.created = true;
    return;
  }
  const bool transfer = data.nodeType == CU_GRAPH_NODE_TYPE_MEMCPY || data.nodeType == CU_GRAPH_NODE_TYPE_MEMSET;
  if (data.nodeType == CU_GRAPH_NODE_TYPE_GRAPH) return graphs_.RefuseGraph(data.graph, CapturedGraphs::kNotSeen);
  if (data.nodeType == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
    return graphs_.RefuseGraph(data.graph, CapturedGraphs::kConditional);
  }
  if (data.nodeType != CU_GRAPH_NODE_TYPE_KERNEL && !transfer) return;  // it does nothing on the GPU
  const uint64_t id = NodeId(data.node);
  if (!t_captured.open || t_captured.created) return graphs_.AddNode(data.graph, id, transfer);
  t_captured.created = true;
  // A node without a number is found by its place among all, as where CUPTI tells nothing.
  if (id == 0) return;
  numbers_nodes_.store(true, std::memory_order_relaxed);
  t_captured.graph = data.graph;
  t_captured.node = id;
}

// Sequentially consistent: of a call that begins a capture and one of ours that would spoil it, one sees the other.
bool LaunchTap::BeginUnsafe() noexcept {
  unsafe_.store(true, std::memory_order_seq_cst);
  if (captures_.load(std::memory_order_seq_cst) <= 0 && beginning_.load(std::memory_order_seq_cst) <= 0) return true;
  unsafe_.store(false, std::memory_order_seq_cst);
  return false;
}

void LaunchTap::OnCaptureCall(CUpti_CallbackId cbid, const CUpti_CallbackData& data) noexcept {
  const bool begins = CaptureChange(cbid, CUDA_SUCCESS) > 0;
  if (data.callbackSite == CUPTI_API_ENTER) {
    if (!begins) return;
    beginning_.fetch_add(1, std::memory_order_seq_cst);
    const int64_t deadline = MonotonicNs() + kStepLockWaitNs;
    while (unsafe_.load(std::memory_order_seq_cst) && MonotonicNs() < deadline) {
      const timespec pause = {0, 100'000};
      nanosleep(&pause, nullptr);
    }
    return;
  }
  const auto* result = static_cast<const CUresult*>(data.functionReturnValue);
  struct Begun {
    std::atomic<int>* count;
    ~Begun() {
      if (count != nullptr && count->fetch_sub(1, std::memory_order_seq_cst) <= 0) count->fetch_add(1);
    }
  } const begun{begins ? &beginning_ : nullptr};
  if (result == nullptr) return;
  const int change = CaptureChange(cbid, *result);
  // The end of a capture whose beginning we did not see must not hide the next one.
  if (change == 0 || (change < 0 && captures_.load(std::memory_order_acquire) <= 0)) return;
  if (change > 0) graphs_.BeginCapture();
  captures_.fetch_add(change, std::memory_order_acq_rel);
  // The parameters of both forms begin with the stream and where the graph's handle goes.
  const auto& call = *static_cast<const cuStreamEndCapture_params*>(data.functionParams);
  if (change < 0) graphs_.EndCapture(*result == CUDA_SUCCESS && call.phGraph != nullptr ? *call.phGraph : nullptr);
}

void LaunchTap::AfterForkInChild() noexcept {
  // CUDA does not work in a forked child, and neither do CUPTI's threads: nothing of it is touched any more.
  LaunchTap* tap = g_tap.exchange(nullptr, std::memory_order_acq_rel);
  if (tap == nullptr) return;
  tap->keys_.ResetLockInForkedChild();
  tap->operators_.ResetLockInForkedChild();
  tap->log_.ResetLockInForkedChild();
  tap->contexts_.ResetLockInForkedChild();
  tap->graphs_.ResetLockInForkedChild();
  if (tap->memory_) tap->memory_->ResetLockInForkedChild();
  tap->listener_.OnForkedChild();
}

// --- Subscribing.

bool LaunchTap::Subscribe() {
  if (!api_.has(kCallbacks)) {
    ReportCondition(recorder_, ConditionId::kCuptiBroken, "no callback functions in " + api_.path);
    return false;
  }
  TickClock::Compare();  // before the first callback
  SubscriberName holder;
  const CUptiResult result = cupti::Subscribe(api_, &OnCupti, &subscription_, &holder);
  if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED && holder[0] != '\0') {
    ReportCondition(recorder_, ConditionId::kSubscriber, holder.data());
    return false;
  }
  if (result != CUPTI_SUCCESS) {
    ReportResult(recorder_, "cuptiSubscribe", result);
    return false;
  }
  g_tap.store(this, std::memory_order_release);
  pthread_atfork(nullptr, nullptr, &AfterForkInChild);
  HostGuest(api_, subscription_);
  return Enable();
}

void LaunchTap::Begin(CUcontext context, uint32_t device) {
  TickClock::Compare();  // some steps after Subscribe
  device_ = device;
  memory_.emplace(api_, context);
  recording_.store(true, std::memory_order_release);
}

// Asks CUPTI to call us for the functions that we watch. Returns false, and has reported it, when one that is needed
// cannot be had.
bool LaunchTap::Enable() {
  const auto enable = [this](CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
    return api_.cuptiEnableCallback(1, subscription_.handle, domain, cbid);
  };
  for (CUpti_CallbackId cbid : LaunchCbids()) {
    const CUptiResult result = enable(CUPTI_CB_DOMAIN_DRIVER_API, cbid);
    // An older CUPTI does not know the newest launch functions; nor can a program call them there.
    if (result != CUPTI_SUCCESS && cbid == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel) {
      ReportResult(recorder_, "cuptiEnableCallback", result);
      return false;
    }
  }
  // Without one of these calls there are fewer rows.
  for (CUpti_CallbackId cbid : TransferCbids()) enable(CUPTI_CB_DOMAIN_DRIVER_API, cbid);
  // An older CUPTI lacks the newest of these calls.
  for (CUpti_CallbackId cbid : kCaptureCbids) enable(CUPTI_CB_DOMAIN_DRIVER_API, cbid);
  for (CUpti_CallbackId cbid : kGraphCbids) enable(CUPTI_CB_DOMAIN_DRIVER_API, cbid);
  for (CUpti_CallbackId cbid : kGraphResources) enable(CUPTI_CB_DOMAIN_RESOURCE, cbid);
  // Without one of these calls peaks may be missed.
  for (CUpti_CallbackId cbid : kMemoryCbids) enable(CUPTI_CB_DOMAIN_DRIVER_API, cbid);
  // Without one of these calls it is not known what the host waits for.
  bool waits = true;
  for (CUpti_CallbackId cbid : kWaitCbids) waits &= enable(CUPTI_CB_DOMAIN_DRIVER_API, cbid) == CUPTI_SUCCESS;
  WatchWaits(kGpuWaits, waits);
  WatchWaits(kLaunchWaits);
  const CUptiResult result = enable(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
  if (result == CUPTI_SUCCESS) return true;
  // Without this call a context could go away under a running session.
  ReportResult(recorder_, "cuptiEnableCallback", result);
  return false;
}

void LaunchTap::Close() noexcept {
  g_tap.store(nullptr, std::memory_order_release);
  WatchWaits(kGpuWaits, false);
  WatchWaits(kLaunchWaits, false);
}

void LaunchTap::Unsubscribe() noexcept {
  if (subscription_.handle == nullptr) return;
  (void)api_.cuptiUnsubscribe(subscription_.handle);
  subscription_ = {};
}

}  // namespace rfinject::cupti
