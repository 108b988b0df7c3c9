// File: fused_calls.h
//
// Remembers calls of operators that are one operator on a GPU and several on the CPU (FusedBackwardOf, op_call.h).
// Autograd makes a node for each of the several, on one thread and with consecutive numbers. The work of these nodes
// stands for one operator, which is reported to the source when the first of them runs in a backward pass.
#ifndef RFINJECT_INJECTOR_TORCH_FUSED_CALLS_H_
#define RFINJECT_INJECTOR_TORCH_FUSED_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "injector/torch/autograd.h"
#include "injector/torch/operands.h"

namespace rfinject {

struct FusedCall {
  uint64_t thread = 0, from = 0,
           to = 0;            // of the nodes: their thread, the first's number, and the one after the last's
  std::string_view backward;  // the operator's name; lives for ever
  uint32_t op = 0;            // the id of that name (Intern)
  size_t inputs = 0;          // how many of `operands` are arguments; the results follow
  Operands operands;          // of the forward
};

// Keeps a call for its backward. When the store is full, the oldest call is forgotten, and its backward is reported
// as the operators that the CPU runs. Throws std::bad_alloc.
void RememberFusedCall(const FusedCall& call);

// Whether any call was kept. If not, FindFusedCall need not be called.
bool HasFusedCalls() noexcept;

enum class FusedNode : uint8_t { kNone, kInside, kFirst };
// Returns whether `node` belongs to such a call; kFirst means that it is the call's first node that runs in this
// backward pass, and `*call` is then a copy of the call. The engine runs the nodes of one thread by descending
// numbers, so a higher number than the one before begins another pass where passes cannot be told apart otherwise.
// Throws std::bad_alloc.
FusedNode FindFusedCall(const NodeNumber& node, FusedCall* call);

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_TORCH_FUSED_CALLS_H_
