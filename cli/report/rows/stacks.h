// File: stacks.h
//
// Native call stacks of launches that are in no layer, which tell the code of the program that they come from.
#ifndef RFINJECT_CLI_REPORT_ROWS_STACKS_H_
#define RFINJECT_CLI_REPORT_ROWS_STACKS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cli/profile/profile.h"
#include "cli/text/row_set.h"

namespace rfinject::cli {

// What launches of one stack cost.
struct StackRow {
  std::shared_ptr<const NativeStackInfo> stack;  // null: no stack was taken
  Phase phase{};
  std::string caller;                // caller: CallerOf(*stack), or the program's line; empty without a stack
  uint64_t launches = 0;             // of all measured steps
  double time_ns = 0;                // of all measured steps
  std::vector<std::string> kernels;  // of the launches, ascending, no two alike
};

// The time of one of `steps` equal steps, ns; of all where the steps are not known (0).
double StepTimeOf(const StackRow& row, uint64_t steps);

// The innermost frame that is the program's own, or of a library that is not torch's, CUDA's or Python's:
// "Net::project", without its arguments, or "libfoo.so+0x1f3" where its function is not known. Where all frames are
// of those libraries, the outermost of them.
std::string CallerOf(const NativeStackInfo& stack);

// Whether only torch, the interpreter, the driver and what starts programs are on the stack, so that its caller tells
// nothing.
bool IsPlumbingOnly(const NativeStackInfo& stack);

// "torch::nn::LinearImpl::forward(at::Tensor const&)", or "libfoo.so+0x1f3".
std::string FrameText(const NativeFrameInfo& frame);

// The stack on one line as flame graphs have it, outermost first: "main;train;Net::project"; empty without a stack. A
// semicolon inside a name becomes a comma.
std::string FoldedStack(const StackRow& row);

// Returns the launches of `run` in no layer, by phase and stack, those with most time first.
std::vector<StackRow> FoldStacks(const Run& run);

// Such rows with the columns of CSV and JSON; times and launches are sums over all measured steps.
RowSet StacksOf(std::span<const StackRow> rows);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_ROWS_STACKS_H_
