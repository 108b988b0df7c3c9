#include "injector/python/profilers.h"

#include <utility>

#include "collector/source.h"
#include "injector/python/ref.h"
#include "injector/python/vectorcall.h"

namespace rfinject {
namespace {

Source* g_told_source = nullptr;
const PythonApi* g_profilers_python = nullptr;
Vectorcall g_profile_init = nullptr;
PyObject* g_watched_init = nullptr;  // owned; null: none is watched

// Others may need the GIL while the source waits for the GPU.
PyObject* OnProfilerMade(PyObject* callable, PyObject* const* arguments, size_t flagged_count, PyObject* names) {
  void* const thread = g_profilers_python->PyEval_SaveThread();
  g_told_source->OnProfilerComes();
  g_profilers_python->PyEval_RestoreThread(thread);
  return g_profile_init(callable, arguments, flagged_count, names);
}

}  // namespace

void WatchProfilers(const PythonApi& python, Source& source) {
  // torch.profiler makes one of these before it makes what asks CUPTI for records.
  Ref profile = ImportedModule(python, "torch.autograd.profiler").Attribute("profile");
  Ref init = profile.Attribute("__init__"), other = profile.Attribute("__enter__");
  const char* why = "";
  const Vectorcall found = FindVectorcall(python, init.get(), other.get(), &why);
  if (found == nullptr) return;
  g_profile_init = found;
  g_told_source = &source;
  g_profilers_python = &python;
  SetVectorcall(init.get(), &OnProfilerMade);
  g_watched_init = init.release();
}

void StopWatchingProfilers() {
  if (g_watched_init == nullptr) return;
  SetVectorcall(g_watched_init, g_profile_init);
  Ref(*g_profilers_python, std::exchange(g_watched_init, nullptr));
}

}  // namespace rfinject
