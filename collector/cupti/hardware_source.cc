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
#include <vector>

#include "collector/arming/policy.h"
#include "collector/cupti/api.h"
#include "collector/cupti/backend_choice.h"
#include "collector/cupti/counter_backend.h"
#include "collector/cupti/counter_mode.h"
#include "collector/cupti/counter_samples.h"
#include "collector/cupti/device_memory.h"
#include "collector/cupti/kernel_times.h"
#include "collector/cupti/launch_call.h"
#include "collector/cupti/launch_keys.h"
#include "collector/cupti/launch_log.h"
#include "collector/cupti/pm_sampling.h"
#include "collector/sync.h"
#include "proto/wire/conditions.h"

namespace rfinject {
namespace {

using arming::Action;
using arming::Decision;
using arming::GroupRole;
using cupti::Api;
using cupti::CallKind;
using cupti::CounterGroup;
using cupti::CounterMode;
using cupti::CounterSamples;
using cupti::GroupKind;
using cupti::LaunchCall;
using cupti::LaunchKeys;
using cupti::LaunchLog;

constexpr uint64_t kMinRanges = 256;
constexpr size_t kMaxRanges = 65536;  // a step with more launches is not counted

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
  void OnContextDestroyed(CUcontext context) noexcept;
  void OnForkedChild() noexcept;

 private:
  enum class State : uint8_t { kWaiting, kRunning, kOff };

  // --- Start, once.
  void Start();
  bool Load();
  bool Subscribe();
  void OpenCounters();
  cupti::ModeChoice ChooseMode(bool layer_ranges) const;
  bool FollowMode();
  void ReportMode();
  void ReportFacts();

  // --- Between steps.
  void FinishStep(uint64_t step, uint64_t now_ns);
  bool ReadCounters();
  bool ReadKernels(const std::vector<LaunchLog::Entry>& entries, const std::vector<double>& values);
  bool ReadLayers(const std::vector<LaunchLog::Entry>& entries, const std::vector<double>& values);
  static bool NextRange(void* self, size_t ordinal) noexcept;
  void ReportSparse(const double* row);
  bool ReadTimes();
  void BeginStep(uint64_t step, uint64_t now_ns);

  // --- Trouble.
  void Report(ConditionId id, std::string_view detail);
  void ReportResult(const char* call, int result);
  void LoseCounters();
  void LoseTimes();
  void TurnOff();
  void StartWatchdog();
  static void* Watch(void* self);

  const Settings& settings_;
  Recorder& recorder_;
  Mutex boundary_;  // steps are ended by one thread at a time
  std::atomic<State> state_{State::kWaiting};

  Api api_;
  CUcontext context_ = nullptr;
  int device_ = 0;
  std::string chip_;
  std::string collector_ = "activity";  // what the trace says it was measured with
  CUpti_SubscriberHandle subscriber_ = nullptr;
  std::atomic<bool> context_gone_{false};
  std::atomic<bool> stalled_{false};
  std::atomic<bool> graphs_seen_{false};
  std::atomic<bool> communication_seen_{false};

  std::unique_ptr<cupti::CounterBackend> counters_;
  uint32_t ranks_ = 1;
  bool mps_ = false;
  cupti::ModeChoice mode_;
  CounterMode step_mode_ = CounterMode::kNone;  // of the step that runs, if it has counters
  cupti::CounterBackend* range_backend_ = nullptr;
  std::atomic<int> range_result_{0};     // why a range could not be opened in it
  cupti::KernelTimes* times_ = nullptr;  // never destroyed
  std::unique_ptr<cupti::PmCrossCheck> pm_;
  std::atomic<bool> pm_running_{false};
  cupti::DeviceMemory* memory_ = nullptr;  // likewise
  std::unique_ptr<arming::Policy> policy_;
  LaunchKeys keys_;
  LaunchLog log_;
  CounterSamples samples_{recorder_, keys_};

  Decision decision_;  // of the step that runs
  std::atomic<bool> armed_{false};
  uint64_t step_began_ns_ = 0;
  size_t max_ranges_ = 0;
  size_t last_launches_ = 0;
  size_t last_ranges_ = 0;  // layer by layer
  size_t empty_windows_ = 0;

  Mutex policy_mutex_;  // the watchdog reads what the step thread writes
};

// Whose range a launch belongs to. A graph has one of its own: all of it is one launch.
uint64_t OwnerOf(const LaunchIdentity& identity, bool graph) {
  return uint64_t{identity.site.layer} << 16 | static_cast<uint64_t>(identity.site.phase) << 1 | (graph ? 1 : 0);
}

// --- Callbacks. Nothing below may throw, wait without bound or call CUDA.

void CUPTIAPI OnCupti(void*, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* data) {
  HardwareSource* source = g_source.load(std::memory_order_acquire);
  if (source == nullptr || data == nullptr) return;
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API) {
    const auto& call = *static_cast<const CUpti_CallbackData*>(data);
    cupti::DeviceMemory::IsCall(cbid) ? source->OnMemoryCall(cbid, call) : source->OnLaunch(cbid, call);
  } else if (domain == CUPTI_CB_DOMAIN_RESOURCE && cbid == CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING) {
    source->OnContextDestroyed(static_cast<const CUpti_ResourceData*>(data)->context);
  }
}

void HardwareSource::OnLaunch(CUpti_CallbackId cbid, const CUpti_CallbackData& data) noexcept {
  if (data.callbackSite != CUPTI_API_ENTER) {
    const auto* result = static_cast<const CUresult*>(data.functionReturnValue);
    log_.Exit(result != nullptr && *result != CUDA_SUCCESS);
    return;
  }
  LaunchCall call;
  CallKind kind;
  const char* name = nullptr;
  if (!cupti::DecodeLaunch(cbid, data, &call, &kind, &name)) return;
  const bool graph = kind == CallKind::kGraph, transfer = kind == CallKind::kTransfer;
  call.device = static_cast<uint32_t>(device_);
  call.site = CurrentSite();
  // A copy inside a layer is the layer's; one outside belongs to the data's way to and from the device.
  if (transfer && call.site.phase == Phase::kOther) call.site.phase = Phase::kData;
  LaunchRecord record;
  const uint32_t key = keys_.Find(call, name, recorder_, &record.identity);
  if (key != LaunchKeys::kNoKey) recorder_.Record(record);

  if (graph) graphs_seen_.store(true, std::memory_order_relaxed);
  if (record.identity.site.phase == Phase::kCommunication) communication_seen_.store(true, std::memory_order_relaxed);
  const LaunchLog::Mode mode = log_.mode();
  if (mode == LaunchLog::Mode::kOff || data.context != log_.context()) return;
  if (transfer && mode != LaunchLog::Mode::kTiming) return;
  if (graph && mode == LaunchLog::Mode::kCounting) {
    log_.Spoil();  // as many ranges as it has kernels, or none
    return;
  }
  log_.Enter(key, data.correlationId, OwnerOf(record.identity, graph));
}

void HardwareSource::OnContextDestroyed(CUcontext context) noexcept {
  if (context != context_) return;
  context_gone_.store(true, std::memory_order_release);
  std::vector<LaunchLog::Entry> entries;
  log_.Close(&entries);
  // Only here, and only if no step is being ended at this moment, may a running session still be closed in order.
  if ((armed_ || pm_running_) && boundary_.TryLock()) {
    if (pm_running_.exchange(false)) pm_->Abandon();
    if (armed_ && decision_.action == Action::kCounters && counters_ != nullptr) counters_->Abandon();
    armed_ = false;
    boundary_.Unlock();
  }
}

void HardwareSource::OnForkedChild() noexcept {
  // CUDA does not work in a forked child, and neither do CUPTI's threads: nothing of it is touched any more.
  g_source.store(nullptr, std::memory_order_release);
  state_.store(State::kOff);
  keys_.ResetLockInForkedChild();
  log_.ResetLockInForkedChild();
  if (memory_ != nullptr) memory_->ResetLockInForkedChild();
  boundary_.ResetInForkedChild();
  policy_mutex_.ResetInForkedChild();
}

void AfterForkInChild() {
  if (HardwareSource* source = g_source.load()) source->OnForkedChild();
}

// --- Start.

void HardwareSource::Start() {
  // Programs that never touch the GPU stay here; a look costs a microsecond.
  if (!Load()) return;
  if (!Subscribe()) return;
  std::vector<GroupRole> roles;
  OpenCounters();
  if (counters_ != nullptr) {
    for (const CounterGroup& group : counters_->groups()) {
      roles.push_back(group.kind == GroupKind::kHardware ? GroupRole::kHardware
                      : group.kind == GroupKind::kSass   ? GroupRole::kOnce
                                                         : GroupRole::kGuard);
    }
    samples_.Describe(*counters_);
  }
  // The view that serialises nothing: beside the counters, or instead of them. Not where one mode was asked for, and
  // not beside the legacy profiler: a process must not mix the two families of functions (CUPTI user guide, 2.16).
  const bool range_family =
      counters_ == nullptr || collector_ == cupti::BackendName(cupti::BackendKind::kRangeProfiler);
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
  arming::Options options;
  options.overhead = settings_.overhead_percent / 100;
  options.has_times = times_ != nullptr;
  options.window_steps = settings_.steps;
  if (settings_.skip > 0) options.warm_up_steps = 2;
  policy_ = std::make_unique<arming::Policy>(options, roles);
  ReportFacts();
  if (counters_ != nullptr) StartWatchdog();
  state_.store(State::kRunning, std::memory_order_release);
}

void HardwareSource::StartWatchdog() {
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

// Which counters, if any, and why not.
void HardwareSource::OpenCounters() {
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
  counters_ = cupti::MakeBackend(choice.kind, api_, context_, device_, cupti::SplitMetrics(settings_.metrics), &chip_,
                                 &result);
  if (counters_ == nullptr) {
    ReportResult(("opening the " + std::string(cupti::BackendName(choice.kind))).c_str(), result);
    return;
  }
  mode_ = ChooseMode(counters_->has_user_ranges());
  if (mode_.mode == CounterMode::kNone) {
    Report(mode_.condition, mode_.why);
    counters_.reset();
    return;
  }
  ReportMode();
  collector_ = cupti::BackendName(choice.kind);
  if (choice.reason[0] != '\0') {
    recorder_.ReportDiagnostic(Severity::kInfo, "counter-backend", collector_ + ": " + choice.reason);
  }
  for (const auto& [name, reason] : counters_->plan().rejected) {
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
  cupti::ModeChoice choice = ChooseMode(counters_->has_user_ranges());
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
  if (counters_ != nullptr) {
    facts.collector_version += "; counters " + std::string(cupti::CounterModeName(mode_.mode)) + ": " + mode_.why;
  }
  facts.cupti_version = cupti::VersionName(api_.version);
  facts.cupti_path = api_.path;
  int driver = 0;
  if (api_.cuDriverGetVersion != nullptr && api_.cuDriverGetVersion(&driver) == CUDA_SUCCESS) {
    facts.driver_version = std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10);
  }
  DeviceFacts device;
  device.index = static_cast<uint32_t>(device_);
  device.chip = chip_;
  char name[256] = {};
  if (api_.cuDeviceGetName != nullptr && api_.cuDeviceGetName(name, sizeof name - 1, device_) == CUDA_SUCCESS) {
    device.name = name;
  }
  auto attribute = [&](CUdevice_attribute which) -> uint32_t {
    int value = 0;
    if (api_.cuDeviceGetAttribute == nullptr || api_.cuDeviceGetAttribute(&value, which, device_) != CUDA_SUCCESS ||
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
  if (api_.cuDeviceTotalMem != nullptr && api_.cuDeviceTotalMem(&memory, device_) == CUDA_SUCCESS) {
    device.memory_bytes = memory;
  }
  facts.devices.push_back(std::move(device));
  recorder_.UpdateFacts(facts);
}

// --- Between steps.

void HardwareSource::OnStepEnd(uint64_t step) noexcept try {
  if (state_.load(std::memory_order_acquire) == State::kOff) return;
  if (!boundary_.TryLock()) return;  // another thread ends a step: this one belongs to it
  struct Unlock {
    Mutex& mutex;
    ~Unlock() { mutex.Unlock(); }
  } unlock{boundary_};
  if (state_.load(std::memory_order_relaxed) == State::kWaiting) {
    Start();
    step_began_ns_ = static_cast<uint64_t>(MonotonicNs());
    return;
  }
  if (context_gone_.load(std::memory_order_acquire)) {
    Report(ConditionId::kContextGone, {});
    TurnOff();
    return;
  }
  if (cupti::DeviceMemory::Reading memory; memory_->OnStepEnd(MonotonicNs(), &memory)) {
    recorder_.NoteMemory(memory.in_use, memory.peak);
  }
  FinishStep(step, static_cast<uint64_t>(MonotonicNs()));
  if (state_.load(std::memory_order_relaxed) != State::kRunning) return;
  BeginStep(step + 1, static_cast<uint64_t>(MonotonicNs()));
} catch (...) {
  // Only memory can run out here.
  recorder_.CountDrop("hardware source: out of memory");
  TurnOff();
}

void HardwareSource::FinishStep(uint64_t step, uint64_t) {
  bool valid = true;
  Decision decision = armed_ ? decision_ : Decision{};
  const arming::Policy* policy = policy_.get();
  if (pm_running_.exchange(false)) pm_->AfterStep(step);
  if (armed_) {
    armed_ = false;
    if (decision.action == Action::kCounters) recorder_.MarkArmed(decision.group + 1);
    valid = decision.action == Action::kCounters ? ReadCounters() : ReadTimes();
    samples_.Flush();
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
  std::vector<LaunchLog::Entry> entries;
  const bool whole = log_.Close(&entries);
  if (counters_ == nullptr) return false;
  if (stalled_.load()) {
    Report(ConditionId::kStalled, {});
    counters_->Abandon();
    LoseCounters();
    return false;
  }
  std::vector<double> values;
  size_t ranges = 0, dropped = 0;
  if (int result = counters_->Stop(&values, &ranges, &dropped); result != CUPTI_SUCCESS) {
    ReportResult("reading the counters of a step", result);
    LoseCounters();
    return false;
  }
  if (step_mode_ == CounterMode::kLayers) {
    last_ranges_ = log_.ranges();
    last_launches_ = entries.size();
    if (int why = range_result_.load(); why != CUPTI_SUCCESS) {
      ReportResult("opening a range", why);
      LoseCounters();
      return false;
    }
  } else {
    last_launches_ = std::max(entries.size(), ranges + dropped);
    if (graphs_seen_.load(std::memory_order_relaxed)) {
      if (settings_.mode == "range") {
        Report(ConditionId::kGraphs, {});
        LoseCounters();
      }
      return false;  // the next step goes layer by layer
    }
  }
  const size_t wanted = step_mode_ == CounterMode::kLayers ? log_.ranges() : entries.size();
  if (!whole || dropped != 0 || ranges != wanted) {
    recorder_.CountDrop("armed steps whose ranges did not match their launches");
    // Too few ranges are mended by the next step's size.
    if (dropped == 0) {
      Report(ConditionId::kMismatch, std::to_string(ranges) + " ranges, " + std::to_string(wanted) + " expected");
    }
    return false;
  }
  return step_mode_ == CounterMode::kLayers ? ReadLayers(entries, values) : ReadKernels(entries, values);
}

bool HardwareSource::ReadKernels(const std::vector<LaunchLog::Entry>& entries, const std::vector<double>& values) {
  const size_t width = counters_->groups()[decision_.group].metrics.size();
  struct Sum {
    double dram = 0;
    uint32_t launches = 0;
  };
  std::unordered_map<uint32_t, Sum> sums;
  for (size_t range = 0; range < entries.size(); ++range) {
    const uint32_t key = entries[range].key;
    if (key == LaunchKeys::kNoKey) continue;
    const double* row = values.data() + range * width;
    samples_.AddLaunch(decision_.group, key, row);
    Sum& sum = sums[key];
    ++sum.launches;
    sum.dram += samples_.DramBytes(decision_.group, row);
    ReportSparse(row);
  }
  const bool has_bytes = samples_.HasDramBytes(decision_.group);
  if (!policy_mutex_.LockFor(1'000'000'000)) return false;
  for (const auto& [key, sum] : sums) {
    if (has_bytes) policy_->OnBytes(key, sum.dram / sum.launches);
    policy_->OnCounted(key, decision_.group);
  }
  policy_mutex_.Unlock();
  return true;
}

// All ranges of one layer and phase are added up first: how often the threads of the program took turns differs from
// step to step, what a layer does in a step does not.
bool HardwareSource::ReadLayers(const std::vector<LaunchLog::Entry>& entries, const std::vector<double>& values) {
  const size_t width = counters_->groups()[decision_.group].metrics.size();
  struct Layer {
    std::vector<uint32_t> keys;  // of its launches
    std::vector<double> row;
    bool whole = true;
  };
  std::unordered_map<uint64_t, Layer> layers;
  std::vector<uint64_t> owners(log_.ranges(), UINT64_MAX);
  for (const LaunchLog::Entry& entry : entries) {
    owners[entry.range] = entry.owner;
    Layer& layer = layers[entry.owner];
    if (entry.key == LaunchKeys::kNoKey) layer.whole = false;  // a launch that nobody can have a share for
    layer.keys.push_back(entry.key);
  }
  for (size_t range = 0; range < owners.size(); ++range) {
    auto at = layers.find(owners[range]);
    if (at == layers.end()) continue;  // its launches all failed
    const double* row = values.data() + range * width;
    std::vector<double>& sum = at->second.row;
    sum.resize(width, 0);
    for (size_t i = 0; i < width; ++i) sum[i] += row[i];
    ReportSparse(row);
  }
  for (auto& [owner, layer] : layers) {
    std::sort(layer.keys.begin(), layer.keys.end());
    if (layer.whole) samples_.AddRange(decision_.group, layer.keys, layer.row.data());
  }
  const bool has_bytes = samples_.HasDramBytes(decision_.group);
  if (!policy_mutex_.LockFor(1'000'000'000)) return false;
  for (auto& [owner, layer] : layers) {
    if (!layer.whole) continue;
    const double bytes =
        samples_.DramBytes(decision_.group, layer.row.data()) / static_cast<double>(layer.keys.size());
    layer.keys.erase(std::unique(layer.keys.begin(), layer.keys.end()), layer.keys.end());
    for (uint32_t key : layer.keys) {
      if (has_bytes) policy_->OnBytes(key, bytes);
      policy_->OnCounted(key, decision_.group);
    }
  }
  policy_mutex_.Unlock();
  return true;
}

bool HardwareSource::NextRange(void* self, size_t ordinal) noexcept {
  auto* source = static_cast<HardwareSource*>(self);
  const int result = source->range_backend_->PushRange(ordinal);
  int none = CUPTI_SUCCESS;
  if (result != CUPTI_SUCCESS) source->range_result_.compare_exchange_strong(none, result);
  return result == CUPTI_SUCCESS;
}

void HardwareSource::ReportSparse(const double* row) {
  if (!samples_.IsSparse(decision_.group, row)) return;
  recorder_.ReportDiagnostic(Severity::kWarning, "sparse-tensor",
                             "sparse tensor instructions ran; their FLOP are not in the dense counters");
}

bool HardwareSource::ReadTimes() {
  std::vector<LaunchLog::Entry> entries;
  log_.Close(&entries);
  if (times_ == nullptr) return false;
  // The step's kernels must be finished, or the records of running ones would be lost. Once in many steps.
  if (api_.cuCtxSynchronize != nullptr) api_.cuCtxSynchronize();
  std::vector<cupti::KernelTimes::Record> records;
  uint64_t invalid = 0, dropped = 0;
  if (int result = times_->End(&records, &invalid, &dropped); result != CUPTI_SUCCESS) {
    ReportResult("reading the times of a step", result);
    LoseTimes();
    return false;
  }
  last_launches_ = std::max(last_launches_, entries.size());
  if (invalid != 0) recorder_.CountDrop("kernel records without a time", invalid);
  if (dropped != 0) recorder_.CountDrop("kernel records that CUPTI dropped", dropped);
  if (!entries.empty() && records.empty()) {
    // Once can be an accident; again means that somebody else gets our buffers.
    if (++empty_windows_ >= 2) {
      Report(ConditionId::kActivityTaken, std::to_string(entries.size()) + " launches, no record");
      LoseTimes();
    }
    return false;
  }
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
    if ((entry.owner & 1) != 0) graph_launches.insert(entry.correlation_id);
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
    samples_.AddTime(at->second, record.ns);
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

void HardwareSource::BeginStep(uint64_t step, uint64_t now_ns) {
  const uint64_t step_ns = now_ns - step_began_ns_;
  step_began_ns_ = now_ns;
  if (step < settings_.skip || !policy_mutex_.LockFor(1'000'000'000)) return;
  decision_ = policy_->Begin(step - settings_.skip);
  policy_mutex_.Unlock();
  if (decision_.action == Action::kNone && pm_ == nullptr) return;
  CUcontext current = nullptr;
  if (api_.cuCtxGetCurrent == nullptr || api_.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current != context_) {
    // Another device's turn; this step stays unarmed.
    return;
  }
  if (decision_.action == Action::kNone) {
    pm_->BeforeStep(step, step_ns);
    pm_running_ = pm_->running();
    return;
  }
  if (decision_.action == Action::kTimes) {
    if (times_ == nullptr) return;
    if (int result = times_->Begin(); result != CUPTI_SUCCESS) {
      ReportResult("cuptiActivityEnable", result);
      LoseTimes();
      return;
    }
    log_.Open(LaunchLog::Mode::kTiming, context_, last_launches_ + last_launches_ / 4);
  } else {
    if (counters_ == nullptr) return;
    if (!FollowMode()) return;
    step_mode_ = mode_.mode;
    const bool layers = step_mode_ == CounterMode::kLayers;
    // There are never more ranges than launches.
    const size_t expected = layers && last_ranges_ != 0 ? last_ranges_ : last_launches_;
    max_ranges_ = std::clamp<size_t>(expected + expected / 4, kMinRanges, kMaxRanges);
    range_result_.store(CUPTI_SUCCESS);
    range_backend_ = counters_.get();
    const int result = layers ? counters_->StartUserRanges(decision_.group, max_ranges_)
                              : counters_->Start(decision_.group, max_ranges_);
    if (result != CUPTI_SUCCESS) {
      ReportResult(("starting the " + collector_).c_str(), result);
      LoseCounters();
      return;
    }
    if (layers) {
      log_.Open(LaunchLog::Mode::kRanges, context_, last_launches_ + last_launches_ / 4, &NextRange, this);
    } else {
      log_.Open(LaunchLog::Mode::kCounting, context_, max_ranges_);
    }
  }
  armed_ = true;
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

// The other half goes on. A policy that waits for what will never come would keep arming steps, so it is made anew.
void HardwareSource::LoseCounters() {
  // Leaked: a launch that is stuck in the driver on another thread may still be in it.
  [[maybe_unused]] const cupti::CounterBackend* leaked = counters_.release();
  if (!policy_mutex_.LockFor(1'000'000'000)) return;
  arming::Options options;
  options.overhead = settings_.overhead_percent / 100;
  options.has_times = times_ != nullptr;
  policy_ = std::make_unique<arming::Policy>(options, std::vector<GroupRole>{});
  policy_mutex_.Unlock();
  if (times_ == nullptr) TurnOff();
}

void HardwareSource::LoseTimes() {
  const bool still_open = times_ != nullptr && times_->still_open();
  times_ = nullptr;
  if (still_open) counters_.reset();  // the two exclude each other
  if (counters_ == nullptr) {
    TurnOff();
    return;
  }
  std::vector<GroupRole> roles;
  for (const CounterGroup& group : counters_->groups()) {
    roles.push_back(group.kind == GroupKind::kHardware ? GroupRole::kHardware
                    : group.kind == GroupKind::kSass   ? GroupRole::kOnce
                                                       : GroupRole::kGuard);
  }
  if (!policy_mutex_.LockFor(1'000'000'000)) return;
  arming::Options options;
  options.overhead = settings_.overhead_percent / 100;
  options.has_times = false;
  policy_ = std::make_unique<arming::Policy>(options, roles);
  policy_mutex_.Unlock();
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
    log_.Close(&entries);
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
        source->policy_->CheckStall(static_cast<uint64_t>(MonotonicNs()), source->log_.progress())) {
      source->stalled_.store(true);
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
