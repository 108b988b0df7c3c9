#include "injector/torch/values.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <new>

#include "collector/virtual_gpu.h"
#include "injector/thread_block.h"
#include "injector/torch/abi.h"
#include "injector/torch/cpu_kernels.h"
#include "injector/torch/name_cache.h"
#include "injector/torch/value_rules.h"

namespace rfinject {
namespace {

using abi::NoContext;
using abi::RecordFunction;

constexpr int8_t kCuda = 1;  // c10::DeviceType
constexpr size_t kMaxOps = 48;
constexpr size_t kMaxArguments = 24;
constexpr size_t kMaxTensors = 2048;  // in lists, of the operators that run inside each other

// How much an operator may compute: elements of its operands, elements of its results, and multiply-adds. A launch
// takes PyTorch about 10 us of a core; these take about as long.
constexpr uint64_t kElements = 16 << 10;
constexpr uint64_t kResults = 64 << 10;
constexpr uint64_t kMultiplyAdds = 64 << 10;
// The same of integers and masks, which say how long things are and where they lie: the mask of 8 s of speech.
constexpr uint64_t kIntegers = 128 << 10;
constexpr uint64_t kUnknownElements = 256;  // where an operand is not known

struct Facts {
  std::array<CpuKernel, 3> kernels;  // by Form
  ValueRule rule;
  bool any() const { return kernels[0].run != nullptr || kernels[1].run != nullptr || kernels[2].run != nullptr; }
};

struct Frame {
  const RecordFunction* record = nullptr;
  Facts facts;
  uint64_t launches = 0;  // of the thread, when it began
  uint64_t inner = 0;     // of operators inside it
  size_t count = 0;       // of values that are kept
  bool kept = false;
  bool owned = false;         // the tensors that are kept are also ours
  bool kept_tensors = false;  // those of its operands are, also when the operands are taken
  bool answered = false;      // what it reads of its own results was told (AnswerFromVirtualGpu)
  Form form = Form::kDense;   // of its operands
  int64_t answer = 0;         // what was told
  RawVector found{};          // results that were computed when it began (ValueRule::counts)
  std::array<RawValue, kMaxArguments> values;
  size_t first_written = 0;  // its part of the thread's

  const CpuKernel& kernel() const { return facts.kernels[static_cast<size_t>(form)]; }
  void Answer(int64_t value) {
    answered = true;
    answer = value;
    AnswerFromVirtualGpu(&answer);
  }
};

struct Thread {
  uint32_t depth = 0;
  uint32_t uncounted = 0;  // operators inside the last frame that have none
  bool busy = false;       // computing
  bool alone = false;      // what runs inside the last frame is not looked at
  RawVector stack{};
  std::array<RawValue, kMaxTensors> replaced;  // tensors whose places in lists were taken by aliases
  size_t replaced_count = 0;
  std::array<RawValue, kMaxTensors> written;  // tensors that operators write to and do not return
  size_t written_count = 0;
  std::array<Frame, kMaxOps> frames;
};
ThreadBlock<Thread> g_threads;
__attribute__((tls_model("initial-exec"))) constinit thread_local Thread* t_thread = nullptr;

struct Globals {
  const char* (*name)(const RecordFunction*) = nullptr;
  size_t (*input_count)(const RecordFunction*) = nullptr;
  size_t (*output_count)(const RecordFunction*) = nullptr;
  RecordLayout layout;
  CpuKernels kernels;
};
Globals g;
NameCache<Facts> g_facts;

template <typename T>
T Load(const RecordFunction& record, size_t offset) {
  T value;
  std::memcpy(&value, reinterpret_cast<const char*>(&record) + offset, sizeof(value));
  return value;
}

Facts FactsOf(const RecordFunction& record) {
  return g_facts.FindByPointer(g.name(&record), [&record](const char* name, Facts* facts) {
    if (!IsOperatorName(name)) return false;
    facts->rule = ValueRuleOf(name);
    for (const Form form : {Form::kDense, Form::kCoo, Form::kCompressed}) {
      if (!facts->rule.never) g.kernels.Find(record, form, &facts->kernels[static_cast<size_t>(form)]);
    }
    return true;
  });
}

// Calls `visit(value)` for each tensor that a value lies in: itself, its parts, or the elements of a list.
template <typename Visit>
void ForTensors(const RawValue& value, const Visit& visit) {
  SparseParts parts;
  if (g.kernels.ReadSparse(value, &parts)) {
    for (size_t i = 0; i < parts.index_count(); ++i) visit(g.kernels.PartOf(parts.indices[i]));
    visit(g.kernels.PartOf(parts.values));
  } else if (g.kernels.IsTensor(value)) {
    visit(value);
  } else if (g.kernels.IsList(value) && value.payload != 0) {
    const RawVector* list = g.kernels.Elements(value);
    for (RawValue* element = list->begin; element != list->end; ++element) {
      if (g.kernels.IsTensor(*element)) visit(*element);
    }
  }
}

// --- What an operator's operands are like.

struct Operands {
  bool computable = true;
  bool on_device = false;
  bool known = true;
  bool integers = true;
  uint64_t elements = 0;
  uint64_t largest = 0, second = 0;
};

void Look(const RawValue& value, bool ask_known, Operands* to) {
  TensorPlace place;
  if (!g.kernels.Read(value, &place) || (place.device != kCuda && place.device != 0)) {
    to->computable = false;
    return;
  }
  to->integers = to->integers && place.integers();
  to->elements += place.numel;
  to->second = std::max(to->second, std::min(to->largest, place.numel));
  to->largest = std::max(to->largest, place.numel);
  if (place.device != kCuda) return;
  to->on_device = true;
  if (ask_known && to->known) to->known = VirtualGpuKnows(place.data, place.span());
}

bool IsSmall(const Operands& operands, const ValueRule& rule) {
  if (!operands.computable || operands.elements > (operands.integers ? kIntegers : kElements)) return false;
  if (!operands.on_device && !rule.makes) return false;
  return operands.known || operands.elements <= kUnknownElements;
}

// --- Results.

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
    case 6:
      return MakeFiniteWords<uint32_t>(place.data, count, 0x7f800000);
    case 7:
      return MakeFiniteWords<uint64_t>(place.data, count, 0x7ff0000000000000);
    default:
      return;
  }
}

void NoteComputed(const RawValue& tensor, bool known) {
  TensorPlace place;
  if (!g.kernels.Read(tensor, &place) || place.device != kCuda) return;
  if (!known) MakeFinite(place);
  // Between the elements of a view lie others, of which nothing is known here.
  const bool knows = known && (place.dense() || VirtualGpuKnows(place.data, place.span()));
  TellVirtualGpuComputed(place.data, place.span(), knows);
}

void NoteChanged(const RawValue& tensor) {
  TensorPlace place;
  if (g.kernels.Read(tensor, &place) && place.device == kCuda && place.numel != 0)
    TellVirtualGpuChanged(place.data, place.span());
}

// Writes a result of the CPU's kernel to where the operator's own is.
bool Deliver(const RawValue& from, const RawValue& to) {
  SparseParts found, asked;
  if (g.kernels.ReadSparse(to, &asked)) {
    if (!g.kernels.ReadSparse(from, &found) || found.compressed != asked.compressed) return false;
    bool good = Deliver(g.kernels.PartOf(found.values), g.kernels.PartOf(asked.values));
    for (size_t i = 0; i < asked.index_count(); ++i) {
      good = good && Deliver(g.kernels.PartOf(found.indices[i]), g.kernels.PartOf(asked.indices[i]));
    }
    return good;
  }
  TensorPlace source, target;
  if (!g.kernels.IsTensor(from) || !g.kernels.IsTensor(to)) return !g.kernels.IsTensor(to);
  if (!g.kernels.Read(from, &source) || !g.kernels.Read(to, &target) || target.device != kCuda) return false;
  if (source.data == target.data) return true;  // it was computed in place
  if (target.numel == 0) return true;           // nothing was asked for
  if (source.rank != target.rank || !std::equal(source.sizes, source.sizes + source.rank, target.sizes)) return false;
  if (source.dtype == target.dtype && source.contiguous() && target.contiguous()) {
    TellVirtualGpuComputed(target.data, target.span(), false);  // before it is written, so that it is given memory
    std::memcpy(reinterpret_cast<void*>(target.data), reinterpret_cast<const void*>(source.data), target.span());
    return true;
  }
  RawValue alias;
  if (!g.kernels.MakeAlias(target, &alias)) return false;
  const bool copied = g.kernels.Copy(alias, from);
  g.kernels.Destroy(alias);
  return copied;
}

bool DeliverAll(const RawVector& results, const RawValue* outputs, size_t count) {
  if (results.size() != count) return count == 0;
  for (size_t i = 0; i < count; ++i) {
    if (g.kernels.IsList(outputs[i])) {
      if (!g.kernels.IsList(results.begin[i])) return false;
      const RawVector* from = g.kernels.Elements(results.begin[i]);
      const RawVector* to = g.kernels.Elements(outputs[i]);
      if (from->size() != to->size()) return false;
      for (size_t k = 0; k < to->size(); ++k) {
        if (!Deliver(from->begin[k], to->begin[k])) return false;
      }
    } else if (!Deliver(results.begin[i], outputs[i])) {
      return false;
    }
  }
  return true;
}

// --- Operands for the CPU's kernel.

// Replaces a list's tensors, in a list that is only ours, so that nobody sees it. The tensors that were there are
// kept for ReleaseReplaced.
bool MakeListOperand(Thread* thread, RawValue* value) {
  if (!g.kernels.IsMine(*value)) {
    RawValue clone;
    if (!g.kernels.CloneList(*value, &clone)) return false;
    g.kernels.Destroy(*value);
    *value = clone;
  }
  RawVector* list = g.kernels.Elements(*value);
  for (RawValue* element = list->begin; element != list->end; ++element) {
    if (!g.kernels.IsTensor(*element)) continue;
    RawValue operand;
    if (thread->replaced_count == kMaxTensors || !g.kernels.MakeOperand(*element, &operand)) return false;
    thread->replaced[thread->replaced_count++] = *element;
    *element = operand;
  }
  return true;
}

void ReleaseReplaced(Thread* thread) {
  while (thread->replaced_count != 0) g.kernels.Destroy(thread->replaced[--thread->replaced_count]);
}

// Moves the frame's values onto the stack, as operands for the CPU. Returns false where that cannot be; the stack
// then holds what has to be destroyed.
bool PushOperands(Frame* frame, Thread* thread, bool keep) {
  RawVector& stack = thread->stack;
  size_t generator = frame->count;
  if (frame->facts.rule.random) {
    while (generator-- > 0) {
      if (g.kernels.IsNone(frame->values[generator]) || g.kernels.IsGenerator(frame->values[generator])) break;
    }
    if (generator >= frame->count) return false;
  }
  bool good = true;
  for (size_t i = 0; i < frame->count; ++i) {
    const RawValue value = frame->values[i];
    RawValue operand = value;
    if (i == generator) {
      good = good && g.kernels.MakeGenerator(value, &operand);
      if (!good) operand = g.kernels.None();
      if (g.kernels.IsShared(value)) g.kernels.Destroy(value);
    } else if (g.kernels.IsTensor(value)) {
      if (!g.kernels.MakeOperand(value, &operand)) {
        good = false;
        operand = g.kernels.None();
      }
    } else if (frame->facts.rule.makes && i + 2 == frame->count) {
      operand = g.kernels.None();
    } else if (g.kernels.IsShared(value)) {
      if (keep) g.kernels.Share(value);
      if (g.kernels.IsList(value)) good = MakeListOperand(thread, &operand) && good;
    }
    *stack.end++ = operand;
  }
  if (!keep) frame->kept = false;
  return good;
}

bool Compute(Frame* frame, Thread* thread, bool keep) {
  if (thread->stack.begin == nullptr && !g.kernels.MakeStack(4 * kMaxArguments, &thread->stack)) return false;
  thread->busy = true;
  const bool pushed = PushOperands(frame, thread, keep);
  bool computed = false;
  if (pushed) {
    computed = g.kernels.Run(frame->kernel(), &thread->stack);
  } else {
    g.kernels.Clear(&thread->stack);
  }
  ReleaseReplaced(thread);
  thread->busy = false;
  return computed;
}

// --- Frames.

void Release(Frame* frame, Thread* thread) {
  if (frame->owned) {
    for (size_t i = 0; frame->kept_tensors && i < frame->count; ++i) {
      if (g.kernels.IsTensor(frame->values[i])) g.kernels.Destroy(frame->values[i]);
    }
    for (size_t i = frame->first_written; i < thread->written_count; ++i) g.kernels.Destroy(thread->written[i]);
    frame->owned = false;
  }
  thread->written_count = frame->first_written;
  if (frame->kept) {
    for (size_t i = 0; i < frame->count; ++i) {
      if (g.kernels.IsShared(frame->values[i])) g.kernels.Destroy(frame->values[i]);
    }
    frame->kept = false;
  }
  if (frame->found.begin != nullptr) {
    g.kernels.Clear(&frame->found);
    ::operator delete(frame->found.begin);
    frame->found = {};
  }
}

// Runs an operator that counts before its own kernels would have: it gives out as much memory as they find.
void ComputeCount(Frame* frame, Thread* thread) {
  if (!Compute(frame, thread, true)) {
    if (int64_t count = 0; frame->facts.rule.merges && g.kernels.Count(frame->values[0], &count))
      frame->Answer(count);
    return;
  }
  if (frame->facts.rule.compares) {
    const int64_t equal = thread->stack.size() == 1 ? static_cast<int64_t>(thread->stack.begin->payload & 1) : 0;
    g.kernels.Clear(&thread->stack);
    frame->Answer(equal);
    return;
  }
  int64_t count = 0;
  if (thread->stack.size() == 0 || !g.kernels.Count(*thread->stack.begin, &count))
    return g.kernels.Clear(&thread->stack);
  std::swap(frame->found, thread->stack);
  frame->Answer(count);
}

// Whether values lie in the frame of a function that has called us: then they are copies that torch has made for us,
// of operands that its caller has until the operator ends. Others lie on the interpreter's stack, which drops them
// before.
bool AreCopies(uintptr_t values) {
  constexpr uintptr_t kCallers = 16 << 10;  // more than torch's frames between an operator's call and ours
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return values > here && values - here < kCallers;
}

// Keeps the operands of an operator whose kernels may have to be computed.
void Keep(const RecordFunction& record, Frame* frame, Thread* thread) {
  const auto values = Load<uintptr_t>(record, g.layout.inputs);
  const auto count = Load<size_t>(record, g.layout.inputs + 8);
  const size_t wanted = g.input_count(&record);
  if (count < wanted || wanted > kMaxArguments) return;
  // The boxed path passes the interpreter's whole stack. The arguments lie at its end.
  const auto* first = reinterpret_cast<const RawValue*>(values) + (count - wanted);
  Operands operands;
  for (size_t i = 0; i < wanted && operands.computable && operands.elements <= kIntegers; ++i) {
    ForTensors(first[i], [&operands](const RawValue& tensor) { Look(tensor, false, &operands); });
    frame->form = std::max(frame->form, g.kernels.FormOf(first[i]));
  }
  for (size_t i = 0; i < wanted && i < 32; ++i) {
    // Of a sparse tensor that is changed in place, the parts that it had are gone at the end.
    const bool written = (frame->facts.rule.writes >> i & 1) != 0;
    if (written && g.kernels.FormOf(first[i]) != Form::kDense) operands.computable = false;
  }
  const bool copies = AreCopies(values);
  frame->owned = !copies;
  const bool small = frame->kernel().run != nullptr && IsSmall(operands, frame->facts.rule);
  for (size_t i = 0; i < wanted && i < 32; ++i) {
    if ((frame->facts.rule.writes >> i & 1) == 0 || (!operands.on_device && operands.computable)) continue;
    if (!small && i != 0 && frame->facts.rule.writes == 0b11) continue;  // what the gradient scaler has found
    ForTensors(first[i], [thread, copies](const RawValue& tensor) {
      if (thread->written_count == kMaxTensors) return;
      if (!copies) g.kernels.Share(tensor);
      thread->written[thread->written_count++] = tensor;
    });
  }
  if (!small && frame->facts.rule.compares && operands.on_device) {  // what was not computed counts as equal
    frame->Answer(1);
  }
  if (int64_t count = 0;
      !small && frame->facts.rule.merges && operands.on_device && g.kernels.Count(first[0], &count)) {
    frame->Answer(count);  // no place of those that are not known counts as named twice
  }
  if (!small) return;
  // A dense tensor that something sparse is added to must be as it was when all of that is computed at the end.
  thread->alone = frame->form != Form::kDense && frame->facts.rule.writes != 0;
  frame->count = wanted;
  std::copy_n(first, wanted, frame->values.begin());
  for (size_t i = 0; i < wanted; ++i) {
    if (g.kernels.IsShared(first[i]) || (!copies && g.kernels.IsTensor(first[i]))) g.kernels.Share(first[i]);
  }
  frame->kept = frame->kept_tensors = true;
  const bool counts = frame->facts.rule.counts || frame->facts.rule.merges;
  if (counts || frame->facts.rule.compares) ComputeCount(frame, thread);
}

NoContext OnStart(const RecordFunction& record) {
  Thread* thread = g_threads.Get(&t_thread);
  if (thread == nullptr || thread->busy || thread->alone) return {};
  if (thread->depth == kMaxOps) {
    ++thread->uncounted;
    return {};
  }
  Frame& frame = thread->frames[thread->depth++];
  frame.record = &record;
  frame.facts = FactsOf(record);
  frame.form = Form::kDense;
  frame.launches = VirtualGpuLaunchesOfThread();
  frame.inner = 0;
  frame.count = 0;
  frame.first_written = thread->written_count;
  frame.kept = frame.kept_tensors = frame.owned = frame.answered = false;
  frame.found = {};
  if (frame.facts.any() || frame.facts.rule.writes != 0) Keep(record, &frame, thread);
  return {};
}

// The results of an operator that has ended; none where it has thrown.
struct Outputs {
  const RawValue* begin = nullptr;
  size_t count = 0;
};

bool ReadOutputs(const RecordFunction& record, Outputs* outputs) {
  const auto begin = Load<uintptr_t>(record, g.layout.outputs);
  const auto end = Load<uintptr_t>(record, g.layout.outputs + 8);
  const size_t count = (end - begin) / kValueSize;
  outputs->count = g.output_count(&record);
  if (count < outputs->count) return false;
  outputs->begin = reinterpret_cast<const RawValue*>(end) - outputs->count;
  return true;
}

// Whether what the operator's kernels would have computed may be; `*known` where all operands are.
bool MayCompute(const Frame& frame, const Outputs& outputs, bool* known) {
  if (!frame.kept || VirtualGpuCaptures()) return false;
  Operands operands;
  for (size_t i = 0; i < frame.count; ++i) {
    // What is only written to need not be known; a fill's operand is its result. Where an operand is a result by
    // another argument, too, what ran inside the operator has changed it.
    const bool is_output = std::any_of(outputs.begin, outputs.begin + outputs.count, [&](const RawValue& output) {
      return g.kernels.IsTensor(frame.values[i]) && output.payload == frame.values[i].payload;
    });
    const std::string_view name = g.name(frame.record);
    if (is_output && frame.inner != 0 && !name.ends_with('_') &&
        std::any_of(frame.values.begin(), frame.values.begin() + i, [&](const RawValue& other) {
          return g.kernels.IsTensor(other) && other.payload == frame.values[i].payload;
        })) {
      return false;
    }
    const bool overwrites = is_output && (!name.ends_with('_') || frame.facts.rule.random || name == "aten::fill_" ||
                                          name == "aten::copy_" || name == "aten::zero_");
    ForTensors(frame.values[i],
               [&operands, overwrites](const RawValue& tensor) { Look(tensor, !overwrites, &operands); });
  }
  Operands results;
  for (size_t i = 0; i < outputs.count; ++i) {
    ForTensors(outputs.begin[i], [&results](const RawValue& tensor) { Look(tensor, false, &results); });
  }
  const uint64_t most = operands.integers && results.integers ? kIntegers : kResults;
  if (!IsSmall(operands, frame.facts.rule) || results.elements > most || !results.computable) return false;
  if (frame.facts.rule.product) {
    const double square = static_cast<double>(operands.largest) * static_cast<double>(operands.second) *
                          static_cast<double>(results.elements);
    if (std::sqrt(square) > static_cast<double>(kMultiplyAdds)) return false;
  }
  *known = operands.known;
  // The kernels of sparse tensors trust the row numbers that they are given.
  return operands.known || (!frame.facts.rule.exact && frame.form == Form::kDense);
}

// Gives the operator's results their values. Returns false where that was not done.
bool Finish(Frame* frame, Thread* thread, const Outputs& outputs) {
  bool known = false;
  if (!MayCompute(*frame, outputs, &known)) return false;
  bool good = true;
  if (frame->found.begin != nullptr) {
    good = DeliverAll(frame->found, outputs.begin, outputs.count);
  } else {
    good = Compute(frame, thread, false) && DeliverAll(thread->stack, outputs.begin, outputs.count);
    if (thread->stack.begin != nullptr) g.kernels.Clear(&thread->stack);
  }
  if (!good) return false;
  for (size_t i = 0; i < outputs.count; ++i) {
    ForTensors(outputs.begin[i], [known](const RawValue& tensor) { NoteComputed(tensor, known); });
  }
  for (size_t i = frame->first_written; i < thread->written_count; ++i) NoteComputed(thread->written[i], known);
  return true;
}

// Nothing says that not all elements of a large mask are true: the numbers that were not computed count as finite.
void SayAllAreTrue(const Outputs& outputs) {
  for (size_t i = 0; i < outputs.count; ++i) {
    ForTensors(outputs.begin[i], [](const RawValue& tensor) {
      TensorPlace place;
      constexpr uint16_t kBool = 11;
      if (!g.kernels.Read(tensor, &place) || place.dtype != kBool || place.device != kCuda || !place.dense() ||
          place.numel > kResults) {
        return;
      }
      TellVirtualGpuComputed(place.data, place.span(), false);
      std::memset(reinterpret_cast<void*>(place.data), 1, place.span());
    });
  }
}

void OnEnd(const RecordFunction& record, void*) {
  Thread* thread = t_thread;
  if (thread == nullptr || thread->busy || thread->depth == 0) return;
  if (thread->uncounted != 0) {
    --thread->uncounted;
    return;
  }
  Frame& frame = thread->frames[thread->depth - 1];
  if (frame.record != &record) return;
  --thread->depth;
  thread->alone = false;
  const uint64_t launched = VirtualGpuLaunchesOfThread() - frame.launches;
  if (thread->depth != 0) thread->frames[thread->depth - 1].inner += launched;
  if (frame.answered) {
    AnswerFromVirtualGpu(nullptr);
    for (uint32_t i = thread->depth; i-- > 0;) {  // what runs around it may still have an answer
      if (!thread->frames[i].answered) continue;
      AnswerFromVirtualGpu(&thread->frames[i].answer);
      break;
    }
  }
  const bool own = launched != frame.inner || (launched != 0 && frame.facts.rule.whole);
  // What works on sparse tensors is also computed as a whole where that can be: inside, much is done in place.
  if (own || (launched != 0 && frame.form != Form::kDense && frame.facts.rule.writes == 0)) {
    Outputs outputs;
    if (ReadOutputs(record, &outputs) && !Finish(&frame, thread, outputs) && own) {
      for (size_t i = 0; i < outputs.count; ++i) {
        ForTensors(outputs.begin[i], [](const RawValue& tensor) { NoteChanged(tensor); });
      }
      for (size_t i = frame.first_written; i < thread->written_count; ++i) NoteChanged(thread->written[i]);
      if (frame.facts.rule.all && !VirtualGpuCaptures()) SayAllAreTrue(outputs);
    }
  }
  Release(&frame, thread);
}

}  // namespace

const char* ComputeValues(const TorchSymbols& symbols, const TorchLayouts& layouts) {
  const char* why = nullptr;
  if (!layouts.record.operands_valid) return "operands cannot be read";
  if (!g.kernels.Init(symbols, layouts, &why)) return why;
  g.name = symbols.record_name;
  g.input_count = symbols.record_input_count;
  g.output_count = symbols.record_output_count;
  g.layout = layouts.record;
  symbols.add_global_callback(abi::MakeCallback(abi::RecordScope::kFunction, OnStart, OnEnd, true));
  return nullptr;
}

}  // namespace rfinject
