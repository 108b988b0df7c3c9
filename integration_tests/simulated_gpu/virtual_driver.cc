// File: virtual_driver.cc
//
// Makes the virtual GPU's driver (virtual_gpu/) the one below the simulated CUPTI. The driver tells of the calls that
// it gets, and this library hands them on, so that the simulated CUPTI counts and times what PyTorch launches. What a
// kernel takes and counts is made up, the same in every run with the same seed: for a stand-in for cuBLAS or cuDNN,
// the FLOP and the least bytes that it says it stands for; for other kernels, whose work is not known, a little for
// each thread.
//
//   sim_attach_virtual_gpu(seed, noise)      null, or why not
#include <cupti.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "integration_tests/simulated_gpu/simulator.h"
#include "virtual_gpu/virtual_gpu.h"

namespace {

// What the driver tells of, by the names that CUPTI has for it.
#define SIM_CALL(name) \
  { #name, CUPTI_DRIVER_TRACE_CBID_##name }
const std::map<std::string_view, uint32_t>& Cbids() {
  static const auto* const cbids = new std::map<std::string_view, uint32_t>{SIM_CALL(cuLaunchKernel),
                                                                            SIM_CALL(cuLaunchKernelEx),
                                                                            SIM_CALL(cuLaunchCooperativeKernel),
                                                                            SIM_CALL(cuGraphLaunch),
                                                                            SIM_CALL(cuMemAlloc_v2),
                                                                            SIM_CALL(cuMemFree_v2),
                                                                            SIM_CALL(cuMemCreate),
                                                                            SIM_CALL(cuMemRelease),
                                                                            SIM_CALL(cuMemcpy),
                                                                            SIM_CALL(cuMemcpyAsync),
                                                                            SIM_CALL(cuMemcpyHtoD_v2),
                                                                            SIM_CALL(cuMemcpyHtoDAsync_v2),
                                                                            SIM_CALL(cuMemcpyDtoH_v2),
                                                                            SIM_CALL(cuMemcpyDtoHAsync_v2),
                                                                            SIM_CALL(cuMemcpyDtoD_v2),
                                                                            SIM_CALL(cuMemcpyDtoDAsync_v2),
                                                                            SIM_CALL(cuMemcpyPeerAsync),
                                                                            SIM_CALL(cuMemcpy2D_v2),
                                                                            SIM_CALL(cuMemcpy2DAsync_v2),
                                                                            SIM_CALL(cuMemsetD8_v2),
                                                                            SIM_CALL(cuMemsetD16_v2),
                                                                            SIM_CALL(cuMemsetD32_v2),
                                                                            SIM_CALL(cuMemsetD8Async),
                                                                            SIM_CALL(cuMemsetD16Async),
                                                                            SIM_CALL(cuMemsetD32Async),
                                                                            SIM_CALL(cuStreamBeginCapture_v2),
                                                                            SIM_CALL(cuStreamBeginCaptureToGraph),
                                                                            SIM_CALL(cuStreamEndCapture),
                                                                            SIM_CALL(cuGraphInstantiateWithFlags),
                                                                            SIM_CALL(cuGraphInstantiateWithParams),
                                                                            SIM_CALL(cuGraphExecUpdate_v2),
                                                                            SIM_CALL(cuGraphExecDestroy),
                                                                            SIM_CALL(cuGraphDestroy)};
  return *cbids;
}
#undef SIM_CALL

bool IsTransfer(std::string_view function) {
  return function.starts_with("cuMemcpy") || function.starts_with("cuMemset");
}
constexpr uint64_t kTransferNs = 1500;

// --- What kernels do.

// Round figures that are no real board's, so that times are neither all alike nor absurd.
constexpr double kDramBytesPerSecond = 1.5e12, kFlopPerSecond = 1.5e13, kTensorFlopPerSecond = 1.2e14;
constexpr uint64_t kEmptyKernelNs = 2000;
// For a kernel that is not described: four floats in and out, one addition.
constexpr double kBytesPerThread = 32, kFlopPerThread = 1;

struct Recipe {
  const char* counter;  // that counts its FLOP
  double flop_per_count;
  double flop_per_second;
};

// Finds the counter of a stand-in's FLOP on the chip, by the type in its name.
Recipe RecipeOf(std::string_view name, bool described) {
  const bool has_tensor_f32 = sim_compute_capability() >= 80;
  const bool convolution = name.find("cudnn") != name.npos;
  const Recipe fma = {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 2, kFlopPerSecond};
  if (!described) return {"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", 1, kFlopPerSecond};
  const std::string_view chip = sim_chip();
  const auto tensor = [](const char* counter) { return Recipe{counter, 1, kTensorFlopPerSecond}; };
  if (name.find("bf16") != name.npos) {
    if (chip == "GA100") return tensor("sm__ops_path_tensor_src_bf16_dst_fp32_sparsity_off.sum");
    if (chip == "GH100") return tensor("sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_off.sum");
    return fma;
  }
  if (name.find("_f16_") != name.npos || name.find("_hgemm") != name.npos) {
    if (chip == "GA100") return tensor("sm__ops_path_tensor_src_fp16_dst_fp32_sparsity_off.sum");
    if (chip == "GH100") return tensor("sm__ops_path_tensor_op_hgmma_src_fp16_sparsity_off.sum");
    return tensor("sm__ops_path_tensor_src_fp16_dst_fp32.sum");
  }
  if (name.find("_f64_") != name.npos || name.find("_dgemm") != name.npos) {
    return {"smsp__sass_thread_inst_executed_op_dfma_pred_on.sum", 2, kFlopPerSecond};
  }
  // PyTorch lets cuDNN, and not cuBLAS, use TF32.
  if (convolution && has_tensor_f32) {
    if (chip == "GA100") return tensor("sm__ops_path_tensor_src_tf32_dst_fp32_sparsity_off.sum");
    if (chip == "GH100") return tensor("sm__ops_path_tensor_op_hgmma_src_tf32_dst_fp32_sparsity_off.sum");
  }
  return fma;
}

uint64_t Mix(uint64_t x) {  // splitmix64's finaliser
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// A kernel with one grid. A launch is one of a few variants of it, which differ by noise; which one depends on the
// seed and on how many launches of it there were before, not on what other threads do.
struct Kernel {
  static constexpr size_t kVariants = 32;
  struct Variant {
    SimKernel kernel;
    std::array<SimMetric, 4> metrics;
  };
  std::array<Variant, kVariants> variants;
  uint64_t hash = 0, launches = 0;
};

struct Kernels {
  std::mutex mutex;
  std::map<std::tuple<std::string_view, std::array<unsigned, 7>, double, double>, std::unique_ptr<Kernel>> all;
  uint64_t seed = 1;
  double noise = 0;  // standard deviation of times and bytes, as a share
};
Kernels& TheKernels() {
  static auto* const kernels = new Kernels;
  return *kernels;
}

std::unique_ptr<Kernel> MakeKernel(const rfinject_virtual_launch& launch, uint64_t hash) {
  auto made = std::make_unique<Kernel>();
  made->hash = hash;
  const bool described = launch.flop > 0;
  double threads = 1;
  for (int i = 0; i < 3; ++i) threads *= static_cast<double>(launch.grid[i]) * launch.block[i];
  const Recipe recipe = RecipeOf(launch.name, described);
  const double flop = described ? launch.flop : threads * kFlopPerThread;
  const double bytes = launch.bytes > 0 ? launch.bytes : threads * kBytesPerThread;
  const double ns = static_cast<double>(kEmptyKernelNs) +
                    1e9 * std::max(flop / recipe.flop_per_second, bytes / kDramBytesPerSecond);
  for (size_t i = 0; i < Kernel::kVariants; ++i) {
    // Near enough to a normal distribution: the sum of four uniform ones.
    const auto noisy = [&](double value, uint64_t which) {
      double sum = 0;
      for (uint64_t part = 0; part < 4; ++part) {
        sum += static_cast<double>(Mix(hash ^ Mix(TheKernels().seed + (i * 8 + which) * 4 + part)) >> 11) * 0x1p-53;
      }
      return std::round(value * (1 + TheKernels().noise * (sum - 2) * std::sqrt(3.0)));
    };
    Kernel::Variant& variant = made->variants[i];
    variant.metrics = {SimMetric{"dram__bytes_read.sum", noisy(bytes / 2, 0)},
                       SimMetric{"dram__bytes_write.sum", noisy(bytes / 2, 1)},
                       SimMetric{"lts__t_bytes.sum", noisy(bytes * 2, 2)},
                       SimMetric{recipe.counter, flop / recipe.flop_per_count}};
    variant.kernel = {launch.name, static_cast<uint64_t>(noisy(ns, 3)), variant.metrics.data(),
                      variant.metrics.size(), nullptr};
  }
  return made;
}

const SimKernel* KernelOf(const rfinject_virtual_launch& launch) {
  Kernels& kernels = TheKernels();
  const std::array<unsigned, 7> shape = {launch.grid[0],  launch.grid[1],  launch.grid[2],     launch.block[0],
                                         launch.block[1], launch.block[2], launch.shared_bytes};
  std::lock_guard lock(kernels.mutex);
  auto& kernel = kernels.all[{launch.name, shape, launch.flop, launch.bytes}];
  if (kernel == nullptr) {
    uint64_t hash = std::hash<std::string_view>{}(launch.name);
    for (unsigned extent : shape) hash = Mix(hash ^ extent);
    kernel = MakeKernel(launch, hash);
  }
  const uint64_t nth = kernel->launches++;
  return &kernel->variants[Mix(kernel->hash ^ Mix(kernels.seed ^ nth)) % Kernel::kVariants].kernel;
}

// --- Calls.

decltype(&rfinject_virtual_gpu_tell) g_tell = nullptr;
decltype(&cuCtxGetCurrent) g_get_current = nullptr;
decltype(&cuCtxGetDevice) g_get_device = nullptr;
decltype(&cuCtxPushCurrent) g_push = nullptr;
decltype(&cuCtxPopCurrent) g_pop = nullptr;

// A call that this thread is in; a graph's host function may make one inside another.
struct OpenCall {
  SimLaunch launch = {};
  uint64_t data = 0;
  std::vector<SimNode> of_graph;
  bool captured = false;  // it became a node, and runs when the graph does
};
thread_local std::vector<OpenCall>* t_calls = nullptr;  // leaked: exit handlers call the driver

// The driver does not tell when the program waits, so that each launch here comes when the work before it has ended.
void RunWhileTheProgramWaits(const SimLaunch& launch) {
  sim_call_run(&launch);
  sim_wait_until(sim_idle_at(launch.context));
}

void OnEnter(const rfinject_virtual_call* call) {
  if (t_calls == nullptr) t_calls = new std::vector<OpenCall>;
  OpenCall& open = t_calls->emplace_back();
  SimLaunch& launch = open.launch;
  const auto cbid = Cbids().find(call->function);
  if (cbid == Cbids().end()) sim_violation((std::string("a call without a number: ") + call->function).c_str());
  launch.cbid = cbid != Cbids().end() ? cbid->second : 0;
  launch.function_name = call->function;
  launch.symbol = call->kernel;
  launch.params = call->parameters;
  launch.context = static_cast<CUcontext>(call->context);
  sim_call_enter(&launch, &open.data);
}

void OnKernel(const rfinject_virtual_launch* launch) {
  const SimKernel* kernel = KernelOf(*launch);
  g_tell(kernel->ns);
  if (t_calls == nullptr || t_calls->empty()) {
    sim_violation("a kernel that no call has launched");
    return;
  }
  OpenCall& open = t_calls->back();
  if (open.launch.cbid == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch) {
    if (open.of_graph.empty()) return sim_violation("a kernel of a graph without a node");
    SimNode& node = open.of_graph.back();
    node.kernel = kernel;
    memcpy(node.grid, launch->grid, sizeof node.grid);
    memcpy(node.block, launch->block, sizeof node.block);
    return;
  }
  SimLaunch& ours = open.launch;
  ours.kernel = kernel;
  memcpy(ours.grid, launch->grid, sizeof ours.grid);
  memcpy(ours.block, launch->block, sizeof ours.block);
  ours.dynamic_shared_bytes = launch->shared_bytes;
  RunWhileTheProgramWaits(ours);
}

void OnExit(const rfinject_virtual_call* call, int result) {
  if (t_calls == nullptr || t_calls->empty()) return;  // it began before this observer was there
  OpenCall& open = t_calls->back();
  if (result == CUDA_SUCCESS && open.launch.cbid == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch) {
    const SimGraph graph = {open.of_graph.data(), open.of_graph.size()};
    open.launch.graph = &graph;
    RunWhileTheProgramWaits(open.launch);
    open.launch.graph = nullptr;
  } else if (result == CUDA_SUCCESS && IsTransfer(call->function) && !open.captured) {
    open.launch.transfer_ns = kTransferNs;
    RunWhileTheProgramWaits(open.launch);
  }
  sim_call_exit(&open.launch, &open.data, static_cast<CUresult>(result));
  t_calls->pop_back();
}

void OnNode(int event, const rfinject_virtual_node* node) {
  const bool works = node->type == CU_GRAPH_NODE_TYPE_KERNEL || node->type == CU_GRAPH_NODE_TYPE_MEMCPY ||
                     node->type == CU_GRAPH_NODE_TYPE_MEMSET;
  if (event == RFINJECT_VIRTUAL_NODE_CREATED || event == RFINJECT_VIRTUAL_NODE_CLONED) {
    const SimNodeEvent told = {event == RFINJECT_VIRTUAL_NODE_CLONED ? 1 : 0, node->graph, node->node, node->original,
                               node->type};
    sim_node(&told);
    if (t_calls != nullptr && !t_calls->empty()) t_calls->back().captured = true;
  } else if (event == RFINJECT_VIRTUAL_NODE_RUNS && works && t_calls != nullptr && !t_calls->empty()) {
    SimNode runs = {};
    runs.handle = node->node;
    runs.transfer_ns = node->type == CU_GRAPH_NODE_TYPE_KERNEL ? 0 : kTransferNs;
    t_calls->back().of_graph.push_back(runs);
  }
}

constexpr rfinject_virtual_observer kObserver = {
    .launch = &OnKernel, .enter = &OnEnter, .exit = &OnExit, .node = &OnNode};

int IsCurrent(CUcontext context) {
  CUcontext current = nullptr;
  g_get_current(&current);
  return current == context ? 1 : 0;
}
int DeviceOf(CUcontext context) {
  CUdevice device = 0;
  g_push(context);
  g_get_device(&device);
  g_pop(&context);
  return device;
}
SimDriver g_driver = {&IsCurrent, &DeviceOf, 0};

}  // namespace

// How CUPTI tells graphs' nodes apart, by the word in RFX_SIM_GRAPH_IDS.
static void SetGraphIds() {
  const char* word = getenv("RFX_SIM_GRAPH_IDS");
  const std::string_view which = word != nullptr ? word : "";
  sim_set_graph_ids(which == "none"      ? SIM_GRAPH_NO_IDS
                    : which == "swapped" ? SIM_GRAPH_NO_IDS_SWAPPED
                    : which == "grids"   ? SIM_GRAPH_NO_IDS_GRIDS
                                         : SIM_GRAPH_IDS);
}

extern "C" const char* sim_attach_virtual_gpu(uint64_t seed, double noise) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return "there is no libcuda.so.1 in this process";
  const auto find = [driver](auto* function, const char* name) {
    *function = reinterpret_cast<std::remove_reference_t<decltype(*function)>>(dlsym(driver, name));
    return *function != nullptr;
  };
  decltype(&rfinject_virtual_gpu_observe) observe = nullptr;
  decltype(&cuDeviceGetAttribute) attribute = nullptr;
  if (!find(&observe, "rfinject_virtual_gpu_observe") || !find(&g_tell, "rfinject_virtual_gpu_tell") ||
      !find(&g_get_current, "cuCtxGetCurrent") || !find(&g_get_device, "cuCtxGetDevice") ||
      !find(&g_push, "cuCtxPushCurrent_v2") || !find(&g_pop, "cuCtxPopCurrent_v2") ||
      !find(&attribute, "cuDeviceGetAttribute")) {
    return "the libcuda.so.1 of this process is not the virtual GPU's";
  }
  int major = 0, minor = 0;
  attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
  attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
  sim_set_chip(major == 7 ? "GV100" : major == 8 ? "GA100" : "GH100", major, minor);
  sim_set_time(/*real=*/1, /*costs=*/0);  // what collects has the machine's clock
  TheKernels().seed = seed;
  TheKernels().noise = noise;
  attribute(&g_driver.clock_khz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 0);
  sim_set_driver(&g_driver);
  if (const char* held = getenv("RFX_SIM_CLOCK_KHZ"); held != nullptr) sim_set_clock_khz(atoi(held));
  SetGraphIds();
  observe(&kObserver);
  return nullptr;
}
