// Our thread between windows: it opens what counts, on each device, and counts FLOP in ranges.
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "collector/cupti/condition_report.h"
#include "collector/cupti/counter_backend.h"
#include "collector/cupti/counting.h"
#include "collector/cupti/device_facts.h"
#include "collector/cupti/planner.h"

namespace rfinject::cupti {
namespace {

// What opening may cost, for the budget: the sampling session, a session of ranges.
constexpr uint64_t kOpenSamplingNs = 230'000'000, kOpenRangesNs = 230'000'000;
// A batch of ranges in which nothing that is wanted was launched for so many steps is over.
constexpr uint64_t kStepsOfBatch = 16;
// Where sessions exclude each other, a turn has so many steps at most.
constexpr uint64_t kStepsOfTurn = 512;
// A second sample of FLOP comes so many times later than the first was complete.
constexpr uint64_t kCheckFactor = 10;

}  // namespace

// --- Opening.

void Counting::Open() {
  if (settings_.mode == "times") {
    why_ = "RFINJECT_MODE=times";
    return;
  }
  // Read once: the program may change its environment while we look at it.
  if (getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE") != nullptr) {
    ReportCondition(recorder_, ConditionId::kMps, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE is set");
    return;
  }
  AdoptContexts();
}

void Counting::AdoptContexts() {
  if (settings_.mode == "times" || !backoff_.Due(step_.load())) return;
  bool new_device = false;
  while (contexts_seen_ < contexts_.size()) {
    CountedContext& one = contexts_.at(contexts_seen_);
    bool known = false;
    {
      if (!calls_.LockFor(kStepLockWaitNs)) return;
      const HeldLock held(calls_);
      for (const Device& device : devices_) {
        known = known || (device.context->device() == one.device() && device.context->context() != nullptr);
      }
    }
    // Of several contexts on a device only the first is counted: counters cannot tell them apart.
    if (!known && one.context() != nullptr) {
      // What a device can count may be asked only while no session is open.
      if (contexts_seen_ > 0) CloseSessions();
      const uint64_t before = backoff_.next();
      if (!OpenDevice(one)) return;  // not now
      if (backoff_.waiting() && backoff_.next() != before) return;
      new_device = new_device || contexts_seen_ > 0;
    }
    if (contexts_seen_++ == 0) keys_.SetCounting(collector_ == BackendName(backend_kind_));
  }
  if (!new_device) return;
  ReportFacts();
  recorder_.ReportDiagnostic(Severity::kInfo, "several-devices",
                             "the program uses several GPUs from one process; each is measured by itself");
}

void Counting::CloseSessions() {
  for (size_t i = 0; i < devices_count_; ++i) {
    Device* const device = DeviceAt(i);
    if (device == nullptr || device->context->context() == nullptr) continue;
    if (device->ranges != nullptr && device->ranges->counting()) FinishBatch(device);
    Unsafely(*device->context, [device] {
      if (device->ranges != nullptr) device->ranges->Close();
      if (device->bytes != nullptr) device->bytes->Close();
    });
  }
}

Counting::Device* Counting::DeviceAt(size_t index) {
  if (!calls_.LockFor(kStepLockWaitNs)) return nullptr;
  const HeldLock held(calls_);
  return index < devices_.size() ? &devices_[index] : nullptr;
}

// Another profiler, such as DCGM, has the counters and may let go of them. Opening is tried again later, and this is
// said once. Returns whether that is the case.
bool Counting::Busy(const char* what, int result) {
  if (result != CUPTI_ERROR_HARDWARE_BUSY) return false;
  const Condition& condition = GetCondition(ConditionId::kBusy);
  backoff_.Failed(step_.load());
  if (backoff_.given_up()) {
    recorder_.ReportDiagnostic(Severity::kWarning, "counters-busy-for-good",
                               "the performance counters were never free; FLOP and bytes are not measured",
                               condition.remedy);
    return true;
  }
  if (std::exchange(busy_reported_, true)) return true;
  recorder_.ReportDiagnostic(Severity::kWarning, condition.id,
                             std::string(condition.message) + ": " + what + " returned " + std::to_string(result) +
                                 "; FLOP and bytes are measured when it lets go",
                             condition.remedy);
  return true;
}

void Counting::Refused(const char* what, int result) {
  if (!Busy(what, result)) ReportResult(recorder_, what, result);
}

// Returns false where it must be tried again: a stream is captured, or a context is being destroyed.
bool Counting::OpenDevice(CountedContext& context) {
  Device device;
  device.context = &context;
  const auto number = static_cast<int>(context.device());
  const BackendChoice choice =
      ChooseBackend(api_.features, DeviceAttribute(api_, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, number),
                    DeviceAttribute(api_, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, number), settings_.mode);
  int sampling = CUPTI_ERROR_NOT_SUPPORTED;
  const bool opened = Unsafely(context, [&] {
    // A process must not mix the legacy profiler with the functions that came after it (CUPTI user guide, 2.16).
    if (choice.kind != BackendKind::kLegacyProfiler) {
      if (auto sampler = PmSampler::Plan(api_, number, &sampling); sampler != nullptr) {
        device.bytes = std::make_unique<ByteSampler>(std::move(sampler), context.device(), keys_, recorder_);
      }
    }
    if (sampling == CUPTI_ERROR_HARDWARE_BUSY || settings_.mode == "pm") return;
    backend_kind_ = choice.kind;
    if (choice.kind != BackendKind::kNone) device.ranges = OpenRanges(&device, device.bytes == nullptr);
  });
  if (!opened) return false;
  if (sampling == CUPTI_ERROR_HARDWARE_BUSY) {
    Busy("planning samples", sampling);
    return true;
  }
  if (backoff_.waiting() && device.ranges == nullptr) return true;
  if (choice.kind == BackendKind::kNone && device.bytes == nullptr) {
    ReportCondition(recorder_, api_.has(kLegacyProfiler) ? ConditionId::kNoPerfworks : ConditionId::kCuptiTooOld,
                    "CUPTI " + VersionName(api_.version) + ": " + choice.reason);
  }
  if (device.bytes == nullptr && choice.kind == BackendKind::kRangeProfiler && device.ranges != nullptr) {
    recorder_.ReportDiagnostic(Severity::kInfo, "pm-sampling",
                               "the device cannot be sampled over time (planning returned " +
                                   std::to_string(sampling) + "): bytes are counted in ranges around launches");
  }
  if (device.ranges != nullptr) {
    collector_ = BackendName(choice.kind);
    why_ = choice.reason;
    if (choice.reason[0] != '\0' && contexts_seen_ == 0) {
      recorder_.ReportDiagnostic(Severity::kInfo, "counter-backend", collector_ + ": " + choice.reason);
    }
  } else if (device.bytes != nullptr) {
    collector_ = "pm-sampling";
  }
  backoff_.Succeeded();
  if (!calls_.LockFor(kStepLockWaitNs)) return false;
  const HeldLock held(calls_);
  devices_.push_back(std::move(device));
  devices_count_ = devices_.size();
  return true;
}

std::unique_ptr<RangeCounter> Counting::OpenRanges(Device* device, bool bytes) {
  auto* const context = static_cast<CUcontext>(const_cast<void*>(device->context->context()));
  auto backend = backend_kind_ == BackendKind::kLegacyProfiler ? MakeLegacyProfiler(api_, context)
                                                               : MakeRangeProfiler(api_, context);
  const int result = backend->Open(static_cast<int>(device->context->device()), SplitMetrics(settings_.metrics),
                                   bytes, &device->chip);
  if (result != CUPTI_SUCCESS) {
    const std::string what = "opening the " + std::string(BackendName(backend_kind_));
    if (contexts_seen_ == 0) {
      Refused(what.c_str(), result);
    } else {
      recorder_.ReportDiagnostic(Severity::kWarning, "device-not-counted",
                                 "FLOP of device " + std::to_string(device->context->device()) +
                                     " are not measured, its times are: " + what + " returned " +
                                     std::to_string(result));
    }
    return nullptr;
  }
  for (const auto& [name, reason] : backend->plan().rejected) {
    recorder_.ReportDiagnostic(Severity::kWarning, "metric-rejected: " + name, name + ": " + reason);
  }
  return std::make_unique<RangeCounter>(*device->context, std::move(backend), keys_, tap_.graphs(), recorder_);
}

void Counting::ReportFacts() {
  RunFacts facts;
  facts.source = SourceKind::kMeasured;
  facts.process.cupti_version = VersionName(api_.version);
  facts.process.cupti_path = api_.path;
  facts.process.driver_version = DriverVersion(api_);
  facts.process.sampling_seed = arming::ScheduleOptions{}.seed;
  facts.collector = collector_;
  facts.collector_version = FeatureNames(api_.features);
  if (!calls_.LockFor(kStepLockWaitNs)) return;
  const HeldLock held(calls_);
  for (const Device& device : devices_) {
    facts.device.push_back(DescribeDevice(api_, static_cast<int>(device.context->device()), device.chip));
  }
  if (devices_.empty() && contexts_.first() != nullptr) {
    facts.device.push_back(DescribeDevice(api_, static_cast<int>(contexts_.first()->device()), {}));
  }
  recorder_.UpdateFacts(facts);
}

// --- FLOP.

void Counting::Count() {
  // Before the first window it is not known what is launched.
  bool lacks_flop = windows_ == 0 && !times_lost_.load();
  // What is in the list stays where it is, and is changed by this thread, or where a context goes.
  const auto each = [this](auto call) {
    for (size_t i = 0; i < devices_count_; ++i) {
      Device* const device = DeviceAt(i);
      if (device != nullptr && device->context->context() != nullptr) call(device);
    }
  };
  each([&](Device* device) {
    if (device->ranges == nullptr) return;
    FollowBatch(device);
    lacks_flop = lacks_flop || device->ranges->lacks_flop();
  });
  if (lacks_flop != unfinished_.exchange(lacks_flop)) turns_since_step_ = step_.load();
  bool missing = lacks_flop, counting = false, open = false;
  uint64_t used = 0;
  each([&](Device* device) {
    RangeCounter* const ranges = device->ranges.get();
    if (ranges == nullptr || ranges->lost()) return;
    if (!ranges->counting() && !paused_.load() && !window_due_.load()) BeginBatch(device);
    missing = missing || !ranges->idle();
    counting = counting || ranges->counting();
    open = open || ranges->session_open();
    used += ranges->used();
  });
  ranges_used_.store(ranges_ + used, std::memory_order_relaxed);
  if (Phase was = Phase::kCounting; !counting) {
    allowance_.store(0);
    session_group_.store(0);
    state_.compare_exchange_strong(was, Phase::kIdle, std::memory_order_acq_rel);
  }
  if (!exclusive_ || (SamplesHaveTheirTurn() && !open)) each([&](Device* device) { OpenSampling(device, open); });
  if (missing) {
    complete_since_step_ = 0;
  } else if (complete_since_step_ == 0) {
    complete_since_step_ = step_.load();
  } else if (step_.load() > kCheckFactor * complete_since_step_ && calls_.LockFor(kStepLockWaitNs)) {
    const HeldLock held(calls_);
    for (Device& device : devices_) {
      if (device.ranges != nullptr) device.ranges->BeginCheck();
    }
  }
}

void Counting::FollowBatch(Device* device) {
  RangeCounter& ranges = *device->ranges;
  if (times_lost_.load()) ranges.AddNewKeys();
  if (ranges.lost()) return;
  if (instrumented_.load()) {
    Unsafely(*device->context, [&] { ranges.Abandon(); });
    return;
  }
  if (device->context->gate().barred()) {
    // Reading waits for the GPU, and so might wait for ever. A session in which nothing is counted costs nothing.
    ranges.Lose();
    recorder_.ReportDiagnostic(Severity::kWarning, "communication-not-counted",
                               "the program sends and receives between single ranks (NCCL), which may wait for what "
                               "is launched later; FLOP are not counted any more, those that were are kept");
    return;
  }
  if (!ranges.counting()) return;
  if (const size_t now = ranges.used(); now != std::exchange(device->used, now)) device->moved_step = step_.load();
  // A window that is due waits for the batch: reading one takes as long whatever it holds.
  if (ranges.BatchIsFull() || Waited(*device) || paused_.load()) FinishBatch(device);
}

void Counting::OpenSampling(Device* device, bool ranges_open) {
  if (device->bytes == nullptr || kernel_ns_ == 0 || paused_.load()) return;
  {
    // Whoever destroys the context closes it.
    if (!calls_.LockFor(kStepLockWaitNs)) return;
    const HeldLock held(calls_);
    if (device->bytes->is_open()) return;
  }
  if (!backoff_.Due(step_.load()) || !MayCost(kOpenSamplingNs)) return;
  opening_.store(true);
  int result = CUPTI_SUCCESS;
  Unsafely(*device->context, [&] { result = device->bytes->Open(kernel_ns_); });
  if (result != CUPTI_SUCCESS && ranges_open) {
    exclusive_ = true;  // a session of ranges may be in the way: they take turns from now on
  } else if (result != CUPTI_SUCCESS && !Busy("opening the sampling", result)) {
    LoseBytes(device, "opening the sampling", result);
  }
  opening_.store(false);
}

// Where sessions of ranges and of samples exclude each other, samples come when FLOP are known, and before what only
// checks these. FLOP that are never all known, since shapes are always new, leave half of the steps to samples.
// Whether sessions of one device exclude those of another is not known, so all devices have the same turn.
bool Counting::SamplesHaveTheirTurn() const {
  const bool first_turn = (step_.load() - turns_since_step_) / kStepsOfTurn % 2 == 0;
  return !exclusive_ || first_turn != unfinished_.load();
}

// Returns whether a session of samples was open.
bool Counting::CloseSampling() {
  bool any = false;
  for (Device& device : devices_) {
    if (device.bytes == nullptr || !device.bytes->is_open()) continue;
    any = true;
    device.bytes->Close();
  }
  return any;
}

bool Counting::Waited(const Device& device) const { return step_.load() >= device.moved_step + kStepsOfBatch; }

void Counting::BeginBatch(Device* device) {
  RangeCounter& ranges = *device->ranges;
  if (ranges.idle()) {
    if (!ranges.session_open()) return;
    Unsafely(*device->context, [&] { ranges.Close(); });
    return;
  }
  if (!backoff_.Due(step_.load())) return;
  if (exclusive_ && SamplesHaveTheirTurn()) {
    if (ranges.session_open()) Unsafely(*device->context, [&] { ranges.Close(); });
    return;
  }
  const bool opens = ranges.opens();
  if (!MayCost(static_cast<uint64_t>(ranges.range_ns()) + (opens ? kOpenRangesNs : 0))) return;
  Phase idle = Phase::kIdle;
  if (!state_.compare_exchange_strong(idle, Phase::kCounting, std::memory_order_acq_rel) &&
      idle != Phase::kCounting) {
    return;
  }
  opening_.store(opens);
  int result = CUPTI_SUCCESS;
  const bool called = Unsafely(*device->context, [&] {
    calls_.AssertHeld();
    if (opens && exclusive_) CloseSampling();
    result = ranges.Begin();
    if (result == CUPTI_SUCCESS || !CloseSampling()) return;
    // A session of samples may be in the way: they take turns from now on.
    exclusive_ = true;
    ranges.Close();
    result = ranges.Begin();
  });
  opening_.store(false);
  if (!called) return;
  if (result != CUPTI_SUCCESS) {
    Unsafely(*device->context, [&] { ranges.Close(); });
    if (!Busy("starting to count", result)) {
      ReportResult(recorder_, "starting to count", result);
      ranges.Lose();
    }
    return;
  }
  backoff_.Succeeded();
  device->moved_step = step_.load();
  device->used = 0;
  session_group_.store(static_cast<uint32_t>(ranges.group()) + 1);
  allowance_.store(arming::Budget::RangesInStep(step_ns_.load(), ranges.range_ns()));
  device->context->gate().Allow(allowance_.load());
}

void Counting::FinishBatch(Device* device) {
  RangeCounter& ranges = *device->ranges;
  const bool waited = Waited(*device);
  const size_t used = ranges.used();
  int result = CUPTI_SUCCESS;
  if (!Unsafely(*device->context, [&] { result = ranges.Finish(waited); })) return;
  ranges_ += used;
  // What the steps were longer by is known some steps later.
  const uint64_t longer = longer_ns_.load(std::memory_order_relaxed);
  if (longer != costed_ns_) ranges.NoteCost(ranges_ - std::exchange(costed_ranges_, ranges_), longer - costed_ns_);
  costed_ns_ = longer;
  if (result != CUPTI_SUCCESS) {
    ReportResult(recorder_, "reading the counters of ranges", result);
    Unsafely(*device->context, [&] { ranges.Close(); });
    ranges.Lose();
  }
  if (ranges.TakeSparse()) {
    recorder_.ReportDiagnostic(Severity::kWarning, "sparse-tensor",
                               "sparse tensor instructions ran; their FLOP are not in the dense counters");
  }
  KeepCosts();
}

}  // namespace rfinject::cupti
