#include "injector/python/python_api.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "injector/python/ref.h"

namespace rfinject {
namespace {

constexpr int kFileInput = 257;  // Py_file_input: a start symbol of the grammar, unchanged since Python 2

PythonApi g_api;
std::atomic<bool> g_filled{false};

// Dereferences what the interpreter exports as a pointer variable (PyExc_…); types and singletons are objects.
void* ExportedObject(const char* name, void* symbol) {
  const bool is_pointer = name[0] == 'P' && name[1] == 'y' && name[2] == 'E';
  return is_pointer ? *static_cast<void**>(symbol) : symbol;
}

}  // namespace

const PythonApi* GetPython() noexcept {
  if (g_filled.load(std::memory_order_acquire)) return &g_api;
  // Two threads that fill the table at once store the same values.
  PythonApi table;
#define RFINJECT_FILL(name, result, arguments)                                    \
  table.name = reinterpret_cast<result(*) arguments>(dlsym(RTLD_DEFAULT, #name)); \
  if (table.name == nullptr) return nullptr;
  RFINJECT_PYTHON_REQUIRED(RFINJECT_FILL)
#undef RFINJECT_FILL
#define RFINJECT_FILL(name)                                           \
  if (void* symbol = dlsym(RTLD_DEFAULT, #name); symbol != nullptr) { \
    table.name = ExportedObject(#name, symbol);                       \
  } else {                                                            \
    return nullptr;                                                   \
  }
  RFINJECT_PYTHON_DATA(RFINJECT_FILL)
#undef RFINJECT_FILL
  if (table.PyExc_Exception == nullptr) return nullptr;  // the interpreter has not been initialised yet
  g_api = table;
  g_filled.store(true, std::memory_order_release);
  return &g_api;
}

// While the code runs, plain pointers hold our objects: a daemon thread that waits for the GIL while the interpreter
// ends is unwound from there (pthread_exit), and must not give references back without the GIL.
Ref RunPython(const PythonApi& python, const char* source, std::string* error, PythonNames names) {
  constexpr size_t kMostOfError = 255;  // bytes
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  python.PyErr_Fetch(&type, &value, &traceback);
  PyObject* const space = python.PyDict_New();
  bool good =
      space != nullptr && python.PyDict_SetItemString(space, "__builtins__", python.PyEval_GetBuiltins()) == 0;
  for (const auto& [name, object] : names) {
    good = good && object != nullptr && python.PyDict_SetItemString(space, name, object) == 0;
  }
  PyObject* const code = good ? python.Py_CompileString(source, "<rfinject>", kFileInput) : nullptr;
  const Ref result(python, code != nullptr ? python.PyEval_EvalCode(code, space, space) : nullptr);
  const Ref compiled(python, code);
  Ref found(python, space);
  if (!result) {
    PyObject *our_type = nullptr, *our_value = nullptr, *our_traceback = nullptr;
    python.PyErr_Fetch(&our_type, &our_value, &our_traceback);
    const Ref kind(python, our_type), what(python, our_value), where(python, our_traceback);
    const std::string name = kind.Attribute("__name__").Text();
    if (kind) *error = (name.empty() ? "error" : name) + ": " + what.Text();
    error->resize(std::min(error->size(), kMostOfError));
    found = Ref();
  }
  python.PyErr_Restore(type, value, traceback);
  return found;
}

void DropError(const PythonApi& python) noexcept {
  if (python.PyErr_Occurred() == nullptr) return;
  const bool ordinary = python.PyErr_ExceptionMatches(static_cast<PyObject*>(python.PyExc_Exception)) != 0;
  python.PyErr_Clear();
  if (!ordinary) python.PyErr_SetInterrupt();
}

}  // namespace rfinject
