// Streams, events and graphs of the runtime.
#include "virtual_gpu/runtime/runtime.h"

using namespace rfinject::virtual_gpu;

RFINJECT_CUDART cudaStreamCreate(cudaStream_t* stream) { RFINJECT_FORWARD(cuStreamCreate(stream, 0)); }
RFINJECT_CUDART cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  RFINJECT_FORWARD(cuStreamCreate(stream, flags));
}
RFINJECT_CUDART cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  RFINJECT_FORWARD(cuStreamCreateWithPriority(stream, flags, priority));
}
RFINJECT_CUDART cudaStreamDestroy(cudaStream_t stream) { RFINJECT_FORWARD(cuStreamDestroy(stream)); }
RFINJECT_CUDART cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  RFINJECT_FORWARD(cuStreamGetPriority(stream, priority));
}
RFINJECT_CUDART cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  RFINJECT_FORWARD(cuStreamGetFlags(stream, flags));
}
RFINJECT_CUDART cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  RFINJECT_FORWARD(cuStreamGetId(stream, id));
}
RFINJECT_CUDART cudaStreamQuery(cudaStream_t stream) { RFINJECT_FORWARD(cuStreamQuery(stream)); }
RFINJECT_CUDART cudaStreamSynchronize(cudaStream_t stream) { RFINJECT_FORWARD(cuStreamSynchronize(stream)); }
RFINJECT_CUDART cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  RFINJECT_FORWARD(cuStreamWaitEvent(stream, event, flags));
}
RFINJECT_CUDART cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned) {
  if (!UseDevice()) return Return(cudaErrorNoDevice);
  callback(stream, cudaSuccess, data);
  return cudaSuccess;
}
RFINJECT_CUDART cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  RFINJECT_FORWARD(cuLaunchHostFunc(stream, function, data));
}

RFINJECT_CUDART cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  RFINJECT_FORWARD(cuStreamBeginCapture(stream, static_cast<CUstreamCaptureMode>(mode)));
}
RFINJECT_CUDART cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  RFINJECT_FORWARD(cuStreamEndCapture(stream, graph));
}
RFINJECT_CUDART cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  RFINJECT_FORWARD(cuStreamIsCapturing(stream, reinterpret_cast<CUstreamCaptureStatus*>(status)));
}
RFINJECT_CUDART cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return Return(cuThreadExchangeStreamCaptureMode(reinterpret_cast<CUstreamCaptureMode*>(mode)));
}
#if CUDART_VERSION >= 13000
RFINJECT_CUDART cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                         cudaGraph_t* graph, const cudaGraphNode_t** tail,
                                         const cudaGraphEdgeData** edges, size_t* count) {
  RFINJECT_FORWARD(cuStreamGetCaptureInfo(stream, reinterpret_cast<CUstreamCaptureStatus*>(status),
                                          reinterpret_cast<cuuint64_t*>(id), graph, tail,
                                          reinterpret_cast<const CUgraphEdgeData**>(edges), count));
}
RFINJECT_CUDART cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* nodes,
                                                    const cudaGraphEdgeData* edges, size_t count, unsigned flags) {
  RFINJECT_FORWARD(cuStreamUpdateCaptureDependencies(stream, nodes, reinterpret_cast<const CUgraphEdgeData*>(edges),
                                                     count, flags));
}
RFINJECT_CUDART cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* tail,
                                              const cudaGraphEdgeData* edges, size_t count,
                                              cudaStreamCaptureMode mode) {
  RFINJECT_FORWARD(cuStreamBeginCaptureToGraph(stream, graph, tail, reinterpret_cast<const CUgraphEdgeData*>(edges),
                                               count, static_cast<CUstreamCaptureMode>(mode)));
}
#else
RFINJECT_CUDART cudaStreamGetCaptureInfo_v2(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                            unsigned long long* id, cudaGraph_t* graph, const cudaGraphNode_t** tail,
                                            size_t* count) {
  RFINJECT_FORWARD(cuStreamGetCaptureInfo(stream, reinterpret_cast<CUstreamCaptureStatus*>(status),
                                          reinterpret_cast<cuuint64_t*>(id), graph, tail, nullptr, count));
}
#if CUDART_VERSION < 12000
RFINJECT_CUDART cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                         unsigned long long* id) {
  return cudaStreamGetCaptureInfo_v2(stream, status, id, nullptr, nullptr, nullptr);
}
#endif
#endif

RFINJECT_CUDART cudaEventCreate(cudaEvent_t* event) { RFINJECT_FORWARD(cuEventCreate(event, 0)); }
RFINJECT_CUDART cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  RFINJECT_FORWARD(cuEventCreate(event, flags));
}
RFINJECT_CUDART cudaEventDestroy(cudaEvent_t event) { RFINJECT_FORWARD(cuEventDestroy(event)); }
RFINJECT_CUDART cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  RFINJECT_FORWARD(cuEventElapsedTime(milliseconds, from, to));
}
RFINJECT_CUDART cudaEventQuery(cudaEvent_t event) { RFINJECT_FORWARD(cuEventQuery(event)); }
RFINJECT_CUDART cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  RFINJECT_FORWARD(cuEventRecord(event, stream));
}
RFINJECT_CUDART cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  RFINJECT_FORWARD(cuEventRecordWithFlags(event, stream, flags));
}
RFINJECT_CUDART cudaEventSynchronize(cudaEvent_t event) { RFINJECT_FORWARD(cuEventSynchronize(event)); }

#if CUDART_VERSION >= 12000
RFINJECT_CUDART cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  RFINJECT_FORWARD(cuGraphInstantiateWithFlags(exec, graph, flags));
}
#else
RFINJECT_CUDART cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, cudaGraphNode_t*, char*, size_t) {
  RFINJECT_FORWARD(cuGraphInstantiateWithFlags(exec, graph, 0));
}
#endif
RFINJECT_CUDART cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  RFINJECT_FORWARD(cuGraphInstantiateWithFlags(exec, graph, flags));
}
RFINJECT_CUDART cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  RFINJECT_FORWARD(cuGraphLaunch(exec, stream));
}
RFINJECT_CUDART cudaGraphDestroy(cudaGraph_t graph) { RFINJECT_FORWARD(cuGraphDestroy(graph)); }
RFINJECT_CUDART cudaGraphExecDestroy(cudaGraphExec_t exec) { RFINJECT_FORWARD(cuGraphExecDestroy(exec)); }
RFINJECT_CUDART cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  RFINJECT_FORWARD(cuGraphGetNodes(graph, nodes, count));
}
RFINJECT_CUDART cudaUserObjectCreate(cudaUserObject_t* object, void* data, cudaHostFn_t destroy, unsigned references,
                                     unsigned flags) {
  RFINJECT_FORWARD(cuUserObjectCreate(object, data, destroy, references, flags));
}
RFINJECT_CUDART cudaUserObjectRelease(cudaUserObject_t object, unsigned count) {
  RFINJECT_FORWARD(cuUserObjectRelease(object, count));
}
RFINJECT_CUDART cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count,
                                          unsigned flags) {
  RFINJECT_FORWARD(cuGraphRetainUserObject(graph, object, count, flags));
}
