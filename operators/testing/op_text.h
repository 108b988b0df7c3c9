// File: op_text.h
//
// Operator calls as text, so that a test reads like the program that it stands for, and so that what a real training
// step ran can be kept and replayed (record_operators.py writes this).
//
//   aten::addmm ( f32[1000]@3 f32[8,512]@4 f32[512,1000]@5 i1 i1 ) -> ( f32[8,1000]@6 )
//
// A token is one argument: a tensor TYPE[SHAPE] with optionally @STORAGE, +OFFSET (elements; +? unknown) and
// /DISTINCT (elements in memory, of a broadcast tensor), the type with its memory format where that is to be known
// (f32:nhwc, f32:nchw), and *NUMBERS for a sparse tensor that holds as many (its indices are of 64 bits, one for each
// dimension), and last =N,N,… the numbers of a vector where they are to be known; { and } around the tensors of a
// list; i5 an integer, d0.5 a double, b1 a boolean, I3,3 a list of integers (I alone: empty), _ an undefined tensor
// or None, ? anything else. Tensors without a storage get one of their own each.
#ifndef RFINJECT_OPERATORS_TESTING_OP_TEXT_H_
#define RFINJECT_OPERATORS_TESTING_OP_TEXT_H_

#include <cstdint>
#include <functional>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "operators/op_call.h"

namespace rfinject::testing {

class OpText {
 public:
  // Throws std::invalid_argument on a text that is not of the form above.
  explicit OpText(std::string_view text);

  // Valid as long as this object.
  OpCall call() const;
  const std::string& name() const { return name_; }

 private:
  Argument ParseArgument(const std::vector<std::string>& tokens, size_t& at);
  void ParseTensor(const std::string& token);

  std::string name_;
  std::vector<Argument> inputs_, outputs_;
  std::vector<TensorView> tensors_;
  std::vector<int64_t> ints_;
};

// One operator of a recorded program, with what ran inside it.
struct OpNode {
  OpText op;
  std::vector<OpNode> children;
};

// Lines "DEPTH CALL", parents first; empty lines and lines that start with '#' are skipped.
std::vector<OpNode> ReadOps(std::istream& input);

// Calls `on_op` as the injector's observer does: for an atomic operator without looking inside, for any other after
// its children, and only if `on_op` was called for none of them.
void Replay(const std::vector<OpNode>& ops, const std::function<void(const OpCall&)>& on_op);

}  // namespace rfinject::testing

#endif  // RFINJECT_OPERATORS_TESTING_OP_TEXT_H_
