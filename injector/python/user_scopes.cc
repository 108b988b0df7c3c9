#include "injector/python/user_scopes.h"

#include "injector/python/loaded_code.h"
#include "injector/python/loaders.h"
#include "injector/python/optimizers.h"
#include "injector/python/ref.h"
#include "injector/python/type_slots.h"
#include "injector/training.h"

namespace rfinject {
namespace {

using FinalizeFunction = void (*)(PyObject* self);

// What to verify the slots' places with: a class that has all.
constexpr const char kProbe[] = "class Probe:\n def __init__(self): pass\n def __del__(self): pass\n";

// The trial makes scopes as torch's optimizers do, often enough for the interpreter to specialise the call.
constexpr int kTrials = 64;
constexpr const char kTrial[] = "def make():\n return record_function('rfinject')\nfor _ in range(trials): make()\n";

const PythonApi* g_scopes_python = nullptr;
PyTypeObject* g_class = nullptr;  // owned
InitFunction g_init = nullptr;
FinalizeFunction g_finalize = nullptr;  // null: the class has no __del__
int g_trial_begins = 0;
int g_trial_ends = 0;
bool g_on_trial = false;

int InitRecord(PyObject* self, PyObject* args, PyObject* kwargs);
void FinalizeRecord(PyObject* self);

// Where a class has the usual tp_alloc, Python 3.13 and later make its objects without tp_init, once a place in the
// program has made some; 3.14 also where __init__ has arguments with defaults, as here.
PyObject* AllocRecord(PyTypeObject* type, Py_ssize_t items) {
  return g_scopes_python->PyType_GenericAlloc(type, items);
}

// Each slot is looked at by itself: a function that is ours already must not become the one that we call.
void Patch() {
  if (void* init = LoadTypeSlot(g_class, kTypeInit); init != Address(&InitRecord)) {
    g_init = reinterpret_cast<InitFunction>(init);
    StoreTypeSlot(g_class, kTypeInit, Address(&InitRecord));
  }
  if (void* finalize = LoadTypeSlot(g_class, kTypeFinalize); finalize != Address(&FinalizeRecord)) {
    g_finalize = reinterpret_cast<FinalizeFunction>(finalize);
    StoreTypeSlot(g_class, kTypeFinalize, Address(&FinalizeRecord));
  }
  if (LoadTypeSlot(g_class, kTypeAlloc) == Address(g_scopes_python->PyType_GenericAlloc)) {
    StoreTypeSlot(g_class, kTypeAlloc, Address(&AllocRecord));
    g_scopes_python->PyType_Modified(g_class);  // where it is made without tp_init already
  }
}

// Neither function has a try, a destructor or a noexcept: see CallInLayer.
int InitRecord(PyObject* self, PyObject* args, PyObject* kwargs) {
  const int result = g_init(self, args, kwargs);
  if (result != 0) return result;
  if (g_on_trial) {
    ++g_trial_begins;
    return result;
  }
  // Torch passes the name by position. The program's own scopes may pass it by keyword; they are not looked at.
  if (args == nullptr || g_scopes_python->PyTuple_Size(args) < 1) return result;
  const char* name = g_scopes_python->PyUnicode_AsUTF8(g_scopes_python->PyTuple_GetItem(args, 0));
  if (name == nullptr) {
    DropError(*g_scopes_python);
    return result;
  }
  if (g_class == nullptr) return result;  // the constructor ran while we gave the slots back
  Patch();  // a scope that begins must be seen to end, also when a `__del__` was just assigned
  const UserScope scope = ClassifyScope(name);
  if (scope == UserScope::kLoader) NoteLoader(*g_scopes_python);
  if (scope == UserScope::kOptimizerStep) LookForLoadedCode();
  BeginUserScope(self, name, scope == UserScope::kOptimizerStep ? SteppingOptimizer() : 0);
  return result;
}

void FinalizeRecord(PyObject* self) {
  if (g_on_trial) {
    ++g_trial_ends;
  } else if (EndUserScope(self)) {
    void* thread = g_scopes_python->PyEval_SaveThread();
    EndTrainingStep();
    g_scopes_python->PyEval_RestoreThread(thread);
  }
  if (g_finalize != nullptr) g_finalize(self);
}

// What the program has assigned meanwhile stays.
void Unpatch() {
  const auto give_back = [](TypeSlot slot, void* ours, void* before) {
    if (LoadTypeSlot(g_class, slot) == ours) StoreTypeSlot(g_class, slot, before);
  };
  give_back(kTypeInit, Address(&InitRecord), Address(g_init));
  give_back(kTypeFinalize, Address(&FinalizeRecord), Address(g_finalize));
  give_back(kTypeAlloc, Address(&AllocRecord), Address(g_scopes_python->PyType_GenericAlloc));
  g_scopes_python->PyType_Modified(g_class);
}

bool Verified(const PythonApi& python, std::string* why) {
  if (IsFreeThreaded(python)) {
    *why = "this Python has no GIL, types have another layout there";
    return false;
  }
  const Ref probe = RunPython(python, kProbe, why).Item("Probe");
  if (!probe) return false;
  for (const TypeSlot& slot : {kTypeInit, kTypeFinalize, kTypeAlloc}) {
    void* value = python.PyType_GetSlot(probe.as_type(), slot.number);
    const bool usual = slot.number != kTypeAlloc.number || value == Address(python.PyType_GenericAlloc);
    if (value != nullptr && value == LoadTypeSlot(probe.as_type(), slot) && usual) continue;
    DropError(python);
    *why = "type slots are not where this Python's version should have them";
    return false;
  }
  return true;
}

// Makes scopes that are never entered, and checks that both slots were called for each.
bool Trial(std::string* why) {
  Ref trials(*g_scopes_python, g_scopes_python->PyLong_FromLong(kTrials));
  g_on_trial = true;
  g_trial_begins = g_trial_ends = 0;
  std::string error;
  const Ref space = RunPython(*g_scopes_python, kTrial, &error,
                              {{"record_function", reinterpret_cast<PyObject*>(g_class)}, {"trials", trials.get()}});
  g_on_trial = false;
  if (space && g_trial_begins == kTrials && g_trial_ends == kTrials) return true;
  *why = "the patched slots of record_function were not used in a trial";
  return false;
}

}  // namespace

bool WatchUserScopes(const PythonApi& python, std::string* why) {
  if (!Verified(python, why)) return false;
  Ref record = ImportedModule(python, "torch.autograd.profiler").Attribute("record_function");
  if (!record.IsInstance(python.PyType_Type)) {
    *why = "torch.autograd.profiler.record_function is no class";
    return false;
  }
  InitOptimizers(python);
  g_scopes_python = &python;
  g_class = record.as_type();
  Patch();
  if (!Trial(why)) {
    Unpatch();
    g_class = nullptr;
    return false;
  }
  record.release();
  return true;
}

void StopWatchingUserScopes() {
  if (g_class == nullptr) return;
  Unpatch();
  g_scopes_python->Py_DecRef(reinterpret_cast<PyObject*>(g_class));
  g_class = nullptr;
}

void RepairUserScopes() noexcept {
  if (g_class != nullptr) Patch();
}

}  // namespace rfinject
