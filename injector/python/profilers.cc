#include "injector/python/profilers.h"

#include <utility>

#include "collector/source.h"
#include "injector/python/ref.h"
#include "injector/python/vectorcall.h"

namespace rfinject {
namespace {

Source* g_source = nullptr;
const PythonApi* g_python = nullptr;
Vectorcall g_init = nullptr;
PyObject* g_watched_init = nullptr;  // owned; null: none is watched

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
  const Vectorcall found = FindVectorcall(python, init.get(), other.get(), &why);
  if (found == nullptr) return;
  g_init = found;
  g_source = &source;
  g_python = &python;
  SetVectorcall(init.get(), &OnInit);
  g_watched_init = init.release();
}

void StopWatchingProfilers() {
  if (g_watched_init == nullptr) return;
  SetVectorcall(g_watched_init, g_init);
  Ref(*g_python, std::exchange(g_watched_init, nullptr));
}

}  // namespace rfinject
