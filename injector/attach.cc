#include "injector/attach.h"

#include <cxxabi.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <utility>

#include "collector/native_stack.h"
#include "collector/program_profiler.h"
#include "collector/recorder.h"
#include "collector/settings.h"
#include "collector/source.h"
#include "collector/step_end.h"
#include "collector/step_waits.h"
#include "injector/foreign_exceptions.h"
#include "injector/layer_stack.h"
#include "injector/native/native_stacks.h"
#include "injector/python/change.h"
#include "injector/python/compiled_code.h"
#include "injector/python/graph_breaks.h"
#include "injector/python/module_calls.h"
#include "injector/python/modules.h"
#include "injector/python/profilers.h"
#include "injector/python/python_api.h"
#include "injector/python/ref.h"
#include "injector/python/torch_state.h"
#include "injector/python/type_slots.h"
#include "injector/python/user_scopes.h"
#include "injector/python_calibration.h"
#include "injector/source_lines.h"
#include "injector/torch/binding.h"
#include "injector/torch/engine_threads.h"
#include "injector/torch/native_observer.h"
#include "injector/torch/scopes.h"
#include "injector/training.h"

namespace rfinject {
namespace {

// One request in this many walks all classes, which finds any class that was not patched in time.
constexpr uint32_t kRequestsPerWalk = 64;
// A program that catches SystemExit this often does not want to end.
constexpr int kMaxExits = 3;

constinit std::atomic<pid_t> g_pid{0};  // of the process that attached; 0: none did
constinit std::atomic<Source*> g_source{nullptr};
constinit std::atomic<const PythonApi*> g_python{nullptr};
constinit std::atomic<bool> g_repair_pending{false};
constinit std::atomic<bool> g_exit_pending{false};
constinit std::atomic<bool> g_step_end_pending{false};
constinit std::atomic<uint32_t> g_steps_due{0};
constinit std::atomic<int> g_exits_raised{0};
constinit std::atomic<uint32_t> g_requests{0};
constinit std::atomic<bool> g_without_modules{false};  // tiers D and E: no root call activates the recorder

void AfterForkInChild() noexcept {
  if (g_pid.load() != 0) g_pid.store(getpid());
  g_repair_pending.store(false);
  g_exit_pending.store(false);
  g_step_end_pending.store(false);
  g_steps_due.store(0);
  g_exits_raised.store(0);
  ResetLayerStackAfterFork();
  ResetSourceLinesAfterFork();
  ResetModulesAfterFork();
  ResetNativeObserverAfterFork();
  ResetNativeStacksAfterFork();
}

void FinishAtExit() { FinishProcess("exit"); }

// Exit handlers run in reverse order: this one is registered when the training begins, so that it runs before the
// handlers of what was loaded with torch (CUDA's teardown among them).
void OnActivation() {
  static const int registered = std::atexit(&FinishAtExit);
  (void)registered;
}

Source* Begin() {
  static const int registered = [] {
    PrepareForForeignExceptions();
    return pthread_atfork(nullptr, nullptr, &AfterForkInChild);
  }();
  (void)registered;
  g_pid.store(getpid());
  OfferNativeStacks();
  Recorder& recorder = Recorder::Get();
  Source* source = MakeSource(GetSettings(), recorder);
  g_source.store(source);
  return source;
}

bool Forced(char tier) { return GetSettings().tier.size() == 1 && GetSettings().tier[0] >= tier; }

void Append(std::string& reason, const std::string& more) {
  if (more.empty()) return;
  if (!reason.empty()) reason += "; ";
  reason += more;
}

// Reports which tier the modules and the binding make together, and why it is not a better one.
void ReportTier(Tier tier, bool backward, const std::string& reason) {
  RunFacts facts;
  facts.tier = tier;
  facts.process.tier_reason = reason;
  Recorder& recorder = Recorder::Get();
  recorder.UpdateFacts(facts);
  // Tier B knows as much as A, but costs more; the tiers below know less.
  if (tier >= Tier::kCCallSlots || !backward) {
    recorder.ReportDiagnostic(
        Severity::kWarning, "tier",
        "attribution works at tier " + std::string(1, static_cast<char>('A' - 1 + int(tier))) + " only: " + reason,
        "`rfinject doctor` says more");
  }
}

// The interpreter calls it between two instructions of the program's. As where an optimizer ends a step, the GIL is
// released meanwhile.
int EndDueSteps(void*) {
  g_step_end_pending.store(false);
  const PythonApi* python = g_python.load();
  void* thread = python->PyEval_SaveThread();
  for (uint32_t due = g_steps_due.exchange(0); due > 0; --due) EndStepOfProgram();
  python->PyEval_RestoreThread(thread);
  return 0;
}

void EndStepWhenPythonGoesOn() noexcept {
  g_steps_due.fetch_add(1);
  if (g_step_end_pending.exchange(true)) return;
  if (g_python.load()->Py_AddPendingCall(&EndDueSteps, nullptr) != 0) g_step_end_pending.store(false);
}

PyObject* OnPythonEnds(PyObject*, PyObject*);

// Python 3.9 and later have calls before all exit handlers; before, ours is called after those that the program
// registers later.
void AskForPythonsEnd(const PythonApi& python) {
  static bool asked = false;
  if (std::exchange(asked, true)) return;
  static PyMethodDef method{"rfinject_write", &OnPythonEnds, kMethNoArgs, nullptr};
  Ref function(python, python.PyCFunction_NewEx(&method, nullptr, nullptr));
  Ref ask = ImportedModule(python, "threading").Attribute("_register_atexit");
  if (!ask) ask = ImportedModule(python, "atexit").Attribute("register");
  ask.Call({function.get()});
  DropError(python);
}

void AttachPythonUnguarded(const PythonApi& python) {
  Recorder& recorder = Recorder::Get();
  Source* source = Begin();
  g_python.store(&python);
  g_end_step_soon.store(&EndStepWhenPythonGoesOn, std::memory_order_release);
  InitTorchState(python);
  recorder.UpdateFacts(ReadVersions());
  g_program_subscribes.store(HasCuptiPython());
  const char* why_not_modules = "";
  const bool modules = InitModules(python, recorder, source, &OnActivation, &why_not_modules);
  if (source != nullptr) source->OnPolicy(ReadPolicy());
  InitScopes(recorder, source);
  std::string why_no_scope_slots;
  const bool scope_slots = modules && !Forced('D') && WatchUserScopes(python, &why_no_scope_slots);
  if (scope_slots) WatchWaits(kDataWaits);
  const TorchCapabilities torch = BindTorch(&CalibrateByPython, recorder, source, scope_slots);

  std::string reason;
  Tier tier = Tier::kDNamesOnly;
  const bool backward = torch.current_node || torch.backward_scope;
  if (!modules) {
    reason = why_not_modules;
  } else if (Forced('D')) {
    if (Forced('E')) tier = Tier::kFNoTorch;  // torch.missing says why
  } else {
    const ModuleCalls calls = WatchModuleCalls(python, !Forced('C'));
    if (calls.function) {
      tier = torch.current_node ? Tier::kACurrentNode : Tier::kBBackwardScope;
    } else {
      if (calls.slots) tier = Tier::kCCallSlots;
      Append(reason, Forced('C') ? calls.why_no_function : "Module.__call__: " + calls.why_no_function);
    }
    if (!calls.slots) Append(reason, "call slots: " + calls.why_no_slots);
  }
  if (tier != Tier::kACurrentNode || !backward) Append(reason, torch.missing);
  if (!why_no_scope_slots.empty()) Append(reason, "optimizer steps by callbacks: " + why_no_scope_slots);
  if (tier == Tier::kDNamesOnly && !torch.record_function) tier = Tier::kFNoTorch;
  g_without_modules.store(tier >= Tier::kDNamesOnly);
  AskForPythonsEnd(python);
  OfferSourceLines(python, recorder);
  if (source != nullptr) {
    WatchCompiledCode(recorder, *source);
    WatchProfilers(python, *source);
  }
  WatchGraphBreaks(recorder);
  ReportTier(tier, backward, reason);
  RunChange(python);
  DropError(python);
}

// Closes the trace, and gives back what the source and torch's binding have hooked.
void EndRecording(Source* source) {
  if (source != nullptr) source->OnProfilerComes();
  FinishProcess("detached");
  if (source != nullptr) {
    source->Stop();
    source->GiveBack();
  }
  g_source.store(nullptr);
  UnbindTorch();
  StopOfferingSourceLines();
  g_native_stack.store(nullptr, std::memory_order_release);
  ResetNativeStacksAfterFork();  // their names were given at the end of the trace, for which they are locked
  g_without_modules.store(false);
  g_pid.store(0);
}

bool MayGiveBack(const Source* source) { return source == nullptr || source->MayGiveBack(); }

// --- Pending calls: on the main thread, GIL held.

int Repair(void*) {
  g_repair_pending.store(false);
  try {
    RepairTypeSlots();
  } catch (::abi::__forced_unwind&) {
    throw;
  } catch (...) {
    Recorder::Get().Disable("out of memory while classes were looked for");
  }
  return 0;
}

// Called by Python before it ends: before its exit handlers, and before it takes down what other threads still use.
// A program that one of these ends by a signal keeps the steps that it has finished.
PyObject* OnPythonEnds(PyObject*, PyObject*) {
  const PythonApi& python = *g_python.load();
  if (g_pid.load() == 0) return NewNone(python);  // detached
  void* thread = python.PyEval_SaveThread();
  Recorder::Get().WriteNow();
  WaitForEngineThreads();
  python.PyEval_RestoreThread(thread);
  return NewNone(python);
}

int RaiseSystemExit(void*) {
  g_exit_pending.store(false);
  g_exits_raised.fetch_add(1);
  const PythonApi* python = g_python.load();
  python->PyErr_SetNone(static_cast<PyObject*>(python->PyExc_SystemExit));
  return -1;
}

}  // namespace

void AttachPython(const PythonApi& python) {
  try {
    AttachPythonUnguarded(python);
  } catch (::abi::__forced_unwind&) {
    throw;
  } catch (...) {
    Recorder::Get().Disable("out of memory while attaching to torch");
  }
}

bool DetachPython(const PythonApi& python) {
  Source* const source = g_source.load();
  if (!MayGiveBack(source)) return false;
  StopWatchingModuleCalls();
  StopWatchingUserScopes();
  StopWatchingProfilers();
  g_end_step_soon.store(nullptr, std::memory_order_release);
  void* thread = python.PyEval_SaveThread();
  EndRecording(source);
  python.PyEval_RestoreThread(thread);
  DropError(python);
  return true;
}

void AttachLibtorch(bool running) noexcept try {
  Recorder& recorder = Recorder::Get();
  Source* source = Begin();
  if (running) LeaveNativeStepOut();
  const TorchCapabilities torch = BindTorch(nullptr, recorder, source, false);
  g_without_modules.store(true);
  ReportTier(torch.record_function ? Tier::kELibtorch : Tier::kFNoTorch, torch.current_node || torch.backward_scope,
             torch.missing.empty() ? "libtorch without Python" : "libtorch without Python; " + torch.missing);
} catch (...) {
  Recorder::Get().Disable("out of memory while attaching to libtorch");
}

bool DetachLibtorch() {
  Source* const source = g_source.load();
  if (!MayGiveBack(source)) return false;
  DropOpenNativeStep();
  EndRecording(source);
  return true;
}

bool IsAttached() noexcept { return g_pid.load() != 0; }

void ActivateWithoutPython() noexcept {
  Recorder& recorder = Recorder::Get();
  recorder.BeginFirstStep();
  recorder.Activate();
  OnActivation();
}

void FinishProcess(std::string_view reason) noexcept {
  // A vfork child shares our memory, and its end is not ours. Most processes never attached, and must not pay a
  // system call for this check.
  const pid_t attached = g_pid.load();
  if (attached == 0 || attached != getpid()) return;
  EndLastInferenceStep();
  EndLastNativeStep();
  if (Source* source = g_source.load(); source != nullptr && Recorder::Get().active()) source->Stop();
  if (Recorder::Get().active()) NameNativeStacks(Recorder::Get());
  Recorder::Get().Finish(reason);
}

void RequestSlotRepair() noexcept {
  const PythonApi* python = g_python.load(std::memory_order_relaxed);
  if (g_without_modules.load(std::memory_order_relaxed)) NoteOptimizerStep();
  if (python == nullptr) return;
  const bool walk = g_requests.fetch_add(1, std::memory_order_relaxed) % kRequestsPerWalk == 0;
  if (!TypeSlotsLost() && !walk) return;
  if (g_repair_pending.exchange(true)) return;
  if (python->Py_AddPendingCall(&Repair, nullptr) != 0) g_repair_pending.store(false);
}

void RequestPoliteExit() noexcept {
  const PythonApi* python = g_python.load();
  if (python == nullptr) {
    FinishProcess("exit");  // no exit handler runs where a signal ends the program
    kill(getpid(), SIGTERM);
    return;
  }
  if (g_exit_pending.exchange(true)) return;
  if (python->Py_AddPendingCall(&RaiseSystemExit, nullptr) != 0) g_exit_pending.store(false);
}

void InsistOnPoliteExit() noexcept {
  const int raised = g_exits_raised.load(std::memory_order_relaxed);
  if (raised == 0 || raised > kMaxExits) return;
  if (raised < kMaxExits) {
    RequestPoliteExit();
  } else if (g_exits_raised.exchange(kMaxExits + 1) == kMaxExits) {
    Recorder::Get().ReportDiagnostic(Severity::kWarning, "exit-refused",
                                     "the program was asked to end after its last measured step, and goes on",
                                     "end it by hand; what was measured is in the trace");
  }
}

}  // namespace rfinject
