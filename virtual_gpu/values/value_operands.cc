#include "virtual_gpu/values/value_operands.h"

#include "virtual_gpu/virtual_gpu.h"

namespace rfinject {
namespace {

// A tensor that says of its elements what is to be done to them cannot be written to as it lies there.
bool IsPlain(const TensorPlace& place) { return !place.conjugate && !place.negate; }

}  // namespace

void DrawMask(const TensorPlace& mask, uint64_t seed, double probability) {
  constexpr unsigned kBits = 53;
  const auto limit = static_cast<uint64_t>(probability * static_cast<double>(uint64_t{1} << kBits));
  auto* at = reinterpret_cast<unsigned char*>(mask.data);
  for (uint64_t i = 0; i < mask.numel; ++i) {
    // SplitMix64 (Steele, Lea and Flood 2014).
    uint64_t number = seed += 0x9e3779b97f4a7c15u;
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9u;
    number = (number ^ number >> 27) * 0x94d049bb133111ebu;
    at[i] = (number ^ number >> 31) >> (64 - kBits) < limit ? 1 : 0;
  }
}

// Makes a sparse operand anew, of operands that are its parts.
bool ValueOperands::MakeSparseOperand(const CpuKernels& kernels, const RawValue& value, const SparseParts& from,
                                      bool wide, RawValue* operand) {
  RawValue parts[3];
  size_t made = 0;
  const size_t indices = from.index_count();
  const auto part = [&](size_t i) { return kernels.PartOf(i < indices ? from.indices[i] : from.values); };
  while (made <= indices && MakeOperand(kernels, part(made), wide, false, &parts[made])) ++made;
  const bool good = made > indices && kernels.MakeSparse(value, from, parts, operand);
  while (made != 0) kernels.Destroy(parts[--made]);
  return good;
}

// Makes an owned operand of a tensor: an alias of what lies on the device, or the program's own tensor; or a copy of
// it where it must have other numbers.
bool ValueOperands::MakeOperand(const CpuKernels& kernels, const RawValue& value, bool wide, bool written,
                                RawValue* operand) {
  if (SparseParts from; kernels.ReadSparse(value, &from)) {
    return !written && MakeSparseOperand(kernels, value, from, wide, operand);
  }
  TensorPlace place;
  if (!kernels.Read(value, &place)) return false;
  if (!IsPlain(place) && (written || place.device != kCudaDevice)) return false;
  if (place.device == kCudaDevice ? !kernels.MakeAlias(place, operand) : !kernels.Another(value, operand))
    return false;
  bool good =
      (!place.conjugate || kernels.Resolve(true, operand)) && (!place.negate || kernels.Resolve(false, operand));
  if (good && wide && place.halves()) {
    RawValue copy;
    const bool made = kernels.MakeTensor(place, kFloat, &copy);
    good = made && kernels.Copy(copy, *operand);
    kernels.Destroy(*operand);
    *operand = made ? copy : kernels.None();
    if (good && written) {
      good = copied_count_ < copied_.size() && kernels.Another(copy, &copied_[copied_count_].copy);
      if (good) copied_[copied_count_++].original = place;
    }
  }
  if (!good) {
    kernels.Destroy(*operand);
    *operand = kernels.None();
  }
  return good;
}

// Replaces a list's tensors, in a list of our own. The tensors that were there are
// kept for Release. What is written to copies of its tensors would be lost, so there must be none then.
bool ValueOperands::MakeListOperand(const CpuKernels& kernels, bool wide, bool written, RawValue* value) {
  if (!kernels.IsMine(*value)) {
    RawValue clone;
    if (!kernels.CloneList(*value, &clone)) return false;
    kernels.Destroy(*value);
    *value = clone;
  }
  RawVector* list = kernels.Elements(*value);
  for (RawValue* element = list->begin; element != list->end; ++element) {
    if (!kernels.IsTensor(*element)) continue;
    RawValue operand;
    TensorPlace place;
    if (written && wide && kernels.Read(*element, &place) && place.halves()) return false;
    if (replaced_count_ == kMostTensors || !MakeOperand(kernels, *element, wide, false, &operand)) return false;
    replaced_[replaced_count_++] = *element;
    *element = operand;
  }
  return true;
}

bool ValueOperands::Push(const CpuKernels& kernels, const ValueCall& call) {
  if (stack_.begin == nullptr && !kernels.MakeStack(4 * kMostArguments, &stack_)) return false;
  return call.substitute != nullptr ? PushSubstitutes(kernels, call) : PushArguments(kernels, call);
}

bool ValueOperands::PushArguments(const CpuKernels& kernels, const ValueCall& call) {
  const size_t count = call.arguments.size();
  size_t generator = count;
  if (call.rule->random) {
    while (generator-- > 0) {
      if (kernels.IsNone(call.arguments[generator]) || kernels.IsGenerator(call.arguments[generator])) break;
    }
    if (generator >= count) return false;
  }
  bool good = true;
  for (size_t i = 0; i < count; ++i) {
    const RawValue value = call.arguments[i];
    RawValue operand = value;
    if (i == generator) {
      good = good && kernels.MakeGenerator(value, &operand);
      if (!good) operand = kernels.None();
      if (kernels.IsShared(value) && !call.keep) kernels.Destroy(value);
    } else if (kernels.IsTensor(value)) {
      if (!MakeOperand(kernels, value, call.wide, (call.rule->writes >> i & 1) != 0, &operand)) {
        good = false;
        operand = kernels.None();
      }
    } else if (call.rule->makes && i + 2 == count) {
      operand = kernels.None();
    } else if (kernels.IsShared(value)) {
      if (call.keep) kernels.Share(value);
      if (kernels.IsList(value))
        good = MakeListOperand(kernels, call.wide, (call.rule->writes >> i & 1) != 0, &operand) && good;
    }
    *stack_.end++ = operand;
  }
  return good;
}

bool ValueOperands::PushSubstitutes(const CpuKernels& kernels, const ValueCall& call) {
  const Substitute& other = *call.substitute;
  for (int16_t i = 0; i < other.count; ++i) {
    const int16_t from = other.operands[static_cast<size_t>(i)];
    if (from < 0) {
      if (!PushConstant(kernels, call, from)) return false;
      continue;
    }
    const RawValue& value = call.arguments[static_cast<size_t>(from)];
    RawValue operand = value;
    if (kernels.IsTensor(value)) {
      RawValue narrow = value;
      TensorPlace place, first;
      if (from == other.rows && kernels.Read(value, &place) && kernels.Read(call.arguments[1], &first) &&
          place.rank == 3 && first.rank == 4 && place.sizes[2] > first.sizes[2]) {
        const int64_t sizes[3] = {place.sizes[0], place.sizes[1], first.sizes[2]};
        place.sizes = sizes;
        place.numel = static_cast<uint64_t>(sizes[0] * sizes[1] * sizes[2]);
        if (!kernels.MakeAlias(place, &narrow)) return false;
        *stack_.end++ = narrow;
        continue;
      }
      if (!MakeOperand(kernels, value, call.wide, (call.rule->writes >> from & 1) != 0, &operand)) return false;
    } else if (value.tag == kernels.TensorTag()) {  // a tensor that is not there
      operand = kernels.None();
    } else if (kernels.IsShared(value)) {
      kernels.Share(value);
    }
    *stack_.end++ = operand;
  }
  return true;
}

bool ValueOperands::PushConstant(const CpuKernels& kernels, const ValueCall& call, int16_t which) {
  const auto kept = [&] { return 1 - kernels.Real(call.arguments[1]); };
  TensorPlace place;
  RawValue value = kernels.None();
  switch (which) {
    case Substitute::kNone:
      break;
    case Substitute::kFalse:
    case Substitute::kTrue:
      value = kernels.Boolean(which == Substitute::kTrue);
      break;
    case Substitute::kZero:
      value = kernels.Integer(0);
      break;
    case Substitute::kTwoTrue:
    case Substitute::kThreeTrue:
      if (!kernels.MakeTrueList(which == Substitute::kTwoTrue ? 2 : 3, &value)) return false;
      break;
    case Substitute::kTypeOfFirst:
      if (!kernels.Read(call.arguments[0], &place)) return false;
      value = kernels.Integer(call.wide && place.halves() ? kFloat : place.dtype);
      break;
    case Substitute::kDrawn:
      if (call.results.size() < 2 || !kernels.IsTensor(call.results[1]) || !kernels.Read(call.results[1], &place) ||
          !place.dense() || place.dtype != kBool || place.device != kCudaDevice) {
        return false;
      }
      DrawMask(place, kernels.Seed(kernels.None()), kept());
      rfinject_virtual_gpu_computed(place.data, place.span(), true);
      if (!kernels.MakeAlias(place, &value)) return false;
      break;
    case Substitute::kUndropped:
      value = kernels.RealValue(kept() > 0 ? 1 / kept() : 0);
      break;
    default:
      return false;
  }
  *stack_.end++ = value;
  return true;
}

bool ValueOperands::Release(const CpuKernels& kernels, bool computed) {
  bool good = true;
  while (copied_count_ != 0) {
    const Copied& one = copied_[--copied_count_];
    RawValue original;
    if (computed && kernels.MakeAlias(one.original, &original)) {
      good = kernels.Copy(original, one.copy) && good;
      kernels.Destroy(original);
    } else {
      good = good && !computed;
    }
    kernels.Destroy(one.copy);
  }
  while (replaced_count_ != 0) kernels.Destroy(replaced_[--replaced_count_]);
  return good;
}

}  // namespace rfinject
