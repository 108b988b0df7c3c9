#include "injector/torch/op_observer.h"

#include <array>
#include <cstring>
#include <utility>

#include "collector/compiled_code.h"
#include "collector/operator_slices.h"
#include "collector/thread_block.h"
#include "collector/virtual_gpu.h"
#include "injector/layer_stack.h"
#include "injector/torch/abi.h"
#include "injector/torch/autograd.h"
#include "injector/torch/fused_calls.h"
#include "injector/torch/name_cache.h"
#include "injector/torch/operands.h"
#include "injector/torch/operator_calls.h"
#include "operators/op_call.h"

namespace rfinject {
namespace {

using abi::RecordFunction;

constexpr size_t kMaxOps = 32;  // nested operators that are observed; torch nests about ten

struct OpInfo {
  uint32_t name = 0;  // Intern()ed; 0: not an operator, but a range that torch itself marks around operators
  OpKind kind = OpKind::kLeafIfChildless;
  std::string_view fused_backward = {};  // FusedBackwardOf
  uint32_t tangent = 0;                  // Intern()ed: what inside it is a product of its own (TangentProductOf)
  bool copies = false;                   // IsCopy
  bool takes_sequences = false;          // TakesSequences
};

struct Frame {
  const RecordFunction* record = nullptr;
  OpInfo info;
  Site site;
  uint32_t outer_op = 0;  // the thread's operator before this one
  uint32_t children = 0;
  bool children_counted = false;
  // The thread's launches when it began, and those of operators that ran inside.
  uint64_t launches = 0, launches_inside = 0;
  uint64_t first_node = 0;  // the first autograd node that is born after its start
  bool hides = false;       // what runs inside it is its implementation
  bool forwards = false;    // it only hands its operands on: what runs inside it is all that runs
  uint8_t autocast = 0;     // AutocastOfThread() when it began
  uint32_t resume = 0;      // Ops::hidden before it, where the operator around it began outside of the window
  // It stands for this operator, whose operands are `inputs`; the first so many of them are arguments (FusedCall).
  std::string_view fused = {};
  size_t fused_inputs = 0;
  uintptr_t product = 0;  // the storage of the latest product that was counted inside it while it hid the rest
  Operands inputs;
};

struct Ops {
  uint32_t depth = 0;
  // How many operators run inside an atomic or free one, or inside one that was not observed; these are only counted.
  // RecordFunctions of one thread are strictly nested, and each one that began also ends, by an exception if need be.
  uint32_t hidden = 0;
  // They are hidden because the outermost of them began outside of the window; a capture may have begun since.
  bool outside = false;
  const uint64_t* launches = nullptr;  // Source::LaunchesOfThread
  std::array<Frame, kMaxOps> frames;
};
ThreadBlock<Ops> g_ops;
__attribute__((tls_model("initial-exec"))) constinit thread_local Ops* t_ops = nullptr;

struct Globals {
  const char* (*name)(const RecordFunction*) = nullptr;
  size_t (*input_count)(const RecordFunction*) = nullptr;
  size_t (*output_count)(const RecordFunction*) = nullptr;
  uint64_t (*peek)() = nullptr;
  uint64_t (*thread_id)() = nullptr;
  AutocastFunctions autocast;
  RecordLayout layout;
  OperandReader reader;
  Recorder* recorder = nullptr;
  Source* source = nullptr;
};
Globals g;
NameCache<OpInfo> g_infos;

bool MakeInfo(const char* name, OpInfo* info) {
  const std::string_view text = name;
  if (!IsOperatorName(text)) return false;
  const std::string_view tangent = TangentProductOf(text);
  *info = {.name = g.recorder->Intern(text),
           .kind = ClassifyOp(text),
           .fused_backward = FusedBackwardOf(text),
           .tangent = tangent.empty() ? 0 : g.recorder->Intern(tangent),
           .copies = IsCopy(text),
           .takes_sequences = TakesSequences(text)};
  return true;
}

// Autocast's wrappers that the thread's next operator may meet, a bit for each kind of device. While one of them
// runs, its bit is off.
uint8_t AutocastOfThread() {
  constexpr int8_t kCpu = 0, kCuda = 1;  // c10::DeviceType
  if (g.autocast.of_device != nullptr) {
    return static_cast<uint8_t>((g.autocast.of_device(kCpu) ? 1 : 0) | (g.autocast.of_device(kCuda) ? 2 : 0));
  }
  if (g.autocast.cpu == nullptr || g.autocast.cuda == nullptr) return 0;
  return static_cast<uint8_t>((g.autocast.cpu() ? 1 : 0) | (g.autocast.cuda() ? 2 : 0));
}

// The ranges that torch 2 marks around a Python function (__torch_dispatch__) that runs in an operator's place.
bool IsPythonDispatch(const char* name) {
  return std::strcmp(name, "PythonDispatchMode") == 0 || std::strcmp(name, "PythonSubclass") == 0;
}

// Whether what begins inside an operator that hides its implementation is none of the implementation: a product by a
// tangent, or what another function than the implementation runs, which took the operator's place. After the latter
// the operator hides nothing.
bool IsShown(const RecordFunction& record, Ops& ops) {
  if (ops.hidden != 1 || ops.depth == 0 || ops.depth == kMaxOps) return false;
  Frame& outer = ops.frames[ops.depth - 1];
  if (!outer.hides) return false;
  const char* name = g.name(&record);
  // Autocast casts the operands and calls the operator again.
  if ((outer.autocast != 0 && (outer.autocast & ~AutocastOfThread()) != 0) || IsPythonDispatch(name)) {
    outer.forwards = true;
    outer.hides = false;
    return true;
  }
  return outer.info.tangent != 0 && g_infos.FindByPointer(name, MakeInfo).name == outer.info.tangent;
}

// Whether a result of `call` is the product that ran inside it. Then the operator has run only there: it was handed
// on by a function that torch has no callback for (torch 1.13's __torch_dispatch__). A product by a tangent has a
// result of its own.
bool IsResult(uintptr_t product, const OpCall& call) {
  if (product == 0) return false;
  for (const Argument& output : call.outputs) {
    if (output.kind == Argument::Kind::kTensor && call.tensors[output.first].storage == product) return true;
  }
  return false;
}

OpCall CallOf(std::string_view name, const Operands& operands, size_t inputs) {
  const std::span<const Argument> arguments = operands.arguments;
  OpCall call;
  call.name = name;
  call.inputs = arguments.first(inputs);
  call.outputs = arguments.subspan(inputs);
  call.tensors = operands.tensors;
  call.ints = operands.ints;
  call.on_host = operands.on_host();
  call.crosses_devices = operands.crosses_devices;
  return call;
}

// Whether the operator that begins is part of a fused operator's backward. On a GPU that is one operator: it stands
// in `frame` in the place of the first one that runs, and the others are none.
FusedNode FindFused(Frame* frame) {
  const NodeNumber node = NodeOfThread();
  if (node.sequence == UINT64_MAX) return FusedNode::kNone;
  try {
    FusedCall fused;
    const FusedNode found = FindFusedCall(node, &fused);
    if (found == FusedNode::kFirst) {
      frame->fused = fused.backward;
      frame->fused_inputs = fused.inputs;
      frame->inputs = std::move(fused.operands);
      frame->site.op = fused.op;
    }
    return found;
  } catch (...) {
    g.recorder->CountDrop("operators for which there was no memory");
    return FusedNode::kNone;
  }
}

void KeepForBackward(const Frame& frame, size_t inputs) {
  if (g.peek == nullptr || g.thread_id == nullptr) return;
  FusedCall call;
  call.from = frame.first_node;
  call.to = g.peek();
  if (call.to == call.from) return;  // no gradients are wanted
  try {
    call.thread = g.thread_id();
    call.backward = frame.info.fused_backward;
    call.op = g.recorder->Intern(call.backward);
    call.inputs = inputs;
    call.operands = frame.inputs;
    RememberFusedCall(call);
  } catch (...) {
    g.recorder->CountDrop("operators for which there was no memory");
  }
}

void ReadInputs(const RecordFunction& record, const OpInfo& info, Operands* inputs) {
  // The boxed path passes the interpreter's whole stack. The arguments lie at its end.
  const auto values = FieldOf<uintptr_t>(record, g.layout.inputs);
  const auto count = FieldOf<size_t>(record, g.layout.inputs + 8);
  const size_t wanted = g.input_count(&record);
  try {
    if (count >= wanted) g.reader.Read(values + (count - wanted) * kValueSize, wanted, inputs);
    if (info.takes_sequences) g.reader.ReadNumbers(&VirtualGpuKnows, inputs);
  } catch (...) {  // no memory: not counted, and what it runs inside is looked at
    inputs->Clear();
    inputs->has_wrapper = true;
  }

  // A product by zeros that lie nowhere is one by zeros that torch makes for it. What other operators make of them
  // shows in what runs inside.
  if (inputs->has_zeros && info.tangent == 0) inputs->has_wrapper = true;
}

void OnStart(const RecordFunction& record) {
  Ops* ops = g_ops.Get(&t_ops);
  if (ops == nullptr) return;
  if (ops->launches == nullptr) ops->launches = g.source->LaunchesOfThread();
  uint32_t resume = 0;
  if (ops->hidden != 0) {
    if (ops->outside && g.source->wants_ops_outside_window()) {
      resume = ops->hidden;
    } else if (!IsShown(record, *ops)) {
      ++ops->hidden;
      return;
    }
    ops->hidden = 0;
  }
  ops->outside = false;
  const bool observed = ops->depth != 0 || g.recorder->InWindow() || g.source->wants_ops_outside_window();
  if (ops->depth == kMaxOps || !observed) {
    ops->hidden = resume + 1;
    ops->outside = !observed || resume != 0;
    return;
  }
  const OpInfo info = g_infos.FindByPointer(g.name(&record), MakeInfo);
  if (ops->depth != 0 && info.name != 0) ++ops->frames[ops->depth - 1].children;
  if (info.kind == OpKind::kFree) {
    // The site is asked for here too: an AccumulateGrad that follows is attributed to the node that ran last, even if
    // that node had nothing to report.
    SiteOfThread();
    ops->hidden = resume + 1;
    ops->outside = resume != 0;
    return;
  }

  Frame& frame = ops->frames[ops->depth];
  frame.record = &record;
  frame.info = info;
  frame.children = 0;
  frame.children_counted = false;
  frame.launches = *ops->launches;
  frame.launches_inside = 0;
  frame.hides = frame.forwards = false;
  frame.resume = resume;
  frame.product = 0;
  frame.fused = {};
  frame.inputs.Clear();
  if (info.name == 0) {
    ++ops->depth;
    frame.outer_op = ExchangeOperator(0);
    return;
  }
  ReadInputs(record, info, &frame.inputs);
  frame.outer_op = ExchangeOperator(info.name);
  frame.site = SiteOfThread();
  frame.site.layer = CurrentCompiledPlace(frame.site.layer).layer;
  if (frame.site.phase == Phase::kOther && frame.site.layer == 0 && info.copies && frame.inputs.crosses_devices) {
    frame.site.phase = Phase::kData;
  }
  if (frame.site.phase == Phase::kBackward && HasFusedCalls()) {
    const FusedNode part = FindFused(&frame);
    if (part == FusedNode::kInside) {
      ExchangeOperator(frame.outer_op);
      ops->hidden = resume + 1;
      ops->outside = resume != 0;
      return;
    }
    if (part == FusedNode::kFirst) {
      ++ops->depth;
      ops->hidden = 1;
      return;
    }
  }
  if (!info.fused_backward.empty() && g.peek != nullptr) frame.first_node = g.peek();
  ++ops->depth;
  const bool on_plain_tensors = !frame.inputs.has_meta && !frame.inputs.has_wrapper;
  frame.hides = info.kind == OpKind::kAtomic && on_plain_tensors;
  if (frame.hides) {
    ops->hidden = 1;
    frame.autocast = AutocastOfThread();
  }
}

void OnEnd(const RecordFunction& record) {
  Ops* ops = t_ops;
  if (ops == nullptr) return;
  if (ops->hidden > 1 || (ops->hidden == 1 && (ops->depth == 0 || ops->frames[ops->depth - 1].record != &record))) {
    if (--ops->hidden == 0) NoteOperatorEnd();
    return;
  }
  if (ops->depth == 0 || ops->frames[ops->depth - 1].record != &record) return;
  ops->hidden = 0;
  Frame& frame = ops->frames[--ops->depth];
  ExchangeOperator(frame.outer_op);
  NoteOperatorEnd();
  if (frame.resume != 0) {
    ops->hidden = frame.resume;
    ops->outside = true;
  }
  Frame* outer = ops->depth != 0 ? &ops->frames[ops->depth - 1] : nullptr;
  const uint64_t launches = *ops->launches - frame.launches;
  if (outer != nullptr) outer->launches_inside += frame.info.name != 0 ? launches : frame.launches_inside;
  const bool launched = static_cast<int64_t>(launches - frame.launches_inside) > 0;
  Frame* product_of = nullptr;
  if (outer != nullptr && outer->hides) {
    // This is a product by a tangent: the operator around it is a kernel of its own, and goes on hiding what else
    // runs inside it.
    ops->hidden = 1;
    std::swap(product_of, outer);
  }
  if (!frame.fused.empty()) {
    OpCall call = CallOf(frame.fused, frame.inputs, frame.fused_inputs);
    call.launched = launched;
    call.first_launch = frame.launches;
    g.source->OnOp(call, frame.site);
    if (outer != nullptr) outer->children_counted = true;
    return;
  }
  if ((frame.children_counted && !launched) || frame.forwards || frame.info.name == 0) {
    if (outer != nullptr) outer->children_counted |= frame.children_counted;
    return;
  }

  const auto begin = FieldOf<uintptr_t>(record, g.layout.outputs);
  const auto end = FieldOf<uintptr_t>(record, g.layout.outputs + 8);
  const size_t count = (end - begin) / kValueSize;
  const size_t wanted = g.output_count(&record);
  if (count < wanted) return g.source->OnOpFailed();
  // The outputs refer to tensors behind those of the inputs: one call, one list of tensors.
  const size_t inputs = frame.inputs.arguments.size();
  frame.inputs.has_zeros = false;
  try {
    g.reader.Read(end - wanted * kValueSize, wanted, &frame.inputs);
  } catch (...) {
    g.recorder->CountDrop("operators for which there was no memory");
    return;
  }
  if (frame.inputs.has_meta || frame.inputs.has_zeros) return;  // nothing was computed
  if (frame.inputs.has_wrapper) {
    if (frame.children == 0) g.recorder->CountDrop("operators on tensors without readable storage");
    return;
  }
  OpCall call = CallOf(g.name(&record), frame.inputs, inputs);
  call.children_counted = frame.children_counted;
  call.launched = launched;
  call.first_launch = frame.launches;
  const bool is_result = IsResult(frame.product, call);
  if (outer != nullptr) outer->children_counted |= frame.children_counted || is_result;
  if (is_result) return;
  if (product_of != nullptr && !call.outputs.empty() && call.outputs[0].kind == Argument::Kind::kTensor) {
    product_of->product = call.tensors[call.outputs[0].first].storage;
  }
  const bool counted = g.source->OnOp(call, frame.site);
  if (outer != nullptr) outer->children_counted |= counted;
  if (!frame.info.fused_backward.empty()) KeepForBackward(frame, inputs);
}

// --- For slices of a step.

OperatorPlace PlaceOfThread() noexcept {
  return {.enters = EnterCount(),
          .entered = CurrentLayer().entered,
          .node = RunningNode(),
          .phase = SiteOfThread().phase};
}

// The backward of a fused operator is known by its forward, so both are heard in one step.
bool GoesOn() noexcept { return HasFusedCalls() || g.source->WantsOpsBehind(); }

}  // namespace

void AddOpCallback(const TorchSymbols& symbols, const TorchLayouts& layouts, Recorder& recorder,
                   Source& source) noexcept {
  g = {.name = symbols.record_name,
       .input_count = symbols.record_input_count,
       .output_count = symbols.record_output_count,
       .peek = symbols.peek,
       .thread_id = symbols.thread_id,
       .autocast = symbols.autocast,
       .layout = layouts.record,
       .reader = OperandReader(layouts.tensor, layouts.value, symbols.undefined_tensor,
                               SparseReader(symbols.torch, layouts.tensor)),
       .recorder = &recorder,
       .source = &source};
  if (source.wants_slices_of_ops()) {
    SetOperatorSlices(PlaceOfThread, GoesOn);
    g_launch_of_slices.store(&NoteLaunchOfSlices, std::memory_order_release);
  }
  ListenToOperators(symbols, {.start = OnStart, .end = OnEnd});
  ObserveWantedOps();
}

void ObserveWantedOps() noexcept {
  if (g.source != nullptr) HearOperators(g.source->wants_ops_now());
}

}  // namespace rfinject
