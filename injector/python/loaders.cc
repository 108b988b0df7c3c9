#include "injector/python/loaders.h"

#include <cxxabi.h>

#include <vector>

#include "injector/python/python_frames.h"
#include "injector/python/ref.h"

namespace rfinject {
namespace {

const PythonApi* g_python = nullptr;
uint64_t g_batch = 0;

// What the object's own __dict__ has under a name.
Ref Own(const Ref& object, const char* name) {
  const Ref dict = object.Dict();
  if (!dict.IsInstance(g_python->PyDict_Type)) return {};
  return Ref::Borrow(*g_python, g_python->PyDict_GetItemString(dict.get(), name));
}

}  // namespace

void InitLoaders(const PythonApi& python) { g_python = &python; }

// An iterator of torch's has the sampler of its loader, which is a BatchSampler where the loader makes batches.
void NoteLoader() {
  if (g_python == nullptr) return;
  g_batch = 0;
  try {
    const std::vector<PythonCall> calls = CallsOfThread(*g_python, 1);
    if (calls.empty() || !calls.front().first) return;
    const long long batch = Own(Own(calls.front().first, "_index_sampler"), "batch_size").Integer(0);
    if (batch > 0) g_batch = static_cast<uint64_t>(batch);
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (...) {  // no memory
  }
}

uint64_t LoaderBatch() noexcept { return g_batch; }

}  // namespace rfinject
