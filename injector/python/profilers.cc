#include "injector/python/profilers.h"

#include "collector/source.h"
#include "injector/python/ref.h"
#include "injector/python/vectorcall.h"

namespace rfinject {
namespace {

Source* g_source = nullptr;
const PythonApi* g_python = nullptr;
Vectorcall g_init = nullptr;

// Others may need the GIL while the source waits for the GPU.
PyObject* OnInit(PyObject* callable, PyObject* const* arguments, size_t flagged_count, PyObject* names) {
  void* const thread = g_python->PyEval_SaveThread();
  g_source->OnProfilerComes();
  g_python->PyEval_RestoreThread(thread);
  return g_init(callable, arguments, flagged_count, names);
}

}  // namespace

void WatchProfilers(const PythonApi& python, Source& source) {
  // torch.profiler makes one of these before it makes what asks CUPTI for records.
  Ref profile = ImportedModule(python, "torch.autograd.profiler").Attribute("profile");
  Ref init = profile.Attribute("__init__"), other = profile.Attribute("__enter__");
  const char* why = "";
  g_init = FindVectorcall(python, init.get(), other.get(), &why);
  if (g_init == nullptr) return;
  g_source = &source;
  g_python = &python;
  SetVectorcall(init.get(), &OnInit);
}

}  // namespace rfinject
