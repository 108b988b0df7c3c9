// File: nvtx_operators.h
//
// The operators of torch.autograd.profiler.emit_nvtx(record_shapes=True), which `nsys profile
// --pytorch=autograd-shapes-nvtx` switches on: each is a range whose text has its operands' shapes. They are put into
// one another, and the backward joined to the forward, as a recording of torch.profiler is (torch/call_tree.h), and
// costed by the same table of operators (torch/work.h). It is pure.
//
//   NvtxOperators operators;
//   for (const NvtxRange& range : ranges) operators.Add(range);      // as NvtxStack wants them
//   operators.Finish();
//   const uint32_t op = operators.At(thread, time);                  // calls in the same order
//   if (op != kNoSpan) Use(operators.WorkOf(op, DType::kFloat));
#ifndef RFINJECT_CLI_IMPORT_NSYS_NVTX_OPERATORS_H_
#define RFINJECT_CLI_IMPORT_NSYS_NVTX_OPERATORS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/import/nvtx_ranges.h"
#include "cli/import/torch/call_tree.h"
#include "cli/import/torch/recording.h"
#include "cli/import/torch/work.h"

namespace rfinject::cli {

// What the text of such a range says. PyTorch writes "NAME, seq = N, op_id = N, sizes = [[2, 3], []], input_op_ids =
// [(1,0), (0,-1)]", and leaves out what it does not know (torch/csrc/profiler/util.cpp). An operand that is no tensor
// has the size [], as one of no dimensions has; of a list of tensors each is an operand.
struct NvtxOperator {
  std::string_view name;
  int64_t sequence = TorchSpan::kNone;
  std::string_view sizes;  // a list of lists; empty where there is none, or where the text is cut
};
NvtxOperator ParseNvtxOperator(std::string_view text);

class NvtxOperators {
 public:
  // Further ranges are left out: so many take 500 MB.
  static constexpr size_t kMostRanges = size_t{1} << 22;

  // `layer`: the range is no operator's, and is a part of the path of a layer.
  void Add(const NvtxRange& range, bool layer);
  void Finish();
  bool full() const { return window_.spans.size() >= kMostRanges; }

  // The operator whose kernels a call on `thread` at `time` launches; kNoSpan for none. Calls come in the order of
  // the ranges; Rewind() begins anew.
  uint32_t At(int64_t thread, int64_t time);
  void Rewind();

  // What the operator had to do, its operands being of `type`. The reference stays valid.
  const OperatorWork& WorkOf(uint32_t op, DType type);
  // The outermost operator around one.
  uint32_t RootOf(uint32_t op) const;
  Phase PhaseOf(uint32_t op) const { return tree_.spans[op].phase; }
  bool trains() const { return tree_.trains(); }  // something runs backward
  // The path of the layer of an operator of the backward, which its forward operator was in; nothing for others.
  std::optional<std::string> LayerOfBackward(uint32_t op) const;

 private:
  std::string PathOf(uint32_t span) const;

  TorchRecording recording_;  // of texts alone
  TorchWindow window_;
  std::vector<int64_t> threads_;  // of TorchRecording::threads, as the ranges name them
  CallTree tree_;
  std::vector<std::string> layers_;  // of CallTree::layers, their paths
  std::optional<WorkTable> works_;
  size_t next_ = 0;  // in CallTree::order
  std::vector<uint32_t> open_;
};

// The type of the operands of a kernel, as its name says; float where it does not.
DType OperandsOfKernel(std::string_view kernel);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_NSYS_NVTX_OPERATORS_H_
