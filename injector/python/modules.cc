#include "injector/python/modules.h"

#include <cxxabi.h>

#include <atomic>
#include <string>

#include "collector/last_words.h"
#include "injector/python/module_registry.h"
#include "injector/python/module_steps.h"
#include "injector/python/ref.h"
#include "injector/python/tensor_reader.h"
#include "injector/python/torch_state.h"
#include "injector/training.h"

namespace rfinject {
namespace {

// All that is known of the process's modules. InitModules makes it, once, and the process owns it: it is never
// destroyed, since Python and torch may call for as long as the process lives. A forked child goes on with its copy.
struct Modules {
  Modules(const PythonApi& python_in, Recorder& recorder_in, Source* source, ActivationFunction activation,
          PyCFunction on_death)
      : registry(python_in, recorder_in, on_death),
        python(python_in),
        recorder(recorder_in),
        tensors(python_in),
        steps(python_in, recorder_in, source, tensors, activation) {}

  ModuleRegistry registry;
  const PythonApi& python;
  Recorder& recorder;
  TensorReader tensors;
  ModuleSteps steps;
};

// Null in a process without Python or before torch was imported.
constinit std::atomic<Modules*> g_modules{nullptr};

Modules* TheModules() noexcept { return g_modules.load(std::memory_order_acquire); }

// --- What Python calls.

PyObject* OnModuleDeath(PyObject*, PyObject* weakref) {
  Modules& modules = *TheModules();
  modules.registry.OnDeath(weakref);
  return NewNone(modules.python);
}

// A pending call: on the main thread, GIL held.
int ActivateWithoutModules(void*) {
  Modules& modules = *TheModules();
  try {
    if (modules.steps.EnsureActive(/*first_call=*/false)) modules.steps.UpdatePolicy();
  } catch (::abi::__forced_unwind&) {
    throw;
  } catch (...) {
    modules.recorder.Disable("out of memory while the trace was opened");
  }
  DropError(modules.python);
  return 0;
}

[[gnu::noinline]] ModuleCall EnterModuleSlowly(Modules& modules, PyObject* module, const CallArguments& arguments,
                                               const ModuleFrame* enclosing) {
  ModuleCall call;
  try {
    ModuleRegistry& registry = modules.registry;
    const ModuleRegistry::Entry* entry = registry.Find(module);
    bool replica = false;
    if (entry == nullptr) {
      call.layer = registry.FindLayer(module, arguments, enclosing);
      entry = registry.Find(module);
      replica = entry == nullptr;  // layers of lasting modules are remembered
    } else {
      if (entry->lone_root && enclosing != nullptr) entry = registry.Adopt(module, enclosing);
      call.layer = entry != nullptr ? entry->layer : 0;
    }
    if (entry != nullptr) call.wants_shapes = entry->wants_shapes;
    const bool root = enclosing == nullptr && !replica;
    if (root && !registry.HasParameters(call.layer, module)) {
      g_called_without_parameters.store(true, std::memory_order_relaxed);
    } else if (root) {
      const RootModule called{
          .layer = call.layer,
          .root = registry.RootOf(call.layer),
          .training = registry.IsTraining(module),
          .owned = !modules.steps.roles().IsKnownToTrain(call.layer) && registry.IsOwned(call.layer, module),
          .sequence_first = registry.IsSequenceFirst(call.layer)};
      const uint32_t trained = modules.steps.roles().last_trained();
      modules.steps.OnRootCall(called, trained != 0 && registry.RootIsInEvalMode(trained), arguments);
    }
  } catch (::abi::__forced_unwind&) {
    throw;  // pthread_exit, where the interpreter ends while a daemon thread runs
  } catch (...) {
    modules.recorder.Disable("out of memory while a module was named");
  }
  DropError(modules.python);
  return call;
}

}  // namespace

ModuleCall EnterModule(PyObject* module, const CallArguments& arguments, const ModuleFrame* enclosing) {
  Modules& modules = *TheModules();
  if (enclosing != nullptr) [[likely]] {
    const ModuleRegistry::Entry* entry = modules.registry.Find(module);
    if (entry != nullptr && !entry->lone_root) [[likely]] {
      return ModuleCall{entry->layer, entry->wants_shapes};
    }
  }
  return EnterModuleSlowly(modules, module, arguments, enclosing);
}

void RecordShapes(const ModuleCall& call, PyObject* module, const CallArguments& arguments, PyObject* result) {
  Modules& modules = *TheModules();
  try {
    bool found = false;
    if (!Tracing() && modules.registry.TakeShapeAttempt(call.layer)) {
      QuietTorch quiet;
      const std::string input = modules.tensors.Describe(modules.tensors.FirstArgument(arguments));
      constexpr int kDepthOfResults = 3;  // tuples and dicts of what a model gives back
      const std::string output = modules.tensors.Describe(modules.tensors.FirstTensor(result, kDepthOfResults));
      found = !input.empty() || !output.empty();
      if (found) modules.recorder.SetLayerShapes(call.layer, input, output);
    }
    modules.registry.EndShapeAttempt(module, call.layer, found);
  } catch (::abi::__forced_unwind&) {
    throw;
  } catch (...) {
    modules.recorder.Disable("out of memory while a layer's shapes were noted");
  }
  DropError(modules.python);
}

void TellParameterLayers() {
  if (Modules* modules = TheModules()) SetParameterLayers(modules->registry.ParameterLayers(), modules->recorder);
}

void EndLastInferenceStep() noexcept {
  if (Modules* modules = TheModules()) modules->steps.EndLastInferenceStep();
}

uint64_t TakeSamplesOfStep() noexcept {
  Modules* modules = TheModules();
  return modules != nullptr ? modules->steps.TakeSamples() : 0;
}

void NoteCallsOfStep(std::string_view optimizer, uint32_t number) noexcept {
  if (Modules* modules = TheModules()) modules->steps.NoteCallsOfStep(optimizer, number);
}

void NoteOptimizerStep() noexcept {
  Modules* modules = TheModules();
  if (modules == nullptr) {
    Recorder::Get().Activate();  // returns at once when that was done
  } else if (modules->steps.NoteOptimizerStep()) {
    modules->python.Py_AddPendingCall(&ActivateWithoutModules, nullptr);
  }
}

bool InitModules(const PythonApi& python, Recorder& recorder, Source* source, ActivationFunction activation,
                 const char** why) {
  Modules* modules = TheModules();
  if (modules != nullptr) {
    modules->steps.BeginAgain(source);
  } else {
    modules = new Modules(python, recorder, source, activation, &OnModuleDeath);
    g_modules.store(modules, std::memory_order_release);
  }
  if (modules->registry.ready() && modules->tensors.ready()) return true;
  *why = "torch.Tensor could not be found";
  return false;
}

void ResetModulesAfterFork() noexcept {
  if (Modules* modules = TheModules()) modules->steps.ResetAfterFork();
}

}  // namespace rfinject
