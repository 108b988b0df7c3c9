#include "injector/python/module_reader.h"

#include <string_view>

namespace rfinject {
namespace {

std::string NameOf(const Ref& type) { return type.OfClass("__name__").Text(); }

// Reads parameters by descriptors of torch's own, because a parameter may be of a class of the user's.
struct ParameterReader {
  explicit ParameterReader(const PythonApi& python)
      : tensor_class(ImportedModule(python, "torch").Attribute("Tensor")),
        numel(tensor_class.InClass("numel")),
        element_size(tensor_class.InClass("element_size")),
        requires_grad(tensor_class.InClass("requires_grad")) {}

  const Ref tensor_class, numel, element_size, requires_grad;
};

void CountParameter(const ParameterReader& reader, const Ref& parameter, ModuleReader::Seen& seen,
                    ParameterCount& count) {
  if (!parameter || parameter.IsNone() || !seen.insert(parameter.get()).second) return;
  count.any = true;
  const long long elements = reader.numel.Call({parameter.get()}).Integer(0);
  if (elements <= 0) return;
  const long long size = reader.element_size.Call({parameter.get()}).Integer(0);
  count.elements += static_cast<uint64_t>(elements);
  count.bytes += static_cast<uint64_t>(elements) * static_cast<uint64_t>(size);
  if (reader.requires_grad.Get(parameter.get()).IsTrue()) count.trainable += static_cast<uint64_t>(elements);
}

}  // namespace

Ref ModuleReader::Own(PyObject* module, const char* name) const {
  return Ref::Borrow(python_, module).Dict().Item(name);
}

Ref ModuleReader::DictAttribute(PyObject* module, const char* name) const {
  Ref dict = Own(module, name);
  return dict.IsInstance(python_.PyDict_Type) ? std::move(dict) : Ref();
}

std::vector<std::pair<std::string, Ref>> ModuleReader::Children(PyObject* module) const {
  std::vector<std::pair<std::string, Ref>> children;
  Ref dict = DictAttribute(module, "_modules");
  if (!dict) return children;
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t position = 0; python_.PyDict_Next(dict.get(), &position, &key, &value) != 0;) {
    if (value == python_._Py_NoneStruct) continue;
    children.emplace_back(std::string(), Ref::Borrow(python_, value));
    const char* name = python_.PyUnicode_AsUTF8(key);
    if (name != nullptr) children.back().first = name;
    DropError(python_);
  }
  return children;
}

std::string ModuleReader::ClassName(PyObject* module) const {
  Ref type = Ref::Borrow(python_, module).Type();
  std::string name = NameOf(type);
  for (std::string_view prefix : {"Parametrized", "FSDP"}) {
    if (name.compare(0, prefix.size(), prefix) != 0) continue;
    for (const Ref& one : type.OfClass("__bases__").Parts()) {
      std::string base = NameOf(one);
      if (name.compare(prefix.size(), std::string::npos, base) == 0) return base;
    }
  }
  return name;
}

bool ModuleReader::IsDataParallelWrapper(PyObject* module) const {
  for (const Ref& type : Ref::Borrow(python_, module).Type().OfClass("__mro__").Parts()) {
    const std::string name = NameOf(type);
    for (std::string_view wrapper : {"DataParallel", "DistributedDataParallel", "DistributedDataParallelCPU",
                                     "FullyShardedDataParallel", "AveragedModel"}) {
      if (name == wrapper) return true;
    }
  }
  return false;
}

// These names are the wrappers' own (torch.compile, checkpoint_wrapper, FSDP); "module" is also a name that users
// give.
Ref ModuleReader::Wrapped(PyObject* module) const {
  auto children = Children(module);
  for (auto& [name, child] : children) {
    if (name == "_orig_mod" || name == "_checkpoint_wrapped_module" || name == "_fsdp_wrapped_module") {
      return std::move(child);
    }
    if (name == "module" && IsDataParallelWrapper(module)) return std::move(child);
  }
  return {};
}

Ref ModuleReader::Innermost(PyObject* module) const {
  Ref inner = Ref::Borrow(python_, module);
  constexpr int kMaxWrappers = 16;
  for (int i = 0; i < kMaxWrappers; ++i) {
    Ref next = Wrapped(inner.get());
    if (!next) break;
    inner = std::move(next);
  }
  return inner;
}

std::vector<uintptr_t> ModuleReader::OwnParameters(PyObject* module) const {
  std::vector<uintptr_t> found;
  const std::vector<Ref> parameters = DictAttribute(module, "_parameters").Parts();
  if (parameters.empty()) return found;
  // Torch's own descriptor, because a parameter may be of a class of the user's.
  const Ref address = ImportedModule(python_, "torch").Attribute("Tensor").InClass("_cdata");
  for (const Ref& parameter : parameters) {
    if (parameter.IsNone()) continue;
    const long long impl = address ? address.Get(parameter.get()).Integer(0) : 0;
    if (impl != 0) found.push_back(static_cast<uintptr_t>(impl));
  }
  DropError(python_);
  return found;
}

void ModuleReader::CountOwnParameters(PyObject* module, ModuleReader::Seen& seen, ParameterCount& count) const {
  const ParameterReader reader(python_);
  if (const Ref own = DictAttribute(module, "_parameters")) {
    for (const Ref& parameter : own.Parts()) CountParameter(reader, parameter, seen, count);
    return;
  }
  // The children of a TorchScript module are never called from Python, so all parameters count as the outermost
  // module's own. Its modules are of torch's classes; any other module that keeps its parameters somewhere else is
  // not asked for them.
  const Ref script = ImportedModule(python_, "torch.jit").Attribute("ScriptModule");
  if (!script || !Ref::Borrow(python_, module).IsInstance(script.get())) return;
  Ref generator = Ref::Borrow(python_, module).Attribute("parameters").Call();
  if (!generator) return;
  Ref iterator(python_, python_.PyObject_GetIter(generator.get()));
  while (iterator) {
    Ref parameter(python_, python_.PyIter_Next(iterator.get()));
    if (!parameter) break;
    CountParameter(reader, parameter, seen, count);
  }
  DropError(python_);
}

void ModuleReader::CountTree(PyObject* module, Seen& modules, Seen& parameters, ParameterCount& count) const {
  if (!modules.insert(module).second) return;
  CountOwnParameters(module, parameters, count);
  const Ref batch_first = Own(module, "batch_first");
  if (batch_first.IsInstance(python_.PyLong_Type) && !batch_first.IsTrue()) count.sequence_first = true;
  for (const auto& [name, child] : Children(module)) CountTree(child.get(), modules, parameters, count);
}

}  // namespace rfinject
