// File: launch_callback_benchmark.cc
//
// Measures what a launch costs the program while nothing is armed: the callback's entry and exit into an active
// recorder, as a time and as a ratio to an empty callback. It runs on the simulated GPU, whose own cost is left out
// by calling the subscribed callback directly. (The real driver and CUPTI add theirs.)
//
//   empty_callback          a callback that does nothing
//   unarmed_launch          where it is launched from is one thread-local variable: the collector alone
//   attributed_forward      the injector's own site function: a module runs, no autograd node does
//   attributed_backward     the same inside autograd nodes, a new one for every second launch, each looked up in the
//                           ring of the thread that bore it
//
// The last two ask stand-ins of torch's two functions (the running node, the thread's sequence number) that do what
// torch's do: get_current_node copies a thread-local shared_ptr.
//   ninja -C build/release launch_callback_benchmark && build/release/tools/launch_callback_benchmark
#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collector/cupti/api.h"
#include "collector/cupti/hardware_source.h"
#include "collector/recorder.h"
#include "collector/settings.h"
#include "collector/site.h"
#include "injector/layer_stack.h"
#include "injector/torch/autograd.h"
#include "injector/torch/scopes.h"
#include "injector/training.h"
#include "integration_tests/simulated_gpu/simulator.h"
#include "operators/op_call.h"

namespace rfinject {
namespace {

constexpr uint32_t kLayers = 16;
constexpr uint64_t kNodesPerLayer = 4;
constexpr unsigned kKernels = 64;

thread_local Site t_site;
void ThreadSite(Site* site) noexcept { *site = t_site; }

// --- Torch's side, as far as attribution asks it.

struct Node : std::enable_shared_from_this<Node> {
  Node(uint64_t sequence_in, uint64_t thread_in) : sequence(sequence_in), thread(thread_in) {}
  virtual ~Node() = default;
  uint64_t sequence;
  uint64_t topological = 0;
  bool has_parent = false;
  uint64_t thread;
};
constexpr uint16_t kNodeSequence = 24, kNodeThread = 48;

thread_local uint64_t t_sequence = 1;
thread_local std::shared_ptr<Node> t_node;
thread_local const void* t_task = nullptr;
__attribute__((noinline)) uint64_t Peek() { return t_sequence; }
__attribute__((noinline)) uint64_t ThreadId() { return 1; }
__attribute__((noinline)) bool GradEnabled() { return false; }
__attribute__((noinline)) const void* Task() { return t_task; }
__attribute__((noinline)) std::shared_ptr<Node> CurrentNode() { return t_node; }

void BindAttribution() {
  TorchSymbols symbols;
  symbols.peek = Peek;
  symbols.thread_id = ThreadId;
  symbols.grad_enabled = GradEnabled;
  symbols.engine_task = Task;
  symbols.current_node = reinterpret_cast<abi::NodeReturn (*)()>(reinterpret_cast<void*>(CurrentNode));
  const NodeLayout layout{
      .valid = true, .reference = NodeLayout::Reference::kShared, .sequence = kNodeSequence, .thread = kNodeThread};
  InitAutograd(symbols, layout, NodeMeans::kCurrent, true, Recorder::Get());
  SetSequenceFunctions({.peek = Peek, .thread_id = ThreadId, .running_node = RunningNode});
}

// A forward pass: each layer bears its nodes.
void Forward(std::vector<std::shared_ptr<Node>>* nodes) {
  nodes->clear();
  for (uint32_t layer = 1; layer <= kLayers; ++layer) {
    EnterLayer(layer);
    for (uint64_t i = 0; i < kNodesPerLayer; ++i) nodes->push_back(std::make_shared<Node>(t_sequence++, ThreadId()));
    LeaveLayer();
  }
}

// --- CUPTI's side.

void CUPTIAPI Empty(void* user, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
  benchmark::DoNotOptimize(user);
  benchmark::DoNotOptimize(data);
}

CUpti_CallbackFunc Subscribed() {
  static CUpti_CallbackFunc callback = []() -> CUpti_CallbackFunc {
    setenv("SIM_REAL_CUPTI", "", 1);  // nothing is planned here: times only
    void* driver = dlopen(SIM_FOLDER "/driver/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver == nullptr || dlopen(SIM_FOLDER "/cupti13/libcupti.so.13", RTLD_NOW | RTLD_LOCAL) == nullptr) {
      fprintf(stderr, "%s\n", dlerror());
      exit(1);
    }
    CUcontext context = nullptr;
    reinterpret_cast<decltype(&::cuInit)>(dlsym(driver, "cuInit"))(0);
    reinterpret_cast<decltype(&::cuDevicePrimaryCtxRetain)>(dlsym(driver, "cuDevicePrimaryCtxRetain"))(&context, 0);
    reinterpret_cast<decltype(&::cuCtxSetCurrent)>(dlsym(driver, "cuCtxSetCurrent"))(context);
    auto* settings = new Settings;
    settings->mode = "times";
    Recorder::Get().Activate();
    Source* source = MakeHardwareSource(*settings, Recorder::Get());
    source->OnStepEnd(0);
    return reinterpret_cast<CUpti_CallbackFunc>(
        reinterpret_cast<decltype(&::sim_callback)>(dlsym(driver, "sim_callback"))());
  }();
  return callback;
}

enum class Way { kEmpty, kThreadVariable, kForward, kBackward };

// The time of the empty callback, for the ratios; it runs first.
double g_empty_ns = 0;

template <Way kWay>
void Launches(benchmark::State& state) {
  CUpti_CallbackFunc callback = kWay == Way::kEmpty ? &Empty : Subscribed();
  benchmark::DoNotOptimize(callback);  // called through a pointer, as CUPTI does
  cuLaunchKernel_params params = {};
  params.blockDimX = 256;
  CUpti_CallbackData data = {};
  data.functionParams = &params;
  data.symbolName = "kernel";
  CUresult result = CUDA_SUCCESS;
  data.functionReturnValue = &result;
  std::vector<std::shared_ptr<Node>> nodes;
  if (kWay == Way::kForward || kWay == Way::kBackward) {
    BindAttribution();
    g_site_function.store(&ReadSiteOfThread);
    for (int pass = 0; pass < 100; ++pass) Forward(&nodes);  // the ring has a past
  } else {
    g_site_function.store(&ThreadSite);
  }
  if (kWay == Way::kBackward) t_task = &nodes;
  unsigned launch = 0;
  double ns = 0;
  constexpr int kBatch = 1000;
  while (state.KeepRunningBatch(kBatch)) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kBatch; ++i, ++launch) {
      // A kernel belongs to one layer and one operator, and launches come layer by layer, as in a program.
      const unsigned kernel = launch % kKernels;
      if (kWay == Way::kThreadVariable)
        t_site = Site{1 + kernel * kLayers / kKernels, kernel % 8, 0, Phase::kForward};
      if (kWay == Way::kForward && kernel % (kKernels / kLayers) == 0) EnterLayer(1 + kernel * kLayers / kKernels);
      if (kWay == Way::kBackward && launch % 2 == 0) t_node = nodes[kernel * nodes.size() / kKernels];
      params.f = reinterpret_cast<CUfunction>(uintptr_t{4096} + kernel * 256);
      params.gridDimX = 1 + kernel;
      data.callbackSite = CUPTI_API_ENTER;
      callback(nullptr, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &data);
      data.callbackSite = CUPTI_API_EXIT;
      callback(nullptr, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &data);
      if (kWay == Way::kForward && kernel % (kKernels / kLayers) == kKernels / kLayers - 1) LeaveLayer();
    }
    ns += std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
    state.PauseTiming();
    usleep(200);  // the program's own work, in which the writer keeps up
    state.ResumeTiming();
  }
  while (CurrentLayer().depth != 0) LeaveLayer();
  t_node.reset();
  t_task = nullptr;
  ns /= static_cast<double>(state.iterations());
  if (kWay == Way::kEmpty) g_empty_ns = ns;
  state.counters["ns_a_launch"] = ns;
  if (kWay != Way::kEmpty && g_empty_ns > 0) state.counters["times_empty"] = ns / g_empty_ns;
}
BENCHMARK(Launches<Way::kEmpty>)->Name("empty_callback")->Iterations(1'000'000);
BENCHMARK(Launches<Way::kThreadVariable>)->Name("unarmed_launch")->Iterations(1'000'000);
BENCHMARK(Launches<Way::kForward>)->Name("attributed_forward")->Iterations(1'000'000);
BENCHMARK(Launches<Way::kBackward>)->Name("attributed_backward")->Iterations(1'000'000);

// The last site of each way must be the right one, or the numbers above mean nothing.
bool AttributionWorks() {
  BindAttribution();
  std::vector<std::shared_ptr<Node>> nodes;
  Forward(&nodes);
  EnterLayer(3);
  const Site forward = SiteOfThread();
  LeaveLayer();
  t_task = &nodes;
  t_node = nodes[4 * kNodesPerLayer];
  const Site backward = SiteOfThread();
  t_node.reset();
  t_task = nullptr;
  return forward.layer == 3 && forward.phase == Phase::kForward && backward.layer == 5 &&
         backward.phase == Phase::kBackward;
}

}  // namespace

// What the injector asks of its Python half.
void RequestSlotRepair() noexcept {}
uint32_t LayerOfGradient(uint32_t owner, uintptr_t) noexcept { return owner; }
void RequestPoliteExit() noexcept {}
void EndAttachmentIfOver() noexcept {}
void ActivateWithoutPython() noexcept {}
void NoteOptimizerStep() noexcept {}
uint64_t TakeSamplesOfStep() noexcept { return 0; }
void NoteCallsOfStep(std::string_view, uint32_t) noexcept {}

}  // namespace rfinject

int main(int argc, char** argv) {
  char folder[] = "/tmp/rfinject_benchmark_XXXXXX";
  if (mkdtemp(folder) == nullptr) return 1;
  setenv("RFINJECT_OUTPUT", (std::string(folder) + "/").c_str(), 1);
  if (!rfinject::AttributionWorks()) {
    fprintf(stderr, "attribution does not work here\n");
    return 1;
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  rfinject::Recorder::Get().Finish("exit");
  return system(("rm -r " + std::string(folder)).c_str()) == 0 ? 0 : 1;
}
