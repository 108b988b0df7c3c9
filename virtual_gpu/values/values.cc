#include "virtual_gpu/values/values.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <new>
#include <string>

#include "collector/thread_block.h"
#include "injector/foreign_exceptions.h"
#include "injector/torch/abi.h"
#include "injector/torch/name_cache.h"
#include "injector/torch/operator_calls.h"
#include "virtual_gpu/values/cpu_kernels.h"
#include "virtual_gpu/values/value_operands.h"
#include "virtual_gpu/values/value_recipes.h"
#include "virtual_gpu/values/value_results.h"
#include "virtual_gpu/values/value_rules.h"
#include "virtual_gpu/values/value_substitutes.h"
#include "virtual_gpu/virtual_gpu.h"

namespace rfinject {
namespace {

using abi::RecordFunction;

constexpr size_t kMaxOps = 48;

// How much an operator may compute: elements of its operands, elements of its results, and multiply-adds. A launch
// takes PyTorch about 10 us of a core; these take about as long.
struct Limits {
  uint64_t elements = 16 << 10;
  uint64_t results = 64 << 10;
  uint64_t multiply_adds = 64 << 10;
  // The same of integers and masks, which say how long things are and where they lie: the mask of 4096 tokens that
  // flex_attention's blocks are made of. Such an operator takes some 10 ms.
  uint64_t integers = 16 << 20;
  uint64_t unknown = 256;  // where an operand is not known
};
constexpr Limits kNoLimits = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};

struct Facts {
  std::array<CpuKernel, 3> kernels;  // by Form
  ValueRule rule;
  const Substitute* substitute = nullptr;  // the operator that the kernel is of, where that is another
  ValueRecipe recipe = nullptr;            // computes it where there is no kernel, or its substitute is ruled out
  ValueRecipe shortcut = nullptr;          // computes it in many cases, faster than its kernel does
  bool wanted = false;                     // it may be computed, or writes to its operands
};

struct Frame {
  const RecordFunction* record = nullptr;
  const Facts* facts = nullptr;
  Facts own_facts;         // where they are not kept (NameCache)
  uint64_t launches = 0;   // of the thread, when it began
  uint64_t inner = 0;      // of operators inside it
  size_t count = 0;        // of values that are kept
  bool looked_at = false;  // its operands were, and what follows is set
  bool kept = false;
  bool owned = false;         // the tensors that are kept are also ours
  bool kept_tensors = false;  // those of its operands are, also when the operands are taken
  bool answered = false;      // what it reads of its own results was told (rfinject_virtual_gpu_answer)
  bool covers = false;        // what runs inside it is not computed (ValueRule::covers)
  Form form = Form::kDense;   // of its operands
  int64_t answer = 0;         // what was told
  RawVector found{};          // results that were computed when it began (ValueRule::counts)
  std::array<RawValue, kMostArguments> values;
  size_t first_written = 0;  // its part of the thread's

  const CpuKernel& kernel() const { return facts->kernels[static_cast<size_t>(form)]; }
  void Answer(int64_t value) {
    answered = true;
    answer = value;
    rfinject_virtual_gpu_answer(&answer);
  }
  void Reset(size_t written) {
    form = Form::kDense;
    count = 0;
    first_written = written;
    kept = kept_tensors = owned = answered = covers = false;
    found = {};
  }
};

struct Thread {
  uint32_t depth = 0;
  uint32_t uncounted = 0;  // operators inside the last frame that have none
  uint32_t covered = 0;    // frames that cover what runs inside them
  bool busy = false;       // computing
  bool alone = false;      // what runs inside the last frame is not looked at
  // Of kernels that it has launched or captured.
  const uint64_t* const launches = rfinject_virtual_gpu_thread_launches();
  uint64_t seen = 0;  // launches of the thread when its last operator ended that ran inside no other
  ValueOperands operands;
  std::array<RawValue, kMostTensors> written;  // tensors that operators write to and do not return
  size_t written_count = 0;
  std::array<Frame, kMaxOps> frames;
};
ThreadBlock<Thread> g_threads;
constinit thread_local Thread* t_thread = nullptr;

struct Globals {
  const char* (*name)(const RecordFunction*) = nullptr;
  size_t (*input_count)(const RecordFunction*) = nullptr;
  size_t (*output_count)(const RecordFunction*) = nullptr;
  RecordLayout layout;
  CpuKernels kernels;
  Limits limits;
  bool every = false;  // all values are computed, and what is not is said
};
Globals g;
NameCache<Facts> g_facts;

const Facts* FactsOf(const RecordFunction& record, Facts* own) {
  const auto make = [&record](const char* name, Facts* facts) {
    if (!IsOperatorName(name)) return false;
    facts->rule = ValueRuleOf(name, g.every);
    facts->wanted = facts->rule.writes != 0;
    if (facts->rule.never) return true;
    facts->shortcut = ShortcutFor(name);
    if (g.every) {
      facts->recipe = RecipeFor(name);
      facts->substitute = SubstituteFor(name);
      if (facts->substitute != nullptr && facts->substitute->arguments != g.input_count(&record)) {
        facts->substitute = nullptr;  // another overload
      }
    }
    if (facts->substitute != nullptr) {
      g.kernels.FindByName("aten::" + std::string(facts->substitute->op), &facts->kernels.front());
    } else {
      for (const Form form : {Form::kDense, Form::kCoo, Form::kCompressed}) {
        g.kernels.Find(record, form, &facts->kernels[static_cast<size_t>(form)]);
      }
    }
    facts->wanted = facts->wanted || facts->recipe != nullptr ||
                    std::any_of(facts->kernels.begin(), facts->kernels.end(),
                                [](const CpuKernel& kernel) { return kernel.run != nullptr; });
    return true;
  };
  return g_facts.FindByPointer(g.name(&record), make, own);
}

// Calls `visit(tensor)` for each tensor of these values.
template <typename Visit>
void ForTensors(std::span<const RawValue> values, const Visit& visit) {
  for (const RawValue& value : values) g.kernels.ForTensors(value, visit);
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
  if (!g.kernels.Read(value, &place) || (place.device != kCudaDevice && place.device != 0)) {
    to->computable = false;
    return;
  }
  to->integers = to->integers && place.integers();
  to->elements += place.numel;
  to->second = std::max(to->second, std::min(to->largest, place.numel));
  to->largest = std::max(to->largest, place.numel);
  if (place.device != kCudaDevice) return;
  to->on_device = true;
  if (ask_known && to->known) to->known = rfinject_virtual_gpu_known(place.data, place.span()) != 0;
}

bool IsSmall(const Operands& operands, const ValueRule& rule) {
  if (!operands.computable || operands.elements > (operands.integers ? g.limits.integers : g.limits.elements))
    return false;
  if (!operands.on_device && !rule.makes) return false;
  return operands.known || operands.elements <= g.limits.unknown;
}

// The results of an operator that has ended; none where it has thrown.
using Outputs = std::span<const RawValue>;

// Runs the frame's kernel. The results are then on the stack.
bool Attempt(Frame* frame, Thread* thread, Outputs outputs, bool keep, bool wide) {
  thread->busy = true;
  const ValueCall call = {std::span(frame->values).first(frame->count),
                          outputs,
                          &frame->facts->rule,
                          frame->facts->substitute,
                          keep,
                          wide};
  const bool pushed = thread->operands.Push(g.kernels, call);
  if (!keep) frame->kept = false;
  bool computed = false;
  if (pushed) {
    computed = g.kernels.Run(frame->kernel(), &thread->operands.stack());
  } else {
    g.kernels.Clear(&thread->operands.stack());
  }
  computed = thread->operands.Release(g.kernels, computed) && computed;
  if (!computed) g.kernels.Clear(&thread->operands.stack());
  thread->busy = false;
  return computed;
}

bool HasHalves(const Frame& frame) {
  bool has = false;
  ForTensors(std::span(frame.values).first(frame.count), [&has](const RawValue& tensor) {
    TensorPlace place;
    has = has || (g.kernels.Read(tensor, &place) && place.halves());
  });
  return has;
}

bool Compute(Frame* frame, Thread* thread, Outputs outputs, bool keep) {
  if (!g.every) return Attempt(frame, thread, outputs, keep, false);
  const bool wide = frame->facts->rule.wide;
  // The CPU has not all operators in halves, nor all mixtures with floats.
  return Attempt(frame, thread, outputs, true, wide) ||
         (!wide && HasHalves(*frame) && Attempt(frame, thread, outputs, true, true));
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
  RawVector& stack = thread->operands.stack();
  int64_t count = 0;
  if (!Compute(frame, thread, {}, true)) {
    if (frame->facts->rule.merges && g.kernels.Count(frame->values[0], &count)) frame->Answer(count);
    return;
  }
  if (frame->facts->rule.compares) {
    const int64_t equal = stack.size() == 1 ? static_cast<int64_t>(stack.begin->payload & 1) : 0;
    g.kernels.Clear(&stack);
    frame->Answer(equal);
    return;
  }
  if (stack.size() == 0 || !g.kernels.Count(*stack.begin, &count)) return g.kernels.Clear(&stack);
  std::swap(frame->found, stack);
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
  const auto values = FieldOf<uintptr_t>(record, g.layout.inputs);
  const auto count = FieldOf<size_t>(record, g.layout.inputs + 8);
  const size_t wanted = g.input_count(&record);
  if (count < wanted || wanted > kMostArguments) return;
  // The boxed path passes the interpreter's whole stack. The arguments lie at its end.
  const auto* first = reinterpret_cast<const RawValue*>(values) + (count - wanted);
  const Substitute* const other = frame->facts->substitute;
  Operands operands;
  operands.computable = other == nullptr || other->arguments == wanted;
  for (size_t i = 0; i < wanted && operands.computable && operands.elements <= g.limits.integers; ++i) {
    if (other != nullptr && !other->Uses(i)) continue;
    g.kernels.ForTensors(first[i], [&operands](const RawValue& tensor) { Look(tensor, false, &operands); });
    operands.computable = operands.computable && g.kernels.IsCarried(first[i]);
    const Form form = g.kernels.FormOf(first[i]);
    // Of a sparse tensor that is changed in place, the parts that it had are gone at the end.
    if (form != Form::kDense && (frame->facts->rule.writes >> i & 1) != 0) operands.computable = false;
    frame->form = std::max(frame->form, form);
  }
  const bool copies = AreCopies(values);
  frame->owned = !copies;
  const bool has_way = frame->kernel().run != nullptr || frame->facts->recipe != nullptr;
  const bool small = has_way && IsSmall(operands, frame->facts->rule);
  for (size_t i = 0; i < wanted && i < 32; ++i) {
    if ((frame->facts->rule.writes >> i & 1) == 0 || (!operands.on_device && operands.computable)) continue;
    if (!small && i != 0 && frame->facts->rule.writes == 0b11) continue;  // what the gradient scaler has found
    g.kernels.ForTensors(first[i], [thread, copies](const RawValue& tensor) {
      if (thread->written_count == kMostTensors) return;
      if (!copies) g.kernels.Share(tensor);
      thread->written[thread->written_count++] = tensor;
    });
  }
  if (!small && frame->facts->rule.compares && operands.on_device) {  // what was not computed counts as equal
    frame->Answer(1);
  }
  if (int64_t count = 0;
      !small && frame->facts->rule.merges && operands.on_device && g.kernels.Count(first[0], &count)) {
    frame->Answer(count);  // no place of those that are not known counts as named twice
  }
  if (!small) return;
  // A dense tensor that something sparse is added to must be as it was when all of that is computed at the end.
  thread->alone = frame->form != Form::kDense && frame->facts->rule.writes != 0;
  frame->count = wanted;
  std::copy_n(first, wanted, frame->values.begin());
  for (size_t i = 0; i < wanted; ++i) {
    if (g.kernels.IsShared(first[i]) || (!copies && g.kernels.IsTensor(first[i]))) g.kernels.Share(first[i]);
  }
  frame->kept = frame->kept_tensors = true;
  frame->covers = frame->facts->rule.covers;
  if (frame->covers) ++thread->covered;
  const bool counts = frame->facts->rule.counts || frame->facts->rule.merges;
  if (counts || frame->facts->rule.compares) ComputeCount(frame, thread);
}

// Says that an operator is not computed, once for each, up to a number of operators.
void SayNotComputed(const char* name) {
  constexpr size_t kMost = 8;
  static constinit std::array<std::atomic<const char*>, kMost> said{};
  for (std::atomic<const char*>& place : said) {
    const char* before = nullptr;
    if (!place.compare_exchange_strong(before, name)) {
      if (std::strcmp(before, name) == 0) return;
      continue;
    }
    rfinject_virtual_gpu_say((std::string(name) +
                              " is not computed: what it would have written is zeros, or what was there "
                              "(docs/use/VIRTUAL_GPU.md)")
                                 .c_str());
    return;
  }
  rfinject_virtual_gpu_say("more operators are not computed (docs/use/VIRTUAL_GPU.md)");
}

// Says that there are kernels which no operator has launched: Triton's, those of graphs and of the program's own.
void SayOthersAreNotComputed() {
  rfinject_virtual_gpu_say(
      "kernels that no operator of PyTorch's has launched are not computed: what they would have written is "
      "zeros, or what was there (docs/use/VIRTUAL_GPU.md)");
}

// What was not computed is said by the name of the operator that has launched it.
void SayNotComputed(const RecordFunction& record) {
  if (rfinject_virtual_gpu_capturing() != 0) return;
  const char* const name = g.name(&record);
  if (IsOperatorName(name)) {
    SayNotComputed(name);
  } else {
    SayOthersAreNotComputed();
  }
}

void OnStart(const RecordFunction& record) {
  Thread* thread = g_threads.Get(&t_thread);
  if (thread == nullptr || thread->busy || thread->alone) return;
  if (thread->depth == kMaxOps) {
    ++thread->uncounted;
    return;
  }
  Frame& frame = thread->frames[thread->depth++];
  frame.record = &record;
  frame.facts = FactsOf(record, &frame.own_facts);
  frame.launches = *thread->launches;
  if (g.every && thread->depth == 1 && frame.launches != thread->seen && rfinject_virtual_gpu_capturing() == 0) {
    SayOthersAreNotComputed();
  }
  frame.inner = 0;
  frame.looked_at = frame.facts->wanted;
  if (!frame.looked_at) return;
  frame.Reset(thread->written_count);
  Keep(record, &frame, thread);
}

bool ReadOutputs(const RecordFunction& record, Outputs* outputs) {
  const auto begin = FieldOf<uintptr_t>(record, g.layout.outputs);
  const auto end = FieldOf<uintptr_t>(record, g.layout.outputs + 8);
  const size_t count = (end - begin) / kValueSize;
  const size_t wanted = g.output_count(&record);
  *outputs = count < wanted ? Outputs() : Outputs(reinterpret_cast<const RawValue*>(end) - wanted, wanted);
  return count >= wanted;
}

// Whether what an argument says rules the frame's substitute out.
bool IsRuledOut(const Frame& frame) {
  const Substitute* const other = frame.facts->substitute;
  if (other == nullptr) return false;
  if (other->zero >= 0 && g.kernels.Real(frame.values[static_cast<size_t>(other->zero)]) != 0) return true;
  if (other->unasked < 0) return false;
  const RawValue& asked = frame.values[static_cast<size_t>(other->unasked)];
  if (!g.kernels.IsList(asked) || asked.payload == 0) return true;
  const RawVector* list = g.kernels.Elements(asked);
  return list->size() != 4 || (list->begin[3].payload & 1) != 0;
}

// Whether the operator's results may be computed here. Sets `*known` to whether all of its operands are known.
bool MayCompute(const Frame& frame, Outputs outputs, bool* known) {
  if (!frame.kept || rfinject_virtual_gpu_capturing() != 0) return false;
  Operands operands;
  for (size_t i = 0; i < frame.count; ++i) {
    if (frame.facts->substitute != nullptr && !frame.facts->substitute->Uses(i)) continue;
    // An operand that is only written to (that of a fill) need not be known. An operand that is passed twice and is
    // also a result was changed by an operator that ran inside this one.
    const bool is_output = std::any_of(outputs.begin(), outputs.end(), [&](const RawValue& output) {
      return g.kernels.IsTensor(frame.values[i]) && output.payload == frame.values[i].payload;
    });
    const std::string_view name = g.name(frame.record);
    if (is_output && frame.inner != 0 && !name.ends_with('_') &&
        std::any_of(frame.values.begin(), frame.values.begin() + i, [&](const RawValue& other) {
          return g.kernels.IsTensor(other) && other.payload == frame.values[i].payload;
        })) {
      return false;
    }
    const bool overwrites = is_output && (!name.ends_with('_') || frame.facts->rule.random || name == "aten::fill_" ||
                                          name == "aten::copy_" || name == "aten::zero_");
    g.kernels.ForTensors(frame.values[i],
                         [&operands, overwrites](const RawValue& tensor) { Look(tensor, !overwrites, &operands); });
  }
  Operands results;
  ForTensors(outputs, [&results](const RawValue& tensor) { Look(tensor, false, &results); });
  const uint64_t most = operands.integers && results.integers ? g.limits.integers : g.limits.results;
  if (!IsSmall(operands, frame.facts->rule) || results.elements > most || !results.computable) return false;
  if (frame.facts->rule.product && !g.every) {
    const double square = static_cast<double>(operands.largest) * static_cast<double>(operands.second) *
                          static_cast<double>(results.elements);
    if (std::sqrt(square) > static_cast<double>(g.limits.multiply_adds)) return false;
  }
  *known = operands.known;
  // The kernels of sparse tensors trust the row numbers that they are given.
  return operands.known || (!frame.facts->rule.exact && frame.form == Form::kDense);
}

bool Cooked(ValueRecipe recipe, const Frame& frame, Thread* thread, Outputs outputs) {
  bool good = false;
  thread->busy = true;
  try {
    good = recipe(g.kernels, std::span(frame.values).first(frame.count), outputs);
  } catch (...) {  // there is no memory
  }
  thread->busy = false;
  return good;
}

// Gives the operator's results their values. Returns false where that was not done.
bool Finish(Frame* frame, Thread* thread, Outputs outputs) {
  const Substitute* const other = frame->facts->substitute;
  const Outputs wanted = other != nullptr ? outputs.first(std::min<size_t>(other->results, outputs.size())) : outputs;
  bool known = false;
  if (!MayCompute(*frame, wanted, &known)) return false;
  bool good = true;
  const bool ruled_out = IsRuledOut(*frame);
  const bool cooked = frame->facts->recipe != nullptr && (other == nullptr || ruled_out);
  if (cooked) {
    good = Cooked(frame->facts->recipe, *frame, thread, outputs);
  } else if (ruled_out) {
    return false;
  } else if (frame->found.begin != nullptr) {
    good = DeliverResults(g.kernels, frame->found, wanted, false);
  } else if (frame->facts->shortcut == nullptr || !Cooked(frame->facts->shortcut, *frame, thread, outputs)) {
    RawVector& stack = thread->operands.stack();
    good = Compute(frame, thread, outputs, false) && DeliverResults(g.kernels, stack, wanted, other != nullptr);
    if (stack.begin != nullptr) g.kernels.Clear(&stack);
  }
  if (!good) return false;
  const auto note = [known](const RawValue& tensor) { NoteComputed(g.kernels, tensor, known); };
  ForTensors(cooked ? outputs : wanted, note);
  for (size_t i = frame->first_written; i < thread->written_count; ++i) note(thread->written[i]);
  return true;
}

// Takes back what the operator that ends was told. What runs around it may still have an answer.
void TakeAnswerBack(const Thread& thread) {
  rfinject_virtual_gpu_answer(nullptr);
  for (uint32_t i = thread.depth; i-- > 0;) {
    if (thread.frames[i].looked_at && thread.frames[i].answered)
      return rfinject_virtual_gpu_answer(&thread.frames[i].answer);
  }
}

void OnEnd(const RecordFunction& record) {
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
  const uint64_t launched = *thread->launches - frame.launches;
  if (thread->depth != 0) {
    thread->frames[thread->depth - 1].inner += launched;
  } else {
    thread->seen = frame.launches + launched;
  }
  const bool own = launched != frame.inner || (launched != 0 && frame.facts->rule.whole);
  if (!frame.looked_at) {
    if (!own) return;  // as most: ranges, views, and operators that only call others
    frame.Reset(thread->written_count);
  }
  if (frame.answered) TakeAnswerBack(*thread);
  if (frame.covers) --thread->covered;
  if (thread->covered != 0 || frame.facts->rule.done) {
    Release(&frame, thread);
    return;
  }
  // What works on sparse tensors is also computed as a whole where that can be: inside, much is done in place.
  if (own || (launched != 0 && frame.form != Form::kDense && frame.facts->rule.writes == 0)) {
    Outputs outputs;
    if (ReadOutputs(record, &outputs) && !Finish(&frame, thread, outputs) && own) {
      const auto note = [](const RawValue& tensor) { NoteChanged(g.kernels, tensor); };
      ForTensors(outputs, note);
      for (size_t i = frame.first_written; i < thread->written_count; ++i) note(thread->written[i]);
      if (frame.facts->rule.all && rfinject_virtual_gpu_capturing() == 0) {
        ForTensors(outputs, [](const RawValue& tensor) { SayAllAreTrue(g.kernels, tensor, g.limits.results); });
      }
      if (g.every) SayNotComputed(record);
    }
  }
  Release(&frame, thread);
}

const char* ComputeValues(const TorchSymbols& symbols, const TorchLayouts& layouts, bool every,
                          decltype(&ListenToOperators) listen) {
  PrepareForForeignExceptions();
  const char* why = nullptr;
  if (!layouts.record.operands_valid) return "operands cannot be read";
  if (!g.kernels.Init(symbols, layouts, every, &why)) return why;
  g.every = every;
  if (every) g.limits = kNoLimits;
  g.name = symbols.record_name;
  g.input_count = symbols.record_input_count;
  g.output_count = symbols.record_output_count;
  g.layout = layouts.record;
  listen(symbols, {.start = OnStart, .end = OnEnd});
  return nullptr;
}

}  // namespace
}  // namespace rfinject

extern "C" __attribute__((visibility("default"))) const char* rfinject_virtual_gpu_compute_values(
    const rfinject::TorchSymbols& symbols, const rfinject::TorchLayouts& layouts, bool every,
    decltype(&rfinject::ListenToOperators) listen) {
  return rfinject::ComputeValues(symbols, layouts, every, listen);
}
