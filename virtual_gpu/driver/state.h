// File: state.h
//
// The objects behind CUDA's handles, the one lock that guards them, and the board. CUDA's handles are pointers to
// structs that its headers leave undefined; here they are defined.
//
// There is one lock for everything: nothing here is computed, so no call holds it for longer than a copy of the
// user's bytes takes, and two locks cannot be taken in the wrong order. It is recursive, because host functions and
// observers may be called under it.
#ifndef RFINJECT_VIRTUAL_GPU_DRIVER_STATE_H_
#define RFINJECT_VIRTUAL_GPU_DRIVER_STATE_H_

#include <cuda.h>
#include <stdint.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "virtual_gpu/driver/image.h"
#include "virtual_gpu/success.h"
#include "virtual_gpu/tell.h"
#include "virtual_gpu/virtual_gpu.h"

// Before what other libraries call: the functions of virtual_gpu.h, and CUDA's.
#define RFINJECT_DOOR extern "C" __attribute__((visibility("default")))
#define RFINJECT_CUDA RFINJECT_DOOR CUresult CUDAAPI

namespace rfinject::virtual_gpu {

struct Board {
  std::string name = "virtual GPU";
  int devices = 0;  // 0: not started, as on a machine without a GPU
  int cc_major = 8, cc_minor = 0;
  int sm_count = 108;
  uint64_t memory_bytes = 0, l2_bytes = 0;
  double sm_hz = 1e9, dram_bytes_per_s = 1e12, pcie_bytes_per_s = 15e9;
  bool quiet = false;
  bool computes = false;
  int sm() const { return cc_major * 10 + cc_minor; }
};
// The board of all virtual devices.
Board& TheBoard();
inline bool IsDevice(CUdevice device) { return device >= 0 && device < TheBoard().devices; }

// What CUDA's programming guide says of a compute capability ("Technical Specifications per Compute Capability").
struct ChipLimits {
  int cc;  // 80 for 8.0
  int shared_bytes_per_sm, shared_bytes_per_block_optin;
  int threads_per_sm, blocks_per_sm;
};
const ChipLimits& LimitsOf(int cc);

using Lock = std::lock_guard<std::recursive_mutex>;
// The lock of everything that the virtual driver keeps.
std::recursive_mutex& StateLock();

// A number that no other object of this process has.
uint64_t NewId();

// The current context of this thread, or null.
CUcontext Current();
// The stream behind a handle: the legacy and per-thread default streams (0, 1, 2) are those of the current context.
CUstream RealStream(CUstream stream);

// Allocates memory of a device, for variables of modules, as cuMemAlloc does for the current one.
CUresult AllocateOn(int device, size_t bytes, CUdeviceptr* address);

inline void* Pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }
bool IsDeviceMemory(const void* address);
// Whether only a kernel could have written what a device has there, because the host did not.
bool HoldsResults(const void* address, size_t bytes);

// Copies as a device would. `to` is written, and committed, only where the host once wrote what `from` holds.
void CopyBytes(void* to, const void* from, size_t bytes);
void FillBytes(void* to, unsigned value, size_t value_bytes, size_t count);
// Whether what this thread reads of results that are not known is told (rfinject_virtual_gpu_answer).
bool Answers();

// What such a copy takes the device, by the rate of its memory, or of PCIe where the host's memory is one of both;
// and such a fill.
uint64_t TransferNs(const void* to, const void* from, size_t bytes);
uint64_t FillNs(size_t bytes);

// Makes `stream` busy for `ns` more, after what it already has to do.
void Occupy(CUstream stream, uint64_t ns);
// The same for what this thread has submitted: rfinject_virtual_gpu_tell adds what is missing. Nothing while the
// thread's calls are hidden, because the kernel that a library launches stands for them.
void OccupyUntold(CUstream stream, uint64_t ns);

// Nanoseconds of the board's clock. It goes with the host's, and jumps forward when the host waits for a stream.
uint64_t ClockNow();
void WaitUntil(uint64_t ns);

// The time that was told for captured work. It is never freed: it is told after the capture, when the graph may be
// gone.
struct NodeCost {
  uint64_t ns = 0;  // 0: it was not told
  uint64_t what = 0;
};

// Counts that a capture has begun (1) or ended (-1).
void CountCaptures(int change);

// Notes in the graph what a captured stream was told to do.
CUgraphNode Capture(CUstream stream, CUgraphNodeType type);
// Makes the cost of a node that this thread captures: rfinject_virtual_gpu_tell_captured writes to the last one.
NodeCost* NewNodeCost();
// Called when everything that this thread has captured so far has been told of.
void ForgetCaptured();
// Called when all nodes of a graph have been launched on this thread.
void NoteReplay();
// Called for each node of a launched graph, after the time that its kind takes anyway.
void NoteReplayed(const NodeCost& cost, CUstream stream);

// Marks every capture that a synchronising call spoils. Returns whether there was one.
bool SpoilCaptures();

// What a launch does beyond its grid, as far as the stand-in that asked for it has said.
struct Work {
  double flop = 0, bytes = 0;
};
// Takes what was described on this thread since its last launch (rfinject_virtual_gpu_describe).
Work TakeWork();

// Tells the observers of such a launch.
void NoteLoadedLaunch(CUfunction function, const unsigned* grid, const unsigned* block, unsigned shared,
                      void* const* arguments, CUstream stream);

// Puts a launch on the stream, where it takes the time of an empty kernel, and tells the observers of it and of its
// work.
void NoteLaunch(CUfunction function, const unsigned* grid, const unsigned* block, unsigned shared, const Work& work,
                CUstream stream);

// Whether what this thread calls is hidden (rfinject_virtual_gpu_hide).
bool Hidden();

// Counts a kernel that this thread launches or captures (rfinject_virtual_gpu_thread_launches).
void CountLaunch();

// Does `body`, which is the call of `function`, and tells the observers of it.
template <typename Parameters, typename Body>
CUresult Traced(const char* function, const Parameters& parameters, const char* kernel, Body body) {
  if (Hidden() || !Wanted<&rfinject_virtual_observer::enter>()) return body();
  const rfinject_virtual_call call = {function, &parameters, kernel, Current()};
  Tell<&rfinject_virtual_observer::enter>(&call);
  const CUresult result = body();
  Tell<&rfinject_virtual_observer::exit>(&call, static_cast<int>(result));
  return result;
}

// Tells the observers of a node (rfinject_virtual_node).
void TellNode(rfinject_virtual_node_event event, const void* graph, CUgraphNode node, CUgraphNode original = nullptr);

// A kernel's name, grid and block are all that is known of it when it is launched; what it takes is told afterwards
// (rfinject_virtual_gpu_tell). 2 us is what an empty kernel takes on the chips of gpus.csv.
constexpr uint64_t kLaunchNs = 2000;
constexpr uint64_t kCopyStartNs = 1000;  // before the first byte moves

// Writes a line on standard error, once for each text, unless the user wants none.
void SayOnce(const std::string& text);

}  // namespace rfinject::virtual_gpu

struct CUctx_st {
  int device = 0;
  bool alive = false;
  unsigned flags = 0;
  uint64_t id = 0;
  size_t limits[16] = {};
  CUstream default_stream = nullptr;
};

struct CUlib_st {
  rfinject::virtual_gpu::Image image;
  bool by_program = false;  // loaded as a module, not registered by what the compiler linked
  std::map<std::string, std::unique_ptr<CUfunc_st>> functions;
  std::map<std::string, std::pair<CUdeviceptr, size_t>> variables;
};

struct CUfunc_st {
  std::string name;
  CUlib_st* library = nullptr;
  rfinject::virtual_gpu::KernelInfo info;
  int dynamic_shared_max = 48 << 10;
  int carveout = -1;
  int non_portable_cluster = 0;
};

struct CUgraphNode_st {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  // A kernel.
  CUfunction function = nullptr;
  unsigned grid[3] = {}, block[3] = {}, shared = 0;
  rfinject::virtual_gpu::Work work;
  rfinject::virtual_gpu::NodeCost* cost = nullptr;  // of a captured node
  // A copy or a fill.
  void* to = nullptr;
  const void* from = nullptr;
  size_t bytes = 0;
  unsigned value = 0;
  size_t value_bytes = 1;
  // A host function.
  CUhostFn host = nullptr;
  void* host_data = nullptr;
  CUgraph child = nullptr;
};

// Something of the program's that a graph keeps alive, and the function that ends it.
struct CUuserObject_st {
  void* object = nullptr;
  CUhostFn destroy = nullptr;
  unsigned references = 0;
};

struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
  std::vector<std::pair<CUuserObject, unsigned>> objects;
};

struct CUgraphExec_st {
  std::vector<CUgraphNode_st> nodes;
};

namespace rfinject::virtual_gpu {
struct Recording {
  uint64_t id = 0;
  CUgraph graph = nullptr;
  bool spoilt = false;
  CUstream origin = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
};
}  // namespace rfinject::virtual_gpu

struct CUstream_st {
  CUcontext context = nullptr;
  unsigned flags = 0;
  int priority = 0;
  uint64_t id = 0;
  uint64_t busy_until = 0;
  std::shared_ptr<rfinject::virtual_gpu::Recording> recording;
  std::vector<CUgraphNode> tail;  // what the next captured node comes after
};

struct CUevent_st {
  bool recorded = false;
  uint64_t at = 0;
  std::shared_ptr<rfinject::virtual_gpu::Recording> recording;
  std::vector<CUgraphNode> tail;
};

#endif  // RFINJECT_VIRTUAL_GPU_DRIVER_STATE_H_
