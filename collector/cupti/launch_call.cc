#include "collector/cupti/launch_call.h"

namespace rfinject::cupti {
namespace {

constexpr CUpti_CallbackId kLaunchCbids[] = {
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch,
    CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz,
};

// The functions by which torch and the runtime copy and set memory. These are no ranges and have no counters, only
// times.
constexpr CUpti_CallbackId kTransferCbids[] = {
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoD_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpy2D_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpy2DUnaligned_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpy2DAsync_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpy,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyPeerAsync,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2_ptds,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2_ptds,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoD_v2_ptds,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpy_ptds,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD8_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD16_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD32_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD16Async,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD2D8Async,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD16Async_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async_ptsz,
};

// `from` has the shape of a launch of `function`.
template <typename Shape>
void SetShape(const void* function, const Shape& from, LaunchCall* call) {
  call->function = function;
  call->grid = {from.gridDimX, from.gridDimY, from.gridDimZ};
  call->block = {from.blockDimX, from.blockDimY, from.blockDimZ};
  call->dynamic_shared_bytes = from.sharedMemBytes;
}

}  // namespace

int CaptureChange(CUpti_CallbackId cbid, CUresult result) noexcept {
  if (ListOf(cbid) != CallList::kCapture) return 0;
  const bool ends =
      cbid == CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture || cbid == CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture_ptsz;
  if (!ends) return result == CUDA_SUCCESS ? 1 : 0;
  // An invalid or unjoined capture has ended as well; one that another thread or stream must end goes on.
  const bool ended = result == CUDA_SUCCESS || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ||
                     result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  return ended ? -1 : 0;
}

void NoteGraphCall(CUpti_CallbackId cbid, const CUpti_CallbackData& data, CapturedGraphs& graphs) noexcept {
  const bool entry = data.callbackSite == CUPTI_API_ENTER;
  const auto* result = static_cast<const CUresult*>(data.functionReturnValue);
  const bool done = !entry && result != nullptr && *result == CUDA_SUCCESS;
  switch (cbid) {
    case CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate:
    case CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate_v2:
    case CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags:
    case CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams:
    case CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams_ptsz: {
      // The parameters of all of these begin with the executable graph and its graph.
      const auto& call = *static_cast<const cuGraphInstantiateWithFlags_params*>(data.functionParams);
      if (entry) return CapturedGraphs::BeginInstantiate();
      return graphs.EndInstantiate(done && call.phGraphExec != nullptr ? *call.phGraphExec : nullptr, call.hGraph);
    }
    case CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate:
    case CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate_v2: {
      const auto& call = *static_cast<const cuGraphExecUpdate_v2_params*>(data.functionParams);
      if (done) graphs.Update(call.hGraphExec, call.hGraph);
      return;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuGraphExecDestroy:
      if (entry) {
        graphs.DestroyExecutable(static_cast<const cuGraphExecDestroy_params*>(data.functionParams)->hGraphExec);
      }
      return;
    case CUPTI_DRIVER_TRACE_CBID_cuGraphDestroy:
      if (entry) graphs.DestroyGraph(static_cast<const cuGraphDestroy_params*>(data.functionParams)->hGraph);
      return;
    default:  // all others change one node, and begin with the executable graph
      if (done) graphs.Change(static_cast<const cuGraphNodeSetEnabled_params*>(data.functionParams)->hGraphExec);
  }
}

std::span<const CUpti_CallbackId> LaunchCbids() { return kLaunchCbids; }
std::span<const CUpti_CallbackId> TransferCbids() { return kTransferCbids; }

bool DecodeLaunch(CUpti_CallbackId cbid, const CUpti_CallbackData& data, LaunchCall* call, CallKind* kind,
                  const char** name) noexcept {
  *kind = CallKind::kKernel;
  *name = data.symbolName;
  switch (cbid) {
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz:
    // The cooperative launches' parameters begin like these.
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz: {
      const auto& launch = *static_cast<const cuLaunchKernel_params*>(data.functionParams);
      SetShape(launch.f, launch, call);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz: {
      const auto& launch = *static_cast<const cuLaunchKernelEx_params*>(data.functionParams);
      if (launch.config == nullptr) return false;
      SetShape(launch.f, *launch.config, call);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch:
    case CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz:
      call->function = static_cast<const cuGraphLaunch_params*>(data.functionParams)->hGraph;
      *kind = CallKind::kGraph;
      *name = "(CUDA graph)";
      break;
    default:
      // All others that are enabled are copies and memory sets.
      call->function = reinterpret_cast<const void*>(static_cast<uintptr_t>(cbid));
      call->transfer = true;
      *kind = CallKind::kTransfer;
      *name = data.functionName;
  }
  return true;
}

}  // namespace rfinject::cupti
