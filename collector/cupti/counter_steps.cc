#include "collector/cupti/counter_steps.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "collector/cupti/condition_report.h"
#include "collector/cupti/context_scope.h"
#include "collector/cupti/device_facts.h"
#include "collector/cupti/planner.h"

namespace rfinject::cupti {

std::vector<arming::GroupRole> CounterSteps::Roles() const {
  std::vector<arming::GroupRole> roles;
  if (backend() == nullptr) return roles;
  for (const CounterGroup& group : backend()->groups()) {
    roles.push_back(group.kind == GroupKind::kHardware ? arming::GroupRole::kHardware
                    : group.kind == GroupKind::kSass   ? arming::GroupRole::kOnce
                                                       : arming::GroupRole::kGuard);
  }
  return roles;
}

bool CounterSteps::LeavesRoomForSampling() const noexcept {
  return backend() == nullptr || backend_kind_ == BackendKind::kRangeProfiler;
}

// --- Opening.

ModeChoice CounterSteps::ChooseMode(bool layer_ranges) const {
  ModeFacts facts;
  facts.forced = settings_.mode;
  facts.ranks = ranks_;
  facts.mps = mps_;
  facts.graphs = tap_.graphs_seen();
  facts.communication = tap_.communication_seen();
  facts.layer_ranges = layer_ranges;
  return ChooseCounterMode(facts);
}

std::unique_ptr<CounterBackend> CounterSteps::OpenBackend(const void* context, uint32_t device, std::string* chip,
                                                          int* result) {
  auto* const counted = static_cast<CUcontext>(const_cast<void*>(context));
  auto backend = backend_kind_ == BackendKind::kLegacyProfiler ? MakeLegacyProfiler(api_, counted)
                                                               : MakeRangeProfiler(api_, counted);
  *result = backend->Open(static_cast<int>(device), SplitMetrics(settings_.metrics), chip);
  if (*result != CUPTI_SUCCESS) return nullptr;
  return backend;
}

CounterSteps::Result CounterSteps::Open(uint64_t step) {
  chips_.resize(1);
  if (settings_.mode == "pm") return Result::kNot;
  // Read once, at the end of a step: the program may change its environment while we look at it.
  if (const char* world = getenv("WORLD_SIZE"); world != nullptr && atoi(world) > 1) {
    ranks_ = static_cast<uint32_t>(atoi(world));
  }
  mps_ = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE") != nullptr;
  // A mode that no profiler could offer is known before one is opened.
  mode_ = ChooseMode(/*layer_ranges=*/true);
  if (mode_.mode == CounterMode::kNone) {
    if (!mode_.wished) ReportCondition(recorder_, mode_.condition, mode_.why);
    return Result::kNot;
  }
  CountedContext& first = *contexts_.first();
  const auto device = static_cast<int>(first.device());
  const BackendChoice choice =
      ChooseBackend(api_.features, DeviceAttribute(api_, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device),
                    DeviceAttribute(api_, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device), settings_.mode);
  if (choice.kind == BackendKind::kNone) {
    ReportCondition(recorder_, api_.has(kLegacyProfiler) ? ConditionId::kNoPerfworks : ConditionId::kCuptiTooOld,
                    "CUPTI " + VersionName(api_.version) + ": " + choice.reason);
    return Result::kNot;
  }
  int result = 0;
  backend_kind_ = choice.kind;
  std::unique_ptr<CounterBackend> backend = OpenBackend(first.context(), first.device(), &chips_[0], &result);
  if (backend == nullptr) {
    const std::string call = "opening the " + std::string(BackendName(choice.kind));
    if (result == CUPTI_ERROR_HARDWARE_BUSY) return Busy(call, step);
    ReportResult(recorder_, call, result);
    return Result::kNot;
  }
  backoff_.Succeeded();
  mode_ = ChooseMode(backend->has_user_ranges());
  if (mode_.mode == CounterMode::kNone) {
    ReportCondition(recorder_, mode_.condition, mode_.why);
    return Result::kNot;
  }
  first.SetBackend(std::move(backend));
  ReportMode();
  collector_ = BackendName(choice.kind);
  if (choice.reason[0] != '\0') {
    recorder_.ReportDiagnostic(Severity::kInfo, "counter-backend", collector_ + ": " + choice.reason);
  }
  for (const auto& [name, reason] : first.backend()->plan().rejected) {
    recorder_.ReportDiagnostic(Severity::kWarning, "metric-rejected: " + name, name + ": " + reason);
  }
  return Result::kDone;
}

CounterSteps::Result CounterSteps::Retry(uint64_t step) {
  const uint64_t before = backoff_.next();
  const Result result = Open(step);
  // Open has failed for another reason than before and has reported that one, which does not go away.
  if (backend() == nullptr && backoff_.next() == before) backoff_ = {};
  return result;
}

// Another profiler, such as DCGM, has the counters and may let go of them. Opening is tried again later, and this is
// said once.
CounterSteps::Result CounterSteps::Busy(const std::string& call, uint64_t step) {
  const Condition& condition = GetCondition(ConditionId::kBusy);
  backoff_.Failed(step);
  if (backoff_.given_up()) {
    recorder_.ReportDiagnostic(Severity::kWarning, "counters-busy-for-good",
                               "the performance counters were never free; FLOP and bytes are not measured",
                               condition.remedy);
    Lose();
    return Result::kLost;
  }
  if (std::exchange(busy_reported_, true)) return Result::kNot;
  recorder_.ReportDiagnostic(Severity::kWarning, condition.id,
                             std::string(condition.message) + ": " + call + " returned " +
                                 std::to_string(CUPTI_ERROR_HARDWARE_BUSY) +
                                 "; FLOP and bytes are measured when it lets go",
                             condition.remedy);
  return Result::kNot;
}

bool CounterSteps::AdoptContexts() {
  const uint32_t count = contexts_.size();
  bool new_device = false;
  while (chips_.size() < count) {
    const auto index = static_cast<uint32_t>(chips_.size());
    std::string& chip = chips_.emplace_back();
    CountedContext& one = contexts_.at(index);
    bool known = false;
    for (uint32_t i = 0; i < index; ++i) {
      const CountedContext& earlier = contexts_.at(i);
      known = known || (earlier.device() == one.device() && earlier.context() != nullptr);
    }
    // Of several contexts on a device only the first is counted: counters cannot tell them apart.
    if (known || one.context() == nullptr) continue;
    new_device = true;
    if (backend() == nullptr) continue;
    const ContextScope scope(api_, one.context());
    int result = CUPTI_ERROR_INVALID_CONTEXT;
    std::unique_ptr<CounterBackend> opened;
    if (scope.ok()) opened = OpenBackend(one.context(), one.device(), &chip, &result);
    std::string why;
    if (opened == nullptr) {
      why = "opening the " + collector_ + " returned " + std::to_string(result);
    } else if (!std::equal(opened->groups().begin(), opened->groups().end(), backend()->groups().begin(),
                           backend()->groups().end(), [](const CounterGroup& a, const CounterGroup& b) {
                             return a.kind == b.kind && a.metrics == b.metrics;
                           })) {
      why = "it is a " + chip + ", device " + std::to_string(contexts_.first()->device()) + " is a " + chips_[0];
    }
    if (!why.empty()) {
      recorder_.ReportDiagnostic(
          Severity::kWarning, "device-not-counted",
          "FLOP and bytes of device " + std::to_string(one.device()) + " are not measured, its times are: " + why);
      continue;
    }
    one.SetBackend(std::move(opened));
  }
  return new_device;
}

// --- How it is counted.

// That counting is layer by layer is said, because reports by kernel look different then.
void CounterSteps::ReportMode() {
  if (mode_.mode != CounterMode::kLayers) return;
  recorder_.ReportDiagnostic(Severity::kInfo, "counters-by-layer",
                             "FLOP and bytes are counted layer by layer, not kernel by kernel: " + mode_.why,
                             settings_.mode == "user" ? "" : "RFINJECT_MODE=range counts kernel by kernel");
}

// Called before a step with counters: what was launched meanwhile may ask for another mode. Returns false when none
// is left.
bool CounterSteps::FollowMode() {
  ModeChoice choice = ChooseMode(backend()->has_user_ranges());
  if (choice.mode == mode_.mode) return true;
  mode_ = std::move(choice);
  if (mode_.mode == CounterMode::kNone) {
    ReportCondition(recorder_, mode_.condition, mode_.why);
    return false;
  }
  ReportMode();
  return true;
}

void CounterSteps::AddFacts(RunFacts* facts) const {
  facts->collector = collector_;
  facts->collector_version = FeatureNames(api_.features);
  if (backend() != nullptr) {
    facts->collector_version += "; counters " + std::string(CounterModeName(mode_.mode)) + ": " + mode_.why;
  }
  for (uint32_t i = 0; i < chips_.size(); ++i) {
    const uint32_t device = contexts_.at(i).device();
    const bool known = std::any_of(facts->device.begin(), facts->device.end(),
                                   [&](const DeviceFacts& other) { return other.index == device; });
    if (!known) facts->device.push_back(DescribeDevice(api_, static_cast<int>(device), chips_[i]));
  }
}

// --- A step.

CounterSteps::Result CounterSteps::Arm(uint64_t step, size_t group) {
  if (backend() == nullptr || !backoff_.Due(step)) return Result::kNot;
  if (!FollowMode()) {
    Lose();
    return Result::kLost;
  }
  int result = CUPTI_SUCCESS;
  contexts_.ForEach([&](CountedContext& one) {
    if (result != CUPTI_SUCCESS || one.backend() == nullptr || one.context() == nullptr) return;
    const ContextScope scope(api_, one.context());
    if (scope.ok()) result = one.Start(mode_.mode, group);
  });
  if (result == CUPTI_SUCCESS) {
    backoff_.Succeeded();
    return Result::kDone;
  }
  Abandon();
  const std::string call = "starting the " + collector_;
  if (result == CUPTI_ERROR_HARDWARE_BUSY) return Busy(call, step);
  ReportResult(recorder_, call, result);
  Lose();
  return Result::kLost;
}

CounterSteps::Reading CounterSteps::Read(bool stalled) {
  Reading reading;
  if (stalled) {
    Abandon();
    Lose();
    reading.lost = true;
    return reading;
  }
  // Kernel by kernel, a graph's kernels could not be told apart, so the next step counts layer by layer.
  const bool graphs = mode_.mode == CounterMode::kKernels && tap_.graphs_seen();
  // All sessions are ended even if one fails: a session that is not ended would stay.
  contexts_.ForEach([&](CountedContext& one) {
    if (!one.started()) return;
    const ContextScope scope(api_, one.context());
    if (!scope.ok()) {
      one.Lose();  // it is gone, or nothing can be asked of it
      return;
    }
    reading.outcomes.push_back(one.Stop(!graphs, tap_.graphs()));
  });
  for (const CountedContext::Outcome& outcome : reading.outcomes) {
    if (outcome.result == CUPTI_SUCCESS) continue;
    ReportResult(recorder_, outcome.call, outcome.result);
    Lose();
    reading.lost = true;
    return reading;
  }
  if (graphs && settings_.mode == "range") {
    ReportCondition(recorder_, ConditionId::kGraphs);
    Lose();
    reading.lost = true;
    return reading;
  }
  reading.valid = !reading.outcomes.empty();
  for (const CountedContext::Outcome& outcome : reading.outcomes) {
    reading.valid = reading.valid && outcome.valid;
    if (!outcome.mismatch.empty()) ReportCondition(recorder_, ConditionId::kMismatch, outcome.mismatch);
    if (outcome.sparse) {
      recorder_.ReportDiagnostic(Severity::kWarning, "sparse-tensor",
                                 "sparse tensor instructions ran; their FLOP are not in the dense counters");
    }
  }
  return reading;
}

void CounterSteps::Abandon() {
  contexts_.ForEach([this](CountedContext& one) {
    if (!one.started()) return;
    const ContextScope scope(api_, one.context());
    scope.ok() ? one.Abandon() : one.Lose();
  });
}

void CounterSteps::Lose() noexcept {
  contexts_.ForEach([](CountedContext& one) { one.Lose(); });
}

void CounterSteps::GiveUp() noexcept {
  Lose();
  backoff_ = {};
}

}  // namespace rfinject::cupti
