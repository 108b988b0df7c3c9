// File: op_observer.h
//
// Watches every ATen operator with its operands (RecordFunction FUNCTION scope) and hands those that stand for a
// kernel to the source, with the site where they began. ClassifyOp says what an operator is; a composite one (conv2d)
// is transparent, so that Site::op is the operator that would launch (aten::convolution).
//
// It does not see what a compiler generated (torch.compile with inductor runs its own code, not operators). It does
// not count operators on "meta" tensors, which trace shapes and compute nothing. Operators on tensors that wrap
// others (vmap, tensor subclasses) are transparent: what they run on the tensors inside is seen instead.
#ifndef RFINJECT_INJECTOR_TORCH_OP_OBSERVER_H_
#define RFINJECT_INJECTOR_TORCH_OP_OBSERVER_H_

#include "collector/recorder.h"
#include "collector/source.h"
#include "injector/torch/layouts.h"
#include "injector/torch/symbols.h"

namespace rfinject {

// From now on operators are handed to the source. Layouts must be valid. Outside of the recorder's window operators
// pass unobserved.
void AddOpCallback(const TorchSymbols& symbols, const TorchLayouts& layouts, Recorder& recorder,
                   Source& source) noexcept;

// Observes operators, or not, as the source wants now (Source::wants_ops_now). Called at the end of each step; does
// nothing before AddOpCallback.
void ObserveWantedOps() noexcept;

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_TORCH_OP_OBSERVER_H_
