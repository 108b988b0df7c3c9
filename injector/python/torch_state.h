// File: torch_state.h
//
// What torch's Python module says about itself: versions, precision policy, and the modes that the calling thread is
// in. GIL held. Nothing here imports a module, warns, initialises CUDA or leaves an exception set.
#ifndef RFINJECT_INJECTOR_PYTHON_TORCH_STATE_H_
#define RFINJECT_INJECTOR_PYTHON_TORCH_STATE_H_

#include "collector/run_facts.h"
#include "injector/python/python_api.h"
#include "injector/python/ref.h"

namespace rfinject {

// Must be called once, after `import torch`.
void InitTorchState(const PythonApi& python);

// Returns Python's, torch's, CUDA's and cuDNN's versions, and torchvision's if the program has imported it.
RunFacts ReadVersions();

// Whether the package cupti-python is installed for this program: PyTorch's newer profiler needs it.
bool HasCuptiPython();

// Returns the precision policy as it is now. autocast_dtype holds every type that any call has seen in force, joined
// by '+'. Takes about a microsecond.
PolicyFacts ReadPolicy();

// Whether torch records operators for a backward pass on this thread (torch.is_grad_enabled).
bool GradEnabled();
// Whether the autograd engine is running on this thread (torch 2.0+; false before).
bool InBackward();
// Whether torch.jit is recording what this thread does.
bool Tracing();
// Whether this is a torch.utils.data worker process.
bool InDataLoaderWorker();
// Whether some torch.optim.Optimizer has been constructed in this process.
bool OptimizerExists();

// While it lives, reading a tensor's attributes on this thread is not recorded by torch.jit's tracer and does not
// reach a __torch_function__ of the user's.
class QuietTorch {
 public:
  QuietTorch();
  ~QuietTorch();
  QuietTorch(const QuietTorch&) = delete;
  QuietTorch& operator=(const QuietTorch&) = delete;

 private:
  Ref tracing_state_;
  Ref guard_;
};

// While it lives, the tensors that this thread saves for a backward pass go to none of the program's hooks
// (torch.autograd.graph.saved_tensors_hooks). Where a checkpoint takes its tensors by their order, one more breaks
// the program's backward pass.
class SavedTensorsUnheard {
 public:
  explicit SavedTensorsUnheard(const PythonApi& python);
  ~SavedTensorsUnheard();
  SavedTensorsUnheard(const SavedTensorsUnheard&) = delete;
  SavedTensorsUnheard& operator=(const SavedTensorsUnheard&) = delete;

 private:
  Ref pop_;     // empty: torch has no such hooks
  Ref pushed_;  // empty: the program has forbidden them here, and so has none
};

// While it lives, torch.compile does not look at the functions that this thread calls. Elsewhere it compiles those
// that begin inside of a compiled function, ours among them.
class DynamoAsleep {
 public:
  explicit DynamoAsleep(const PythonApi& python);
  ~DynamoAsleep();
  DynamoAsleep(const DynamoAsleep&) = delete;
  DynamoAsleep& operator=(const DynamoAsleep&) = delete;

 private:
  Ref set_;     // empty: Dynamo was not imported
  Ref before_;  // what it would call
};

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_TORCH_STATE_H_
