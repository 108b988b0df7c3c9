#include "injector/python/module_calls.h"

#include <cstddef>

#include "injector/layer_stack.h"
#include "injector/python/modules.h"
#include "injector/python/ref.h"
#include "injector/python/type_slots.h"
#include "injector/python/vectorcall.h"

namespace rfinject {
namespace {

const PythonApi* g_calls_python = nullptr;

// The innermost module being called on this thread. Initial-exec: 8 of the bytes that glibc keeps for libraries that
// are opened at run time, for a read without a call.
[[gnu::tls_model("initial-exec")]] constinit thread_local const ModuleFrame* t_frame = nullptr;

// This has no try, no destructor and no noexcept on purpose: a daemon thread that the interpreter ends (pthread_exit)
// is unwound through this frame by the program's unwinder, which must find nothing here that needs running.
template <typename Original>
[[gnu::always_inline]] inline PyObject* CallInLayer(PyObject* self, const CallArguments& arguments,
                                                    Original original) {
  const ModuleCall call = EnterModule(self, arguments, t_frame);
  ModuleFrame frame(t_frame, self);
  t_frame = &frame;
  if (call.layer != 0) EnterLayer(call.layer);
  PyObject* result = original();
  if (call.layer != 0) LeaveLayer();
  t_frame = frame.enclosing;
  frame.self = nullptr;
  if (call.wants_shapes && result != nullptr) [[unlikely]] {
    RecordShapes(call, self, arguments, result);
  }
  return result;
}

// An nn.Identity is called with an argument, and without one (which fails); `g_trial_calls` must count both. Other
// threads may call modules meanwhile.
PyObject* g_trial_module = nullptr;
int g_trial_calls = 0;
bool Trial(std::string* why) {
  auto* none = static_cast<PyObject*>(g_calls_python->_Py_NoneStruct);
  Ref identity = ImportedModule(*g_calls_python, "torch.nn").Attribute("Identity").Call();
  g_trial_module = identity.get();
  g_trial_calls = 0;
  Ref result = identity.Call({none});
  if (result.get() != none || g_trial_calls != 1) {
    *why = "the call of a module did not pass through it in a trial";
    return false;
  }
  Ref failed = identity.Call();
  if (failed || g_trial_calls != 2) {
    *why = "the failing call of a module did not fail through it in a trial";
    return false;
  }
  return true;
}

// --- The call slot.

PyObject* CallBySlot(PyObject* self, PyObject* args, PyObject* kwargs) {
  return CallInLayer(self, CallArguments{args, kwargs, nullptr, 0},
                     [&] { return g_generic_call(self, args, kwargs); });
}

PyObject* CountBySlot(PyObject* self, PyObject* args, PyObject* kwargs) {
  g_trial_calls += self == g_trial_module ? 1 : 0;
  return g_generic_call(self, args, kwargs);
}

// --- The function.

Vectorcall g_generic_vectorcall = nullptr;
PyObject* g_watched_function = nullptr;  // owned; null: none is watched

PyObject* CallByFunction(PyObject* callable, PyObject* const* arguments, size_t flagged_count, PyObject* names) {
  Py_ssize_t count = VectorcallCount(flagged_count);
  // A call without a self fails; and a call that a class's own `__call__` passes on was entered by the class's slot.
  if (count == 0 || (t_frame != nullptr && t_frame->module == arguments[0])) {
    return g_generic_vectorcall(callable, arguments, flagged_count, names);
  }
  if (names != nullptr) count += g_calls_python->PyTuple_Size(names);
  return CallInLayer(arguments[0], CallArguments{nullptr, nullptr, arguments + 1, count - 1},
                     [&] { return g_generic_vectorcall(callable, arguments, flagged_count, names); });
}

PyObject* CountByFunction(PyObject* callable, PyObject* const* arguments, size_t flagged_count, PyObject* names) {
  g_trial_calls += VectorcallCount(flagged_count) != 0 && arguments[0] == g_trial_module ? 1 : 0;
  return g_generic_vectorcall(callable, arguments, flagged_count, names);
}

}  // namespace

ModuleCalls WatchModuleCalls(const PythonApi& python, bool with_function) {
  g_calls_python = &python;
  ModuleCalls calls;
  Ref module_class = ImportedModule(python, "torch.nn.modules.module").Attribute("Module");
  if (!module_class.IsInstance(python.PyType_Type)) {
    calls.why_no_slots = calls.why_no_function = "torch.nn.Module is not there";
    return calls;
  }
  // Both ways are tried before either is in use; otherwise the trial's module would be taken for a model.
  const char* reason = "";
  Ref function = module_class.Attribute("__call__");
  if (!with_function) {
    calls.why_no_function = "RFINJECT_TIER=C";
  } else {
    Ref other = module_class.Attribute("__init__");
    g_generic_vectorcall = FindVectorcall(python, function.get(), other.get(), &reason);
    if (g_generic_vectorcall == nullptr) {
      calls.why_no_function = reason;
    } else {
      SetVectorcall(function.get(), &CountByFunction);
      calls.function = Trial(&calls.why_no_function);
      SetVectorcall(function.get(), g_generic_vectorcall);
    }
  }
  if (InstallTypeSlots(python, module_class.as_type(), nullptr, &CountBySlot, &reason)) {
    calls.slots = Trial(&calls.why_no_slots);
    RemoveTypeSlots();
  } else {
    calls.why_no_slots = reason;
  }
  if (calls.function) {
    SetVectorcall(function.get(), &CallByFunction);
    g_watched_function = Ref::Borrow(python, function.get()).release();
  }
  if (calls.slots) {
    calls.slots = InstallTypeSlots(python, module_class.as_type(), calls.function ? function.get() : nullptr,
                                   &CallBySlot, &reason);
    if (!calls.slots) calls.why_no_slots = reason;
  }
  return calls;
}

void StopWatchingModuleCalls() {
  if (g_calls_python == nullptr) return;
  if (g_watched_function != nullptr) {
    SetVectorcall(g_watched_function, g_generic_vectorcall);
    g_calls_python->Py_DecRef(g_watched_function);
    g_watched_function = nullptr;
  }
  RemoveTypeSlots();
  RemoveInitSlots();
}

}  // namespace rfinject
