#include "injector/python/loaders.h"

#include <cxxabi.h>

#include <vector>

#include "injector/python/python_frames.h"
#include "injector/python/ref.h"

namespace rfinject {
namespace {

uint64_t g_batch = 0;

}  // namespace

// An iterator of torch's has the sampler of its loader, which is a BatchSampler where the loader makes batches.
void NoteLoader(const PythonApi& python) {
  g_batch = 0;
  try {
    const std::vector<PythonCall> calls = CallsOfThread(python, 1);
    if (calls.empty() || !calls.front().first) return;
    const long long batch = calls.front().first.Dict().Item("_index_sampler").Dict().Item("batch_size").Integer(0);
    if (batch > 0) g_batch = static_cast<uint64_t>(batch);
  } catch (::abi::__forced_unwind&) {
    throw;
  } catch (...) {  // no memory
  }
}

uint64_t LoaderBatch() noexcept { return g_batch; }

}  // namespace rfinject
