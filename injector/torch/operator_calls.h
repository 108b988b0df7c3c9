// File: operator_calls.h
//
// Lets several parts of rfinject see torch's operators by one callback of torch's: for each callback torch copies
// lists at every operator.
#ifndef RFINJECT_INJECTOR_TORCH_OPERATOR_CALLS_H_
#define RFINJECT_INJECTOR_TORCH_OPERATOR_CALLS_H_

#include <cstdint>

#include "collector/site.h"
#include "injector/torch/abi.h"
#include "injector/torch/symbols.h"

namespace rfinject {

struct OperatorListener {
  void (*start)(const abi::RecordFunction& record) = nullptr;
  void (*end)(const abi::RecordFunction& record) = nullptr;
};

// Has the listener called on the thread of each operator, with its operands and results, after those that were added
// before. It may hear of the end of an operator whose beginning it did not hear. At most two, each of which is kept
// for ever; called again after StopHearingOperators for one that is known. Called by one thread at a time.
void ListenToOperators(const TorchSymbols& symbols, const OperatorListener& listener) noexcept;

// Lets all listeners hear of operators, as they do at first, or not: then torch has no callback of ours, and
// operators cost what they cost without rfinject. Called between two operators of the calling thread. Any thread may
// call these; where two do, one call counts.
void HearOperators(bool hear) noexcept;

// Takes the callback from torch, and lets nobody add it before ListenToOperators is called again. An operator that
// runs is still heard to end.
void StopHearingOperators() noexcept;

// Tells that a kernel is launched, inside an operator of the calling thread, in a step of which slices are heard.
// With `hear` all listeners hear of operators from here on: each thread begins where its place is another than that
// of its last launch, because the operator around that was not heard, and nothing inside it may be.
void NoteLaunchOfSlices(bool hear) noexcept;

// Where a thread is. Between two of its operators it may be another place, and none is left inside an operator.
struct OperatorPlace {
  uint64_t enters = 0, entered = 0;  // EnterCount() and LayerTop::entered: module calls
  uint64_t node = 0;                 // RunningNode()
  uint64_t backward = 0;             // outside of nodes: launches of nodes until then, by any thread
  Phase phase = Phase::kOther;       // tells an optimizer's step
  friend bool operator==(const OperatorPlace&, const OperatorPlace&) = default;
};

// `goes_on` is asked where a thread's place has changed and an operator begins that runs inside no other: whether it,
// and what follows, is heard, too. Set before operators are heard, once.
void SetOperatorSlices(OperatorPlace (*place)() noexcept, bool (*goes_on)() noexcept) noexcept;

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_TORCH_OPERATOR_CALLS_H_
