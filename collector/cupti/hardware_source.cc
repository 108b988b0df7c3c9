// File: hardware_source.cc
//
// One object, three kinds of thread. Threads that launch come in through CUPTI's callback, which only looks up the
// launch's key and records it; in the few steps with counters or times it also writes the launch log. The thread that
// ends a step does everything else here, between two steps: it reads what the step gave, asks the policy what comes
// next, and sets that up. A watchdog thread runs while counters are armed.
#include "collector/cupti/hardware_source.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "collector/arming/backoff.h"
#include "collector/arming/policy.h"
#include "collector/cupti/api.h"
#include "collector/cupti/backend_choice.h"
#include "collector/cupti/counted_context.h"
#include "collector/cupti/counter_backend.h"
#include "collector/cupti/counter_mode.h"
#include "collector/cupti/counter_samples.h"
#include "collector/cupti/device_memory.h"
#include "collector/cupti/kernel_times.h"
#include "collector/cupti/launch_call.h"
#include "collector/cupti/launch_keys.h"
#include "collector/cupti/launch_log.h"
#include "collector/cupti/pm_sampling.h"
#include "collector/program_profiler.h"
#include "collector/sync.h"
#include "proto/wire/conditions.h"

namespace rfinject {
namespace {

using arming::Action;
using arming::Decision;
using arming::GroupRole;
using cupti::Api;
using cupti::CallKind;
using cupti::CountedContext;
using cupti::CounterBackend;
using cupti::CounterGroup;
using cupti::CounterMode;
using cupti::CounterSamples;
using cupti::GroupKind;
using cupti::LaunchCall;
using cupti::LaunchKeys;
using cupti::LaunchLog;

// How long, in steps, whoever had CUPTI's activity records is given to come back: torch.profiler prepares some steps
// ahead of those that it records, and its next cycle may follow at once.
constexpr uint64_t kQuietSteps = 64;
// So many windows in a row that somebody else got, and kernel times are given up.
constexpr uint32_t kMaxTakenWindows = 3;

// Contexts that launches are told apart by; what is launched in others has no counters.
constexpr size_t kMaxContexts = 16;

class HardwareSource;
// What the callback and the fork handler reach; cleared when the source stops.
std::atomic<HardwareSource*> g_source{nullptr};

class HardwareSource : public Source {
 public:
  HardwareSource(const Settings& settings, Recorder& recorder) : settings_(settings), recorder_(recorder) {}

  void OnStepEnd(uint64_t step) noexcept override;
  void Stop() noexcept override;

  void OnLaunch(CUpti_CallbackId cbid, const CUpti_CallbackData& data) noexcept;
  void OnMemoryCall(CUpti_CallbackId cbid, const CUpti_CallbackData& data) noexcept { memory_->OnCall(cbid, data); }
  void OnCaptureCall(CUpti_CallbackId cbid, const CUpti_CallbackData& data) noexcept {
    const auto* result = static_cast<const CUresult*>(data.functionReturnValue);
    if (data.callbackSite == CUPTI_API_ENTER || result == nullptr) return;
    const int change = cupti::CaptureChange(cbid, *result);
    // The end of a capture that we came into must not hide the next one.
    if (change < 0 && captures_.load(std::memory_order_acquire) <= 0) return;
    captures_.fetch_add(change, std::memory_order_acq_rel);
  }
  void OnContextDestroyed(CUcontext context) noexcept;
  void OnForkedChild() noexcept;

 private:
  enum class State : uint8_t { kWaiting, kRunning, kOff };

  // --- Start, once.
  void Start(uint64_t step);
  bool Load();
  bool Subscribe();
  void OpenCounters(uint64_t step);
  cupti::ModeChoice ChooseMode(bool layer_ranges) const;
  bool FollowMode();
  void ReportMode();
  std::unique_ptr<CounterBackend> OpenBackend(const void* context, int device, std::string* chip, int* result);
  CountedContext* FindContext(CUcontext context) noexcept;
  void AdoptContexts();
  DeviceFacts DescribeDevice(int index, const std::string& chip);
  void ReportFacts();

  // --- Between steps.
  void FinishStep(uint64_t step, bool profiles);
  bool MayArm(uint64_t step, bool profiles);
  bool ReadCounters();
  bool ReadTimes(uint64_t step, bool profiles);
  bool Arm(uint64_t step);
  void Sample(uint64_t step, uint64_t step_ns);
  void BeginStep(uint64_t step, uint64_t now_ns, bool may_arm);

  // --- Trouble.
  void Report(ConditionId id, std::string_view detail);
  void ReportResult(const char* call, int result);
  void NewPolicy();
  void CountersBusy(const char* call, uint64_t step);
  void RetryCounters(uint64_t step);
  void LoseCounters();
  void LoseTimes();
  void TurnOff();
  void StartWatchdog();
  static void* Watch(void* self);

  // Of the first context; the others have the same groups, or none.
  CounterBackend* counters() const {
    const CountedContext* first = contexts_[0].load(std::memory_order_acquire);
    return first != nullptr ? first->backend() : nullptr;
  }
  template <typename Function>
  void ForEachContext(Function function) {
    const uint32_t count = context_count_.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < count; ++i) function(*contexts_[i].load(std::memory_order_acquire));
  }

  const Settings& settings_;
  Recorder& recorder_;
  Mutex boundary_;  // steps are ended by one thread at a time
  std::atomic<State> state_{State::kWaiting};

  Api api_;
  CUcontext context_ = nullptr;
  int device_ = 0;
  // The first is that of context_. Added by launches, never removed.
  std::atomic<CountedContext*> contexts_[kMaxContexts] = {};
  std::atomic<uint32_t> context_count_{0};
  Mutex contexts_mutex_;
  uint32_t adopted_ = 0;                // contexts that were looked at between steps
  std::vector<std::string> chips_;      // of those
  std::string collector_ = "activity";  // what the trace says it was measured with
  cupti::BackendKind backend_kind_{};
  CUpti_SubscriberHandle subscriber_ = nullptr;
  std::atomic<bool> context_gone_{false};
  std::atomic<bool> stalled_{false};
  std::atomic<bool> graphs_seen_{false};
  std::atomic<int> captures_{0};  // streams that are captured at this moment, of those whose beginning we saw
  std::atomic<bool> communication_seen_{false};

  uint32_t ranks_ = 1;
  bool mps_ = false;
  cupti::ModeChoice mode_;
  cupti::KernelTimes* times_ = nullptr;  // never destroyed
  std::unique_ptr<cupti::PmCrossCheck> pm_;
  std::atomic<bool> pm_running_{false};
  cupti::DeviceMemory* memory_ = nullptr;  // likewise
  std::unique_ptr<arming::Policy> policy_;
  LaunchKeys keys_;
  LaunchLog times_log_;  // of a step with times, in whatever context
  CounterSamples time_samples_{recorder_, keys_};
  std::atomic<bool> logging_{false};  // some log is open

  Decision decision_;  // of the step that runs
  std::atomic<bool> armed_{false};
  uint64_t step_began_ns_ = 0;
  uint32_t taken_windows_ = 0;  // in a row

  arming::Backoff backoff_;  // from counters that somebody else holds
  bool busy_reported_ = false;
  bool watched_ = false;
  // The program's own profiler: until when nothing of ours is armed; 0: it is not there.
  uint64_t quiet_until_ = 0;
  bool profiler_reported_ = false;

  Mutex policy_mutex_;  // the watchdog reads what the step thread writes
};

// Makes a context current for as long as it lives, unless it is already.
class ContextScope {
 public:
  ContextScope(const Api& api, const void* context) : api_(api) {
    CUcontext current = nullptr;
    if (context == nullptr || api.cuCtxPushCurrent == nullptr || api.cuCtxPopCurrent == nullptr) return;
    if (api.cuCtxGetCurrent != nullptr && api.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == context) {
      ok_ = true;
      return;
    }
    ok_ = pushed_ = api.cuCtxPushCurrent(static_cast<CUcontext>(const_cast<void*>(context))) == CUDA_SUCCESS;
  }
  ~ContextScope() {
    CUcontext popped = nullptr;
    if (pushed_) api_.cuCtxPopCurrent(&popped);
  }
  bool ok() const { return ok_; }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  const Api& api_;
  bool pushed_ = false;
  bool ok_ = false;
};

// --- Callbacks. Nothing below may throw, wait without bound or call CUDA.

void CUPTIAPI OnCupti(void*, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* data) {
  HardwareSource* source = g_source.load(std::memory_order_acquire);
  if (source == nullptr || data == nullptr) return;
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API) {
    const auto& call = *static_cast<const CUpti_CallbackData*>(data);
    if (cupti::DeviceMemory::IsCall(cbid)) {
      source->OnMemoryCall(cbid, call);
    } else if (cupti::IsCaptureCall(cbid)) {
      source->OnCaptureCall(cbid, call);
    } else {
      source->OnLaunch(cbid, call);
    }
  } else if (domain == CUPTI_CB_DOMAIN_RESOURCE && cbid == CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING) {
    source->OnContextDestroyed(static_cast<const CUpti_ResourceData*>(data)->context);
  }
}

void HardwareSource::OnLaunch(CUpti_CallbackId cbid, const CUpti_CallbackData& data) noexcept {
  if (data.callbackSite != CUPTI_API_ENTER) {
    const auto* result = static_cast<const CUresult*>(data.functionReturnValue);
    LaunchLog::Exit(result != nullptr && *result != CUDA_SUCCESS);
    return;
  }
  LaunchCall call;
  CallKind kind;
  const char* name = nullptr;
  if (!cupti::DecodeLaunch(cbid, data, &call, &kind, &name)) return;
  const bool graph = kind == CallKind::kGraph, transfer = kind == CallKind::kTransfer;
  CountedContext* const context = FindContext(data.context);
  call.device = context != nullptr ? context->device() : static_cast<uint32_t>(device_);
  call.site = CurrentSite();
  // A copy inside a layer is the layer's; one outside belongs to the data's way to and from the device.
  if (transfer && call.site.phase == Phase::kOther) call.site.phase = Phase::kData;
  LaunchRecord record;
  const uint32_t key = keys_.Find(call, name, recorder_, &record.identity);
  if (key != LaunchKeys::kNoKey) recorder_.Record(record);

  if (graph) graphs_seen_.store(true, std::memory_order_relaxed);
  if (record.identity.site.phase == Phase::kCommunication) communication_seen_.store(true, std::memory_order_relaxed);
  if (!logging_.load(std::memory_order_relaxed)) return;
  const uint64_t owner = cupti::OwnerOf(record.identity, graph);
  if (times_log_.mode() != LaunchLog::Mode::kOff) {
    times_log_.Enter(key, data.correlationId, owner);
    return;
  }
  if (transfer || context == nullptr) return;
  LaunchLog& log = context->log();
  const LaunchLog::Mode mode = log.mode();
  if (mode == LaunchLog::Mode::kOff || data.context != log.context()) return;
  if (graph && mode == LaunchLog::Mode::kCounting) {
    log.Spoil();  // as many ranges as it has kernels, or none
    return;
  }
  log.Enter(key, data.correlationId, owner);
}

// Hot: one comparison in a process with one GPU. A context's first launch makes it known.
CountedContext* HardwareSource::FindContext(CUcontext context) noexcept {
  const uint32_t count = context_count_.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i) {
    CountedContext* known = contexts_[i].load(std::memory_order_acquire);
    if (known->context() == context) return known;
  }
  if (context == nullptr || count >= kMaxContexts || !contexts_mutex_.LockFor(100'000'000)) return nullptr;
  CountedContext* added = nullptr;
  const uint32_t now = context_count_.load(std::memory_order_acquire);
  for (uint32_t i = count; i < now; ++i) {  // another thread was faster
    CountedContext* known = contexts_[i].load(std::memory_order_acquire);
    if (known->context() == context) added = known;
  }
  if (added == nullptr && now < kMaxContexts) {
    // A question to CUPTI, which may be asked in a callback; the driver may not.
    uint32_t device = static_cast<uint32_t>(device_);
    if (api_.cuptiGetDeviceId == nullptr || api_.cuptiGetDeviceId(context, &device) != CUPTI_SUCCESS) {
      device = static_cast<uint32_t>(device_);
    }
    added = new (std::nothrow) CountedContext(context, device, recorder_, keys_);
    if (added != nullptr) {
      contexts_[now].store(added, std::memory_order_release);
      context_count_.store(now + 1, std::memory_order_release);
    }
  }
  contexts_mutex_.Unlock();
  return added;
}

void HardwareSource::OnContextDestroyed(CUcontext context) noexcept {
  const bool first = context == context_;
  if (first) context_gone_.store(true, std::memory_order_release);
  bool known = false;
  ForEachContext([&](CountedContext& one) { known = known || one.context() == context; });
  if (!known) return;
  if (first) {
    std::vector<LaunchLog::Entry> entries;
    times_log_.Close(&entries);
  }
  // Only here, and only if no step is being ended at this moment, may its session still be closed in order. Sessions
  // of other contexts are ended with the step.
  const bool may_close = (armed_ || pm_running_) && boundary_.TryLock();
  if (may_close && first && pm_running_.exchange(false)) pm_->Abandon();
  ForEachContext([&](CountedContext& one) {
    if (one.context() != context) return;
    if (may_close && armed_) {
      one.Abandon();
    } else {
      std::vector<LaunchLog::Entry> entries;
      one.log().Close(&entries);
    }
    one.ForgetContext();  // a new context may get its address
  });
  if (may_close) boundary_.Unlock();
}

void HardwareSource::OnForkedChild() noexcept {
  // CUDA does not work in a forked child, and neither do CUPTI's threads: nothing of it is touched any more.
  g_source.store(nullptr, std::memory_order_release);
  state_.store(State::kOff);
  keys_.ResetLockInForkedChild();
  times_log_.ResetLockInForkedChild();
  ForEachContext([](CountedContext& one) { one.log().ResetLockInForkedChild(); });
  contexts_mutex_.ResetInForkedChild();
  if (memory_ != nullptr) memory_->ResetLockInForkedChild();
  boundary_.ResetInForkedChild();
  policy_mutex_.ResetInForkedChild();
}

void AfterForkInChild() {
  if (HardwareSource* source = g_source.load()) source->OnForkedChild();
}

// --- Start.

void HardwareSource::Start(uint64_t step) {
  // Programs that never touch the GPU stay here; a look costs a microsecond.
  if (!Load()) return;
  if (!Subscribe()) return;
  OpenCounters(step);
  // The view that serialises nothing: beside the counters, or instead of them. Not where one mode was asked for, and
  // not beside the legacy profiler: a process must not mix the two families of functions (CUPTI user guide, 2.16).
  const bool range_family =
      counters() == nullptr || collector_ == cupti::BackendName(cupti::BackendKind::kRangeProfiler);
  if (range_family && (settings_.mode.empty() || settings_.mode == "auto" || settings_.mode == "pm")) {
    pm_ = cupti::PmCrossCheck::Open(api_, device_, settings_.overhead_percent / 100, recorder_);
  }
  if (api_.has(cupti::kActivity)) {
    times_ = new cupti::KernelTimes(api_);
    if (int result = times_->Register(); result != CUPTI_SUCCESS) {
      ReportResult("cuptiActivityRegisterCallbacks", result);
      times_ = nullptr;
    }
  }
  NewPolicy();
  ReportFacts();
  if (counters() != nullptr) StartWatchdog();
  state_.store(State::kRunning, std::memory_order_release);
}

// For what there is to collect now. A policy that waits for what will never come would keep arming steps.
void HardwareSource::NewPolicy() {
  std::vector<GroupRole> roles;
  if (counters() != nullptr) {
    for (const CounterGroup& group : counters()->groups()) {
      roles.push_back(group.kind == GroupKind::kHardware ? GroupRole::kHardware
                      : group.kind == GroupKind::kSass   ? GroupRole::kOnce
                                                         : GroupRole::kGuard);
    }
  }
  arming::Options options;
  options.overhead = settings_.overhead_percent / 100;
  options.has_times = times_ != nullptr;
  options.window_steps = settings_.steps;
  options.stall_ns = g_stall_ns.load(std::memory_order_relaxed);
  if (settings_.skip > 0) options.warm_up_steps = 2;
  if (!policy_mutex_.LockFor(1'000'000'000)) return;
  policy_ = std::make_unique<arming::Policy>(options, roles);
  policy_mutex_.Unlock();
}

void HardwareSource::StartWatchdog() {
  if (std::exchange(watched_, true)) return;
  // The program's signals are the program's: this thread takes none.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  if (pthread_create(&thread, nullptr, &Watch, this) == 0) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool HardwareSource::Load() {
  // The driver and a context first: before cuInit nothing of CUPTI may be called.
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (driver == nullptr) return false;
  auto get_current = reinterpret_cast<decltype(&::cuCtxGetCurrent)>(dlsym(driver, "cuCtxGetCurrent"));
  if (get_current == nullptr || get_current(&context_) != CUDA_SUCCESS || context_ == nullptr) return false;

  cupti::LoadOptions options;
  options.driver_ready = true;
  // A program that has torch has its CUPTI too; in any other nobody else will bring one.
  options.may_load = true;
  cupti::LoadResult result = cupti::LoadApi(options);
  if (result.status != cupti::LoadStatus::kOk) {
    Report(result.status == cupti::LoadStatus::kBroken ? ConditionId::kCuptiBroken : ConditionId::kNoCupti,
           result.error);
    TurnOff();
    return false;
  }
  api_ = std::move(result.api);
  if (!api_.perfworks_remark.empty()) {
    recorder_.ReportDiagnostic(Severity::kInfo, "perfworks-remark", api_.perfworks_remark);
  }
  CUdevice device = 0;
  if (api_.cuCtxGetDevice != nullptr && api_.cuCtxGetDevice(&device) == CUDA_SUCCESS) device_ = device;
  auto* first = new (std::nothrow) CountedContext(context_, static_cast<uint32_t>(device_), recorder_, keys_);
  if (first == nullptr) return false;
  contexts_[0].store(first, std::memory_order_release);
  context_count_.store(1, std::memory_order_release);
  adopted_ = 1;
  chips_.assign(1, {});
  return true;
}

bool HardwareSource::Subscribe() {
  if (!api_.has(cupti::kCallbacks)) {
    Report(ConditionId::kCuptiBroken, "no callback functions in " + api_.path);
    TurnOff();
    return false;
  }
  char holder[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN + 1] = {};
  CUptiResult result;
  if (api_.has(cupti::kSubscribeV2)) {
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
      Report(ConditionId::kSubscriber, holder);
    } else {
      ReportResult("cuptiSubscribe", result);
    }
    subscriber_ = nullptr;
    TurnOff();
    return false;
  }
  memory_ = new cupti::DeviceMemory(api_, context_);
  g_source.store(this, std::memory_order_release);
  pthread_atfork(nullptr, nullptr, &AfterForkInChild);
  for (uint32_t cbid : cupti::LaunchCbids()) {
    result = api_.cuptiEnableCallback(1, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API, cbid);
    // An older CUPTI does not know the newest launch functions; nor can a program call them there.
    if (result != CUPTI_SUCCESS && cbid == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel) {
      ReportResult("cuptiEnableCallback", result);
      TurnOff();
      return false;
    }
  }
  for (uint32_t cbid : cupti::TransferCbids()) {
    api_.cuptiEnableCallback(1, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API, cbid);  // without one there are fewer rows
  }
  for (uint32_t cbid : cupti::kCaptureCbids) {
    api_.cuptiEnableCallback(1, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API, cbid);  // an older CUPTI lacks the newest
  }
  for (uint32_t cbid : cupti::DeviceMemory::Calls()) {
    api_.cuptiEnableCallback(1, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API, cbid);  // without one peaks may be missed
  }
  result = api_.cuptiEnableCallback(1, subscriber_, CUPTI_CB_DOMAIN_RESOURCE,
                                    CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
  if (result != CUPTI_SUCCESS) {
    // Without it a context could go away under a running session.
    ReportResult("cuptiEnableCallback", result);
    TurnOff();
    return false;
  }
  return true;
}

cupti::ModeChoice HardwareSource::ChooseMode(bool layer_ranges) const {
  cupti::ModeFacts facts;
  facts.forced = settings_.mode;
  facts.ranks = ranks_;
  facts.mps = mps_;
  facts.graphs = graphs_seen_.load(std::memory_order_relaxed);
  facts.communication = communication_seen_.load(std::memory_order_relaxed);
  facts.layer_ranges = layer_ranges;
  return cupti::ChooseCounterMode(facts);
}

std::unique_ptr<CounterBackend> HardwareSource::OpenBackend(const void* context, int device, std::string* chip,
                                                            int* result) {
  return cupti::MakeBackend(backend_kind_, api_, const_cast<void*>(context), device,
                            cupti::SplitMetrics(settings_.metrics), chip, result);
}

// Contexts that launches have made known since the last step: their devices go into the trace, and each device gets a
// profiler of its own.
void HardwareSource::AdoptContexts() {
  const uint32_t count = context_count_.load(std::memory_order_acquire);
  if (adopted_ == count) return;
  bool new_device = false;
  for (; adopted_ < count; ++adopted_) {
    CountedContext& one = *contexts_[adopted_].load(std::memory_order_acquire);
    chips_.resize(adopted_ + 1);
    bool known = false;
    for (uint32_t i = 0; i < adopted_; ++i) {
      const CountedContext& earlier = *contexts_[i].load();
      known = known || (earlier.device() == one.device() && earlier.context() != nullptr);
    }
    // Of several contexts on a device only the first is counted: counters cannot tell them apart.
    if (known || one.context() == nullptr) continue;
    new_device = true;
    if (counters() == nullptr) continue;
    ContextScope scope(api_, one.context());
    int result = CUPTI_ERROR_INVALID_CONTEXT;
    std::unique_ptr<CounterBackend> backend;
    if (scope.ok()) {
      backend = OpenBackend(one.context(), static_cast<int>(one.device()), &chips_[adopted_], &result);
    }
    std::string why;
    if (backend == nullptr) {
      why = "opening the " + collector_ + " returned " + std::to_string(result);
    } else if (!std::equal(backend->groups().begin(), backend->groups().end(), counters()->groups().begin(),
                           counters()->groups().end(), [](const CounterGroup& a, const CounterGroup& b) {
                             return a.kind == b.kind && a.metrics == b.metrics;
                           })) {
      why = "it is a " + chips_[adopted_] + ", device " + std::to_string(device_) + " is a " + chips_[0];
    }
    if (!why.empty()) {
      recorder_.ReportDiagnostic(
          Severity::kWarning, "device-not-counted",
          "FLOP and bytes of device " + std::to_string(one.device()) + " are not measured, its times are: " + why);
      continue;
    }
    one.SetBackend(std::move(backend));
  }
  if (!new_device) return;
  ReportFacts();
  recorder_.ReportDiagnostic(Severity::kInfo, "several-devices",
                             "the program uses several GPUs from one process; each is measured by itself");
}

// Which counters, if any, and why not.
void HardwareSource::OpenCounters(uint64_t step) {
  const std::string& mode = settings_.mode;
  if (mode == "pm") return;
  // Read once, at the end of a step: the program may change its environment while we look at it.
  if (const char* world = getenv("WORLD_SIZE"); world != nullptr && atoi(world) > 1) {
    ranks_ = static_cast<uint32_t>(atoi(world));
  }
  mps_ = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE") != nullptr;
  // What no profiler could help is known before one is opened.
  mode_ = ChooseMode(/*layer_ranges=*/true);
  if (mode_.mode == CounterMode::kNone) {
    if (!mode_.wished) Report(mode_.condition, mode_.why);
    return;
  }
  auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    const bool known =
        api_.cuDeviceGetAttribute != nullptr && api_.cuDeviceGetAttribute(&value, which, device_) == CUDA_SUCCESS;
    return known ? value : 0;
  };
  const cupti::BackendChoice choice =
      cupti::ChooseBackend(api_.features, attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                           attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR), mode);
  if (choice.kind == cupti::BackendKind::kNone) {
    Report(api_.has(cupti::kLegacyProfiler) ? ConditionId::kNoPerfworks : ConditionId::kCuptiTooOld,
           "CUPTI " + cupti::VersionName(api_.version) + ": " + choice.reason);
    return;
  }
  int result = 0;
  backend_kind_ = choice.kind;
  std::unique_ptr<CounterBackend> backend = OpenBackend(context_, device_, &chips_[0], &result);
  if (backend == nullptr) {
    const std::string call = "opening the " + std::string(cupti::BackendName(choice.kind));
    if (result == CUPTI_ERROR_HARDWARE_BUSY) {
      CountersBusy(call.c_str(), step);
    } else {
      ReportResult(call.c_str(), result);
    }
    return;
  }
  backoff_.Succeeded();
  mode_ = ChooseMode(backend->has_user_ranges());
  if (mode_.mode == CounterMode::kNone) {
    Report(mode_.condition, mode_.why);
    return;
  }
  contexts_[0].load()->SetBackend(std::move(backend));
  ReportMode();
  collector_ = cupti::BackendName(choice.kind);
  if (choice.reason[0] != '\0') {
    recorder_.ReportDiagnostic(Severity::kInfo, "counter-backend", collector_ + ": " + choice.reason);
  }
  for (const auto& [name, reason] : counters()->plan().rejected) {
    recorder_.ReportDiagnostic(Severity::kWarning, "metric-rejected: " + name, name + ": " + reason);
  }
}

// Layer by layer is said, because reports by kernel look different then.
void HardwareSource::ReportMode() {
  if (mode_.mode != CounterMode::kLayers) return;
  recorder_.ReportDiagnostic(Severity::kInfo, "counters-by-layer",
                             "FLOP and bytes are counted layer by layer, not kernel by kernel: " + mode_.why,
                             settings_.mode == "user" ? "" : "RFINJECT_MODE=range counts kernel by kernel");
}

// Before a step with counters: what was launched meanwhile may ask for another mode. False when none is left.
bool HardwareSource::FollowMode() {
  cupti::ModeChoice choice = ChooseMode(counters()->has_user_ranges());
  if (choice.mode == mode_.mode) return true;
  mode_ = std::move(choice);
  if (mode_.mode == CounterMode::kNone) {
    Report(mode_.condition, mode_.why);
    LoseCounters();
    return false;
  }
  ReportMode();
  return true;
}

void HardwareSource::ReportFacts() {
  RunFacts facts;
  facts.source = SourceKind::kMeasured;
  facts.collector = collector_;
  facts.collector_version = cupti::FeatureNames(api_.features);
  if (counters() != nullptr) {
    facts.collector_version += "; counters " + std::string(cupti::CounterModeName(mode_.mode)) + ": " + mode_.why;
  }
  facts.process.cupti_version = cupti::VersionName(api_.version);
  facts.process.cupti_path = api_.path;
  int driver = 0;
  if (api_.cuDriverGetVersion != nullptr && api_.cuDriverGetVersion(&driver) == CUDA_SUCCESS) {
    facts.process.driver_version = std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10);
  }
  for (uint32_t i = 0; i < adopted_; ++i) {
    const CountedContext& one = *contexts_[i].load(std::memory_order_acquire);
    const bool known = std::any_of(facts.device.begin(), facts.device.end(),
                                   [&](const DeviceFacts& device) { return device.index == one.device(); });
    if (!known) facts.device.push_back(DescribeDevice(static_cast<int>(one.device()), chips_[i]));
  }
  recorder_.UpdateFacts(facts);
}

DeviceFacts HardwareSource::DescribeDevice(int index, const std::string& chip) {
  DeviceFacts device;
  device.index = static_cast<uint32_t>(index);
  device.chip = chip;
  char name[256] = {};
  if (api_.cuDeviceGetName != nullptr && api_.cuDeviceGetName(name, sizeof name - 1, index) == CUDA_SUCCESS) {
    device.name = name;
  }
  auto attribute = [&](CUdevice_attribute which) -> uint32_t {
    int value = 0;
    if (api_.cuDeviceGetAttribute == nullptr || api_.cuDeviceGetAttribute(&value, which, index) != CUDA_SUCCESS ||
        value < 0) {
      return 0;
    }
    return static_cast<uint32_t>(value);
  };
  device.cc_major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  device.cc_minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  device.sm_count = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  device.sm_clock_khz = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  device.memory_clock_khz = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  device.memory_bus_bits = attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  device.l2_bytes = attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  size_t memory = 0;
  if (api_.cuDeviceTotalMem != nullptr && api_.cuDeviceTotalMem(&memory, index) == CUDA_SUCCESS) {
    device.memory_bytes = memory;
  }
  return device;
}

// --- Between steps.

void HardwareSource::OnStepEnd(uint64_t step) noexcept try {
  if (state_.load(std::memory_order_acquire) == State::kOff) return;
  // Waiting for the GPU would spoil the capture, and fail the program. The step goes on until one ends outside.
  if (captures_.load(std::memory_order_acquire) > 0) return;
  if (!boundary_.TryLock()) return;  // another thread ends a step: this one belongs to it
  struct Unlock {
    Mutex& mutex;
    ~Unlock() { mutex.Unlock(); }
  } unlock{boundary_};
  if (state_.load(std::memory_order_relaxed) == State::kWaiting) {
    Start(step);
    step_began_ns_ = static_cast<uint64_t>(MonotonicNs());
    return;
  }
  if (context_gone_.load(std::memory_order_acquire)) {
    ForEachContext([this](CountedContext& one) {
      if (!one.started() || one.context() == nullptr) return;
      ContextScope scope(api_, one.context());
      scope.ok() ? one.Abandon() : one.Lose();
    });
    Report(ConditionId::kContextGone, {});
    TurnOff();
    return;
  }
  if (cupti::DeviceMemory::Reading memory; memory_->OnStepEnd(MonotonicNs(), &memory)) {
    recorder_.NoteMemory(memory.in_use, memory.peak);
  }
  const bool profiles = ProgramProfiles();
  FinishStep(step, profiles);
  if (state_.load(std::memory_order_relaxed) != State::kRunning) return;
  const bool may_arm = MayArm(step + 1, profiles);
  if (may_arm && counters() == nullptr && backoff_.waiting() && backoff_.Due(step + 1)) RetryCounters(step + 1);
  if (state_.load(std::memory_order_relaxed) != State::kRunning) return;
  AdoptContexts();
  BeginStep(step + 1, static_cast<uint64_t>(MonotonicNs()), may_arm);
} catch (...) {
  // Only memory can run out here.
  recorder_.CountDrop("hardware source: out of memory");
  TurnOff();
}

// The program's own profiler has the right of way. False while it, or whoever took the activity records, may need
// them; what is ours is taken back only when they have been quiet for a while.
bool HardwareSource::MayArm(uint64_t step, bool profiles) {
  if (profiles) {
    quiet_until_ = step + kQuietSteps;
    if (!std::exchange(profiler_reported_, true)) {
      recorder_.ReportDiagnostic(Severity::kInfo, "program-profiler",
                                 "the program runs torch.profiler; no counters or times are taken meanwhile");
    }
  }
  if (quiet_until_ == 0) return true;
  if (step < quiet_until_) return false;
  quiet_until_ = 0;
  if (times_ == nullptr) return true;
  const int result = times_->TakeBack();
  if (taken_windows_ >= kMaxTakenWindows) {
    Report(ConditionId::kActivityTaken, {});
    LoseTimes();
  } else if (result != CUPTI_SUCCESS) {
    ReportResult("taking the activity records back", result);
    LoseTimes();
  }
  return state_.load(std::memory_order_relaxed) == State::kRunning;
}

void HardwareSource::FinishStep(uint64_t step, bool profiles) {
  bool valid = true;
  Decision decision = armed_ ? decision_ : Decision{};
  const arming::Policy* policy = policy_.get();
  if (pm_running_.exchange(false)) pm_->AfterStep(step);
  if (armed_) {
    armed_ = false;
    if (decision.action == Action::kCounters) recorder_.MarkArmed(decision.group + 1);
    valid = decision.action == Action::kCounters ? ReadCounters() : ReadTimes(step, profiles);
    time_samples_.Flush();
  }
  if (!policy_mutex_.LockFor(1'000'000'000)) return;
  // The time that reading took is part of what the step cost.
  const uint64_t now = static_cast<uint64_t>(MonotonicNs());
  if (policy != policy_.get()) decision = {};  // a new one, which did not decide this
  for (uint32_t key = static_cast<uint32_t>(policy_->key_count()); key < keys_.size(); ++key) policy_->OnNewKey(key);
  if (step >= settings_.skip) policy_->End(step - settings_.skip, decision, now - step_began_ns_, valid);
  policy_mutex_.Unlock();
}

bool HardwareSource::ReadCounters() {
  logging_.store(false, std::memory_order_relaxed);
  if (stalled_.load()) {
    ForEachContext([this](CountedContext& one) {
      if (!one.started()) return;
      ContextScope scope(api_, one.context());
      scope.ok() ? one.Abandon() : one.Lose();
    });
    LoseCounters();
    return false;
  }
  // Kernel by kernel, a graph's kernels were not told apart; the next step goes layer by layer.
  const bool graphs = mode_.mode == CounterMode::kKernels && graphs_seen_.load(std::memory_order_relaxed);
  bool valid = true;
  std::vector<CountedContext::Outcome> outcomes;
  // All of them, whatever happens: a session that is not ended would stay.
  ForEachContext([&](CountedContext& one) {
    if (!one.started()) return;
    if (one.context() == nullptr) {
      one.Lose();
      return;
    }
    ContextScope scope(api_, one.context());
    if (!scope.ok()) {
      one.Lose();  // nothing can be asked of it
      return;
    }
    outcomes.push_back(one.Stop(!graphs));
  });
  for (const CountedContext::Outcome& outcome : outcomes) {
    if (outcome.result != CUPTI_SUCCESS) {
      ReportResult(outcome.call, outcome.result);
      LoseCounters();
      return false;
    }
  }
  if (graphs && settings_.mode == "range") {
    Report(ConditionId::kGraphs, {});
    LoseCounters();
    return false;
  }
  for (const CountedContext::Outcome& outcome : outcomes) {
    valid = valid && outcome.valid;
    if (!outcome.mismatch.empty()) Report(ConditionId::kMismatch, outcome.mismatch);
    if (outcome.sparse) {
      recorder_.ReportDiagnostic(Severity::kWarning, "sparse-tensor",
                                 "sparse tensor instructions ran; their FLOP are not in the dense counters");
    }
  }
  if (!policy_mutex_.LockFor(1'000'000'000)) return false;
  for (const CountedContext::Outcome& outcome : outcomes) {
    for (const CountedContext::KeyCount& count : outcome.counts) {
      if (outcome.has_bytes) policy_->OnBytes(count.key, count.bytes);
      policy_->OnCounted(count.key, decision_.group);
    }
  }
  policy_mutex_.Unlock();
  return valid && !outcomes.empty();
}

bool HardwareSource::ReadTimes(uint64_t step, bool profiles) {
  logging_.store(false, std::memory_order_relaxed);
  std::vector<LaunchLog::Entry> entries;
  times_log_.Close(&entries);
  if (times_ == nullptr) return false;
  if (profiles || (!entries.empty() && times_->OthersHaveIt())) {
    // Ending the window in order would switch off what the other has switched on.
    times_->Leave();
    if (!profiles) ++taken_windows_;
    quiet_until_ = step + kQuietSteps;
    return false;
  }
  // The step's kernels must be finished, or the records of running ones would be lost. Once in many steps.
  ForEachContext([this](const CountedContext& one) {
    if (api_.cuCtxSynchronize == nullptr || one.context() == nullptr) return;
    ContextScope scope(api_, one.context());
    if (scope.ok()) api_.cuCtxSynchronize();
  });
  std::vector<cupti::KernelTimes::Record> records;
  uint64_t invalid = 0, dropped = 0;
  if (int result = times_->End(!entries.empty(), &records, &invalid, &dropped); result != CUPTI_SUCCESS) {
    ReportResult("reading the times of a step", result);
    LoseTimes();
    return false;
  }
  ForEachContext([&](CountedContext& one) { one.NoteLaunches(entries.size()); });
  if (invalid != 0) recorder_.CountDrop("kernel records without a time", invalid);
  if (dropped != 0) recorder_.CountDrop("kernel records that CUPTI dropped", dropped);
  if (!entries.empty() && records.empty()) {
    // Somebody came into the window and got our buffers; once can be an accident.
    ++taken_windows_;
    quiet_until_ = step + kQuietSteps;
    return false;
  }
  if (!records.empty()) taken_windows_ = 0;
  std::unordered_map<uint32_t, uint32_t> key_of;
  key_of.reserve(entries.size());
  for (const LaunchLog::Entry& entry : entries) key_of[entry.correlation_id] = entry.key;
  struct Sum {
    double ns = 0;
    uint32_t launches = 0;
  };
  std::unordered_map<uint32_t, Sum> sums;
  uint64_t strangers = 0;
  // A graph's kernels all have the correlation id of its launch, which takes as long as they do together.
  std::unordered_map<uint32_t, uint64_t> graph_ns;
  std::unordered_set<uint32_t> graph_launches;
  for (const LaunchLog::Entry& entry : entries) {
    if (cupti::OwnerIsGraph(entry.owner)) graph_launches.insert(entry.correlation_id);
  }
  if (!graph_launches.empty()) {
    std::vector<cupti::KernelTimes::Record> others;
    for (const cupti::KernelTimes::Record& record : records) {
      if (graph_launches.count(record.correlation_id) != 0) {
        graph_ns[record.correlation_id] += record.ns;
      } else {
        others.push_back(record);
      }
    }
    records = std::move(others);
    for (const auto& [id, ns] : graph_ns) records.push_back({id, ns});
  }
  for (const cupti::KernelTimes::Record& record : records) {
    auto at = key_of.find(record.correlation_id);
    if (at == key_of.end() || at->second == LaunchKeys::kNoKey) {
      ++strangers;
      continue;
    }
    time_samples_.AddTime(at->second, record.ns);
    Sum& sum = sums[at->second];
    sum.ns += static_cast<double>(record.ns);
    ++sum.launches;
  }
  if (strangers != 0) recorder_.CountDrop("kernel records without a launch", strangers);
  if (!policy_mutex_.LockFor(1'000'000'000)) return false;
  for (const auto& [key, sum] : sums) policy_->OnTime(key, sum.ns / sum.launches, sum.launches);
  policy_mutex_.Unlock();
  return true;
}

void HardwareSource::BeginStep(uint64_t step, uint64_t now_ns, bool may_arm) {
  const uint64_t step_ns = now_ns - step_began_ns_;
  step_began_ns_ = now_ns;
  decision_ = {};
  if (!may_arm || step < settings_.skip || !policy_mutex_.LockFor(1'000'000'000)) return;
  decision_ = policy_->Begin(step - settings_.skip);
  policy_mutex_.Unlock();
  if (decision_.action == Action::kNone) {
    Sample(step, step_ns);
    return;
  }
  const arming::Policy* policy = policy_.get();
  armed_ = Arm(step);
  if (armed_ || !policy_mutex_.LockFor(1'000'000'000)) return;
  if (policy == policy_.get()) policy_->Cancel();
  policy_mutex_.Unlock();
}

// A step in which nothing else is collected.
void HardwareSource::Sample(uint64_t step, uint64_t step_ns) {
  CUcontext current = nullptr;
  if (pm_ == nullptr || api_.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current != context_) return;
  pm_->BeforeStep(step, step_ns);
  pm_running_ = pm_->running();
}

// Sets up what was decided for `step`; false when it stays unarmed.
bool HardwareSource::Arm(uint64_t step) {
  CUcontext current = nullptr;
  if (api_.cuCtxGetCurrent == nullptr || api_.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current != context_) {
    // Another device's turn; this step stays unarmed.
    return false;
  }
  if (decision_.action == Action::kTimes) {
    if (times_ == nullptr) return false;
    if (int result = times_->Begin(); result != CUPTI_SUCCESS) {
      ReportResult("cuptiActivityEnable", result);
      LoseTimes();
      return false;
    }
    times_log_.Open(LaunchLog::Mode::kTiming, nullptr, contexts_[0].load()->expected_launches());
  } else {
    if (counters() == nullptr || !backoff_.Due(step)) return false;
    if (!FollowMode()) return false;
    int result = CUPTI_SUCCESS;
    ForEachContext([&](CountedContext& one) {
      if (result != CUPTI_SUCCESS || one.backend() == nullptr || one.context() == nullptr) return;
      ContextScope scope(api_, one.context());
      if (!scope.ok()) return;
      result = one.Start(mode_.mode, decision_.group);
    });
    if (result != CUPTI_SUCCESS) {
      ForEachContext([this](CountedContext& one) {
        if (!one.started()) return;
        ContextScope scope(api_, one.context());
        scope.ok() ? one.Abandon() : one.Lose();
      });
      if (result == CUPTI_ERROR_HARDWARE_BUSY) {
        CountersBusy(("starting the " + collector_).c_str(), step);
      } else {
        ReportResult(("starting the " + collector_).c_str(), result);
        LoseCounters();
      }
      return false;
    }
    backoff_.Succeeded();
  }
  logging_.store(true, std::memory_order_relaxed);
  return true;
}

// --- Trouble.

void HardwareSource::Report(ConditionId id, std::string_view detail) {
  const Condition& condition = GetCondition(id);
  std::string text(condition.message);
  if (!detail.empty()) {
    text += ": ";
    text += detail;
  }
  text += LossText(condition.loss);
  recorder_.ReportDiagnostic(Severity::kWarning, condition.id, text, condition.remedy);
}

void HardwareSource::ReportResult(const char* call, int result) {
  Report(ConditionOfCuptiResult(result), std::string(call) + " returned " + std::to_string(result));
}

// DCGM or another profiler has them; it may let go. Tried again later, and said once.
void HardwareSource::CountersBusy(const char* call, uint64_t step) {
  backoff_.Failed(step);
  if (backoff_.given_up()) {
    recorder_.ReportDiagnostic(Severity::kWarning, "counters-busy-for-good",
                               "the performance counters were never free; FLOP and bytes are not measured",
                               GetCondition(ConditionId::kBusy).remedy);
    LoseCounters();
    return;
  }
  if (std::exchange(busy_reported_, true)) return;
  const Condition& condition = GetCondition(ConditionId::kBusy);
  recorder_.ReportDiagnostic(Severity::kWarning, condition.id,
                             std::string(condition.message) + ": " + call + " returned " +
                                 std::to_string(CUPTI_ERROR_HARDWARE_BUSY) +
                                 "; FLOP and bytes are measured when it lets go",
                             condition.remedy);
}

void HardwareSource::RetryCounters(uint64_t step) {
  const uint64_t before = backoff_.next();
  OpenCounters(step);
  adopted_ = 1;  // the others are opened anew
  if (counters() == nullptr) {
    // Another reason than before was reported, and does not go away.
    if (backoff_.next() == before) backoff_ = {};
    return;
  }
  NewPolicy();
  ReportFacts();
  StartWatchdog();
}

// The other half goes on. A policy that waits for what will never come would keep arming steps, so it is made anew.
void HardwareSource::LoseCounters() {
  ForEachContext([](CountedContext& one) { one.Lose(); });
  NewPolicy();
  if (times_ == nullptr) TurnOff();
}

void HardwareSource::LoseTimes() {
  const bool still_open = times_ != nullptr && times_->still_open();
  times_ = nullptr;
  if (still_open) {  // the two exclude each other
    ForEachContext([](CountedContext& one) { one.Lose(); });
    backoff_ = {};
  }
  if (counters() == nullptr && !backoff_.waiting()) {
    TurnOff();
    return;
  }
  NewPolicy();
}

void HardwareSource::TurnOff() {
  state_.store(State::kOff, std::memory_order_release);
  // The subscription stays: giving it up would let another tool finalise CUPTI under the program. The callback does
  // nothing from here on.
  g_source.store(nullptr, std::memory_order_release);
}

void HardwareSource::Stop() noexcept {
  if (state_.load() == State::kRunning && boundary_.TryLock()) {
    std::vector<LaunchLog::Entry> entries;
    times_log_.Close(&entries);
    ForEachContext([&](CountedContext& one) { one.log().Close(&entries); });
    // A running session is left alone: at this point of a process's life the driver may be gone.
    boundary_.Unlock();
  }
  TurnOff();
}

void* HardwareSource::Watch(void* self) {
  auto* source = static_cast<HardwareSource*>(self);
  while (source->state_.load(std::memory_order_acquire) != State::kOff) {
    timespec second = {1, 0};
    nanosleep(&second, nullptr);
    if (!source->policy_mutex_.TryLock()) continue;
    if (source->policy_ != nullptr &&
        source->policy_->CheckStall(static_cast<uint64_t>(MonotonicNs()), LaunchLog::progress())) {
      source->stalled_.store(true);
      // Now: if the step never ends, nobody will say it later.
      source->Report(ConditionId::kStalled, {});
    }
    source->policy_mutex_.Unlock();
  }
  return nullptr;
}

}  // namespace

bool HardwareMayExist() noexcept {
  if (access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0) return true;
  return dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD) != nullptr;
}

Source* MakeHardwareSource(const Settings& settings, Recorder& recorder) noexcept {
  if (settings.mode == "none" || !HardwareMayExist()) return nullptr;
  return new (std::nothrow) HardwareSource(settings, recorder);
}

}  // namespace rfinject
