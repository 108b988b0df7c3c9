// File: sim_cuda.cc
//
// libcuda.so.1 of the simulated GPU: enough of the driver to create contexts and launch kernels whose work is known.
// Like the real one, cuInit loads the library that CUDA_INJECTION64_PATH names and calls its InitializeInjection.
//
// The virtual GPU's driver cannot carry these tests. They run under the sanitizers, for which it is not built; they
// make single calls of the driver fail (sim_fail), which a driver that is shipped has no place for; they create and
// destroy contexts, where the virtual GPU has primary ones only; and they launch kernels whose counters each test
// sets, by the address of a SimKernel in the place of a CUfunction.
#include <cupti.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "integration_tests/simulated_gpu/simulator.h"

struct CUctx_st {
  int device;
  bool alive;
};

struct CUgraph_st {
  std::vector<SimNode> nodes;
};

namespace {

constexpr size_t kMemory = size_t{40} << 30;
std::atomic<size_t> g_in_use{size_t{10} << 30};  // other processes, and what the driver takes
std::atomic<bool> g_captured{false}, g_capture_spoilt{false};
CUgraph g_capture = nullptr;  // what is captured into; one thread captures at a time
// An executable graph is known by its SimGraph.
struct Executable {
  SimGraph graph;
  std::vector<SimNode> nodes;
};

// Nodes are never freed, so that a late use is seen as one; their handles are addresses of nothing.
const void* NewNode(const void* graph, const SimNode& node, const void* original) {
  SimNodeEvent event = {0, graph, new char, original,
                        node.kernel != nullptr ? CU_GRAPH_NODE_TYPE_KERNEL : CU_GRAPH_NODE_TYPE_MEMCPY};
  sim_node(&event);
  event.cloned = 1;
  if (original != nullptr) sim_node(&event);
  return event.node;
}

void Capture(const SimLaunch& launch) {
  if (g_capture == nullptr || launch.graph != nullptr) return;
  SimNode node = {launch.kernel, launch.transfer_ns, nullptr, {}, {}};
  memcpy(node.grid, launch.grid, sizeof node.grid);
  memcpy(node.block, launch.block, sizeof node.block);
  node.handle = NewNode(g_capture, node, nullptr);
  g_capture->nodes.push_back(node);
}
std::atomic<uint64_t> g_next_address{0x7f0000000000};
std::mutex g_mutex;
std::map<CUdeviceptr, size_t> g_allocations;  // g_mutex
thread_local CUcontext t_context = nullptr;
constexpr int kDevices = 2;
CUctx_st g_primary[kDevices] = {{0, true}, {1, true}};
thread_local std::vector<CUcontext> t_stack;  // below the current one

// A call of `function`, which then waits, if it does.
CUresult Launch(SimLaunch launch, const char* function, const std::function<void()>& wait = nullptr) {
  if (t_context == nullptr || !t_context->alive) return CUDA_ERROR_INVALID_CONTEXT;
  launch.context = t_context;
  launch.function_name = function;
  uint64_t data = 0;
  sim_call_enter(&launch, &data);
  const CUresult result = static_cast<CUresult>(sim_take_failure(function));
  const bool works = launch.kernel != nullptr || launch.graph != nullptr || launch.transfer_ns != 0;
  if (result == CUDA_SUCCESS && works) g_captured ? Capture(launch) : sim_call_run(&launch);
  if (result == CUDA_SUCCESS && wait) wait();
  sim_call_exit(&launch, &data, result);
  return result;
}

thread_local const SimKernel* t_launch_as = nullptr;
const SimKernel* KernelOf(CUfunction function) {
  const SimKernel* instead = std::exchange(t_launch_as, nullptr);
  return instead != nullptr ? instead : reinterpret_cast<const SimKernel*>(function);
}

int IsCurrent(CUcontext context) { return t_context == context; }
int DeviceOf(CUcontext context) { return context->device; }
constexpr int kClockKhz = 1'410'000;
constexpr SimDriver kDriver = {&IsCurrent, &DeviceOf, kClockKhz};
[[gnu::constructor]] void Register() { sim_set_driver(&kDriver); }

}  // namespace

extern "C" {

void sim_launch_as(const SimKernel* kernel) { t_launch_as = kernel; }

CUresult CUDAAPI cuInit(unsigned int) {
  static bool initialised = false;
  if (initialised) return CUDA_SUCCESS;
  initialised = true;
  const char* path = getenv("CUDA_INJECTION64_PATH");
  if (path == nullptr || path[0] == '\0') return CUDA_SUCCESS;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return CUDA_SUCCESS;
  auto* entry = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"));
  // The real driver fails its cuInit when the library says 0.
  return entry != nullptr && entry() == 0 ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

CUresult CUDAAPI cuDriverGetVersion(int* version) {
  *version = 13000;
  return static_cast<CUresult>(sim_take_failure("cuDriverGetVersion"));
}
CUresult CUDAAPI cuGetErrorName(CUresult, const char** name) {
  *name = "SIMULATED";
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetCount(int* count) {
  *count = kDevices;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetName(char* name, int size, CUdevice) {
  snprintf(name, static_cast<size_t>(size), "Simulated %s", sim_chip());
  return static_cast<CUresult>(sim_take_failure("cuDeviceGetName"));
}
CUresult CUDAAPI cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice) {
  memset(uuid, 7, sizeof *uuid);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceTotalMem_v2(size_t* bytes, CUdevice) {
  *bytes = size_t{40} << 30;
  return static_cast<CUresult>(sim_take_failure("cuDeviceTotalMem"));
}
CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = sim_compute_capability() / 10;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = sim_compute_capability() % 10;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 108;
      break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      *value = kClockKhz;
      break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      *value = 2'619'000;
      break;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      *value = 5120;
      break;
    default:
      *value = 1;
  }
  return static_cast<CUresult>(sim_take_failure("cuDeviceGetAttribute"));
}
CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  if (device < 0 || device >= kDevices) return CUDA_ERROR_INVALID_DEVICE;
  // Others may look at it meanwhile.
  if (!g_primary[device].alive) g_primary[device].alive = true;
  *context = &g_primary[device];
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext context) {
  if (int code = sim_take_failure("cuCtxPushCurrent"); code != 0) return static_cast<CUresult>(code);
  if (context == nullptr || !context->alive) sim_violation("cuCtxPushCurrent: the context is gone");
  t_stack.push_back(t_context);
  t_context = context;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext* context) {
  const int code = sim_take_failure("cuCtxPopCurrent");
  if (t_stack.empty()) {
    sim_violation("cuCtxPopCurrent: nothing was pushed");
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  *context = t_context;
  t_context = t_stack.back();
  t_stack.pop_back();
  return static_cast<CUresult>(code);
}
CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) {
  t_context = context;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuCtxGetCurrent(CUcontext* context) {
  *context = t_context;
  return static_cast<CUresult>(sim_take_failure("cuCtxGetCurrent"));
}
CUresult CUDAAPI cuCtxGetDevice(CUdevice* device) {
  if (t_context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *device = t_context->device;
  return static_cast<CUresult>(sim_take_failure("cuCtxGetDevice"));
}
CUresult CUDAAPI cuCtxSynchronize(void) {
  if (g_captured) {
    g_capture_spoilt = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  SimLaunch launch = {};
  launch.cbid = CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize;
  if (t_context != nullptr && t_context->alive) {
    return Launch(launch, "cuCtxSynchronize", [] { sim_wait_until(sim_idle_at(t_context)); });
  }
  return static_cast<CUresult>(sim_take_failure("cuCtxSynchronize"));
}
CUresult CUDAAPI cuStreamSynchronize(CUstream stream) {
  cuStreamSynchronize_params params = {stream};
  SimLaunch launch = {};
  launch.cbid = CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize;
  launch.params = &params;
  return Launch(launch, "cuStreamSynchronize", [stream] { sim_wait_until(sim_stream_idle_at(t_context, stream)); });
}
CUresult CUDAAPI cuCtxCreate_v2(CUcontext* context, unsigned int, CUdevice device) {
  *context = t_context = new CUctx_st{device, true};
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuCtxDestroy_v2(CUcontext context) {
  sim_context_destroy(context);
  context->alive = false;  // never freed, so that a late use is seen as one
  if (t_context == context) t_context = nullptr;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemGetInfo_v2(size_t* free, size_t* total) {
  *free = kMemory - g_in_use;
  *total = kMemory;
  return static_cast<CUresult>(sim_take_failure("cuMemGetInfo"));
}
CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  cuMemAlloc_v2_params params = {address, bytes};
  *address = g_next_address.fetch_add(bytes + 512);
  SimLaunch launch = {};
  launch.cbid = CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2;
  launch.params = &params;
  {
    std::lock_guard lock(g_mutex);
    g_allocations[*address] = bytes;
  }
  g_in_use += bytes;
  return Launch(launch, "cuMemAlloc_v2");
}
CUresult CUDAAPI cuMemFree_v2(CUdeviceptr address) {
  cuMemFree_v2_params params = {address};
  SimLaunch launch = {};
  launch.cbid = CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2;
  launch.params = &params;
  {
    std::lock_guard lock(g_mutex);
    auto at = g_allocations.find(address);
    if (at == g_allocations.end()) return CUDA_ERROR_INVALID_VALUE;
    g_in_use -= at->second;
    g_allocations.erase(at);
  }
  return Launch(launch, "cuMemFree_v2");
}

// As in the driver, waiting for the context while a stream is captured fails and spoils the capture.
CUresult CUDAAPI cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  cuStreamBeginCapture_v2_params params = {stream, mode};
  SimLaunch launch = {};
  launch.cbid = CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2;
  launch.params = &params;
  g_captured = true;
  g_capture_spoilt = false;
  g_capture = new CUgraph_st;
  return Launch(launch, "cuStreamBeginCapture_v2");
}
CUresult CUDAAPI cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  cuStreamEndCapture_params params = {stream, graph};
  SimLaunch launch = {};
  launch.cbid = CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture;
  launch.params = &params;
  g_captured = false;
  *graph = g_capture_spoilt ? nullptr : g_capture;
  g_capture = nullptr;
  const CUresult result = Launch(launch, "cuStreamEndCapture");
  return g_capture_spoilt ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : result;
}

CUresult CUDAAPI cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                                unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void** kp,
                                void** extra) {
  cuLaunchKernel_params params = {f, gx, gy, gz, bx, by, bz, shared, stream, kp, extra};
  SimLaunch launch = {};
  launch.cbid = CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel;
  launch.params = &params;
  launch.kernel = KernelOf(f);
  launch.stream = stream;
  uint32_t grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
  memcpy(launch.grid, grid, sizeof grid);
  memcpy(launch.block, block, sizeof block);
  launch.dynamic_shared_bytes = shared;
  return Launch(launch, "cuLaunchKernel");
}

CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** kp, void** extra) {
  cuLaunchKernelEx_params params = {config, f, kp, extra};
  SimLaunch launch = {};
  launch.cbid = CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx;
  launch.params = &params;
  launch.kernel = KernelOf(f);
  launch.stream = config->hStream;
  uint32_t grid[3] = {config->gridDimX, config->gridDimY, config->gridDimZ};
  uint32_t block[3] = {config->blockDimX, config->blockDimY, config->blockDimZ};
  memcpy(launch.grid, grid, sizeof grid);
  memcpy(launch.block, block, sizeof block);
  launch.dynamic_shared_bytes = config->sharedMemBytes;
  return Launch(launch, "cuLaunchKernelEx");
}

CUresult CUDAAPI cuMemcpyHtoDAsync_v2(CUdeviceptr, const void*, size_t, CUstream stream) {
  SimLaunch launch = {};
  launch.cbid = CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2;
  launch.stream = stream;
  launch.transfer_ns = 700;
  return Launch(launch, "cuMemcpyHtoDAsync_v2");
}

CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  cuGraphInstantiateWithFlags_params params = {exec, graph, flags};
  SimLaunch launch = {};
  launch.cbid = CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags;
  launch.params = &params;
  launch.function_name = "cuGraphInstantiateWithFlags";
  launch.context = t_context;
  uint64_t data = 0;
  sim_call_enter(&launch, &data);
  auto* made = new Executable;
  for (SimNode node : graph->nodes) {
    node.handle = NewNode(made, node, node.handle);
    made->nodes.push_back(node);
  }
  made->graph = {made->nodes.data(), made->nodes.size()};
  *exec = reinterpret_cast<CUgraphExec>(&made->graph);
  sim_call_exit(&launch, &data, CUDA_SUCCESS);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuGraphDestroy(CUgraph graph) {
  cuGraphDestroy_params params = {graph};
  SimLaunch launch = {};
  launch.cbid = CUPTI_DRIVER_TRACE_CBID_cuGraphDestroy;
  launch.params = &params;
  const CUresult result = Launch(launch, "cuGraphDestroy");
  delete graph;
  return result;
}
CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec exec) {
  cuGraphExecDestroy_params params = {exec};
  SimLaunch launch = {};
  launch.cbid = CUPTI_DRIVER_TRACE_CBID_cuGraphExecDestroy;
  launch.params = &params;
  const CUresult result = Launch(launch, "cuGraphExecDestroy");
  delete reinterpret_cast<Executable*>(exec);
  return result;
}

CUresult CUDAAPI cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  cuGraphLaunch_params params = {graph, stream};
  SimLaunch launch = {};
  launch.cbid = CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch;
  launch.graph = reinterpret_cast<const SimGraph*>(graph);
  launch.params = &params;
  launch.stream = stream;
  return Launch(launch, "cuGraphLaunch");
}
}
