// File: launch_call.h
//
// What a call of the driver says about a launch: which calls are watched, and how their parameters are read.
#ifndef RFINJECT_COLLECTOR_CUPTI_LAUNCH_CALL_H_
#define RFINJECT_COLLECTOR_CUPTI_LAUNCH_CALL_H_

#include <cupti.h>

#include <array>
#include <cstdint>
#include <span>

#include "collector/cupti/captured_graphs.h"
#include "collector/cupti/launch_keys.h"

namespace rfinject::cupti {

enum class CallKind : uint8_t {
  kKernel,
  kGraph,     // a whole CUDA graph
  kTransfer,  // a copy or a memory set: no counters, only times
};

// The driver's functions that launch kernels and graphs, and those that copy and set memory.
std::span<const CUpti_CallbackId> LaunchCbids();
std::span<const CUpti_CallbackId> TransferCbids();

// The driver's functions that begin or end the capture of a stream into a graph.
inline constexpr CUpti_CallbackId kCaptureCbids[] = {
    CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture,        CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2,     CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph, CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture,          CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture_ptsz,
};
// Returns by how many the captures in progress change with a call of one of these functions that has returned
// `result`; 0 for any other function.
int CaptureChange(CUpti_CallbackId cbid, CUresult result) noexcept;

// The driver's functions that make graphs executable, change these, and destroy both.
inline constexpr CUpti_CallbackId kGraphCbids[] = {
    CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate,
    CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate_v2,
    CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags,
    CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams,
    CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate,
    CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate_v2,
    CUPTI_DRIVER_TRACE_CBID_cuGraphExecKernelNodeSetParams,
    CUPTI_DRIVER_TRACE_CBID_cuGraphExecKernelNodeSetParams_v2,
    CUPTI_DRIVER_TRACE_CBID_cuGraphExecNodeSetParams,
    CUPTI_DRIVER_TRACE_CBID_cuGraphNodeSetEnabled,
    CUPTI_DRIVER_TRACE_CBID_cuGraphExecDestroy,
    CUPTI_DRIVER_TRACE_CBID_cuGraphDestroy,
};
// Tells `graphs` of a call of one of these functions, where it begins and where it ends.
void NoteGraphCall(CUpti_CallbackId cbid, const CUpti_CallbackData& data, CapturedGraphs& graphs) noexcept;

// CUPTI's events of graphs and their nodes; an older CUPTI lacks some.
inline constexpr CUpti_CallbackId kGraphResources[] = {
    CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING,
    CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
    CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED,
    CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING,
};

// The driver's functions that give out device memory and take it back (device_memory.h).
inline constexpr CUpti_CallbackId kMemoryCbids[] = {
    CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2, CUPTI_DRIVER_TRACE_CBID_cuMemAllocPitch_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2,  CUPTI_DRIVER_TRACE_CBID_cuMemCreate,
    CUPTI_DRIVER_TRACE_CBID_cuMemRelease,
};

// The driver's functions that return when the GPU has done its work.
inline constexpr CUpti_CallbackId kWaitCbids[] = {
    CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize,
    CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize,
    CUPTI_DRIVER_TRACE_CBID_cuEventSynchronize,
};

// The driver's functions that copy to the host; such a copy waits for the work before it where the host's memory is
// not pinned.
inline constexpr CUpti_CallbackId kCopyToHostCbids[] = {
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2_ptds,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2_ptsz,
};

// Which of the lists above a function is in, as a table: every launch asks.
enum class CallList : uint8_t { kNone, kCapture, kGraph, kMemory, kWait, kCopyToHost };
inline constexpr auto kCallLists = [] {
  std::array<CallList, CUPTI_DRIVER_TRACE_CBID_SIZE> lists{};
  for (const CUpti_CallbackId cbid : kCaptureCbids) lists[cbid] = CallList::kCapture;
  for (const CUpti_CallbackId cbid : kGraphCbids) lists[cbid] = CallList::kGraph;
  for (const CUpti_CallbackId cbid : kMemoryCbids) lists[cbid] = CallList::kMemory;
  for (const CUpti_CallbackId cbid : kWaitCbids) lists[cbid] = CallList::kWait;
  for (const CUpti_CallbackId cbid : kCopyToHostCbids) lists[cbid] = CallList::kCopyToHost;
  return lists;
}();
inline CallList ListOf(CUpti_CallbackId cbid) noexcept {
  return cbid < kCallLists.size() ? kCallLists[cbid] : CallList::kNone;
}

// Fills function, grid, block and dynamic shared memory of `call` from the entry of a watched function; device and
// site are the caller's. `name` is the kernel's, valid during the callback. Returns false when the call has no
// parameters to read; the driver will refuse it.
bool DecodeLaunch(CUpti_CallbackId cbid, const CUpti_CallbackData& data, LaunchCall* call, CallKind* kind,
                  const char** name) noexcept;

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_LAUNCH_CALL_H_
