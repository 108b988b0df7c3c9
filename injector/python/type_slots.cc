#include "injector/python/type_slots.h"

#include <cstring>

#include "injector/python/ref.h"

namespace rfinject {

CallFunction g_generic_call = nullptr;

namespace {

const PythonApi* g_slots_python = nullptr;
PyTypeObject* g_module_class = nullptr;  // owned
PyObject* g_subclasses = nullptr;        // the descriptor type.__subclasses__, owned
PyObject* g_seen_function = nullptr;     // owned; what makes a patch unneeded, or null
CallFunction g_call = nullptr;
InitFunction g_type_init = nullptr;  // what type.tp_init held before
bool g_sees_new_classes = false;     // type.tp_init is patched

int InitType(PyObject* self, PyObject* args, PyObject* kwargs);

// Patches one class and the metaclass that will make its subclasses.
void Patch(PyTypeObject* type) {
  PyTypeObject* metaclass =
      reinterpret_cast<PyTypeObject*>(g_slots_python->PyObject_Type(reinterpret_cast<PyObject*>(type)));
  if (metaclass != nullptr) {
    if (g_sees_new_classes && LoadTypeSlot(metaclass, kTypeInit) == Address(g_type_init)) {
      StoreTypeSlot(metaclass, kTypeInit, Address(&InitType));
    }
    g_slots_python->Py_DecRef(reinterpret_cast<PyObject*>(metaclass));
  }
  // A class with a call slot of its own (written in C) is left alone.
  if (LoadTypeSlot(type, kTypeCall) != Address(g_generic_call)) return;
  if (g_seen_function != nullptr &&
      Ref::Borrow(*g_slots_python, reinterpret_cast<PyObject*>(type)).InClass("__call__").get() == g_seen_function) {
    return;
  }
  StoreTypeSlot(type, kTypeCall, Address(g_call));
}

void Unpatch(PyTypeObject* type) {
  if (LoadTypeSlot(type, kTypeCall) == Address(g_call)) StoreTypeSlot(type, kTypeCall, Address(g_generic_call));
}

// Of `type` and all metaclasses: those that were made meanwhile have inherited it.
void UnpatchInit(PyTypeObject* type) {
  if (LoadTypeSlot(type, kTypeInit) == Address(&InitType)) StoreTypeSlot(type, kTypeInit, Address(g_type_init));
}

void Walk(PyTypeObject* type, void (*visit)(PyTypeObject*), int depth) {
  constexpr int kMaxInheritance = 64;
  visit(type);
  if (depth > kMaxInheritance) return;
  // The descriptor of `type` itself: a metaclass may define a __subclasses__ of its own.
  const Ref list = Ref::Borrow(*g_slots_python, g_subclasses).Call({reinterpret_cast<PyObject*>(type)});
  const Py_ssize_t size = list ? g_slots_python->PyList_Size(list.get()) : 0;
  for (Py_ssize_t i = 0; i < size; ++i) {
    Walk(reinterpret_cast<PyTypeObject*>(g_slots_python->PyList_GetItem(list.get(), i)), visit, depth + 1);
  }
}

// type.__init__: a class has just been made and its slots are final.
int InitType(PyObject* self, PyObject* args, PyObject* kwargs) {
  const int result = g_type_init(self, args, kwargs);
  if (result == 0 && g_call != nullptr) {
    auto* type = reinterpret_cast<PyTypeObject*>(self);
    if (g_slots_python->PyType_IsSubtype(type, g_module_class) != 0) {
      if (TypeSlotsLost()) RepairTypeSlots();
      Patch(type);
    }
  }
  return result;
}

// This slot may be missing: without it new classes are found later, by RepairTypeSlots.
void InstallInitSlot() {
  if (g_sees_new_classes) return;  // it stays ours when the call slots are put back
  // This needs a heap type that inherits type's own __init__, since PyType_GetSlot refuses static types before 3.10.
  Ref abc = ImportedModule(*g_slots_python, "abc");
  Ref meta = abc.Attribute("ABCMeta");
  auto* type = static_cast<PyTypeObject*>(g_slots_python->PyType_Type);
  if (!meta || !meta.IsInstance(type)) return;
  void* init = g_slots_python->PyType_GetSlot(meta.as_type(), kTypeInit.number);
  if (init == nullptr) DropError(*g_slots_python);
  if (init == nullptr || init != LoadTypeSlot(meta.as_type(), kTypeInit) || init != LoadTypeSlot(type, kTypeInit))
    return;
  g_type_init = reinterpret_cast<InitFunction>(init);
  g_sees_new_classes = true;
  StoreTypeSlot(type, kTypeInit, Address(&InitType));
}

}  // namespace

bool IsFreeThreaded(const PythonApi& python) {
  return std::strstr(python.Py_GetVersion(), "free-threading") != nullptr;
}

void* LoadTypeSlot(const PyTypeObject* type, TypeSlot slot) noexcept {
  return __atomic_load_n(reinterpret_cast<void* const*>(reinterpret_cast<const char*>(type) + slot.offset),
                         __ATOMIC_RELAXED);
}

void StoreTypeSlot(PyTypeObject* type, TypeSlot slot, void* value) noexcept {
  __atomic_store_n(reinterpret_cast<void**>(reinterpret_cast<char*>(type) + slot.offset), value, __ATOMIC_RELAXED);
}

bool InstallTypeSlots(const PythonApi& python, PyTypeObject* module_class, PyObject* seen_function, CallFunction call,
                      const char** why) {
  g_slots_python = &python;
  if (IsFreeThreaded(python)) {
    *why = "this Python has no GIL, types have another layout there";
    return false;
  }
  void* slot = python.PyType_GetSlot(module_class, kTypeCall.number);
  if (slot == nullptr || slot != LoadTypeSlot(module_class, kTypeCall)) {
    DropError(python);
    *why = "the call slot of nn.Module is not where this Python's version should have it";
    return false;
  }
  Ref subclasses = Ref::Borrow(python, static_cast<PyObject*>(python.PyType_Type)).Entry("__subclasses__");
  if (!subclasses) {
    *why = "type.__subclasses__ could not be read";
    return false;
  }
  python.Py_IncRef(reinterpret_cast<PyObject*>(module_class));
  g_module_class = module_class;
  if (seen_function != nullptr) python.Py_IncRef(seen_function);
  g_seen_function = seen_function;
  g_subclasses = subclasses.release();
  g_generic_call = reinterpret_cast<CallFunction>(slot);
  g_call = call;
  InstallInitSlot();
  RepairTypeSlots();
  return true;
}

void RemoveTypeSlots() {
  if (g_call == nullptr) return;
  Walk(g_module_class, &Unpatch, 0);
  g_call = nullptr;  // type.tp_init stays ours: it passes everything on
}

void RemoveInitSlots() {
  if (!g_sees_new_classes) return;
  g_sees_new_classes = false;
  Walk(static_cast<PyTypeObject*>(g_slots_python->PyType_Type), &UnpatchInit, 0);
}

bool TypeSlotsLost() noexcept {
  return g_call != nullptr && g_seen_function == nullptr &&
         LoadTypeSlot(g_module_class, kTypeCall) != Address(g_call);
}

void RepairTypeSlots() {
  if (g_call != nullptr) Walk(g_module_class, &Patch, 0);
}

}  // namespace rfinject
