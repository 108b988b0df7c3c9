#include "virtual_gpu/values/value_results.h"

#include <algorithm>
#include <cstring>

#include "virtual_gpu/values/value_operands.h"
#include "virtual_gpu/virtual_gpu.h"

namespace rfinject {
namespace {

template <typename Word>
void MakeFiniteWords(uintptr_t data, size_t count, Word exponent) {
  auto* words = reinterpret_cast<Word*>(data);
  for (size_t i = 0; i < count; ++i) {
    if ((words[i] & exponent) == exponent) words[i] = 0;
  }
}

// Replaces what is no number or infinite, whose exponent is all ones, by zeros.
void MakeFinite(const TensorPlace& place) {
  const size_t count = place.span() / place.element_bytes;
  switch (place.dtype) {
    case 5:  // half
      return MakeFiniteWords<uint16_t>(place.data, count, 0x7c00);
    case 15:  // bfloat16
      return MakeFiniteWords<uint16_t>(place.data, count, 0x7f80);
    case kFloat:
      return MakeFiniteWords<uint32_t>(place.data, count, 0x7f800000);
    case kDouble:
      return MakeFiniteWords<uint64_t>(place.data, count, 0x7ff0000000000000);
    case 9:  // two floats
      return MakeFiniteWords<uint32_t>(place.data, 2 * count, 0x7f800000);
    case 10:
      return MakeFiniteWords<uint64_t>(place.data, 2 * count, 0x7ff0000000000000);
    default:
      return;
  }
}

bool IsShape(const TensorPlace& place, const TensorPlace& other) {
  return place.rank == other.rank && std::equal(place.sizes, place.sizes + place.rank, other.sizes);
}

// Writes a result of the CPU's kernel to where the operator's own is.
bool Deliver(const CpuKernels& kernels, const RawValue& from, const RawValue& to, bool partial) {
  SparseParts found, asked;
  if (kernels.ReadSparse(to, &asked)) {
    if (!kernels.ReadSparse(from, &found) || found.compressed != asked.compressed) return false;
    bool good = Deliver(kernels, kernels.PartOf(found.values), kernels.PartOf(asked.values), partial);
    for (size_t i = 0; i < asked.index_count(); ++i) {
      good = good && Deliver(kernels, kernels.PartOf(found.indices[i]), kernels.PartOf(asked.indices[i]), partial);
    }
    return good;
  }
  TensorPlace source, target;
  if (!kernels.IsTensor(from) || !kernels.IsTensor(to)) return !kernels.IsTensor(to);
  if (!kernels.Read(from, &source) || !kernels.Read(to, &target) || target.device != kCudaDevice) return false;
  if (source.data == target.data) return true;  // it was computed in place
  if (target.numel == 0) return true;           // nothing was asked for
  if (source.numel == 0 && partial) return true;
  if (target.conjugate || target.negate) return false;
  if (partial && source.rank == 3 && target.rank == 3 && source.sizes[2] < target.sizes[2]) {
    target.sizes = source.sizes;
    target.numel = source.numel;
  }
  if (!IsShape(source, target)) return false;
  if (source.dtype == target.dtype && source.contiguous() && target.contiguous() && source.numel == target.numel &&
      !source.conjugate && !source.negate) {
    rfinject_virtual_gpu_computed(target.data, target.span(),
                                  false);  // before it is written, so that it is given memory
    std::memcpy(reinterpret_cast<void*>(target.data), reinterpret_cast<const void*>(source.data), target.span());
    return true;
  }
  RawValue alias;
  if (!kernels.MakeAlias(target, &alias)) return false;
  const bool copied = kernels.Copy(alias, from);
  kernels.Destroy(alias);
  return copied;
}

}  // namespace

bool DeliverResults(const CpuKernels& kernels, const RawVector& from, std::span<const RawValue> to, bool partial) {
  if (from.size() < to.size() || (from.size() > to.size() && !partial)) return to.empty();
  for (size_t i = 0; i < to.size(); ++i) {
    if (kernels.IsList(to[i])) {
      if (!kernels.IsList(from.begin[i])) return false;
      const RawVector* sources = kernels.Elements(from.begin[i]);
      const RawVector* targets = kernels.Elements(to[i]);
      if (sources->size() != targets->size()) return false;
      for (size_t k = 0; k < targets->size(); ++k) {
        if (!Deliver(kernels, sources->begin[k], targets->begin[k], partial)) return false;
      }
    } else if (!Deliver(kernels, from.begin[i], to[i], partial)) {
      return false;
    }
  }
  return true;
}

void NoteComputed(const CpuKernels& kernels, const RawValue& tensor, bool known) {
  TensorPlace place;
  if (!kernels.Read(tensor, &place) || place.device != kCudaDevice) return;
  if (!known) MakeFinite(place);
  // Between the elements of a view lie others, of which nothing is known here.
  const bool knows = known && (place.dense() || rfinject_virtual_gpu_known(place.data, place.span()) != 0);
  rfinject_virtual_gpu_computed(place.data, place.span(), knows);
}

void NoteChanged(const CpuKernels& kernels, const RawValue& tensor) {
  TensorPlace place;
  if (kernels.Read(tensor, &place) && place.device == kCudaDevice && place.numel != 0)
    rfinject_virtual_gpu_changed(place.data, place.span());
}

// Nothing says that not all elements of a large mask are true: the numbers that were not computed count as finite.
void SayAllAreTrue(const CpuKernels& kernels, const RawValue& tensor, uint64_t most) {
  TensorPlace place;
  if (!kernels.Read(tensor, &place) || place.dtype != kBool || place.device != kCudaDevice || !place.dense() ||
      place.numel > most) {
    return;
  }
  rfinject_virtual_gpu_computed(place.data, place.span(), false);
  std::memset(reinterpret_cast<void*>(place.data), 1, place.span());
}

}  // namespace rfinject
