#include "injector/python/python_api.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdio>

#include "injector/python/ref.h"

namespace rfinject {
namespace {

constexpr int kFileInput = 257;  // Py_file_input: a start symbol of the grammar, unchanged since Python 2

PythonApi g_table;
std::atomic<bool> g_filled{false};

// Dereferences what the interpreter exports as a pointer variable (PyExc_…); types and singletons are objects.
void* ExportedObject(const char* name, void* symbol) {
  const bool is_pointer = name[0] == 'P' && name[1] == 'y' && name[2] == 'E';
  return is_pointer ? *static_cast<void**>(symbol) : symbol;
}

}  // namespace

const PythonApi* GetPython() noexcept {
  if (g_filled.load(std::memory_order_acquire)) return &g_table;
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
  g_table = table;
  g_filled.store(true, std::memory_order_release);
  return &g_table;
}

PyObject* RunPython(const PythonApi& python, const char* source, const char* const* names, PyObject* const* values,
                    size_t count, char* error, size_t error_size) {
  if (error_size > 0) error[0] = '\0';
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  python.PyErr_Fetch(&type, &value, &traceback);
  PyObject* space = python.PyDict_New();
  PyObject* result = nullptr;
  PyObject* code = nullptr;
  bool good =
      space != nullptr && python.PyDict_SetItemString(space, "__builtins__", python.PyEval_GetBuiltins()) == 0;
  for (size_t i = 0; good && i < count; ++i) good = python.PyDict_SetItemString(space, names[i], values[i]) == 0;
  if (good) code = python.Py_CompileString(source, "<rfinject>", kFileInput);
  if (code != nullptr) result = python.PyEval_EvalCode(code, space, space);
  if (code != nullptr) python.Py_DecRef(code);
  if (result != nullptr) {
    python.Py_DecRef(result);
  } else {
    PyObject *our_type = nullptr, *our_value = nullptr, *our_traceback = nullptr;
    python.PyErr_Fetch(&our_type, &our_value, &our_traceback);
    if (our_type != nullptr && error_size > 0) {
      PyObject* name = python.PyObject_GetAttrString(our_type, "__name__");
      PyObject* text = our_value != nullptr ? python.PyObject_Str(our_value) : nullptr;
      const char* name_text = name != nullptr ? python.PyUnicode_AsUTF8(name) : nullptr;
      const char* value_text = text != nullptr ? python.PyUnicode_AsUTF8(text) : nullptr;
      std::snprintf(error, error_size, "%s: %s", name_text != nullptr ? name_text : "error",
                    value_text != nullptr ? value_text : "");
      if (name != nullptr) python.Py_DecRef(name);
      if (text != nullptr) python.Py_DecRef(text);
      python.PyErr_Clear();
    }
    if (our_type != nullptr) python.Py_DecRef(our_type);
    if (our_value != nullptr) python.Py_DecRef(our_value);
    if (our_traceback != nullptr) python.Py_DecRef(our_traceback);
    if (space != nullptr) python.Py_DecRef(space);
    space = nullptr;
  }
  python.PyErr_Restore(type, value, traceback);
  return space;
}

void DropError(const PythonApi& python) noexcept {
  if (python.PyErr_Occurred() == nullptr) return;
  const bool ordinary = python.PyErr_ExceptionMatches(static_cast<PyObject*>(python.PyExc_Exception)) != 0;
  python.PyErr_Clear();
  if (!ordinary) python.PyErr_SetInterrupt();
}

}  // namespace rfinject
