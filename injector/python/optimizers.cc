#include "injector/python/optimizers.h"

#include <cxxabi.h>

#include <unordered_map>
#include <vector>

#include "injector/python/python_frames.h"
#include "injector/python/ref.h"

namespace rfinject {
namespace {

// A program that keeps more optimizers than this has no loop of steps that tells them apart.
constexpr size_t kMostOptimizers = 4096;

struct Optimizers {
  explicit Optimizers(const PythonApi& python_in);

  // Remembers the parameters of an optimizer, if it has other groups of them than it had at the last look.
  void NoteParameters(PyObject* optimizer);
  void ForgetParameters(const PyObject* optimizer);

  const PythonApi& python;
  Ref base;  // torch.optim.Optimizer
  PyMethodDef death_method;
  Ref on_death;
  struct Life {
    uint32_t number = 0;
    PyObject* weakref = nullptr;  // owned
    Py_ssize_t groups = 0;        // of parameters, when they were looked at
    std::vector<const PyObject*> parameters;
  };
  std::unordered_map<const PyObject*, Life> lives;
  std::unordered_map<const PyObject*, const PyObject*> by_weakref;
  uint32_t last_number = 0;
  std::unordered_map<const PyObject*, uint32_t> owners;  // how many optimizers have a parameter
  uint32_t known = 0;                                    // OptimizersKnown
};

Optimizers* g_optimizers = nullptr;  // never destroyed: Python may call for as long as the process lives

PyObject* OnDeath(PyObject*, PyObject* weakref) {
  Optimizers& all = *g_optimizers;
  if (auto found = all.by_weakref.find(weakref); found != all.by_weakref.end()) {
    all.ForgetParameters(found->second);
    all.lives.erase(found->second);
    all.by_weakref.erase(found);
    all.python.Py_DecRef(weakref);
  }
  return NewNone(all.python);
}

Optimizers::Optimizers(const PythonApi& python_in)
    : python(python_in),
      base(ImportedModule(python_in, "torch.optim.optimizer").Attribute("Optimizer")),
      death_method{"rfinject_forget", &OnDeath, kMethO, nullptr},
      on_death(python_in, python_in.PyCFunction_NewEx(&death_method, nullptr, nullptr)) {}

void Optimizers::ForgetParameters(const PyObject* optimizer) {
  const auto life = lives.find(optimizer);
  if (life == lives.end()) return;
  for (const PyObject* parameter : life->second.parameters) {
    const auto owned = owners.find(parameter);
    if (owned != owners.end() && --owned->second == 0) owners.erase(owned);
  }
  life->second.parameters.clear();
}

// A program may give an optimizer more parameters later (a backbone that is no longer frozen), in a group of their
// own.
void Optimizers::NoteParameters(PyObject* optimizer) {
  const Ref groups = Ref::Borrow(python, optimizer).Dict().Item("param_groups");
  if (!groups.IsInstance(python.PyList_Type)) return;
  const auto life = lives.find(optimizer);
  const Py_ssize_t count = python.PyList_Size(groups.get());
  if (life == lives.end() || life->second.groups == count) return;
  ForgetParameters(optimizer);
  life->second.groups = count;
  ++known;
  for (const Ref& group : groups.Parts()) {
    for (const Ref& parameter : group.Item("params").Parts()) {
      life->second.parameters.push_back(parameter.get());
      ++owners[parameter.get()];
    }
  }
}

uint32_t NumberOf(Optimizers& all, PyObject* optimizer) {
  if (auto known = all.lives.find(optimizer); known != all.lives.end()) return known->second.number;
  if (all.lives.size() >= kMostOptimizers) return 0;
  Ref weakref(all.python, all.python.PyWeakref_NewRef(optimizer, all.on_death.get()));
  if (!weakref) {  // a class without __weakref__: the address may be another's later, unseen
    DropError(all.python);
    return 0;
  }
  all.by_weakref.emplace(weakref.get(), optimizer);
  all.lives[optimizer] = {++all.last_number, weakref.get(), 0, {}};
  weakref.release();
  return all.last_number;
}

}  // namespace

void InitOptimizers(const PythonApi& python) {
  if (g_optimizers != nullptr) return;
  auto* optimizers = new Optimizers(python);
  const bool ready = optimizers->base.IsInstance(python.PyType_Type) && optimizers->on_death;
  DropError(python);
  if (ready) g_optimizers = optimizers;
}

bool OptimizerOwns(const PyObject* parameter) noexcept {
  return g_optimizers != nullptr && g_optimizers->owners.count(parameter) != 0;
}

uint32_t OptimizersKnown() noexcept { return g_optimizers != nullptr ? g_optimizers->known : 0; }

uint32_t SteppingOptimizer() {
  if (g_optimizers == nullptr) return 0;
  Optimizers& all = *g_optimizers;
  try {
    const std::vector<PythonCall> calls = CallsOfThread(all.python, 1);
    if (calls.empty() || !calls.front().first.IsInstance(all.base.get())) return 0;
    const uint32_t number = NumberOf(all, calls.front().first.get());
    if (number != 0) all.NoteParameters(calls.front().first.get());
    return number;
  } catch (::abi::__forced_unwind&) {
    throw;
  } catch (...) {  // no memory
    return 0;
  }
}

}  // namespace rfinject
