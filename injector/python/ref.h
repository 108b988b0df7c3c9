// File: ref.h
//
// Owning references to Python objects, and the few accesses that the cold code repeats. GIL held throughout; a failed
// access yields an empty Ref and leaves no exception behind.
#ifndef RFINJECT_INJECTOR_PYTHON_REF_H_
#define RFINJECT_INJECTOR_PYTHON_REF_H_

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "injector/python/python_api.h"

namespace rfinject {

// Clears the exception that our own code caused. If it is not an ordinary one, the user's Ctrl-C arrived while our
// code ran: it is then raised again, at the interpreter's next look.
void DropError(const PythonApi& python) noexcept;

class Ref {
 public:
  Ref() = default;
  Ref(const PythonApi& python, PyObject* owned) : python_(&python), object_(owned) {}
  Ref(Ref&& other) noexcept : python_(other.python_), object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(python_, other.python_);
    std::swap(object_, other.object_);
    return *this;
  }
  Ref(const Ref&) = delete;
  Ref& operator=(const Ref&) = delete;
  ~Ref() {
    if (object_ != nullptr) python_->Py_DecRef(object_);
  }

  static Ref Borrow(const PythonApi& python, PyObject* object) {
    if (object != nullptr) python.Py_IncRef(object);
    return Ref(python, object);
  }

  explicit operator bool() const { return object_ != nullptr; }
  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  PyTypeObject* as_type() const { return reinterpret_cast<PyTypeObject*>(object_); }

  // object.name
  Ref Attribute(const char* name) const {
    if (object_ == nullptr) return {};
    PyObject* value = python_->PyObject_GetAttrString(object_, name);
    if (value == nullptr) DropError(*python_);
    return Ref(*python_, value);
  }

  // The dict of an object. No __getattribute__, __getattr__ or metaclass of the user's is called.
  Ref Dict() const {
    if (object_ == nullptr) return {};
    PyObject* dict = python_->PyObject_GenericGetDict(object_, nullptr);
    if (dict == nullptr) DropError(*python_);
    return Ref(*python_, dict);
  }

  // What this dict has under a name; empty where this is no dict.
  Ref Item(const char* name) const {
    if (object_ == nullptr || !IsInstance(python_->PyDict_Type)) return {};
    return Borrow(*python_, python_->PyDict_GetItemString(object_, name));
  }

  // The elements of this tuple or list, or the values of this dict, owned: what is done with them may run Python
  // code. None of anything else.
  std::vector<Ref> Parts() const {
    std::vector<Ref> parts;
    if (object_ == nullptr) return parts;
    const bool tuple = IsInstance(python_->PyTuple_Type), list = !tuple && IsInstance(python_->PyList_Type);
    const Py_ssize_t size = tuple ? python_->PyTuple_Size(object_) : list ? python_->PyList_Size(object_) : 0;
    for (Py_ssize_t i = 0; i < size; ++i) {
      parts.push_back(
          Borrow(*python_, tuple ? python_->PyTuple_GetItem(object_, i) : python_->PyList_GetItem(object_, i)));
    }
    if (tuple || list || !IsInstance(python_->PyDict_Type)) return parts;
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t position = 0; python_->PyDict_Next(object_, &position, &key, &value) != 0;) {
      parts.push_back(Borrow(*python_, value));
    }
    return parts;
  }

  // For a class: what `type` itself has under this name ("__name__", "__mro__", "__subclasses__"), bound to the
  // class. A metaclass of the user's is not called.
  Ref OfClass(const char* name) const {
    if (object_ == nullptr) return {};
    return Borrow(*python_, static_cast<PyObject*>(python_->PyType_Type))
        .Entry(name)
        .Attribute("__get__")
        .Call({object_});
  }

  // For a class: what is under this name in its own dict, unbound.
  Ref Entry(const char* name) const {
    if (object_ == nullptr) return {};
    Ref dict = object_ == python_->PyType_Type ? Attribute("__dict__") : OfClass("__dict__");
    return dict.Attribute("get").Call({Ref(*python_, python_->PyUnicode_FromString(name)).get()});
  }

  // For a class: the entry of it or of the first of its bases, in the order of resolution, that has one.
  Ref InClass(const char* name) const {
    for (const Ref& type : OfClass("__mro__").Parts()) {
      Ref found = type.Entry(name);
      if (found && !found.IsNone()) return found;
    }
    return {};
  }

  // What this descriptor written in C ("shape" of torch.Tensor) gives for an object of its class or of a subclass,
  // even one that overrides it.
  Ref Get(PyObject* object) const { return Attribute("__get__").Call({object}); }

  // object(*arguments)
  Ref Call(std::initializer_list<PyObject*> arguments = {}) const {
    if (object_ == nullptr) return {};
    Ref tuple(*python_, python_->PyTuple_New(static_cast<Py_ssize_t>(arguments.size())));
    Py_ssize_t i = 0;
    for (PyObject* argument : arguments) {
      if (!tuple || argument == nullptr) return {};
      python_->Py_IncRef(argument);
      python_->PyTuple_SetItem(tuple.get(), i++, argument);
    }
    PyObject* result = tuple ? python_->PyObject_CallObject(object_, tuple.get()) : nullptr;
    if (result == nullptr) DropError(*python_);
    return Ref(*python_, result);
  }

  Ref Type() const { return object_ == nullptr ? Ref() : Ref(*python_, python_->PyObject_Type(object_)); }
  bool IsInstance(const void* type) const {
    Ref own = Type();
    return own && python_->PyType_IsSubtype(own.as_type(), static_cast<PyTypeObject*>(const_cast<void*>(type))) != 0;
  }
  bool IsNone() const { return object_ == python_->_Py_NoneStruct; }
  bool IsTrue() const {
    const int truth = object_ == nullptr ? 0 : python_->PyObject_IsTrue(object_);
    if (truth < 0) DropError(*python_);
    return truth > 0;
  }

  // The number, or `fallback` if this is not exactly an int (asking a torch.SymInt would make torch guard it).
  long long Integer(long long fallback) const {
    if (object_ == nullptr || Type().get() != python_->PyLong_Type) return fallback;
    const long long value = python_->PyLong_AsLongLong(object_);
    if (value == -1 && python_->PyErr_Occurred() != nullptr) {
      DropError(*python_);
      return fallback;
    }
    return value;
  }

  // str(object), or "".
  std::string Text() const {
    if (object_ == nullptr) return {};
    Ref text(*python_, python_->PyObject_Str(object_));
    const char* utf8 = text ? python_->PyUnicode_AsUTF8(text.get()) : nullptr;
    std::string result = utf8 != nullptr ? utf8 : "";
    if (utf8 == nullptr) DropError(*python_);
    return result;
  }

 private:
  const PythonApi* python_ = nullptr;
  PyObject* object_ = nullptr;
};

// Returns sys.modules[name], or empty. It never imports.
inline Ref ImportedModule(const PythonApi& python, const char* name) {
  PyObject* modules = python.PyImport_GetModuleDict();
  PyObject* module = modules != nullptr ? python.PyDict_GetItemString(modules, name) : nullptr;
  return Ref::Borrow(python, module);
}

// A new reference to None, for functions that Python calls.
inline PyObject* NewNone(const PythonApi& python) {
  return Ref::Borrow(python, static_cast<PyObject*>(python._Py_NoneStruct)).release();
}

using PythonNames = std::initializer_list<std::pair<const char*, PyObject*>>;
// Runs `source` (statements) in a namespace of its own, whose `__builtins__` is the real one, with these names in it.
// Returns the namespace, a dict; empty, with the error's text in `*error`, where it failed. The user's pending
// exception, if any, is kept.
Ref RunPython(const PythonApi& python, const char* source, std::string* error, PythonNames names = {});

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_REF_H_
