// File: op_table.h
//
// The table of what the cost model knows about each ATen operator: whether it is a kernel, which rule counts its
// FLOP, which rule counts its bytes, and which unit of the GPU does its arithmetic. The rules themselves are in
// flop.h, bytes.h and precision.h; this table says which one applies, and why.
#ifndef RFINJECT_OPERATORS_OP_TABLE_H_
#define RFINJECT_OPERATORS_OP_TABLE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "operators/op_call.h"

namespace rfinject::estimate {

// How FLOP are counted. `per` below is OpRule::per; "result" is the first thing that the operator returns or, where
// it returns nothing, the first tensor (or list) argument; "operand" is the first tensor (or list) argument.
enum class FlopRule : uint8_t {
  kNone,                 // copies, comparisons, selection
  kPerResult,            // per * elements of the result
  kPerOperand,           // per * elements of the operand
  kPerSecond,            // per * elements of the second tensor
  kPerLast,              // per * elements of the last tensor
  kPerLastIfFlag,        // the same where the first boolean is true (index_put's "accumulate")
  kSum,                  // additions of a reduction: elements of the operand - elements of the result
  kScaledAdd,            // a + alpha*b: 1 per element of the result, 2 where alpha is not 1
  kAddProduct,           // a + value*b*c, a + value*b/c: 2 per element of the result, 3 where value is not 1
  kConvolution,          // 2 * result * (weight per output channel)
  kConvolutionBackward,  // the same for each of the two gradients that are computed
  kMatmul,               // 2mnk of the last two matrix arguments
  kLinear,               // (input, weight[out, in]): 2 * input * out
  kGroupedMatmul,        // products of several matrices, which offsets part
  kMatVec,               // 2 * elements of the matrix (of the vector, for a dot product)
  kAttention,            // q k v attention
  kAttentionBackward,    //
  kMultiHead,            // projections and attention in one operator (inference fast path)
  kRnn,                  // all steps of a recurrent layer
  kRnnBackward,          //
  kBatchNorm,            // by training and affine
  kNormalise,            // layer and group norm, by affine
  kLinearAlgebra,        // factorisations, solutions, eigenvalues (linear_algebra.h)
  kSampledProduct,       // of a product only the elements that the sparse result has
  kFft,                  // 5 N log2 N by convention
  kDistance,             // of pairs of vectors
  kEmbeddingBag,         // by the rows that are looked up
  kPoolWindow,           // elements of the result * size of the window
  kPoolWindowBackward,   // elements of the operand (the gradient) * size of the window
};

enum class BytesRule : uint8_t {
  kOperands,             // each operand read once, each result written once
  kWriteOnly,            // the result is written, what it held is not read
  kCopy,                 // (destination, source): destination written, source read
  kGather,               // of the first operand, only as many elements as the result has
  kPick,                 // of the first operand, only as many elements as the second has (nll_loss)
  kEmbeddingBag,         // rows that are looked up and their indices read, the bags written
  kScatter,              // of the first operand, only the elements that the others address
  kConvolutionBackward,  // input only for the weight's gradient, weight only for the input's
  kBatchNorm,            // and the running statistics are written when training
  kFusedOptimizer,       // lists: all read, all but the gradients written
  kFusedBackward,        // of a forward's operands and results: both read, and the results' gradients; the operands'
                         // written
};

// Which unit does the arithmetic; precision.h turns it into a Precision by dtype, policy and GPU.
enum class Unit : uint8_t { kVector, kConvolution, kMatmul, kFp8Matmul, kInt8Matmul };

struct OpRule {
  std::string_view name;  // without "aten::"
  OpKind kind = OpKind::kLeafIfChildless;
  FlopRule flop = FlopRule::kNone;
  uint8_t per = 0;
  BytesRule bytes = BytesRule::kOperands;
  Unit unit = Unit::kVector;
  uint8_t unread = 0;  // bit i: argument i gives only its shape, or is not needed at all
};

// Returns the rule for an operator ("aten::add_"), or nothing for one that the table does not know. An in-place form
// and a _foreach_ form have the functional form's rule unless they are listed themselves.
std::optional<OpRule> FindOp(std::string_view name) noexcept;

// The row of exactly this name, which has no "aten::" in front; null for one that the table does not know.
const OpRule* FindRow(std::string_view name) noexcept;

// All rows, for tests.
std::span<const OpRule> AllOps() noexcept;

}  // namespace rfinject::estimate

#endif  // RFINJECT_OPERATORS_OP_TABLE_H_
