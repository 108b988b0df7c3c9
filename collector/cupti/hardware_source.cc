// File: hardware_source.cc
//
// HardwareSource puts the parts together. What the parts do, and on which thread:
//
//   launch_tap.h      the program's threads, in CUPTI's callback: looks up and records each launch
//   contexts.h        the CUDA contexts that launch; every thread reads it, a launch adds to it
//   counting.h        the thread that ends a step, and a thread of ours: times, bytes and FLOP
//   device_facts.h    our thread: what the driver says about its devices
//
// The end of a step is one pass through OnStepEnd, by whichever thread of the program ends it, under `boundary_`.
#include "collector/cupti/hardware_source.h"

#include <dlfcn.h>
#include <unistd.h>

#include <new>
#include <string>
#include <utility>

#include "collector/cupti/allocator_memory.h"
#include "collector/cupti/api.h"
#include "collector/cupti/call_clock.h"
#include "collector/cupti/condition_report.h"
#include "collector/cupti/contexts.h"
#include "collector/cupti/counting.h"
#include "collector/cupti/device_facts.h"
#include "collector/cupti/launch_keys.h"
#include "collector/cupti/launch_tap.h"
#include "collector/cupti/operator_calls.h"
#include "collector/program_profiler.h"
#include "collector/step_end.h"
#include "collector/step_waits.h"
#include "collector/sync.h"

namespace rfinject {
namespace {

class HardwareSource final : public Source, private cupti::LaunchTap::Listener {
 public:
  HardwareSource(const Settings& settings, Recorder& recorder) : settings_(settings), recorder_(recorder) {
    memory_.Listen();
  }

  bool wants_ops() const noexcept override { return settings_.operators != "none"; }
  bool wants_ops_now() const noexcept override { return operators_.HearsStepFromItsBeginning(); }
  bool wants_slices_of_ops() const noexcept override { return true; }
  bool WantsOpsBehind() noexcept override { return operators_.GoesOn(); }
  const uint64_t* LaunchesOfThread() const noexcept override { return cupti::OperatorCalls::LaunchesOfThread(); }
  bool OnOp(const OpCall& call, const Site& site) noexcept override {
    return operators_.OnOp(call, site.phase == Phase::kRecompute);
  }
  bool wants_compiled_code() const noexcept override { return true; }
  uint32_t DefineCompiledWork(const CompiledWork& work) noexcept override { return operators_.DefineCompiled(work); }
  void OnPolicy(const PolicyFacts& policy) noexcept override { operators_.OnPolicy(policy); }
  void OnFirstCall() noexcept override RFINJECT_EXCLUDES(boundary_);
  bool HasStepped() noexcept override;
  void OnProfilerComes() noexcept override RFINJECT_EXCLUDES(boundary_);
  void OnStepEnd(uint64_t step) noexcept override RFINJECT_EXCLUDES(boundary_);
  void Stop() noexcept override RFINJECT_EXCLUDES(boundary_);
  // What is captured into a graph would be spoiled.
  bool MayGiveBack() const noexcept override { return !tap_.capturing(); }
  void GiveBack() noexcept override RFINJECT_EXCLUDES(boundary_);

 private:
  // --- From the launch tap.
  void OnContextDestroyed(CUcontext context) noexcept override RFINJECT_EXCLUDES(boundary_);
  void OnForkedChild() noexcept override;

  // --- Between two steps.
  void Start(uint64_t step) RFINJECT_REQUIRES(boundary_);
  bool Load() RFINJECT_REQUIRES(boundary_);
  bool Watch() RFINJECT_REQUIRES(boundary_);
  void EndStepThatRan(uint64_t step) noexcept RFINJECT_EXCLUDES(boundary_);
  void ReportGraphs() RFINJECT_REQUIRES(boundary_);
  void TurnOff() noexcept;

  enum class State : uint8_t {
    kWaiting,  // the program has no CUDA context yet; the end of each step looks for one
    kMeasuring,
    kOff,  // nothing is measured any more, and nothing leads out of here
  };
  bool off() const noexcept { return state_.load(std::memory_order_acquire) == State::kOff; }

  const Settings& settings_;
  Recorder& recorder_;

  // Set by Load, before the tap is opened, and read by all threads afterwards.
  cupti::Api api_;
  CUcontext context_ = nullptr;                           // the context that is current where steps end
  bool watching_ RFINJECT_GUARDED_BY(boundary_) = false;  // CUPTI calls the tap

  // Shared by all threads; each says who may call what.
  std::atomic<State> state_{State::kWaiting};
  cupti::LaunchKeys keys_;
  cupti::Contexts contexts_{api_};
  cupti::OperatorCalls operators_{keys_, recorder_, settings_.operators, IsShortRun(settings_)};
  cupti::AllocatorMemory memory_{recorder_};
  cupti::LaunchTap tap_{api_, contexts_, keys_, operators_, recorder_, *this};
  cupti::Counting counting_{settings_, api_, contexts_, tap_, keys_, recorder_};
  std::atomic<bool> context_gone_{false};
  std::atomic<bool> step_captured_{false};  // the diagnostic about it has been written

  // A step is ended by one thread at a time. The others do not wait for it: what they launched belongs to the step
  // that is already running.
  Mutex boundary_;
};

// --- The end of a step.

void HardwareSource::OnStepEnd(uint64_t step) noexcept {
  if (off()) return;
  BeginWait(kOurOwn);
  EndStepThatRan(step);
  EndWait(kOurOwn);
}

// A program may capture its model before it trains; what was not seen captured can never be told apart.
void HardwareSource::OnFirstCall() noexcept {
  if (state_.load() != State::kWaiting || !boundary_.TryLock()) return;
  const HeldLock held(boundary_);
  Watch();
}

// An optimizer's step that was captured ends no step; the launch of its graph does (launch_tap.h).
bool HardwareSource::HasStepped() noexcept {
  const bool captured = tap_.graphs().TakeOptimizerCaptured();
  return !captured || off() || !CanEndStepSoon();
}

void HardwareSource::OnProfilerComes() noexcept {
  if (state_.load() != State::kMeasuring || tap_.capturing() || !boundary_.LockFor(cupti::kStepLockWaitNs)) return;
  const HeldLock held(boundary_);
  counting_.GiveWay();
}

void HardwareSource::EndStepThatRan(uint64_t step) noexcept try {
  // Waiting for the GPU would spoil the capture, and the program would fail. The step goes on until one ends outside
  // of a capture.
  if (tap_.capturing()) {
    if (!CanEndStepSoon() && state_.load() != State::kWaiting &&
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
  if (state_.load() == State::kWaiting) return Start(step);
  if (context_gone_.load(std::memory_order_acquire)) {
    cupti::ReportCondition(recorder_, ConditionId::kContextGone);
    TurnOff();
    counting_.EndSessions();
    return;
  }
  if (cupti::DeviceMemory::Reading memory; tap_.memory().OnStepEnd(MonotonicNs(), &memory)) {
    recorder_.NoteMemory(memory.in_use, memory.peak);
  }
  ReportGraphs();
  counting_.OnStepEnd(step, ProgramProfiles());
  operators_.OnStepEnd(step);
  memory_.OnStepEnd(step);
} catch (...) {
  // The only exception that can be thrown here is that memory ran out.
  recorder_.CountDrop("hardware source: out of memory");
  TurnOff();
}

// --- Start, at the end of the first step that finds a context.

void HardwareSource::Start(uint64_t step) {
  if (!Watch()) return;
  tap_.Begin(context_, contexts_.first()->device());
  state_.store(State::kMeasuring, std::memory_order_release);
  // The launches of this step were not seen, so a report that also divided by it would print too little.
  recorder_.LeaveStepOut();
  counting_.Begin(step);
  operators_.OnStepEnd(step);
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
  cupti::TimeCalls(&api_, settings_.verbosity >= 3);
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

// Lets CUPTI call the tap, so that what is captured is seen, and plans what will be counted. False, and nothing has
// changed, while there is no context, and when measuring was given up.
bool HardwareSource::Watch() {
  if (watching_) return !off();
  // Programs that never touch the GPU come no further than this; each look costs a microsecond.
  if (!Load()) return false;
  watching_ = true;
  CUdevice device = 0;
  if (api_.cuCtxGetDevice == nullptr || api_.cuCtxGetDevice(&device) != CUDA_SUCCESS) device = 0;
  operators_.SetDevice(cupti::DeviceAttribute(api_, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device),
                       cupti::DeviceAttribute(api_, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
  if (!contexts_.AddFirst(context_, static_cast<uint32_t>(device)) || !tap_.Subscribe()) {
    TurnOff();
    return false;
  }
  counting_.Start();
  return true;
}

// Says why the launches of some graph are not rows of their layers, and what a graph's row means; and forgets graphs
// that are gone.
void HardwareSource::ReportGraphs() {
  tap_.graphs().Sweep();
  const uint32_t reasons = tap_.graphs().TakeReasons();
  if (reasons == 0) return;
  using cupti::CapturedGraphs;
  if ((reasons & CapturedGraphs::kHasRow) != 0) {
    recorder_.ReportDiagnostic(
        Severity::kInfo, "graph-counters",
        "FLOP that CUDA graphs count are not told apart: a row \"(CUDA graph)\" has them, without a time; the rows of "
        "its kernels have the time and the bytes, and FLOP if they were counted outside of graphs before",
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

// --- Trouble.

void HardwareSource::TurnOff() noexcept {
  state_.store(State::kOff, std::memory_order_release);
  tap_.Close();
  operators_.Stop();
  cupti::AllocatorMemory::Stop();
  counting_.Stop();
}

// Called on the thread that destroys the context, inside the driver's call.
void HardwareSource::OnContextDestroyed(CUcontext context) noexcept {
  if (context == context_) context_gone_.store(true, std::memory_order_release);
  counting_.OnContextDestroyed(context);
}

// Called by any thread when the process ends, or when measuring was switched off. A session is left open: at this
// point of a process's life the driver may be gone.
void HardwareSource::Stop() noexcept { TurnOff(); }

// Called while the program runs, so the driver is there.
void HardwareSource::GiveBack() noexcept {
  if (!boundary_.LockFor(cupti::kStepLockWaitNs)) return;
  const HeldLock held(boundary_);
  if (!watching_) return;
  counting_.EndSessions();
  tap_.Unsubscribe();
}

void HardwareSource::OnForkedChild() noexcept {
  state_.store(State::kOff, std::memory_order_release);
  cupti::AllocatorMemory::Stop();
  boundary_.ResetInForkedChild();
  counting_.OnForkedChild();
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
