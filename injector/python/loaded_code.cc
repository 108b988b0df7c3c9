#include "injector/python/loaded_code.h"

#include <cstddef>
#include <exception>
#include <string>
#include <vector>

#include "collector/read_file.h"
#include "collector/recorder.h"
#include "injector/python/compiled_code.h"
#include "injector/python/graph_breaks.h"
#include "injector/python/ref.h"

namespace rfinject {
namespace {

// A large network's module has some hundred kilobytes.
constexpr size_t kMostOfModule = 16 << 20;

// All of it is of the thread that holds the GIL.
struct Loaded {
  const PythonApi* python = nullptr;  // null: nothing is watched
  bool looked = false;
  size_t seen = 0;  // of the list
};
constinit Loaded g_loaded;

// A list, or, up to torch 2.4, a dict; empty where Inductor was not imported.
Ref ListOfModules(const PythonApi& python) {
  const Ref cache = ImportedModule(python, "torch._inductor.codecache").Dict().Item("PyCodeCache");
  if (!cache.IsInstance(python.PyType_Type)) return {};
  Ref list = cache.Entry("modules");
  return list ? std::move(list) : cache.Entry("cache");
}

// Returns whether Inductor has generated it.
bool ReadModule(const PythonApi& python, const Ref& module) {
  const std::string path = module.Dict().Item("__file__").Text();
  return !path.empty() && ReadCompiledModule(python, ReadFile(path.c_str(), kMostOfModule), path);
}

}  // namespace

void WatchLoadedCode(const PythonApi& python) noexcept { g_loaded = {.python = &python}; }

void LookForLoadedCode() try {
  if (g_loaded.python == nullptr || !Recorder::Get().active()) return;
  const PythonApi& python = *g_loaded.python;
  OnCodeObject(python);
  const Ref list = ListOfModules(python);
  if (list.IsInstance(python.PyList_Type) && static_cast<size_t>(python.PyList_Size(list.get())) == g_loaded.seen)
    return;
  const std::vector<Ref> modules = list.Parts();
  if (modules.size() < g_loaded.seen) g_loaded.seen = 0;  // they were cleared
  bool found = false;
  while (g_loaded.seen < modules.size()) {
    // Counted first: what cannot be read is not tried again.
    if (ReadModule(python, modules[g_loaded.seen++])) found = true;
  }
  if (found && g_loaded.looked) NoteStepCompiles();
  g_loaded.looked = true;
} catch (const std::exception&) {
  // There was no memory for a text of a module's.
}

}  // namespace rfinject
