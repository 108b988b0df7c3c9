#include "injector/python/module_calls.h"

#include <cstdint>
#include <iterator>
#include <new>

#include "injector/layer_stack.h"
#include "injector/python/modules.h"
#include "injector/python/ref.h"
#include "injector/python/type_slots.h"

namespace rfinject {
namespace {

const PythonApi* g_python = nullptr;

// The innermost module being called on this thread. Initial-exec: 8 of the bytes that glibc keeps for libraries that
// are opened at run time, for a read without a call.
[[gnu::tls_model("initial-exec")]] constinit thread_local const ModuleFrame* t_frame = nullptr;

// --- The call slot.

// Has no try, no destructor and no noexcept on purpose: a daemon thread that the interpreter ends (pthread_exit) is
// unwound through this frame by the program's unwinder, which must find nothing here that needs running.
PyObject* CallModule(PyObject* self, PyObject* args, PyObject* kwargs) {
  const ModuleCall call = EnterModule(self, args, kwargs, t_frame);
  ModuleFrame frame(t_frame, self);
  t_frame = &frame;
  if (call.layer != 0) EnterLayer(call.layer);
  PyObject* result = g_generic_call(self, args, kwargs);
  if (call.layer != 0) LeaveLayer();
  t_frame = frame.enclosing;
  frame.self = nullptr;
  if (call.wants_shapes && result != nullptr) [[unlikely]] {
    RecordShapes(call, self, args, kwargs, result);
  }
  return result;
}

int g_trial_calls = 0;
PyObject* CountCall(PyObject* self, PyObject* args, PyObject* kwargs) {
  ++g_trial_calls;
  return g_generic_call(self, args, kwargs);
}

// An nn.Identity is called with an argument, and without one (which fails).
bool Trial(std::string* why) {
  auto* none = static_cast<PyObject*>(g_python->_Py_NoneStruct);
  Ref identity = ImportedModule(*g_python, "torch.nn").Attribute("Identity").Call();
  g_trial_calls = 0;
  Ref result = identity.Call({none});
  if (result.get() != none || g_trial_calls != 1) {
    *why = "the patched call slot was not used in a trial";
    return false;
  }
  Ref failed = identity.Call();
  if (failed || g_trial_calls != 2) {
    *why = "a failing call through the patched slot did not fail";
    return false;
  }
  return true;
}

// --- Hooks.

struct HookFrame : ModuleFrame {
  HookFrame(const ModuleFrame* outer, PyObject* called) : ModuleFrame(outer, called) {}
  ModuleCall call;
};

void Pop() {
  const auto* frame = static_cast<const HookFrame*>(t_frame);
  if (frame->call.layer != 0) LeaveLayer();
  t_frame = frame->enclosing;
  delete frame;
}

bool OnStack(PyObject* module) {
  for (const ModuleFrame* frame = t_frame; frame != nullptr; frame = frame->enclosing) {
    if (frame->module == module) return true;
  }
  return false;
}

// Removes frames down to and including `module`'s: those above it were left by exceptions that told no hook.
void PopTo(PyObject* module) {
  if (!OnStack(module)) return;
  for (bool found = false; !found;) {
    found = t_frame->module == module;
    Pop();
  }
}

// Whether `module` is a registered child of `parent`.
bool IsChild(PyObject* parent, PyObject* module) {
  Ref children = Ref::Borrow(*g_python, parent).Attribute("_modules");
  if (!children.IsInstance(g_python->PyDict_Type)) return false;
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t position = 0; g_python->PyDict_Next(children.get(), &position, &key, &value) != 0;) {
    if (value == module) return true;
  }
  return false;
}

// Before torch 2.0 no hook runs when a module fails, so that the frames of failed modules stay. They are noticed when
// a module is entered whose parent lies further down.
bool g_told_of_failures = false;
void PopFailed(PyObject* module) {
  for (const ModuleFrame* frame = t_frame; frame != nullptr; frame = frame->enclosing) {
    if (!IsChild(frame->module, module)) continue;
    while (t_frame != frame) Pop();
    return;
  }
}

PyObject* None() {
  auto* none = static_cast<PyObject*>(g_python->_Py_NoneStruct);
  g_python->Py_IncRef(none);
  return none;
}

// rfinject_enter(module, args)
PyObject* HookEnter(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 2) return None();
  PyObject* module = arguments[0];
  PyObject* args = arguments[1];
  // A module that calls itself is so rare, and an exception that left it here so common, that the latter is assumed.
  PopTo(module);
  if (!g_told_of_failures) PopFailed(module);
  const ModuleCall call = EnterModule(module, args, nullptr, t_frame);
  auto* frame = new (std::nothrow) HookFrame(t_frame, module);
  if (frame == nullptr) return None();
  frame->call = call;
  t_frame = frame;
  if (call.layer != 0) EnterLayer(call.layer);
  return None();
}

// rfinject_leave(module, args, output)
PyObject* HookLeave(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 3) return None();
  PyObject* module = arguments[0];
  PyObject* args = arguments[1];
  PyObject* output = arguments[2];
  while (t_frame != nullptr && OnStack(module) && t_frame->module != module) Pop();
  if (t_frame == nullptr || t_frame->module != module) return None();
  const ModuleCall call = static_cast<const HookFrame*>(t_frame)->call;
  Pop();
  if (call.wants_shapes && output != g_python->_Py_NoneStruct) RecordShapes(call, module, args, nullptr, output);
  return None();
}

// Python calls it by the flags of its definition.
PyCFunction AsMethod(PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

// torch.compile inlines hooks into what it compiles: there they must vanish, or the graph breaks at each module. They
// use no global names, since the dict of those would be guarded, and torch itself adds to it. A torch that does not
// compile calls the functions themselves.
constexpr const char kHooks[] = R"python(
import warnings
from torch.nn.modules import module as _module

def make(is_compiling, enter, leave):
    def before(module, args):
        if is_compiling():
            return
        enter(module, args)

    def after(module, args, output):
        if is_compiling():
            return
        leave(module, args, output)

    return before, after

compiler = getattr(torch, "compiler", None)
# The first is one Python call, the second two or three.
is_compiling = getattr(compiler, "is_dynamo_compiling", None) or getattr(compiler, "is_compiling", None)
if is_compiling is not None:
    before, after = make(is_compiling, enter, leave)
elif int(torch.__version__.split(".")[0]) >= 2:
    raise RuntimeError("this torch compiles, but cannot say when")
else:
    before, after = enter, leave
_module.register_module_forward_pre_hook(before)
try:
    _module.register_module_forward_hook(after, always_call=True)
    told_of_failures = True
except TypeError:
    _module.register_module_forward_hook(after)
    told_of_failures = False
warnings.filterwarnings("ignore", message=r"Using `torch\.compile\(module\)` when there are global hooks")
)python";

}  // namespace

bool WatchCallSlots(const PythonApi& python, std::string* why) {
  g_python = &python;
  Ref module_class = ImportedModule(python, "torch.nn.modules.module").Attribute("Module");
  if (!module_class.IsInstance(python.PyType_Type)) {
    *why = "torch.nn.Module is not there";
    return false;
  }
  const char* reason = "";
  bool good = InstallTypeSlots(python, module_class.as_type(), &CountCall, &reason);
  if (good) {
    good = Trial(why);
    RemoveTypeSlots();
    good = good && InstallTypeSlots(python, module_class.as_type(), &CallModule, &reason);
  }
  if (!good && why->empty()) *why = reason;
  return good;
}

bool WatchModuleHooks(const PythonApi& python, std::string* why) {
  g_python = &python;
  if (IsFreeThreaded(python)) {
    *why = "this Python has no GIL, which guards our tables";
    return false;
  }
  Ref torch = ImportedModule(python, "torch");
  // The function objects point to them for as long as the interpreter lives.
  static PyMethodDef enter_method = {"rfinject_enter", AsMethod(&HookEnter), kMethFastcall, nullptr};
  static PyMethodDef leave_method = {"rfinject_leave", AsMethod(&HookLeave), kMethFastcall, nullptr};
  Ref enter(python, python.PyCFunction_NewEx(&enter_method, nullptr, nullptr));
  Ref leave(python, python.PyCFunction_NewEx(&leave_method, nullptr, nullptr));
  if (!torch || !enter || !leave) {
    *why = "out of memory";
    return false;
  }
  const char* const names[] = {"torch", "enter", "leave"};
  PyObject* const values[] = {torch.get(), enter.get(), leave.get()};
  char error[200];
  Ref space(python, RunPython(python, kHooks, names, values, std::size(names), error, sizeof error));
  if (!space) *why = error;
  PyObject* told = space ? python.PyDict_GetItemString(space.get(), "told_of_failures") : nullptr;
  g_told_of_failures = told == python._Py_TrueStruct;
  return static_cast<bool>(space);
}

}  // namespace rfinject
