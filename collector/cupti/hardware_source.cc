// File: hardware_source.cc
//
// HardwareSource puts the parts together and decides, between two steps, what comes next. What the parts do, and on
// which thread:
//
//   launch_tap.h      the program's threads, in CUPTI's callback: looks up and records each launch
//   contexts.h        the CUDA contexts that launch; every thread reads it, a launch adds to it
//   step_machine.h    what the step that runs is: plain, counted, timed, sampled
//   counter_steps.h   the thread that ends a step: counters
//   time_window.h     the same thread: times
//   pm_sampling.h     the same thread: the whole device over time
//   device_facts.h    the same thread: what the driver says about its devices
//   step_policy.h     which step collects what; the step's thread and the watchdog's
//   watchdog.h        a thread of its own: is the step stuck?
//
// The end of a step is one pass through OnStepEnd, by whichever thread of the program ends it, under `boundary_`.
#include "collector/cupti/hardware_source.h"

#include <dlfcn.h>
#include <unistd.h>

#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "collector/arming/policy.h"
#include "collector/cupti/api.h"
#include "collector/cupti/condition_report.h"
#include "collector/cupti/contexts.h"
#include "collector/cupti/counter_steps.h"
#include "collector/cupti/device_facts.h"
#include "collector/cupti/launch_keys.h"
#include "collector/cupti/launch_tap.h"
#include "collector/cupti/pm_sampling.h"
#include "collector/cupti/step_machine.h"
#include "collector/cupti/step_policy.h"
#include "collector/cupti/time_window.h"
#include "collector/cupti/watchdog.h"
#include "collector/program_profiler.h"
#include "collector/step_end.h"
#include "collector/step_waits.h"
#include "collector/sync.h"

namespace rfinject {
namespace {

using arming::Action;
using cupti::CounterSteps;
using cupti::StepState;
using cupti::TimeWindow;

class HardwareSource final : public Source, private cupti::LaunchTap::Listener {
 public:
  HardwareSource(const Settings& settings, Recorder& recorder) : settings_(settings), recorder_(recorder) {}

  void OnFirstCall() noexcept override RFINJECT_EXCLUDES(boundary_);
  bool HasStepped() noexcept override;
  void OnStepEnd(uint64_t step) noexcept override RFINJECT_EXCLUDES(boundary_);
  void Stop() noexcept override RFINJECT_EXCLUDES(boundary_);

 private:
  // --- From the launch tap.
  void OnContextDestroyed(CUcontext context) noexcept override RFINJECT_EXCLUDES(boundary_);
  void OnForkedChild() noexcept override;

  // --- Between two steps.
  void Start(uint64_t step) RFINJECT_REQUIRES(boundary_);
  bool Load() RFINJECT_REQUIRES(boundary_);
  bool Watch() RFINJECT_REQUIRES(boundary_);
  void EndStepThatRan(uint64_t step) noexcept RFINJECT_EXCLUDES(boundary_);
  void FinishStep(uint64_t step, bool profiles) RFINJECT_REQUIRES(boundary_);
  bool Collect(uint64_t step, StepState ran, bool profiles) RFINJECT_REQUIRES(boundary_);
  bool MayArm(uint64_t step, bool profiles) RFINJECT_REQUIRES(boundary_);
  void RetryCounters(uint64_t step) RFINJECT_REQUIRES(boundary_);
  void AdoptContexts() RFINJECT_REQUIRES(boundary_);
  void BeginStep(uint64_t step, bool may_arm) RFINJECT_REQUIRES(boundary_);
  StepState Arm(uint64_t step) RFINJECT_REQUIRES(boundary_);
  void Sample(uint64_t step, uint64_t step_ns) RFINJECT_REQUIRES(boundary_);
  bool OursIsCurrent() const;
  void NewPolicy() RFINJECT_REQUIRES(boundary_);
  void ReportFacts() RFINJECT_REQUIRES(boundary_);
  void ReportGraphs() RFINJECT_REQUIRES(boundary_);
  void ExplainShortProgram() RFINJECT_REQUIRES(boundary_);

  // --- What was to be measured cannot be any more.
  void OnCountersLost() RFINJECT_REQUIRES(boundary_);
  void OnTimesLost() RFINJECT_REQUIRES(boundary_);
  void TurnOff() noexcept;

  const Settings& settings_;
  Recorder& recorder_;

  // Set by Load, before the tap is opened, and read by all threads afterwards.
  cupti::Api api_;
  CUcontext context_ = nullptr;                           // the context that is current where steps end
  bool watching_ RFINJECT_GUARDED_BY(boundary_) = false;  // CUPTI calls the tap

  // Shared by all threads; each says who may call what.
  cupti::StepMachine machine_;
  cupti::LaunchKeys keys_;
  cupti::Contexts contexts_{api_, recorder_, keys_};
  cupti::LaunchTap tap_{api_, contexts_, keys_, recorder_, *this};
  cupti::StepPolicy policy_;
  cupti::Watchdog watchdog_{machine_, policy_, recorder_};
  std::atomic<bool> context_gone_{false};
  std::atomic<bool> step_captured_{false};  // the diagnostic about it has been written

  // A step is ended by one thread at a time. The others do not wait for it: what they launched belongs to the step
  // that is already running.
  Mutex boundary_;
  CounterSteps counters_ RFINJECT_GUARDED_BY(boundary_){settings_, api_, contexts_, tap_, recorder_};
  TimeWindow times_ RFINJECT_GUARDED_BY(boundary_){api_, contexts_, tap_, keys_, recorder_};
  std::unique_ptr<cupti::PmCrossCheck> pm_ RFINJECT_GUARDED_BY(boundary_);
  cupti::StepPolicy::Plan plan_ RFINJECT_GUARDED_BY(boundary_);  // of the step that runs
  uint64_t step_began_ns_ RFINJECT_GUARDED_BY(boundary_) = 0;    // monotonic
  uint64_t steps_ended_ RFINJECT_GUARDED_BY(boundary_) = 0;      // of the process
};

// --- The end of a step.

void HardwareSource::OnStepEnd(uint64_t step) noexcept {
  if (machine_.off()) return;
  BeginWait(kOurOwn);
  EndStepThatRan(step);
  EndWait(kOurOwn);
}

// A program may capture its model before it trains; what was not seen captured can never be told apart.
void HardwareSource::OnFirstCall() noexcept {
  if (machine_.state() != StepState::kWaiting || !boundary_.TryLock()) return;
  const HeldLock held(boundary_);
  Watch();
}

// An optimizer's step that was captured ends no step; the launch of its graph does (launch_tap.h).
bool HardwareSource::HasStepped() noexcept {
  const bool captured = tap_.graphs().TakeOptimizerCaptured();
  return !captured || machine_.off() || !CanEndStepSoon();
}

void HardwareSource::EndStepThatRan(uint64_t step) noexcept try {
  // Waiting for the GPU would spoil the capture, and the program would fail. The step goes on until one ends outside
  // of a capture.
  if (tap_.capturing()) {
    if (!CanEndStepSoon() && machine_.state() != StepState::kWaiting &&
        !step_captured_.exchange(true, std::memory_order_relaxed)) {
      recorder_.ReportDiagnostic(
          Severity::kWarning, "step-in-graph",
          "the optimizer's step was captured into a CUDA graph: launches of the graph end no step, so that no times "
          "or counters are taken of them",
          "capture the forward and the backward, and call the optimizer's step outside of the graph");
    }
    return;
  }
  if (!boundary_.TryLock()) return;
  const HeldLock held(boundary_);
  steps_ended_ = step + 1;
  if (machine_.state() == StepState::kWaiting) {
    Start(step);
    step_began_ns_ = static_cast<uint64_t>(MonotonicNs());
    return;
  }
  if (context_gone_.load(std::memory_order_acquire)) {
    counters_.Abandon();
    cupti::ReportCondition(recorder_, ConditionId::kContextGone);
    TurnOff();
    return;
  }
  if (cupti::DeviceMemory::Reading memory; tap_.memory().OnStepEnd(MonotonicNs(), &memory)) {
    recorder_.NoteMemory(memory.in_use, memory.peak);
  }
  const bool profiles = ProgramProfiles();
  FinishStep(step, profiles);
  ReportGraphs();
  if (machine_.off()) return;
  const bool may_arm = MayArm(step + 1, profiles);
  if (may_arm && counters_.RetryIsDue(step + 1)) RetryCounters(step + 1);
  if (machine_.off()) return;
  AdoptContexts();
  BeginStep(step + 1, may_arm);
} catch (...) {
  // The only exception that can be thrown here is that memory ran out.
  recorder_.CountDrop("hardware source: out of memory");
  TurnOff();
}

// Reads what the step that has ended collected, and tells the policy what that brought and what it cost.
void HardwareSource::FinishStep(uint64_t step, bool profiles) {
  const StepState ran = machine_.EndStep();
  if (ran == StepState::kSampling) pm_->AfterStep(step);
  const bool armed = ran == StepState::kCounters || ran == StepState::kTimes;
  bool valid = true;
  if (armed) {
    tap_.Log(false);
    valid = Collect(step, ran, profiles);
  }
  // The time that reading took is part of what the step cost.
  const uint64_t duration_ns = static_cast<uint64_t>(MonotonicNs()) - step_began_ns_;
  const bool in_window = step >= settings_.skip;
  policy_.End(in_window, in_window ? step - settings_.skip : 0, armed ? plan_ : cupti::StepPolicy::Plan{},
              duration_ns, valid, keys_.size());
}

// Reads what was collected. Returns false when it cannot be used.
bool HardwareSource::Collect(uint64_t step, StepState ran, bool profiles) {
  if (ran == StepState::kTimes) {
    const TimeWindow::Reading reading = times_.Read(step, profiles);
    if (reading.lost) OnTimesLost();
    return reading.valid && policy_.AddTimes(reading.keys);
  }
  const uint32_t group = plan_.decision.group;
  recorder_.MarkArmed(group + 1);
  const CounterSteps::Reading reading = counters_.Read(watchdog_.stalled());
  if (reading.lost) {
    OnCountersLost();
    return false;
  }
  return policy_.AddCounts(group, reading.outcomes) && reading.valid;
}

// Whether something of ours may be collected in `step`: not while the program's own profiler may need what we need.
bool HardwareSource::MayArm(uint64_t step, bool profiles) {
  switch (times_.TurnIn(step, profiles)) {
    case TimeWindow::Turn::kTheirs:
      return false;
    case TimeWindow::Turn::kLost:
      OnTimesLost();
      break;
    case TimeWindow::Turn::kOurs:
      break;
  }
  return !machine_.off();
}

void HardwareSource::BeginStep(uint64_t step, bool may_arm) {
  const auto now_ns = static_cast<uint64_t>(MonotonicNs());
  const uint64_t step_ns = now_ns - std::exchange(step_began_ns_, now_ns);
  plan_ = {};
  if (!may_arm || step < settings_.skip || !recorder_.NextStepIsMeasured()) return;
  plan_ = policy_.Begin(step - settings_.skip);
  if (plan_.decision.action == Action::kNone) {
    Sample(step, step_ns);
    return;
  }
  const StepState armed = Arm(step);
  if (armed == StepState::kPlain) {
    policy_.Cancel(plan_);
    return;
  }
  tap_.Log(true);
  machine_.Enter(armed);
}

// Sets up what was decided for `step`, and says which state that is; kPlain when the step stays unarmed.
StepState HardwareSource::Arm(uint64_t step) {
  if (!OursIsCurrent()) return StepState::kPlain;  // another device is current
  if (plan_.decision.action == Action::kTimes) {
    if (!times_.available()) return StepState::kPlain;
    if (times_.Arm()) return StepState::kTimes;
    OnTimesLost();
    return StepState::kPlain;
  }
  switch (counters_.Arm(step, plan_.decision.group)) {
    case CounterSteps::Result::kDone:
      return StepState::kCounters;
    case CounterSteps::Result::kLost:
      OnCountersLost();
      break;
    case CounterSteps::Result::kNot:
      break;
  }
  return StepState::kPlain;
}

// PM sampling runs in the steps in which nothing else is collected.
void HardwareSource::Sample(uint64_t step, uint64_t step_ns) {
  if (pm_ == nullptr || !OursIsCurrent()) return;
  pm_->BeforeStep(step, step_ns);
  if (pm_->running()) machine_.Enter(StepState::kSampling);
}

bool HardwareSource::OursIsCurrent() const {
  CUcontext current = nullptr;
  return api_.cuCtxGetCurrent != nullptr && api_.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == context_;
}

void HardwareSource::AdoptContexts() {
  if (!counters_.AdoptContexts()) return;
  ReportFacts();
  recorder_.ReportDiagnostic(Severity::kInfo, "several-devices",
                             "the program uses several GPUs from one process; each is measured by itself");
}

void HardwareSource::RetryCounters(uint64_t step) {
  if (counters_.Retry(step) == CounterSteps::Result::kLost) OnCountersLost();
  if (counters_.backend() == nullptr) return;
  NewPolicy();
  ReportFacts();
  watchdog_.Start();
}

// --- Start, at the end of the first step that finds a context.

void HardwareSource::Start(uint64_t step) {
  if (!Watch()) return;
  CUdevice device = 0;
  if (api_.cuCtxGetCurrent(&context_) != CUDA_SUCCESS || context_ == nullptr) return;
  if (api_.cuCtxGetDevice == nullptr || api_.cuCtxGetDevice(&device) != CUDA_SUCCESS) device = 0;
  if (!contexts_.AddFirst(context_, static_cast<uint32_t>(device))) return;
  tap_.Begin(context_, static_cast<uint32_t>(device));
  counters_.Open(step);
  // PM sampling serialises nothing, and runs beside the counters or instead of them. It is not opened where the user
  // asked for one mode, nor beside the legacy profiler, since a process must not mix the two families of functions
  // (CUPTI user guide, 2.16).
  const bool all_modes = settings_.mode.empty() || settings_.mode == "auto" || settings_.mode == "pm";
  if (all_modes && counters_.LeavesRoomForSampling()) {
    pm_ = cupti::PmCrossCheck::Open(api_, static_cast<int>(contexts_.first()->device()),
                                    settings_.overhead_percent / 100, recorder_);
  }
  times_.Open();
  NewPolicy();
  ReportFacts();
  if (counters_.backend() != nullptr) watchdog_.Start();
  machine_.Enter(StepState::kPlain);
  // The launches of this step were not seen, so a report that also divided by it would print too little.
  recorder_.LeaveStepOut();
}

// Finds the driver, the context and CUPTI. False when one is missing; a CUPTI that cannot be loaded is reported,
// once.
bool HardwareSource::Load() {
  // The driver and a context come first: before cuInit nothing of CUPTI may be called.
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (driver == nullptr) return false;
  auto get_current = reinterpret_cast<decltype(&::cuCtxGetCurrent)>(dlsym(driver, "cuCtxGetCurrent"));
  if (get_current == nullptr || get_current(&context_) != CUDA_SUCCESS || context_ == nullptr) return false;

  cupti::LoadOptions options;
  options.driver_ready = true;
  cupti::LoadResult result = cupti::LoadApi(options);
  if (result.status != cupti::LoadStatus::kOk) {
    cupti::ReportCondition(
        recorder_, result.status == cupti::LoadStatus::kBroken ? ConditionId::kCuptiBroken : ConditionId::kNoCupti,
        result.error);
    TurnOff();
    return false;
  }
  api_ = std::move(result.api);
  if (!api_.perfworks_remark.empty()) {
    recorder_.ReportDiagnostic(Severity::kInfo, "perfworks-remark", api_.perfworks_remark);
  }
  if (api_.virtual_driver) {
    recorder_.ReportDiagnostic(
        Severity::kWarning, "simulated-gpu",
        "the driver is rfinject's virtual GPU: counters and times are made up, none was measured",
        "rfinject --estimate GPU PROGRAM estimates them");
  }
  return true;
}

// Lets CUPTI call the tap, so that what is captured is seen. False, and nothing has changed, while there is no
// context, and when measuring was given up.
bool HardwareSource::Watch() {
  if (watching_) return !machine_.off();
  // Programs that never touch the GPU come no further than this; each look costs a microsecond.
  if (!Load()) return false;
  watching_ = true;
  if (tap_.Subscribe()) return true;
  TurnOff();
  return false;
}

// Makes a policy for what can be collected now. One that waited for what will never come would keep arming steps.
void HardwareSource::NewPolicy() {
  arming::Options options;
  options.overhead = settings_.overhead_percent / 100;
  options.has_times = times_.available();
  options.window_steps = settings_.steps;
  options.stall_ns = g_stall_ns.load(std::memory_order_relaxed);
  if (settings_.skip > 0) options.warm_up_steps = 2;  // the steps that were skipped have warmed up already
  policy_.Renew(options, counters_.Roles());
}

void HardwareSource::ReportFacts() {
  RunFacts facts;
  facts.source = SourceKind::kMeasured;
  facts.process.cupti_version = cupti::VersionName(api_.version);
  facts.process.cupti_path = api_.path;
  facts.process.driver_version = cupti::DriverVersion(api_);
  facts.process.sampling_seed = arming::Options{}.seed;
  counters_.AddFacts(&facts);
  recorder_.UpdateFacts(facts);
}

// Says why the launches of some graph are not rows of their layers, and what a graph's row means; and forgets graphs
// that are gone.
void HardwareSource::ReportGraphs() {
  tap_.graphs().Sweep();
  const uint32_t reasons = tap_.graphs().TakeReasons();
  if (reasons == 0) return;
  using cupti::CapturedGraphs;
  if ((reasons & CapturedGraphs::kHasRow) != 0 && counters_.backend() != nullptr) {
    recorder_.ReportDiagnostic(
        Severity::kInfo, "graph-counters",
        "FLOP and bytes that CUDA graphs count are not told apart: a row \"(CUDA graph)\" has them, without a time; "
        "the rows of its kernels have the time, and FLOP and bytes if they were counted outside of graphs before",
        "run some steps without graphs before the capture");
  }
  constexpr std::pair<uint32_t, const char*> kWhy[] = {
      {CapturedGraphs::kNotSeen, "rfinject did not see all of it captured"},
      {CapturedGraphs::kChanged, "single nodes of it were changed after it was made executable"},
      {CapturedGraphs::kConditional, "a part of it runs under a condition"},
      {CapturedGraphs::kNoRoom, "there are more nodes in graphs than are kept"},
      {CapturedGraphs::kOtherOrder,
       "CUPTI does not number its nodes, and it did not run the kernels that were captured, in their order"},
  };
  for (const auto& [reason, why] : kWhy) {
    if ((reasons & reason) == 0) continue;
    recorder_.ReportDiagnostic(
        Severity::kWarning, "graph-not-told-apart: " + std::to_string(reason),
        std::string("what a CUDA graph runs stays in rows \"(CUDA graph)\", in the layer that launches it: ") + why);
  }
}

// Says why rows lack times or counters, where the program ended before everything was collected once.
void HardwareSource::ExplainShortProgram() {
  const uint64_t needed = settings_.skip + policy_.FirstRotationSteps();
  if (steps_ended_ >= needed) return;
  recorder_.ReportDiagnostic(Severity::kWarning, "too-few-steps",
                             "the program ended after " + std::to_string(steps_ended_) +
                                 " steps, before all counters and times had been taken once, which takes " +
                                 std::to_string(needed),
                             "run at least " + std::to_string(needed) + " steps");
}

// --- Trouble.

void HardwareSource::OnCountersLost() {
  NewPolicy();  // times go on, if there are any
  if (!times_.available()) TurnOff();
}

void HardwareSource::OnTimesLost() {
  if (times_.Lose()) counters_.GiveUp();
  if (counters_.backend() == nullptr && !counters_.waiting()) {
    TurnOff();
    return;
  }
  NewPolicy();
}

void HardwareSource::TurnOff() noexcept {
  machine_.Enter(StepState::kOff);
  tap_.Close();
}

// Called on the thread that destroys the context, inside the driver's call.
void HardwareSource::OnContextDestroyed(CUcontext context) noexcept {
  const bool first = context == context_;
  if (first) context_gone_.store(true, std::memory_order_release);
  cupti::CountedContext* counted = nullptr;
  contexts_.ForEach([&](cupti::CountedContext& one) {
    if (one.context() == context) counted = &one;
  });
  if (counted == nullptr) return;
  std::vector<cupti::LaunchLog::Entry> entries;
  if (first) tap_.times_log().Close(&entries);
  // The context's session can be closed in order only here, and only if no step is being ended at this moment.
  // Sessions of other contexts are ended with the step.
  if (machine_.state() != StepState::kPlain && boundary_.TryLock()) {
    const HeldLock held(boundary_);
    if (first && machine_.EndSampling()) pm_->Abandon();
    if (machine_.armed()) counted->Abandon();
  }
  counted->log().Close(&entries);
  counted->ForgetContext();  // a new context may get its address
}

// Called by any thread when the process ends, or when measuring was switched off.
void HardwareSource::Stop() noexcept {
  const StepState state = machine_.state();
  if (state != StepState::kWaiting && state != StepState::kOff && boundary_.TryLock()) {
    const HeldLock held(boundary_);
    std::vector<cupti::LaunchLog::Entry> entries;
    tap_.times_log().Close(&entries);
    contexts_.ForEach([&](cupti::CountedContext& one) { one.log().Close(&entries); });
    try {
      ExplainShortProgram();
    } catch (...) {
      recorder_.CountDrop("why the program was too short: out of memory");
    }
    // A running session is left alone: at this point of a process's life the driver may be gone.
  }
  TurnOff();
}

void HardwareSource::OnForkedChild() noexcept {
  machine_.Enter(StepState::kOff);
  boundary_.ResetInForkedChild();
  policy_.ResetLockInForkedChild();
}

// Whether this process can have a GPU at all: a driver is loaded or its device file exists.
bool HardwareMayExist() noexcept {
  if (access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0) return true;
  return dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD) != nullptr;
}

}  // namespace

Source* MakeHardwareSource(const Settings& settings, Recorder& recorder) noexcept {
  if (settings.mode == "none" || !HardwareMayExist()) return nullptr;
  return new (std::nothrow) HardwareSource(settings, recorder);
}

}  // namespace rfinject
