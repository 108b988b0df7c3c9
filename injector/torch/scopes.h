// File: scopes.h
//
// What happens at the scopes that torch's own Python code opens (Optimizer.step, Optimizer.zero_grad, DataLoader's
// __next__), whoever tells of them: the type slots of record_function (injector/python/user_scopes), or callbacks at
// torch's RecordFunction. The end of the outermost Optimizer.step is the end of a training step.
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

// By torch's own names, "Optimizer.step#SGD.step" and the like.
UserScope ClassifyScope(std::string_view name) noexcept;

// Before anything below; may be repeated with the same arguments. `source` may be null.
void InitScopes(Recorder& recorder, Source* source) noexcept;

// A scope called `name` has begun on this thread; most are none of ours. `record` identifies it until it ends.
// `optimizer`: whose step it is (injector/python/optimizers.h); 0: not known.
void BeginUserScope(const void* record, std::string_view name, uint32_t optimizer = 0) noexcept;
// It has ended, if it ever began. True when a training step ends with it; then EndTrainingStep() is due.
bool EndUserScope(const void* record) noexcept;
// May wait for the GPU: without the GIL, since the work waited for may need it.
void EndTrainingStep();

// RecordFunction callbacks, for the life of the process: at user scopes, and at every autograd node.
struct ScopeCallbacks {
  bool user = false;
  bool backward = false;
};
void AddScopeCallbacks(const TorchSymbols& symbols, const RecordLayout& layout, ScopeCallbacks which) noexcept;

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_TORCH_SCOPES_H_
