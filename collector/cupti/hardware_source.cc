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
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <unordered_map>
#include <vector>

#include "collector/arming/policy.h"
#include "collector/cupti/api.h"
#include "collector/cupti/backend_choice.h"
#include "collector/cupti/counter_backend.h"
#include "collector/cupti/kernel_times.h"
#include "collector/cupti/launch_keys.h"
#include "collector/cupti/launch_log.h"
#include "collector/sync.h"
#include "proto/wire/conditions.h"

namespace rfinject {
namespace {

using arming::Action;
using arming::Decision;
using arming::GroupRole;
using cupti::Api;
using cupti::CounterGroup;
using cupti::GroupKind;
using cupti::LaunchCall;
using cupti::LaunchKeys;
using cupti::LaunchLog;

constexpr uint32_t kLaunchCbids[] = {
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch,
    CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz,
};

// Copies and memory sets, by what torch and the runtime call. They are no ranges and have no counters, only times.
constexpr uint32_t kTransferCbids[] = {
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoD_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpy2D_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpy2DUnaligned_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpy2DAsync_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpy,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyPeerAsync,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2_ptds,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2_ptds,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoD_v2_ptds,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpy_ptds,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD8_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD16_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD32_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD16Async,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD2D8Async,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD16Async_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async_ptsz,
};

constexpr uint64_t kMinRanges = 256;
constexpr size_t kMaxRanges = 65536;  // a step with more launches is not counted

class HardwareSource;
// What the callback and the fork handler reach; cleared when the source stops.
std::atomic<HardwareSource*> g_source{nullptr};

// A value that a metric of 64 bits can hold.
uint64_t ToInteger(double value) {
  return !(value > 0)    ? 0
         : value >= 9e18 ? uint64_t{9'000'000'000'000'000'000u}
                         : static_cast<uint64_t>(std::llround(value));
}

std::string_view UnitOf(std::string_view name) {
  for (const cupti::BaseMetric& metric : cupti::kBaseMetrics) {
    if (metric.name != name) continue;
    if (metric.quantity == cupti::BaseQuantity::kTime) return "ns";
    if (metric.quantity == cupti::BaseQuantity::kCycles) return "cycle";
    return "byte";
  }
  if (name.find("per_second") != std::string_view::npos) return "Hz";
  return "1";
}

class HardwareSource : public Source {
 public:
  HardwareSource(const Settings& settings, Recorder& recorder) : settings_(settings), recorder_(recorder) {}

  void OnStepEnd(uint64_t step) noexcept override;
  void Stop() noexcept override;

  void OnLaunch(CUpti_CallbackId cbid, const CUpti_CallbackData& data) noexcept;
  void OnContextDestroyed(CUcontext context) noexcept;
  void OnForkedChild() noexcept;

 private:
  enum class State : uint8_t { kWaiting, kRunning, kOff };

  // --- Start, once.
  void Start();
  bool Load();
  bool Subscribe();
  void OpenCounters();
  void DescribeMetrics();
  void ReportFacts();

  // --- Between steps.
  void FinishStep(uint64_t step, uint64_t now_ns);
  bool ReadCounters();
  bool ReadTimes();
  void BeginStep(uint64_t step, uint64_t now_ns);
  void Emit(uint32_t key, const double* row);
  void AddSample(uint32_t key, uint32_t metric, uint64_t value);
  void FlushSamples();

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

  std::unique_ptr<cupti::CounterBackend> counters_;
  cupti::KernelTimes* times_ = nullptr;  // never destroyed
  std::unique_ptr<arming::Policy> policy_;
  LaunchKeys keys_;
  LaunchLog log_;

  Decision decision_;  // of the step that runs
  std::atomic<bool> armed_{false};
  uint64_t step_began_ns_ = 0;
  size_t max_ranges_ = 0;
  size_t last_launches_ = 0;
  size_t empty_windows_ = 0;

  // Metrics of the plan: what a column of a group means.
  struct Column {
    uint32_t metric = 0;  // recorder's id; 0: folded into another
    bool dram = false;
    bool sparse = false;
    int flop_metric = -1;  // index into flop_metrics_
  };
  struct FlopMetricState {
    Precision precision;
    uint32_t flop;
  };
  std::vector<std::vector<Column>> columns_;  // by group
  std::vector<FlopMetricState> flop_metrics_;
  std::vector<std::vector<int>> flop_metrics_of_;                // by precision
  std::unordered_map<uint32_t, std::vector<double>> last_flop_;  // by key, by flop metric; negative: not known

  LaunchRecord pending_;
  Mutex policy_mutex_;  // the watchdog reads what the step thread writes
};

// --- Callbacks. Nothing below may throw, wait without bound or call CUDA.

void CUPTIAPI OnCupti(void*, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* data) {
  HardwareSource* source = g_source.load(std::memory_order_acquire);
  if (source == nullptr || data == nullptr) return;
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API) {
    source->OnLaunch(cbid, *static_cast<const CUpti_CallbackData*>(data));
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
  bool graph = false, transfer = false;
  switch (cbid) {
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz:
    // The cooperative launches' parameters begin like these.
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz: {
      const auto& launch = *static_cast<const cuLaunchKernel_params*>(data.functionParams);
      call.function = launch.f;
      call.grid[0] = launch.gridDimX;
      call.grid[1] = launch.gridDimY;
      call.grid[2] = launch.gridDimZ;
      call.block[0] = launch.blockDimX;
      call.block[1] = launch.blockDimY;
      call.block[2] = launch.blockDimZ;
      call.dynamic_shared_bytes = launch.sharedMemBytes;
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz: {
      const auto& launch = *static_cast<const cuLaunchKernelEx_params*>(data.functionParams);
      if (launch.config == nullptr) return;
      call.function = launch.f;
      call.grid[0] = launch.config->gridDimX;
      call.grid[1] = launch.config->gridDimY;
      call.grid[2] = launch.config->gridDimZ;
      call.block[0] = launch.config->blockDimX;
      call.block[1] = launch.config->blockDimY;
      call.block[2] = launch.config->blockDimZ;
      call.dynamic_shared_bytes = launch.config->sharedMemBytes;
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch:
    case CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz:
      call.function = static_cast<const cuGraphLaunch_params*>(data.functionParams)->hGraph;
      graph = true;
      break;
    default:
      // All others that are enabled are copies and memory sets.
      call.function = reinterpret_cast<const void*>(static_cast<uintptr_t>(cbid));
      transfer = true;
  }
  call.device = static_cast<uint32_t>(device_);
  call.site = CurrentSite();
  // A copy inside a layer is the layer's; one outside belongs to the data's way to and from the device.
  if (transfer && call.site.phase == Phase::kOther) call.site.phase = Phase::kData;
  LaunchRecord record;
  const char* name = graph ? "(CUDA graph)" : transfer ? data.functionName : data.symbolName;
  const uint32_t key = keys_.Find(call, name, recorder_, &record.identity);
  if (key != LaunchKeys::kNoKey) recorder_.Record(record);

  const LaunchLog::Mode mode = log_.mode();
  if (mode == LaunchLog::Mode::kOff || data.context != log_.context()) return;
  if (transfer && mode == LaunchLog::Mode::kCounting) return;
  if (graph) {
    graphs_seen_.store(true, std::memory_order_relaxed);
    if (mode == LaunchLog::Mode::kCounting) log_.Spoil();
    return;
  }
  log_.Enter(key, data.correlationId);
}

void HardwareSource::OnContextDestroyed(CUcontext context) noexcept {
  if (context != context_) return;
  context_gone_.store(true, std::memory_order_release);
  std::vector<LaunchLog::Entry> entries;
  log_.Close(&entries);
  // Only here, and only if no step is being ended at this moment, may a running session still be closed in order.
  if (armed_ && boundary_.TryLock()) {
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
    DescribeMetrics();
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
  g_source.store(this, std::memory_order_release);
  pthread_atfork(nullptr, nullptr, &AfterForkInChild);
  for (uint32_t cbid : kLaunchCbids) {
    result = api_.cuptiEnableCallback(1, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API, cbid);
    // An older CUPTI does not know the newest launch functions; nor can a program call them there.
    if (result != CUPTI_SUCCESS && cbid == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel) {
      ReportResult("cuptiEnableCallback", result);
      TurnOff();
      return false;
    }
  }
  for (uint32_t cbid : kTransferCbids) {
    api_.cuptiEnableCallback(1, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API, cbid);  // without one there are fewer rows
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

// Which counters, if any, and why not: the one place that decides the mode.
void HardwareSource::OpenCounters() {
  const std::string& mode = settings_.mode;
  if (mode == "times") return;
  if (mode == "user" || mode == "pm") {
    recorder_.ReportDiagnostic(Severity::kWarning, "mode-unavailable",
                               "RFINJECT_MODE=" + mode + " is not there yet; counters are taken kernel by kernel",
                               "RFINJECT_MODE=times takes none");
  }
  const char* world = getenv("WORLD_SIZE");
  if (mode != "range" && world != nullptr && atoi(world) > 1) {
    Report(ConditionId::kSeveralRanks, std::string("WORLD_SIZE=") + world);
    return;
  }
  if (mode != "range" && getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE") != nullptr) {
    Report(ConditionId::kMps, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE is set");
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
  collector_ = cupti::BackendName(choice.kind);
  if (choice.reason[0] != '\0') {
    recorder_.ReportDiagnostic(Severity::kInfo, "counter-backend", collector_ + ": " + choice.reason);
  }
  for (const auto& [name, reason] : counters_->plan().rejected) {
    recorder_.ReportDiagnostic(Severity::kWarning, "metric-rejected: " + name, name + ": " + reason);
  }
}

void HardwareSource::DescribeMetrics() {
  const cupti::ChipMetrics& metrics = counters_->metrics();
  std::unordered_map<std::string, int> flop_index;
  flop_metrics_of_.resize(kPrecisionCount);
  for (const auto* list : {&metrics.scalar, &metrics.tensor}) {
    for (const cupti::FlopMetric& metric : *list) {
      flop_index[metric.name] = static_cast<int>(flop_metrics_.size());
      flop_metrics_of_[static_cast<size_t>(metric.precision)].push_back(static_cast<int>(flop_metrics_.size()));
      flop_metrics_.push_back({metric.precision, metric.flop});
    }
  }
  for (const CounterGroup& group : counters_->groups()) {
    std::vector<Column> columns;
    for (const std::string& name : group.metrics) {
      Column column;
      auto base = std::find_if(cupti::kBaseMetrics.begin(), cupti::kBaseMetrics.end(),
                               [&](const cupti::BaseMetric& metric) { return metric.name == name; });
      column.dram = base != cupti::kBaseMetrics.end() && (base->quantity == cupti::BaseQuantity::kDramRead ||
                                                          base->quantity == cupti::BaseQuantity::kDramWrite);
      column.sparse = std::any_of(metrics.sparse.begin(), metrics.sparse.end(),
                                  [&](const cupti::FlopMetric& metric) { return metric.name == name; });
      if (auto at = flop_index.find(name); at != flop_index.end()) column.flop_metric = at->second;
      // Bytes and FLOP are kept by what they mean; everything else under CUPTI's name.
      if (!column.dram && column.flop_metric < 0) column.metric = recorder_.DefineMetric(name, UnitOf(name), 1);
      columns.push_back(column);
    }
    columns_.push_back(std::move(columns));
  }
}

void HardwareSource::ReportFacts() {
  RunFacts facts;
  facts.source = SourceKind::kMeasured;
  facts.collector = collector_;
  facts.collector_version = cupti::FeatureNames(api_.features);
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
  if (armed_) {
    armed_ = false;
    if (decision.action == Action::kCounters) recorder_.MarkArmed(decision.group + 1);
    valid = decision.action == Action::kCounters ? ReadCounters() : ReadTimes();
    FlushSamples();
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
  last_launches_ = std::max(entries.size(), ranges + dropped);
  if (graphs_seen_.load(std::memory_order_relaxed)) {
    Report(ConditionId::kGraphs, {});
    LoseCounters();
    return false;
  }
  if (!whole || dropped != 0 || ranges != entries.size()) {
    recorder_.CountDrop("armed steps whose ranges did not match their launches");
    // Too few ranges are mended by the next step's size.
    if (dropped == 0) {
      Report(ConditionId::kMismatch,
             std::to_string(ranges) + " ranges, " + std::to_string(entries.size()) + " launches");
    }
    return false;
  }
  const CounterGroup& group = counters_->groups()[decision_.group];
  struct Sum {
    double dram = 0;
    uint32_t launches = 0;
  };
  std::unordered_map<uint32_t, Sum> sums;
  const std::vector<Column>& columns = columns_[decision_.group];
  for (size_t range = 0; range < ranges; ++range) {
    const uint32_t key = entries[range].key;
    if (key == LaunchKeys::kNoKey) continue;
    const double* row = values.data() + range * group.metrics.size();
    Emit(key, row);
    Sum& sum = sums[key];
    ++sum.launches;
    for (size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].dram) sum.dram += row[i];
      if (columns[i].sparse && row[i] > 0) {
        recorder_.ReportDiagnostic(Severity::kWarning, "sparse-tensor",
                                   "sparse tensor instructions ran; their FLOP are not in the dense counters");
      }
    }
  }
  const bool has_bytes =
      std::any_of(columns.begin(), columns.end(), [](const Column& column) { return column.dram; });
  if (!policy_mutex_.LockFor(1'000'000'000)) return false;
  for (const auto& [key, sum] : sums) {
    if (has_bytes) policy_->OnBytes(key, sum.dram / sum.launches);
    policy_->OnCounted(key, decision_.group);
  }
  policy_mutex_.Unlock();
  return true;
}

// One launch's values, as samples of its key.
void HardwareSource::Emit(uint32_t key, const double* row) {
  const std::vector<Column>& columns = columns_[decision_.group];
  double dram = 0;
  bool has_dram = false;
  uint32_t touched = 0;  // precisions, as bits
  std::vector<double>& last = last_flop_[key];
  if (last.empty()) last.assign(flop_metrics_.size(), -1);
  for (size_t i = 0; i < columns.size(); ++i) {
    const Column& column = columns[i];
    if (column.dram) {
      dram += row[i];
      has_dram = true;
    } else if (column.flop_metric >= 0) {
      const FlopMetricState& metric = flop_metrics_[static_cast<size_t>(column.flop_metric)];
      last[static_cast<size_t>(column.flop_metric)] = row[i] * metric.flop;
      touched |= 1u << static_cast<uint32_t>(metric.precision);
    } else if (column.metric != 0) {
      AddSample(key, column.metric, ToInteger(row[i]));
    }
  }
  if (has_dram) AddSample(key, kDramBytes, ToInteger(dram));
  // A precision's FLOP may be counted by metrics of several groups. They do not vary between launches of a key, so
  // the others' last values stand; until all are known the precision has no sample.
  for (uint32_t precision = 0; precision < kPrecisionCount; ++precision) {
    if ((touched >> precision & 1) == 0) continue;
    double sum = 0;
    bool known = true;
    for (int index : flop_metrics_of_[precision]) {
      known = known && last[static_cast<size_t>(index)] >= 0;
      sum += last[static_cast<size_t>(index)];
    }
    if (known) AddSample(key, kFlopFirst + precision, ToInteger(sum));
  }
  FlushSamples();
}

void HardwareSource::AddSample(uint32_t key, uint32_t metric, uint64_t value) {
  if (pending_.sample_count == 0) {
    pending_ = {};
    pending_.launches = 0;  // the launch itself was recorded when it happened
    pending_.identity = keys_.Identity(key);
  }
  pending_.samples[pending_.sample_count++] = {metric, value};
  if (pending_.sample_count == kMaxSamplesPerRecord) FlushSamples();
}

void HardwareSource::FlushSamples() {
  if (pending_.sample_count != 0) recorder_.Add(pending_);
  pending_.sample_count = 0;
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
  for (const cupti::KernelTimes::Record& record : records) {
    auto at = key_of.find(record.correlation_id);
    if (at == key_of.end() || at->second == LaunchKeys::kNoKey) {
      ++strangers;
      continue;
    }
    AddSample(at->second, kTime, record.ns);
    FlushSamples();
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
  step_began_ns_ = now_ns;
  if (step < settings_.skip || !policy_mutex_.LockFor(1'000'000'000)) return;
  decision_ = policy_->Begin(step - settings_.skip);
  policy_mutex_.Unlock();
  if (decision_.action == Action::kNone) return;
  CUcontext current = nullptr;
  if (api_.cuCtxGetCurrent == nullptr || api_.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current != context_) {
    // Another device's turn; this step stays unarmed.
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
    max_ranges_ = std::clamp<size_t>(last_launches_ + last_launches_ / 4, kMinRanges, kMaxRanges);
    if (int result = counters_->Start(decision_.group, max_ranges_); result != CUPTI_SUCCESS) {
      ReportResult("starting the range profiler", result);
      LoseCounters();
      return;
    }
    log_.Open(LaunchLog::Mode::kCounting, context_, max_ranges_);
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
  text += condition.loss == Loss::kCounters ? "; FLOP and bytes are not measured"
          : condition.loss == Loss::kTimes  ? "; kernel times are not measured"
                                            : "; nothing is measured on the GPU";
  recorder_.ReportDiagnostic(Severity::kWarning, condition.id, text, condition.remedy);
}

void HardwareSource::ReportResult(const char* call, int result) {
  Report(ConditionOfCuptiResult(result), std::string(call) + " returned " + std::to_string(result));
}

// The other half goes on. A policy that waits for what will never come would keep arming steps, so it is made anew.
void HardwareSource::LoseCounters() {
  counters_.reset();
  columns_.clear();
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
