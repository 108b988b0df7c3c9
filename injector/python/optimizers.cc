#include "injector/python/optimizers.h"

#include <cxxabi.h>

#include <unordered_map>
#include <utility>
#include <vector>

#include "injector/python/python_frames.h"
#include "injector/python/ref.h"

namespace rfinject {
namespace {

// A program that keeps more optimizers than this has no loop of steps that tells them apart.
constexpr size_t kMostOptimizers = 4096;

struct Optimizers {
  explicit Optimizers(const PythonApi& python_in);

  const PythonApi& python;
  Ref base;  // torch.optim.Optimizer
  PyMethodDef death_method;
  Ref on_death;
  struct Life {
    uint32_t number = 0;
    PyObject* weakref = nullptr;  // owned
  };
  std::unordered_map<const PyObject*, Life> lives;
  std::unordered_map<const PyObject*, const PyObject*> by_weakref;
  uint32_t last_number = 0;
};

Optimizers* g_optimizers = nullptr;  // never destroyed: Python may call for as long as the process lives

PyObject* OnDeath(PyObject*, PyObject* weakref) {
  Optimizers& all = *g_optimizers;
  if (auto found = all.by_weakref.find(weakref); found != all.by_weakref.end()) {
    all.lives.erase(found->second);
    all.by_weakref.erase(found);
    all.python.Py_DecRef(weakref);
  }
  auto* none = static_cast<PyObject*>(all.python._Py_NoneStruct);
  all.python.Py_IncRef(none);
  return none;
}

Optimizers::Optimizers(const PythonApi& python_in)
    : python(python_in),
      base(ImportedModule(python_in, "torch.optim.optimizer").Attribute("Optimizer")),
      death_method{"rfinject_forget", &OnDeath, kMethO, nullptr},
      on_death(python_in, python_in.PyCFunction_NewEx(&death_method, nullptr, nullptr)) {}

uint32_t NumberOf(Optimizers& all, PyObject* optimizer) {
  if (auto known = all.lives.find(optimizer); known != all.lives.end()) return known->second.number;
  if (all.lives.size() >= kMostOptimizers) return 0;
  Ref weakref(all.python, all.python.PyWeakref_NewRef(optimizer, all.on_death.get()));
  if (!weakref) {  // a class without __weakref__: the address may be another's later, unseen
    DropError(all.python);
    return 0;
  }
  all.by_weakref.emplace(weakref.get(), optimizer);
  all.lives[optimizer] = {++all.last_number, weakref.get()};
  weakref.release();
  return all.last_number;
}

}  // namespace

void InitOptimizers(const PythonApi& python) {
  auto* optimizers = new Optimizers(python);
  const bool ready = optimizers->base.IsInstance(python.PyType_Type) && optimizers->on_death;
  DropError(python);
  if (ready) g_optimizers = optimizers;
}

uint32_t SteppingOptimizer() {
  if (g_optimizers == nullptr) return 0;
  Optimizers& all = *g_optimizers;
  try {
    const std::vector<PythonCall> calls = CallsOfThread(all.python, 1);
    if (calls.empty() || !calls.front().first.IsInstance(all.base.get())) return 0;
    return NumberOf(all, calls.front().first.get());
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (...) {  // no memory
    return 0;
  }
}

}  // namespace rfinject
