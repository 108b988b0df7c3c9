// File: scopes.h
//
// Callbacks at the scopes that torch's own Python code opens (RecordFunction USER_SCOPE: Optimizer.step,
// Optimizer.zero_grad, DataLoader's __next__) and, where nothing better tells which autograd node runs, at every node
// (BACKWARD_FUNCTION). The end of the outermost Optimizer.step is the end of a training step.
#ifndef RFINJECT_INJECTOR_TORCH_SCOPES_H_
#define RFINJECT_INJECTOR_TORCH_SCOPES_H_

#include <string_view>

#include "collector/recorder.h"
#include "collector/source.h"
#include "injector/torch/layouts.h"
#include "injector/torch/symbols.h"

namespace rfinject {

enum class UserScope : uint8_t { kOther, kOptimizerStep, kZeroGrad, kLoader };
// By torch's own names, "Optimizer.step#SGD.step" and the like.
UserScope ClassifyScope(std::string_view name) noexcept;

// Adds the callbacks; they stay for the life of the process. `backward`: also at autograd nodes. `source` may be
// null.
void AddScopeCallbacks(const TorchSymbols& symbols, const RecordLayout& layout, bool backward, Recorder& recorder,
                       Source* source) noexcept;

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_TORCH_SCOPES_H_
