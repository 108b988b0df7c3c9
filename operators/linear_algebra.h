// File: linear_algebra.h
//
// FLOP of factorisations of dense matrices, and of what is solved with them.
#ifndef RFINJECT_OPERATORS_LINEAR_ALGEBRA_H_
#define RFINJECT_OPERATORS_LINEAR_ALGEBRA_H_

#include <cstdint>

#include "operators/op_call.h"

namespace rfinject::estimate {

// The FLOP of a factorisation, a solution, eigenvalues or singular values, by the operator's name; all matrices of a
// batch together. 0 for other operators.
//
// These are the terms of the highest order of the usual algorithms for numbers that are real, a multiply-add as 2.
// The source of the direct ones is LAPACK's working note 41 (Blackford and Dongarra, "Installation Guide for LAPACK",
// appendix C), of eigenvalues and singular values Golub and Van Loan, "Matrix Computations", 4th edition,
// sections 5.2, 7.5, 8.3 and 8.6. What iterates takes about as many steps as is said there; Jacobi's method, which
// cuSOLVER takes for small matrices, does more.
uint64_t LinearAlgebraFlop(const OpCall& call) noexcept;

}  // namespace rfinject::estimate

#endif  // RFINJECT_OPERATORS_LINEAR_ALGEBRA_H_
