// File: operator_calls.h
//
// Lets several parts of rfinject see torch's operators by one callback of torch's: for each callback torch copies
// lists at every operator.
#ifndef RFINJECT_INJECTOR_TORCH_OPERATOR_CALLS_H_
#define RFINJECT_INJECTOR_TORCH_OPERATOR_CALLS_H_

#include "injector/torch/abi.h"
#include "injector/torch/symbols.h"

namespace rfinject {

struct OperatorListener {
  void (*start)(const abi::RecordFunction& record) = nullptr;
  void (*end)(const abi::RecordFunction& record) = nullptr;
};

// Has the listener called on the thread of each operator, with its operands and results, after those that were added
// before. It may hear of the end of an operator whose beginning it did not hear. For ever; at most two. Called by one
// thread at a time.
void ListenToOperators(const TorchSymbols& symbols, const OperatorListener& listener) noexcept;

// Lets all listeners hear of operators, as they do at first, or not: then torch has no callback of ours, and
// operators cost what they cost without rfinject. Any thread may call this; where two do, one call counts.
void HearOperators(bool hear) noexcept;

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_TORCH_OPERATOR_CALLS_H_
