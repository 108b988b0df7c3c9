// File: dialect.h
//
// How torch.profiler has spelled things since 2021, and what it means by them: keys, kinds of events, names of steps,
// nodes of the backward, calls of CUDA. A dialect that is new is a line here, and nothing else.
#ifndef RFINJECT_CLI_IMPORT_TORCH_DIALECT_H_
#define RFINJECT_CLI_IMPORT_TORCH_DIALECT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cli/import/torch/recording.h"
#include "cli/import/torch/words.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::cli {

// --- The file's object.
inline constexpr std::string_view kEventsMember = "traceEvents", kDevicesMember = "deviceProperties",
                                  kJobMember = "distributedInfo", kClockStartMember = "baseTimeNanoseconds";

// Adds the GPUs of a list as JSON, by their number ("id"). What is no such list adds nothing.
void ReadDeviceProperties(const std::string& json, std::map<uint32_t, TorchDevice>* devices);
// Takes rank and size of the job from an object as JSON. What it does not say stays as it is.
void ReadDistributedInfo(const std::string& json, uint32_t* rank, uint32_t* world_size);

// --- An event, as far as it is read.
struct TorchEvent {
  std::string phase, category, name, process, thread, module, group;
  std::string dims, types, strides, values, grid, block;  // lists as compact JSON
  std::optional<int64_t> start, duration;                 // ns
  uint64_t external_id = 0, correlation = 0, allocated = 0;
  int64_t sequence = TorchSpan::kNone;
  // Of an event of the allocator `device` is its type: 0 is the host.
  uint32_t device = 0, stream = 0, shared_bytes = 0;
  // What Inductor says of a kernel that it made: FLOP, and 10^9 bytes.
  uint64_t given_flop = 0;
  double given_gb = 0;
  std::vector<std::pair<uint32_t, double>> metrics;

  void Clear() {
    for (std::string* text : {&phase, &category, &name, &process, &thread, &module, &group, &dims, &types, &strides,
                              &values, &grid, &block}) {
      text->clear();
    }
    metrics.clear();
    start.reset();
    duration.reset();
    external_id = correlation = allocated = given_flop = 0;
    given_gb = 0;
    sequence = TorchSpan::kNone;
    device = stream = shared_bytes = 0;
  }
};

// A key of an event or of its "args" that is read, and where its value goes; the texts of "args" are
// lists, but for names (IsName).
struct TorchField {
  std::string_view key;
  std::variant<std::monostate, std::string TorchEvent::*, std::optional<int64_t> TorchEvent::*,
               uint64_t TorchEvent::*, int64_t TorchEvent::*, uint32_t TorchEvent::*, double TorchEvent::*>
      member;
};
// Whether a text of "args" is a name and no list.
inline bool IsName(std::string TorchEvent::*member) {
  return member == &TorchEvent::module || member == &TorchEvent::group;
}
// The field of an event, and of its "args"; null for what is not read. Dialects differ in capitals only.
const TorchField* EventField(std::string_view key);
const TorchField* ArgumentField(std::string_view key);
// Reads a value that is neither list nor object.
void SetField(const TorchField& field, std::string_view text, TorchEvent* event);

// The whole number that a text is, also one written as a real; 0 of everything else. The second has at most 32 bits.
uint64_t Unsigned(std::string_view text);
uint32_t Unsigned32(std::string_view text);

// The first are those of TorchSpan, and behind calls those of TorchActivity, in their orders. kSamples: a counter of
// the whole GPU at one time; kMemory: what the allocator of a GPU had given out.
enum class TorchKind : uint8_t {
  kOperator,
  kAnnotation,
  kModule,
  kCall,
  kKernel,
  kCopy,
  kSet,
  kCounters,
  kSamples,
  kMemory,
  kOtherAccelerator,
  kOther
};
static_assert(static_cast<int>(TorchKind::kModule) == static_cast<int>(TorchSpan::Kind::kModule) &&
              static_cast<int>(TorchKind::kSet) - static_cast<int>(TorchKind::kKernel) ==
                  static_cast<int>(TorchActivity::Kind::kSet));
TorchKind KindOf(const TorchEvent& event);
// The event's name without what only says that kind.
std::string_view NameOf(const TorchEvent& event, TorchKind kind);

// --- Names.
inline bool IsMarkedStep(std::string_view name) { return name.starts_with("ProfilerStep#"); }
inline bool IsOptimizerStep(std::string_view name) { return name.starts_with("Optimizer.step#"); }
// The phase of what is in an annotation; kOther where it does not say.
Phase PhaseOfAnnotation(std::string_view name);
// Whether an operator is autograd's span around a node, or a node: "CudnnConvolutionBackward", "ReluBackward1",
// "torch::autograd::AccumulateGrad", which older dialects have without the engine's span around them.
inline bool IsEngineSpan(std::string_view name) { return name.starts_with("autograd::engine::evaluate_function"); }
bool IsAutogradNode(std::string_view name);
inline bool IsCheckpoint(std::string_view name) { return Contains(name, "CheckpointFunctionBackward"); }
// "Conv2d_12" is of class Conv2d, whose first module is Conv2d_0.
inline std::string_view ClassOfModule(std::string_view module) { return module.substr(0, module.rfind('_')); }
inline bool IsFirstOfClass(std::string_view module) { return module.ends_with("_0"); }
// Until torch 1.10 a convolution's backward was an operator around two, cudnn_convolution_backward(input,
// grad_output, weight, …): which of the gradients an operator makes, that of its input (0) or that of its weight (1).
std::optional<size_t> OldGradientOf(std::string_view op);
// Whether Inductor made the operator: "triton_poi_fused_add_relu_3".
inline bool IsMadeByCompile(std::string_view op) { return op.starts_with("triton_") && Contains(op, "_fused_"); }
// Whether a call launches a CUDA graph (or HIP's), launches a kernel, or waits for the GPU.
bool IsGraphLaunch(std::string_view call);
inline bool IsKernelLaunch(std::string_view call) { return Contains(call, "LaunchKernel"); }
inline bool WaitsForGpu(std::string_view call) { return Contains(call, "Synchronize") || call == "cudaMemcpy"; }
// Whether a copy is between host and GPU.
inline bool CrossesBus(std::string_view copy) { return Contains(copy, "HtoD") || Contains(copy, "DtoH"); }

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_TORCH_DIALECT_H_
