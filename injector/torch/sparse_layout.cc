#include "injector/torch/sparse_layout.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "injector/safe_read.h"

namespace rfinject {
namespace {

constexpr uint16_t kInt32 = 3, kInt64 = 4;  // c10::ScalarType
constexpr size_t kObjectBytes = 512;

// What a word that looks like a pointer to a TensorImpl points to.
struct Part {
  bool found = false;
  uint16_t dtype = 0;
  uint64_t rank = 0;
  std::array<uint64_t, kInlineRank> size{};
};

Part PartAt(uintptr_t address, const TensorLayout& layout) {
  Part part;
  if (address % 8 != 0 || address < 4096) return part;
  const Snapshot object = TakeSnapshot(address, kObjectBytes);
  part.rank = object.Word(layout.sizes);
  if (object.size < layout.sizes + (1 + kInlineRank) * 8u || part.rank == 0 || part.rank > kInlineRank) return part;
  part.dtype = static_cast<uint16_t>(object.Field(layout.dtype, 2));
  for (size_t i = 0; i < part.rank; ++i) part.size[i] = object.Word(layout.sizes + 8 + 8 * i);
  part.found = true;
  return part;
}

// at::SparseTensorImpl: how many of the dimensions are sparse, how many dense, the indices and the values.
bool IsCooAt(const Snapshot& object, size_t offset, uint64_t rank, uint16_t dtype, const TensorLayout& layout) {
  const uint64_t sparse = object.Word(offset), dense = object.Word(offset + 8);
  if (sparse > rank || dense > rank || sparse + dense != rank) return false;
  const Part indices = PartAt(object.Word(offset + 16), layout), values = PartAt(object.Word(offset + 24), layout);
  return indices.found && values.found && indices.dtype == kInt64 && indices.rank == 2 && indices.size[0] == sparse &&
         values.dtype == dtype && values.rank == 1 + dense && values.size[0] == indices.size[1];
}

// at::SparseCsrTensorImpl: the compressed indices, the plain ones, the values.
bool IsCompressedAt(const Snapshot& object, size_t offset, uint64_t, uint16_t dtype, const TensorLayout& layout) {
  const Part first = PartAt(object.Word(offset), layout), second = PartAt(object.Word(offset + 8), layout);
  if (!first.found || !second.found || first.dtype != second.dtype || first.rank != second.rank) return false;
  if (first.dtype != kInt32 && first.dtype != kInt64) return false;
  const Part values = PartAt(object.Word(offset + 16), layout);
  return values.found && values.dtype == dtype && values.rank >= second.rank &&
         std::equal(second.size.begin(), second.size.begin() + static_cast<ptrdiff_t>(second.rank),
                    values.size.begin());
}

using IsAt = bool (*)(const Snapshot&, size_t, uint64_t, uint16_t, const TensorLayout&);

// Where the parts begin in objects of one class; 0: not found yet. Relaxed: all threads find the same.
constinit std::atomic<uint32_t> g_coo{0}, g_compressed{0};

// Returns where the parts begin, 0 where that is not known.
uint32_t Find(uintptr_t tensor, const TensorLayout& layout, IsAt is_at, std::atomic<uint32_t>* known) {
  uint32_t at = known->load(std::memory_order_relaxed);
  if (at != 0) return at;
  const Snapshot object = TakeSnapshot(tensor, kObjectBytes);
  const uint64_t rank = object.Word(layout.sizes);
  const auto dtype = static_cast<uint16_t>(object.Field(layout.dtype, 2));
  // The parts are the derived class's: they lie behind all that is TensorImpl's.
  const size_t first = std::max<size_t>(layout.sizes + (1 + 2 * kInlineRank) * 8, layout.dtype) & ~size_t{7};
  for (size_t offset = first; offset + 32 <= object.size; offset += 8) {
    if (!is_at(object, offset, rank, dtype, layout)) continue;
    if (at != 0) return 0;
    at = static_cast<uint32_t>(offset);
  }
  if (at != 0) known->store(at, std::memory_order_relaxed);
  return at;
}

// What the objects of a class begin with: behind two words of its virtual table.
uintptr_t TableOf(void* torch, const char* symbol) {
  const auto table = reinterpret_cast<uintptr_t>(torch != nullptr ? dlsym(torch, symbol) : nullptr);
  return table != 0 ? table + 16 : 0;
}

}  // namespace

SparseReader::SparseReader(void* torch, const TensorLayout& layout)
    : coo_(TableOf(torch, "_ZTVN2at16SparseTensorImplE")),
      compressed_(TableOf(torch, "_ZTVN2at19SparseCsrTensorImplE")),
      layout_(layout) {}

bool SparseReader::ReadParts(uintptr_t tensor, bool compressed, SparseParts* parts) const {
  parts->compressed = compressed;
  const uint32_t at = parts->compressed ? Find(tensor, layout_, IsCompressedAt, &g_compressed)
                                        : Find(tensor, layout_, IsCooAt, &g_coo);
  if (at == 0) return false;
  const uintptr_t first = tensor + at + (parts->compressed ? 0 : 16);
  for (size_t i = 0; i < parts->index_count(); ++i) parts->indices[i] = Load<uintptr_t>(first + 8 * i);
  parts->values = Load<uintptr_t>(first + 8 * parts->index_count());
  parts->extra = Load<uint8_t>(first + 8 * parts->index_count() + 8);
  // One that is just being made may have a part that is undefined, whose type is none.
  const auto dtype = Load<uint16_t>(tensor + layout_.dtype);
  return parts->values != 0 && parts->indices[0] != 0 && Load<uint16_t>(parts->values + layout_.dtype) == dtype;
}

}  // namespace rfinject
