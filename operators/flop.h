// File: flop.h
//
// Counts the FLOP of one operator, from the shapes of its operands.
//
// Model FLOP are what the mathematics asks for, by the field's conventions; executed FLOP are what a GPU's kernel for
// this operator does. They differ where the kernel is known to compute something twice, the backward of fused
// attention, and where it leaves out what a mask hides, causal attention.
#ifndef RFINJECT_OPERATORS_FLOP_H_
#define RFINJECT_OPERATORS_FLOP_H_

#include <cstdint>

#include "operators/op_call.h"
#include "operators/op_table.h"

namespace rfinject::estimate {

struct FlopCount {
  uint64_t model = 0;   // matrix + vector, without what is computed twice, with what a causal mask hides
  uint64_t matrix = 0;  // executed by the rule's unit (OpRule::unit)
  uint64_t vector = 0;  // executed by the CUDA cores
  // Of the model's: products of matrices and filters; and of these what a mask hides, which no result depends on.
  uint64_t products = 0, hidden = 0;
};

// What a recurrent layer does time step by time step, because each needs the one before: a product with the recurrent
// matrix and a kernel for the gates. This is cuDNN's standard algorithm; its persistent kernels, which PyTorch
// chooses for some shapes in half precision, do the same in fewer launches. These FLOP are part of the layer's FLOP;
// this traffic is not part of the layer's traffic.
struct Recurrence {
  uint64_t launches =
      0;  // of either kernel: layers, directions and time steps; 0: the operator is no recurrent layer
  uint64_t product_flop = 0, gates_flop = 0;  // of one launch
  uint64_t product_bytes = 0, gates_bytes = 0;
};
Recurrence CountRecurrence(const OpRule& rule, const OpCall& call) noexcept;

// FLOP of `call` under `rule`; saturates at UINT64_MAX. Integer and boolean arithmetic is no FLOP, but for a product
// of INT8, whose operations count as FLOP in that precision. Complex numbers count 4 times as much: a multiply-add is
// 4 multiplications and 4 additions of real numbers. (A lone addition would be 2, a lone multiplication 6.)
FlopCount CountFlop(const OpRule& rule, const OpCall& call) noexcept;

// Whether the operator adds to what is there (index_add_, index_put_ where it is told to), for the rules that count
// by the last tensor.
bool Accumulates(const OpRule& rule, const OpCall& call) noexcept;

// The elements of all rows that an embedding bag looks up: its indices, times the size of a row.
uint64_t LookedUp(const OpCall& call) noexcept;

// Whether arithmetic on this type is floating point, complex included.
bool IsFloating(DType dtype) noexcept;
bool IsComplex(DType dtype) noexcept;

// The type that the operator computes in: that of its first tensor result or, where it returns nothing, of its first
// tensor argument.
DType ResultType(const OpCall& call) noexcept;

}  // namespace rfinject::estimate

#endif  // RFINJECT_OPERATORS_FLOP_H_
