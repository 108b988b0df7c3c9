// File: fused_calls.h
//
// Calls of operators that a GPU does in one (FusedBackwardOf, op_call.h) and the CPU in many. Autograd has a node for
// each of those many, born on one thread with numbers that follow one another: what such nodes run stands for one
// operator, which is told when the first of them runs in a backward pass.
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
  uint32_t op = 0;            // the same, Intern()ed
  size_t inputs = 0;          // of the arguments; the results follow
  Operands operands;          // of the forward
};

// Keeps a call for its backward. The oldest is forgotten where there are very many; its backward is then told as what
// the CPU runs. Throws std::bad_alloc.
void RememberFusedCall(const FusedCall& call);

// Whether any was kept: without that nobody has to ask.
bool HasFusedCalls() noexcept;

enum class FusedNode : uint8_t { kNone, kInside, kFirst };
// Whether `node` is of such a call; kFirst: it is the first of it that runs in this backward pass, and `*call` is a
// copy. The engine runs the nodes of one thread by descending numbers, so a higher number than the one before begins
// another pass where passes cannot be told apart otherwise. Throws std::bad_alloc.
FusedNode FindFusedCall(const NodeNumber& node, FusedCall* call);

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_TORCH_FUSED_CALLS_H_
