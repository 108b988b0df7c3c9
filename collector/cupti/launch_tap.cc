// File: launch_tap.cc
#include "collector/cupti/launch_tap.h"

#include <pthread.h>

#include "collector/cupti/condition_report.h"
#include "collector/cupti/launch_call.h"
#include "collector/step_end.h"
#include "collector/step_waits.h"

namespace rfinject::cupti {
namespace {

// The object that the callback and the fork handler use; null while nothing is tapped. CUPTI could give its callback
// a pointer, but that could not be taken back while a callback runs.
constinit std::atomic<LaunchTap*> g_tap{nullptr};

}  // namespace

// --- The callback.

void CUPTIAPI LaunchTap::OnCupti(void*, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* data) {
  LaunchTap* tap = g_tap.load(std::memory_order_acquire);
  if (tap == nullptr || data == nullptr) return;
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API) {
    const auto& call = *static_cast<const CUpti_CallbackData*>(data);
    if (IsWaitCall(cbid)) {
      OnWait(call);
    } else if (DeviceMemory::IsCall(cbid)) {
      tap->memory_->OnCall(cbid, call);
    } else if (IsCaptureCall(cbid)) {
      tap->OnCaptureCall(cbid, call);
    } else {
      if (IsCopyToHost(cbid)) OnWait(call);
      tap->OnLaunch(cbid, call);
    }
  } else if (domain == CUPTI_CB_DOMAIN_RESOURCE && cbid == CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING) {
    tap->listener_.OnContextDestroyed(static_cast<const CUpti_ResourceData*>(data)->context);
  }
}

void LaunchTap::OnWait(const CUpti_CallbackData& data) noexcept {
  data.callbackSite == CUPTI_API_ENTER ? BeginWait(kGpuWaits) : EndWait(kGpuWaits);
}

void LaunchTap::OnLaunch(CUpti_CallbackId cbid, const CUpti_CallbackData& data) noexcept {
  if (data.callbackSite != CUPTI_API_ENTER) {
    const auto* result = static_cast<const CUresult*>(data.functionReturnValue);
    LaunchLog::Exit(result != nullptr && *result != CUDA_SUCCESS);
    return;
  }
  // What is captured does not run now; the launch of the graph is what runs it. If a program launches on another
  // thread meanwhile, those launches are missed.
  if (capturing()) return;
  LaunchCall call;
  CallKind kind;
  const char* name = nullptr;
  if (!DecodeLaunch(cbid, data, &call, &kind, &name)) return;
  const bool graph = kind == CallKind::kGraph, transfer = kind == CallKind::kTransfer;
  CountedContext* const context = contexts_.Find(data.context);
  call.device = context != nullptr ? context->device() : device_;
  call.site = CurrentSite();
  // A copy inside a layer belongs to the layer; one outside belongs to the phase `data`.
  if (transfer && call.site.phase == Phase::kOther) call.site.phase = Phase::kData;
  LaunchRecord record;
  const uint32_t key = keys_.Find(call, name, recorder_, &record.identity);
  if (key != LaunchKeys::kNoKey) recorder_.Record(record);
  if (keys_.IsScaleUpdate(record.identity)) NoteScaleUpdate();

  if (graph) graphs_seen_.store(true, std::memory_order_relaxed);
  if (record.identity.site.phase == Phase::kCommunication) communication_seen_.store(true, std::memory_order_relaxed);
  if (!logging_.load(std::memory_order_relaxed)) return;
  const uint64_t owner = OwnerOf(record.identity, graph);
  if (times_log_.mode() != LaunchLog::Mode::kOff) {
    times_log_.Enter(key, data.correlationId, owner);
    return;
  }
  if (transfer || context == nullptr) return;
  LaunchLog& log = context->log();
  const LaunchLog::Mode mode = log.mode();
  if (mode == LaunchLog::Mode::kOff || data.context != log.context()) return;
  if (graph && mode == LaunchLog::Mode::kCounting) {
    log.Spoil();  // the driver makes as many ranges of it as it has kernels, or none
    return;
  }
  log.Enter(key, data.correlationId, owner);
}

void LaunchTap::OnCaptureCall(CUpti_CallbackId cbid, const CUpti_CallbackData& data) noexcept {
  const auto* result = static_cast<const CUresult*>(data.functionReturnValue);
  if (data.callbackSite == CUPTI_API_ENTER || result == nullptr) return;
  const int change = CaptureChange(cbid, *result);
  // The end of a capture whose beginning we did not see must not hide the next one.
  if (change < 0 && captures_.load(std::memory_order_acquire) <= 0) return;
  captures_.fetch_add(change, std::memory_order_acq_rel);
}

void LaunchTap::AfterForkInChild() noexcept {
  // CUDA does not work in a forked child, and neither do CUPTI's threads: nothing of it is touched any more.
  LaunchTap* tap = g_tap.exchange(nullptr, std::memory_order_acq_rel);
  if (tap == nullptr) return;
  tap->keys_.ResetLockInForkedChild();
  tap->times_log_.ResetLockInForkedChild();
  tap->contexts_.ResetLocksInForkedChild();
  if (tap->memory_) tap->memory_->ResetLockInForkedChild();
  tap->listener_.OnForkedChild();
}

// --- Subscribing.

bool LaunchTap::Subscribe(CUcontext context, uint32_t device) {
  device_ = device;
  if (!api_.has(kCallbacks)) {
    ReportCondition(recorder_, ConditionId::kCuptiBroken, "no callback functions in " + api_.path);
    return false;
  }
  char holder[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN + 1] = {};
  CUptiResult result;
  if (api_.has(kSubscribeV2)) {
    CUpti_SubscriberParams params = {};
    params.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
    params.subscriberName = "rfinject";
    params.oldSubscriberName = holder;
    params.oldSubscriberSize = CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN;
    result = api_.cuptiSubscribe_v2(&subscriber_, &OnCupti, nullptr, &params);
  } else {
    result = api_.cuptiSubscribe(&subscriber_, &OnCupti, nullptr);
  }
  if (result != CUPTI_SUCCESS) {
    if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED && holder[0] != '\0') {
      ReportCondition(recorder_, ConditionId::kSubscriber, holder);
    } else {
      ReportResult(recorder_, "cuptiSubscribe", result);
    }
    subscriber_ = nullptr;
    return false;
  }
  memory_.emplace(api_, context);
  g_tap.store(this, std::memory_order_release);
  pthread_atfork(nullptr, nullptr, &AfterForkInChild);
  return Enable();
}

// Asks CUPTI to call us for the functions that we watch. Returns false, and has reported it, when one that is needed
// cannot be had.
bool LaunchTap::Enable() {
  const auto enable = [this](CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
    return api_.cuptiEnableCallback(1, subscriber_, domain, cbid);
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
  // Without one of these calls peaks may be missed.
  for (CUpti_CallbackId cbid : DeviceMemory::Calls()) enable(CUPTI_CB_DOMAIN_DRIVER_API, cbid);
  // Without one of these calls it is not known what the host waits for.
  bool waits = true;
  for (CUpti_CallbackId cbid : kWaitCbids) waits &= enable(CUPTI_CB_DOMAIN_DRIVER_API, cbid) == CUPTI_SUCCESS;
  WatchWaits(kGpuWaits, waits);
  const CUptiResult result = enable(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
  if (result == CUPTI_SUCCESS) return true;
  // Without this call a context could go away under a running session.
  ReportResult(recorder_, "cuptiEnableCallback", result);
  return false;
}

void LaunchTap::Close() noexcept {
  g_tap.store(nullptr, std::memory_order_release);
  WatchWaits(kGpuWaits, false);
}

}  // namespace rfinject::cupti
