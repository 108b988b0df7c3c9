#include "operators/sparse.h"

#include <algorithm>

#include "operators/operands.h"

namespace rfinject::estimate {

uint64_t SparseProductFlop(const TensorView& a, const TensorView& b) noexcept {
  uint64_t products = 0;
  if (a.sparse && b.sparse) {
    products = SaturatingMultiply(a.numel, b.numel) / std::max<uint64_t>(Size(a, -1), 1);
  } else if (a.sparse) {
    products = SaturatingMultiply(a.numel, b.rank < 2 ? 1 : Size(b, -1));
  } else {
    products = SaturatingMultiply(b.numel, a.rank < 2 ? 1 : Size(a, -2));
  }
  return SaturatingMultiply(2, products);
}

uint64_t SampledProductFlop(const OpCall& call) noexcept {
  const TensorView* sparse = InputTensor(call, 0);
  const TensorView* left = InputTensor(call, 1);
  if (sparse == nullptr || left == nullptr) return 0;
  return SaturatingMultiply(2, SaturatingMultiply(sparse->numel, Size(*left, -1)));
}

}  // namespace rfinject::estimate
