// File: sparse_layout.h
//
// Finds the tensors that a sparse tensor is made of: the numbers that it holds, and the indices that say where.
//
// A sparse tensor is told by its class, whose virtual table libtorch exports. Where its parts lie in it is found in
// the first one that is met, as the one place where the words are what they must be: tensors whose types, ranks and
// sizes fit together.
#ifndef RFINJECT_INJECTOR_TORCH_SPARSE_LAYOUT_H_
#define RFINJECT_INJECTOR_TORCH_SPARSE_LAYOUT_H_

#include <cstddef>
#include <cstdint>

#include "injector/torch/layouts.h"

namespace rfinject {

// Addresses of TensorImpls, which the sparse tensor owns.
struct SparseParts {
  bool compressed = false;    // at::SparseCsrTensorImpl (CSR, CSC, BSR, BSC); else at::SparseTensorImpl (COO)
  uintptr_t values = 0;       // of COO [numbers, …], of the others […, numbers, …]
  uintptr_t indices[2] = {};  // of COO one of 64 bits, [dimensions, numbers]; of the others compressed and plain ones
  // The byte behind them: of COO whether it is coalesced, 0 or 1; of the others which of them it is (c10::Layout).
  uint8_t extra = 0;
  size_t index_count() const { return compressed ? 2 : 1; }
};

class SparseReader {
 public:
  SparseReader() = default;
  // `torch` is the handle of libtorch_cpu. Nothing is a sparse tensor where it does not export their classes.
  SparseReader(void* torch, const TensorLayout& layout);
  // For tests: the addresses that objects of the two classes begin with.
  SparseReader(uintptr_t coo, uintptr_t compressed, const TensorLayout& layout)
      : coo_(coo), compressed_(compressed), layout_(layout) {}

  // Returns false for a TensorImpl that is no sparse tensor, and for one whose parts are not found.
  bool Read(uintptr_t tensor, SparseParts* parts) const {
    const auto table = Load<uintptr_t>(tensor);
    return (table == coo_ || table == compressed_) && table != 0 && ReadParts(tensor, table == compressed_, parts);
  }

 private:
  bool ReadParts(uintptr_t tensor, bool compressed, SparseParts* parts) const;

  uintptr_t coo_ = 0, compressed_ = 0;
  TensorLayout layout_;
};

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_TORCH_SPARSE_LAYOUT_H_
