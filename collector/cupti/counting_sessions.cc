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

// What opening costs the program, for the budget: the sampling session, during whose opening it launches on, and a
// session of ranges, during whose start and end no launch comes through (h200).
constexpr uint64_t kOpenSamplingNs = 10'000'000, kOpenRangesNs = 300'000'000;
// A batch of ranges in which nothing that is wanted was launched for so many steps is over.
constexpr uint64_t kStepsOfBatch = 16;
// A second sample of FLOP comes so many times later than the first was complete.
constexpr uint64_t kCheckFactor = 10;

}  // namespace

// --- Opening.

void Counting::Open() {
  if (settings_.mode == "times") {
    opened_.why = "RFINJECT_MODE=times";
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
  if (settings_.mode == "times" || !opened_.backoff.Due(step_.load())) return;
  bool new_device = false;
  while (opened_.contexts_seen < contexts_.size()) {
    CountedContext& one = contexts_.at(opened_.contexts_seen);
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
      if (opened_.contexts_seen > 0) CloseSessions();
      const uint64_t before = opened_.backoff.next();
      if (!OpenDevice(one)) return;  // not now
      if (opened_.backoff.waiting() && opened_.backoff.next() != before) return;
      new_device = new_device || opened_.contexts_seen > 0;
    }
    if (opened_.contexts_seen++ == 0) keys_.SetCounting(opened_.collector == BackendName(opened_.kind));
  }
  if (!new_device) return;
  ReportFacts();
  recorder_.ReportDiagnostic(Severity::kInfo, "several-devices",
                             "the program uses several GPUs from one process; each is measured by itself");
}

void Counting::CloseSessions() {
  for (size_t i = 0; i < opened_.devices; ++i) {
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
  opened_.backoff.Failed(step_.load());
  if (opened_.backoff.given_up()) {
    recorder_.ReportDiagnostic(Severity::kWarning, "counters-busy-for-good",
                               "the performance counters were never free; FLOP and bytes are not measured",
                               condition.remedy);
    return true;
  }
  if (std::exchange(opened_.busy_reported, true)) return true;
  recorder_.ReportDiagnostic(Severity::kWarning, condition.id,
                             std::string(condition.message) + ": " + what + " returned " + std::to_string(result) +
                                 "; FLOP and bytes are measured when it lets go",
                             condition.remedy);
  return true;
}

void Counting::ReportZeros() {
  if (!std::exchange(opened_.zeros_reported, true)) ReportCondition(recorder_, ConditionId::kZeros);
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
        // Kilohertz, with two transfers a cycle, and bits.
        const double dram = 2e-6 / 8 * DeviceAttribute(api_, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, number) *
                            DeviceAttribute(api_, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, number);
        device.bytes = std::make_unique<ByteSampler>(std::move(sampler), context.device(), dram, keys_, recorder_);
      }
    }
    if (sampling == CUPTI_ERROR_HARDWARE_BUSY || settings_.mode == "pm") return;
    opened_.kind = choice.kind;
    if (choice.kind != BackendKind::kNone) device.ranges = OpenRanges(&device, device.bytes == nullptr);
  });
  if (!opened) return false;
  if (sampling == CUPTI_ERROR_HARDWARE_BUSY) {
    Busy("planning samples", sampling);
    return true;
  }
  if (opened_.backoff.waiting() && device.ranges == nullptr) return true;
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
    opened_.collector = BackendName(choice.kind);
    opened_.why = choice.reason;
    if (choice.reason[0] != '\0' && opened_.contexts_seen == 0) {
      recorder_.ReportDiagnostic(Severity::kInfo, "counter-backend", opened_.collector + ": " + choice.reason);
    }
  } else if (device.bytes != nullptr) {
    opened_.collector = "pm-sampling";
  }
  opened_.backoff.Succeeded();
  if (!calls_.LockFor(kStepLockWaitNs)) return false;
  const HeldLock held(calls_);
  devices_.push_back(std::move(device));
  opened_.devices = devices_.size();
  return true;
}

std::unique_ptr<RangeCounter> Counting::OpenRanges(Device* device, bool bytes) {
  auto* const context = static_cast<CUcontext>(const_cast<void*>(device->context->context()));
  auto backend = opened_.kind == BackendKind::kLegacyProfiler ? MakeLegacyProfiler(api_, context)
                                                              : MakeRangeProfiler(api_, context);
  const int result = backend->Open(static_cast<int>(device->context->device()), SplitMetrics(settings_.metrics),
                                   bytes, &device->chip);
  if (result != CUPTI_SUCCESS) {
    const std::string what = "opening the " + std::string(BackendName(opened_.kind));
    if (opened_.contexts_seen == 0) {
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
  facts.collector = opened_.collector;
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
  bool lacks_flop = windows_.count == 0 && !times_lost_.load();
  // What is in the list stays where it is, and is changed by this thread, or where a context goes.
  const auto each = [this](auto call) {
    for (size_t i = 0; i < opened_.devices; ++i) {
      Device* const device = DeviceAt(i);
      if (device != nullptr && device->context->context() != nullptr) call(device);
    }
  };
  each([&](Device* device) {
    if (device->ranges == nullptr) return;
    FollowBatch(device);
    lacks_flop = lacks_flop || device->ranges->lacks_flop();
  });
  ranges_.unfinished.store(lacks_flop);
  bool missing = lacks_flop, counting = false;
  each([&](Device* device) {
    RangeCounter* const ranges = device->ranges.get();
    missing = missing || (ranges != nullptr && !ranges->lost() && !ranges->idle());
  });
  const bool had_samples = !turns_.IsRanges(), samples = !RangesHaveTheirTurn(missing);
  if (had_samples && !samples) {
    each([](Device* device) {
      if (device->bytes != nullptr) device->bytes->Solve();
    });
  }
  windows_.hurry.store(samples && missing);
  each([&](Device* device) {
    RangeCounter* const ranges = device->ranges.get();
    if (ranges == nullptr || ranges->lost()) return;
    if (!ranges->counting() && !paused_.load()) BeginBatch(device);
    counting = counting || ranges->counting();
  });
  if (counting) PaceRanges(/*anew=*/false);
  if (Phase was = Phase::kCounting; !counting) {
    ranges_.allowance_ns.store(0);
    ranges_.group.store(0);
    state_.compare_exchange_strong(was, Phase::kIdle, std::memory_order_acq_rel);
  }
  if (samples) each([&](Device* device) { OpenSampling(device); });
  if (missing) {
    ranges_.complete_since_step = 0;
  } else if (ranges_.complete_since_step == 0) {
    ranges_.complete_since_step = step_.load();
  } else if (step_.load() > kCheckFactor * ranges_.complete_since_step && calls_.LockFor(kStepLockWaitNs)) {
    const HeldLock held(calls_);
    for (Device& device : devices_) {
      if (device.ranges != nullptr) device.ranges->BeginCheck();
    }
  }
}

void Counting::FollowBatch(Device* device) {
  RangeCounter& ranges = *device->ranges;
  if (times_lost_.load()) ranges.AddNewKeys();
  if (ranges.lost()) return ranges.Lose();
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
  if (ranges.BatchIsFull() || Waited(*device) || paused_.load() || windows_.soon.load()) FinishBatch(device);
}

void Counting::OpenSampling(Device* device) {
  if (device->bytes == nullptr || windows_.kernel_ns == 0 || paused_.load()) return;
  if (device->ranges != nullptr && device->ranges->session_open()) return;
  {
    // Whoever destroys the context closes it.
    if (!calls_.LockFor(kStepLockWaitNs)) return;
    const HeldLock held(calls_);
    if (device->bytes->is_open()) return;
  }
  if (!opened_.backoff.Due(step_.load()) || !costs_.Allows(kOpenSamplingNs)) return;
  opening_.store(true);
  int result = CUPTI_SUCCESS;
  Unsafely(*device->context, [&] { result = device->bytes->Open(windows_.kernel_ns, windows_.longest_ns); });
  if (result != CUPTI_SUCCESS && calls_.LockFor(kStepLockWaitNs)) {
    const HeldLock held(calls_);
    LoseBytes(device, "opening the sampling", result);
  }
  opening_.store(false);
}

uint64_t Counting::LongestWithoutSamples(bool zeros) const {
  // Where windows do not fit, as on a machine with much to do, FLOP must not wait for them.
  const uint64_t longest = zeros ? 512 : 2 * arming::Turns::kLongestSamples;
  return settings_.skip + (settings_.steps != 0 ? std::min(longest, settings_.steps / 2) : longest);
}

// Whether sessions of one device exclude those of another is not known, so all devices have the same turn.
bool Counting::RangesHaveTheirTurn(bool wanted) {
  bool can_sample = false;
  uint32_t windows = 0;
  for (size_t i = 0; i < opened_.devices && !times_lost_.load(); ++i) {
    const Device* const device = DeviceAt(i);
    if (device == nullptr || device->bytes == nullptr) continue;
    can_sample = true;
    windows = std::max(windows, device->bytes->used_windows());
    // Where somebody holds the counters, or it is not known yet that nobody does, ranges would count zeros.
    wanted = wanted && !device->bytes->SeesNothing() &&
             !(device->bytes->SawNothingYet() && step_.load() < LongestWithoutSamples(device->bytes->LastWasZero()));
  }
  return turns_.IsRanges(step_.load(), windows, can_sample, wanted);
}

void Counting::CloseSampling() {
  for (Device& device : devices_) {
    if (device.bytes != nullptr && device.bytes->is_open()) device.bytes->Close();
  }
}

bool Counting::Waited(const Device& device) const { return step_.load() >= device.moved_step + kStepsOfBatch; }

void Counting::BeginBatch(Device* device) {
  RangeCounter& ranges = *device->ranges;
  if (ranges.idle()) {
    if (!ranges.session_open()) return;
    KeepingLaunches(*device->context, [&] { ranges.Close(); });
    return;
  }
  if (!opened_.backoff.Due(step_.load())) return;
  if (!turns_.IsRanges()) {
    if (ranges.session_open()) KeepingLaunches(*device->context, [&] { ranges.Close(); });
    return;
  }
  if (windows_.due.load()) return;
  const bool opens = ranges.opens();
  if (!costs_.Allows(ranges.range_ns() + (opens ? kOpenRangesNs : 0))) return;
  Phase idle = Phase::kIdle;
  if (!state_.compare_exchange_strong(idle, Phase::kCounting, std::memory_order_acq_rel) &&
      idle != Phase::kCounting) {
    return;
  }
  opening_.store(opens);
  int result = CUPTI_SUCCESS;
  const bool called = KeepingLaunches(*device->context, [&] {
    calls_.AssertHeld();
    if (opens) CloseSampling();
    result = ranges.Begin();
  });
  opening_.store(false);
  if (!called) return;
  if (result != CUPTI_SUCCESS) {
    KeepingLaunches(*device->context, [&] { ranges.Close(); });
    if (!Busy("starting to count", result)) {
      ReportResult(recorder_, "starting to count", result);
      ranges.Lose();
    }
    return;
  }
  opened_.backoff.Succeeded();
  device->moved_step = step_.load();
  device->used = 0;
  ranges_.group.store(static_cast<uint32_t>(ranges.group()) + 1);
  PaceRanges(opens);
  device->context->gate().Allow(ranges_.allowance_ns.load());
}

// Says what the ranges of a step may cost; `anew`: another group is counted.
void Counting::PaceRanges(bool anew) {
  const auto expected = static_cast<double>(pace_.ranges_expected_ns());
  const auto longer = static_cast<double>(pace_.ranges_longer_ns());
  if (anew) ranges_.pace.Begin(expected, longer);
  ranges_.allowance_ns.store(ranges_.pace.OfStep(pace_.step_ns(), expected, longer));
}

void Counting::FinishBatch(Device* device) {
  RangeCounter& ranges = *device->ranges;
  const bool waited = Waited(*device);
  const size_t used = ranges.used();
  int result = CUPTI_SUCCESS;
  if (!KeepingLaunches(*device->context, [&] { result = ranges.Finish(waited); })) return;
  ranges_.count += used;
  if (result != CUPTI_SUCCESS) {
    ReportResult(recorder_, "reading the counters of ranges", result);
    KeepingLaunches(*device->context, [&] { ranges.Close(); });
    ranges.Lose();
  }
  if (ranges.TakeZeros()) {
    ReportZeros();
    opened_.backoff.Failed(step_.load());
    KeepingLaunches(*device->context, [&] { ranges.Close(); });
  }
  if (ranges.TakeSparse()) {
    recorder_.ReportDiagnostic(Severity::kWarning, "sparse-tensor",
                               "sparse tensor instructions ran; their FLOP are not in the dense counters");
  }
  costs_.Keep(ranges_.count, recorder_);
}

}  // namespace rfinject::cupti
