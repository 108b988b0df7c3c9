// File: fx_nodes.h
//
// Nodes of a graph of torch.fx as text, which is how Inductor writes them into the comments of what it generates:
//
//   %mul : Tensor "f32[256, 512][512, 1]cuda:0"[num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args =
//   (%sub, %rsqrt), kwargs = {})
//
// on one line. A node becomes the call of an operator, as the cost model takes it.
#ifndef RFINJECT_OPERATORS_FX_NODES_H_
#define RFINJECT_OPERATORS_FX_NODES_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "operators/op_call.h"

namespace rfinject {

// An operator's call with what it refers to.
struct FxCall {
  std::string op;  // "aten::mul"
  std::vector<Argument> inputs, outputs;
  std::vector<TensorView> tensors;
  std::vector<int64_t> ints;

  // Valid as long as this object.
  OpCall call() const;
};

class FxNodes {
 public:
  // Takes one line. Lines that say nothing of a node are passed over. A later line for the same node adds what an
  // earlier one did not say.
  void Read(std::string_view line);

  // Makes `*call` of the node; returns false where the node is no operator of PyTorch's, or its result's shape is not
  // known: a dynamic one is not.
  bool Find(std::string_view name, FxCall* call) const;
  // The operator that the node calls, "aten::mm"; empty where it calls none.
  std::string_view OperatorOf(std::string_view name) const;
  // Whether the node is an operator, known shape or not, that does something: no view, no bookkeeping.
  bool Computes(std::string_view name) const;

 private:
  struct Node {
    std::string op, arguments;
    TensorView tensor;  // the result; of rank 0 and no type where it is not known
    bool known = false;
  };
  std::map<std::string, Node, std::less<>> nodes_;
};

}  // namespace rfinject

#endif  // RFINJECT_OPERATORS_FX_NODES_H_
