// File: module_reader.h
//
// ModuleReader reads nn.Module objects: children, class, wrappers, parameters. It keeps nothing and changes nothing.
// The GIL must be held. Reading may run Python code of torch's (a parameter's `numel`), but never a `__getattr__` or
// a property of the user's module, and it leaves no exception set.
#ifndef RFINJECT_INJECTOR_PYTHON_MODULE_READER_H_
#define RFINJECT_INJECTOR_PYTHON_MODULE_READER_H_

#include <cstdint>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "injector/python/python_api.h"
#include "injector/python/ref.h"

namespace rfinject {

struct ParameterCount {
  uint64_t elements = 0;
  uint64_t bytes = 0;
  uint64_t trainable = 0;  // elements
  bool any = false;        // also those whose size is not known yet (lazy modules)
  // Some module takes sequences first and not batches: torch's recurrent and attention layers, unless told otherwise
  // (CountTree only).
  bool sequence_first = false;
};

class ModuleReader {
 public:
  using Seen = std::unordered_set<const PyObject*>;

  explicit ModuleReader(const PythonApi& python) noexcept : python_(python) {}

  // Returns what the object's own __dict__ has under `name`, or empty. (getattr could run the user's code.)
  Ref Own(PyObject* module, const char* name) const;
  // Returns Own() if that is a dict, else empty: TorchScript's modules have an object there that only resembles one.
  Ref DictAttribute(PyObject* module, const char* name) const;

  // Name and object of each child that is not None, in the order of registration. The objects are owned, since what
  // is done with the children may run Python code.
  std::vector<std::pair<std::string, Ref>> Children(PyObject* module) const;

  // The class as the user wrote it: where torch parametrizes or shards a module it replaces the class by a generated
  // subclass (ParametrizedConv2d, FSDPResNet).
  std::string ClassName(PyObject* module) const;

  // The module that `module` only wraps (DataParallel, torch.compile, checkpoint_wrapper, FSDP, …), or empty.
  Ref Wrapped(PyObject* module) const;
  // Returns what the innermost wrapper wraps; `module` itself when it is no wrapper.
  Ref Innermost(PyObject* module) const;

  // Addresses of the TensorImpls of the module's own parameters.
  std::vector<uintptr_t> OwnParameters(PyObject* module) const;
  // Adds the module's own parameters to `count`, each once per `seen`.
  void CountOwnParameters(PyObject* module, Seen& seen, ParameterCount& count) const;
  // Adds the parameters of the module and of everything below it.
  void CountTree(PyObject* module, Seen& modules, Seen& parameters, ParameterCount& count) const;

 private:
  bool IsDataParallelWrapper(PyObject* module) const;

  const PythonApi& python_;
};

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_MODULE_READER_H_
