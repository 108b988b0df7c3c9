#include "operators/linear_algebra.h"

#include <algorithm>
#include <string_view>

#include "operators/operands.h"

namespace rfinject::estimate {
namespace {

// a/b of x*y*z.
uint64_t Part(uint64_t a, uint64_t b, uint64_t x, uint64_t y, uint64_t z) {
  return SaturatingMultiply(a, SaturatingMultiply(x, SaturatingMultiply(y, z))) / b;
}

uint64_t Less(uint64_t a, uint64_t b) { return a == UINT64_MAX || a < b ? a : a - b; }

// A batch of matrices, whose longer side is m.
struct Matrices {
  uint64_t m = 0, n = 0, batch = 0;
};

Matrices MatricesOf(const TensorView& tensor) {
  const uint64_t rows = Size(tensor, -2), columns = Size(tensor, -1);
  if (tensor.rank < 2 || rows == 0 || columns == 0) return {};
  return {std::max(rows, columns), std::min(rows, columns), tensor.numel / rows / columns};
}

// Whether the operator's result of that number has elements.
bool Has(const OpCall& call, size_t result) {
  return result < call.outputs.size() && Elements(TensorsOf(call, call.outputs[result])) != 0;
}

uint64_t Lu(const Matrices& a) { return Less(Part(1, 1, a.m, a.n, a.n), Part(1, 3, a.n, a.n, a.n)); }

// Householder vectors; the same again for the first n columns of their product.
uint64_t Qr(const Matrices& a) { return Less(Part(2, 1, a.m, a.n, a.n), Part(2, 3, a.n, a.n, a.n)); }

// Singular values alone, with the first n vectors of both sides, and with all: _linalg_svd -> (U, S, Vh).
uint64_t Svd(const OpCall& call, const Matrices& a) {
  if (!Has(call, 0) || !Has(call, 2)) return Less(Part(4, 1, a.m, a.n, a.n), Part(4, 3, a.n, a.n, a.n));
  const auto left = TensorsOf(call, call.outputs[0]), right = TensorsOf(call, call.outputs[2]);
  const bool all = a.m != a.n && std::max(Size(left[0], -1), Size(right[0], -2)) == a.m;
  if (!all) return SaturatingAdd(Part(14, 1, a.m, a.n, a.n), Part(8, 1, a.n, a.n, a.n));
  return SaturatingAdd(Part(4, 1, a.m, a.m, a.n),
                       SaturatingAdd(Part(8, 1, a.m, a.n, a.n), Part(9, 1, a.n, a.n, a.n)));
}

// The columns on the right-hand sides of a system of n equations: those of `tensor`, which may be vectors.
uint64_t Columns(const TensorView& tensor, const Matrices& a) {
  const uint64_t rows = a.m * a.batch;
  return rows == 0 ? 0 : std::max<uint64_t>(tensor.numel / rows, 1);
}

// `per` for each element of the matrix and each column: 1 for a triangle, 2 for two of them.
uint64_t Solve(const OpCall& call, size_t matrix, size_t right, uint64_t per) {
  const TensorView* a = InputTensor(call, matrix);
  const TensorView* b = InputTensor(call, right);
  if (a == nullptr || b == nullptr) return 0;
  const Matrices of = MatricesOf(*a);
  return SaturatingMultiply(of.batch, Part(per, 1, of.n, of.n, Columns(*b, of)));
}

// linalg_lstsq(A, B): the factorisation, and of each column on the right its product with Q and a triangle's
// solution.
uint64_t LeastSquares(const OpCall& call, const Matrices& a) {
  const TensorView* right = InputTensor(call, 1);
  if (right == nullptr) return 0;
  const uint64_t columns = right->rank == InputTensor(call, 0)->rank ? Size(*right, -1) : 1;
  return SaturatingAdd(Qr(a), Less(Part(4, 1, a.m, a.n, columns), Part(1, 1, a.n, a.n, columns)));
}

uint64_t OfOne(std::string_view name, const OpCall& call, const Matrices& a) {
  if (name == "linalg_cholesky_ex" || name == "cholesky") return Part(1, 3, a.n, a.n, a.n);
  if (name == "cholesky_inverse") return Part(2, 3, a.n, a.n, a.n);
  if (name == "linalg_inv_ex") return Part(2, 1, a.n, a.n, a.n);
  if (name == "linalg_qr") return SaturatingMultiply(Has(call, 0) ? 2 : 1, Qr(a));
  if (name == "geqrf" || name == "linalg_householder_product") return Qr(a);
  if (name == "_linalg_svd") return Svd(call, a);
  if (name == "_linalg_eigh") return Has(call, 1) ? Part(9, 1, a.n, a.n, a.n) : Part(4, 3, a.n, a.n, a.n);
  if (name == "linalg_lstsq") return LeastSquares(call, a);
  if (name == "linalg_eig") return Part(25, 1, a.n, a.n, a.n);
  if (name == "_linalg_eigvals") return Part(10, 1, a.n, a.n, a.n);
  // The others begin with it: linalg_lu_factor_ex, linalg_lu, _linalg_det, _linalg_slogdet, _linalg_solve_ex.
  return Lu(a);
}

}  // namespace

uint64_t LinearAlgebraFlop(const OpCall& call) noexcept {
  std::string_view name = call.name;
  if (const size_t colons = name.find("::"); colons != std::string_view::npos) name.remove_prefix(colons + 2);
  if (name == "linalg_solve_triangular") return Solve(call, 0, 1, 1);
  if (name == "triangular_solve") return Solve(call, 1, 0, 1);
  if (name == "cholesky_solve" || name == "_cholesky_solve_helper") return Solve(call, 1, 0, 2);
  if (name == "linalg_lu_solve") return Solve(call, 0, 2, 2);
  const TensorView* matrix = InputTensor(call, 0);
  if (matrix == nullptr) return 0;
  const Matrices a = MatricesOf(*matrix);
  const uint64_t factors = SaturatingMultiply(a.batch, OfOne(name, call, a));
  return name == "_linalg_solve_ex" ? SaturatingAdd(factors, Solve(call, 0, 1, 2)) : factors;
}

}  // namespace rfinject::estimate
