// File: estimated_kernel.h
//
// Turns what a trace says of an estimated kernel (the operator's name, the types and shapes of its operands, FLOP and
// bytes) into the operators whose expected time is computed. It is pure maths.
//
//   EstimatedKernel kernel{.op = "aten::mm", .signature = "f32[8,512] f32[512,1000]", .flop = flop, .bytes = bytes};
//   ExpectedTime time = ExpectedTimeOf(kernel, model);
#ifndef RFINJECT_CLI_MODEL_ESTIMATED_KERNEL_H_
#define RFINJECT_CLI_MODEL_ESTIMATED_KERNEL_H_

#include <array>
#include <span>
#include <string_view>

#include "cli/model/expected.h"
#include "cli/model/roofline.h"

namespace rfinject::cli {

struct EstimatedKernel {
  std::string_view op;         // "aten::convolution_backward"; without the namespace too
  std::string_view signature;  // "f32[8,64,56,56] bf16[64,64,3,3]", as operators/signature.h writes it
  FlopByPrecision flop{};      // executed FLOP of the cost model
  double bytes = 0;            // compulsory traffic
  bool gradient = false;       // it runs in a backward pass
};

// The operators that the kernel stands for: one, or two (a convolution's backward is the gradient of the input and
// that of the weight). A shape that is not understood, or does not give the FLOP, is OperatorKind::kOther.
struct OperatorList {
  std::array<Operator, 2> operators;
  size_t count = 1;
  std::span<const Operator> span() const { return {operators.data(), count}; }
};
OperatorList OperatorsOf(const EstimatedKernel& kernel);

// Returns the sum over OperatorsOf, and the ideal time and the DRAM bytes of the kernel as a whole. The interval's
// ends are also summed, as if the model's error were the same for all.
ExpectedTime ExpectedTimeOf(const EstimatedKernel& kernel, const ExpectedTimes& model);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_MODEL_ESTIMATED_KERNEL_H_
