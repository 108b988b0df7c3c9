// File: native_observer.h
//
// Finds the layers of the forward's operators in a C++ program on libtorch, from the native stack
// (injector/native/native_layers.h), when an outermost operator begins. The layer is kept for what the operator
// launches, and told to the ring of the thread, so that the autograd node that the operator makes belongs to the
// layer.
//
// It also sees the steps: one ends where the thread that ran an optimizer's step runs something else. And it sees
// validation, if one model trains: what that model runs without gradients (torch::NoGradGuard, torch::InferenceMode),
// once an optimizer has stepped. Where several models train, one may make samples for another without gradients, and
// all counts as training: mode, which tells them apart in Python, cannot be read here.
#ifndef RFINJECT_INJECTOR_TORCH_NATIVE_OBSERVER_H_
#define RFINJECT_INJECTOR_TORCH_NATIVE_OBSERVER_H_

#include "collector/recorder.h"
#include "injector/native/native_layers.h"
#include "injector/torch/symbols.h"

namespace rfinject {

// Adds a RecordFunction callback at every operator. Must be called once, after InitAutograd and SetSequenceFunctions,
// and again only after StopObservingNativeLayers. `on_training` is called at the first operator in a layer or in an
// optimizer's step.
void ObserveNativeLayers(const TorchSymbols& symbols, Recorder& recorder, void (*on_training)()) noexcept;

// Takes the callback from torch. Operators that run go on and end.
void StopObservingNativeLayers() noexcept;

// Called before ObserveNativeLayers, in a program that computes already: the step that runs then is left out, unless
// there is no optimizer that would end it.
void LeaveNativeStepOut() noexcept;

// Called where the program goes on without us: the step that is open is none, unless there is no optimizer.
void DropOpenNativeStep() noexcept;

// The place of the outermost operator that runs on this thread; an empty one while none runs.
NativePlace CurrentNativePlace() noexcept;

// Called when the process ends: the step whose optimizer ran last ends with it, and a program without an optimizer is
// one step.
void EndLastNativeStep() noexcept;

// Called in a forked child, before any thread exists.
void ResetNativeObserverAfterFork() noexcept;

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_TORCH_NATIVE_OBSERVER_H_
