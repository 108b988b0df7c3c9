// File: scopes.h
//
// Does what is to be done at the scopes that torch's own Python code opens (Optimizer.step, Optimizer.zero_grad,
// DataLoader's __next__). They are told of by the type slots of record_function (injector/python/user_scopes), or by
// callbacks at torch's RecordFunction. The end of the outermost Optimizer.step is the end of a training step.
//
// Callbacks are the second choice. While a single one is registered, for whatever scope, torch copies the list of
// them, under a lock, for every autograd node: 0.5 us each, 5 to 8 % of a step of tiny layers.
#ifndef RFINJECT_INJECTOR_TORCH_SCOPES_H_
#define RFINJECT_INJECTOR_TORCH_SCOPES_H_

#include <cstdint>
#include <string_view>

#include "collector/recorder.h"
#include "collector/source.h"
#include "injector/torch/autograd.h"
#include "injector/torch/layouts.h"
#include "injector/torch/symbols.h"

namespace rfinject {

// Knows a scope by torch's own names, "Optimizer.step#SGD.step" and the like.
UserScope ClassifyScope(std::string_view name) noexcept;

// Must be called before the functions below; may be repeated with the same arguments. `source` may be null.
void InitScopes(Recorder& recorder, Source* source) noexcept;

// Tells that a scope called `name` has begun on this thread; most scopes do not matter here. `record` identifies it
// until it ends. `optimizer` is the number of the optimizer whose step it is (injector/python/optimizers.h); 0: not
// known.
void BeginUserScope(const void* record, std::string_view name, uint32_t optimizer = 0) noexcept;
// Tells that a scope has ended, if it ever began. Returns true when a training step ends with it; the caller then
// calls EndTrainingStep().
bool EndUserScope(const void* record) noexcept;
// Ends the training step. It may wait for the GPU, so it must be called without the GIL, which the work on the GPU
// may need.
void EndTrainingStep();

// Which RecordFunction callbacks are added, for the life of the process: at user scopes, and at every autograd node.
struct ScopeCallbacks {
  bool user = false;
  bool backward = false;
};
void AddScopeCallbacks(const TorchSymbols& symbols, const RecordLayout& layout, ScopeCallbacks which) noexcept;

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_TORCH_SCOPES_H_
