// File: sparse.h
//
// FLOP of products with sparse matrices. They run on the CUDA cores.
#ifndef RFINJECT_OPERATORS_SPARSE_H_
#define RFINJECT_OPERATORS_SPARSE_H_

#include <cstdint>

#include "operators/op_call.h"

namespace rfinject::estimate {

// The FLOP of a*b, of which one is sparse at least: a multiply-add, 2, for each number that the sparse one holds and
// each column or row of the dense one. Where both are sparse, which numbers meet is not known from their shapes; the
// count is then that of numbers that are spread evenly, 2 * numbers of a * numbers of b / columns of a.
uint64_t SparseProductFlop(const TensorView& a, const TensorView& b) noexcept;

// The FLOP of sparse_sampled_addmm(sparse, a, b): 2 * columns of a for each number of the sparse result.
uint64_t SampledProductFlop(const OpCall& call) noexcept;

}  // namespace rfinject::estimate

#endif  // RFINJECT_OPERATORS_SPARSE_H_
