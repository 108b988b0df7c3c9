// File: native_observer.h
//
// In a C++ program on libtorch: which layer the operators of the forward are in, asked of the native stack
// (injector/native/native_layers.h) when an outermost operator begins. It is kept for what the operator launches, and
// told to the ring of the thread, so that the autograd node that the operator bears belongs to the layer.
//
// It also sees the steps: one ends where the thread that ran an optimizer's step runs something else. And validation:
// what the program's one model that trains runs without gradients (torch::NoGradGuard, torch::InferenceMode), once an
// optimizer has stepped. Where several models train, one may make samples for another without gradients, and all
// counts as training: mode, which tells them apart in Python, cannot be read here.
#ifndef RFINJECT_INJECTOR_TORCH_NATIVE_OBSERVER_H_
#define RFINJECT_INJECTOR_TORCH_NATIVE_OBSERVER_H_

#include "collector/recorder.h"
#include "injector/native/native_layers.h"
#include "injector/torch/symbols.h"

namespace rfinject {

// Once, after InitAutograd and SetSequenceFunctions; a RecordFunction callback at every operator. `on_training` is
// called at the first operator in a layer or in an optimizer's step.
void ObserveNativeLayers(const TorchSymbols& symbols, Recorder& recorder, void (*on_training)()) noexcept;

// Of the outermost operator that runs on this thread; nothing while none does.
NativePlace CurrentNativePlace() noexcept;

// The process ends: the step whose optimizer ran last ends with it, and a program without an optimizer is one step.
void EndLastNativeStep() noexcept;

void ResetNativeObserverAfterFork() noexcept;

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_TORCH_NATIVE_OBSERVER_H_
