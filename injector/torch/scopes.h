// File: scopes.h
//
// Handles the scopes that torch's own Python code opens (Optimizer.step, Optimizer.zero_grad, DataLoader's __next__).
// The type slots of record_function tell of them, through training.h, or callbacks at torch's RecordFunction do. The
// end of the outermost Optimizer.step is the end of a training step.
//
// Callbacks are the second choice. While a single one is registered, for any kind of scope, torch copies the list of
// them, under a lock, for every autograd node: 0.5 us each, 5 to 8 % of a step of tiny layers.
#ifndef RFINJECT_INJECTOR_TORCH_SCOPES_H_
#define RFINJECT_INJECTOR_TORCH_SCOPES_H_

#include "collector/recorder.h"
#include "collector/source.h"
#include "injector/torch/layouts.h"
#include "injector/torch/symbols.h"

namespace rfinject {

// Must be called before any scope begins; may be repeated with the same arguments. `source` may be null.
void InitScopes(Recorder& recorder, Source* source) noexcept;

// Which RecordFunction callbacks are added: at user scopes, and at every autograd node.
struct ScopeCallbacks {
  bool user = false;
  bool backward = false;
};
void AddScopeCallbacks(const TorchSymbols& symbols, const RecordLayout& layout, ScopeCallbacks which) noexcept;
void RemoveScopeCallbacks() noexcept;

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_TORCH_SCOPES_H_
