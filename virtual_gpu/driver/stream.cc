// Streams, events and what a stream records instead of doing it (capture).
//
// Work is done when it is submitted, but counts as finished only when the board's clock says so: a query before that
// answers "not ready", and a call that waits moves the clock forward instead of losing time.
#include <cupti.h>

#include <algorithm>
#include <set>

#include "virtual_gpu/driver/state.h"

using namespace rfinject::virtual_gpu;

namespace {

std::set<CUstream>& Streams() {
  static auto* const streams = new std::set<CUstream>;
  return *streams;
}

thread_local CUstreamCaptureMode t_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

CUresult NewStream(CUstream* stream, unsigned flags, int priority) {
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *stream = new CUstream_st;
  (*stream)->context = Current();
  (*stream)->flags = flags;
  (*stream)->priority = priority;
  (*stream)->id = NewId();
  const Lock lock(StateLock());
  Streams().insert(*stream);
  return CUDA_SUCCESS;
}

// Asking a captured stream whether it is done spoils the capture, as CUDA's documentation of stream capture says.
bool Spoil(CUstream stream) {
  if (stream->recording == nullptr) return false;
  stream->recording->spoilt = true;
  return true;
}

CUstreamCaptureStatus Status(CUstream stream) {
  if (stream->recording == nullptr) return CU_STREAM_CAPTURE_STATUS_NONE;
  return stream->recording->spoilt ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUresult CaptureInfo(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                     const CUgraphNode** tail, const CUgraphEdgeData** edges, size_t* count) {
  CUstream stream = RealStream(handle);
  const Lock lock(StateLock());
  *status = Status(stream);
  if (edges != nullptr) *edges = nullptr;
  if (stream->recording == nullptr) {
    if (id != nullptr) *id = 0;
    if (count != nullptr) *count = 0;
    return CUDA_SUCCESS;
  }
  if (id != nullptr) *id = stream->recording->id;
  if (graph != nullptr) *graph = stream->recording->graph;
  if (tail != nullptr) *tail = stream->tail.data();
  if (count != nullptr) *count = stream->tail.size();
  return CUDA_SUCCESS;
}

CUresult UpdateTail(CUstream handle, CUgraphNode* nodes, size_t count, unsigned flags) {
  CUstream stream = RealStream(handle);
  const Lock lock(StateLock());
  if (stream->recording == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) stream->tail.clear();
  stream->tail.insert(stream->tail.end(), nodes, nodes + count);
  return CUDA_SUCCESS;
}

CUresult BeginCapture(CUstream stream, CUgraph graph, CUstreamCaptureMode mode) {
  if (RealStream(stream) != stream) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;  // the default streams cannot
  const Lock lock(StateLock());
  if (stream->recording != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  auto recording = std::make_shared<Recording>();
  recording->id = NewId();
  recording->graph = graph != nullptr ? graph : new CUgraph_st;
  recording->origin = stream;
  recording->mode = mode;
  stream->recording = std::move(recording);
  stream->tail.clear();
  CountCaptures(1);
  return CUDA_SUCCESS;
}

CUresult RecordEvent(CUevent event, CUstream handle) {
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  CUstream stream = RealStream(handle);
  const Lock lock(StateLock());
  event->recorded = true;
  event->at = std::max(stream->busy_until, ClockNow());
  event->recording = stream->recording;
  event->tail = stream->tail;
  return CUDA_SUCCESS;
}

CUresult ElapsedTime(float* milliseconds, CUevent from, CUevent to) {
  if (from == nullptr || to == nullptr || !from->recorded || !to->recorded) return CUDA_ERROR_INVALID_HANDLE;
  if (to->at > ClockNow() || from->at > ClockNow()) return CUDA_ERROR_NOT_READY;
  return Set(milliseconds, static_cast<float>((static_cast<double>(to->at) - static_cast<double>(from->at)) * 1e-6));
}

}  // namespace

namespace rfinject::virtual_gpu {

CUgraphNode Capture(CUstream stream, CUgraphNodeType type) {
  const Lock lock(StateLock());
  CUgraph graph = stream->recording->graph;
  graph->nodes.push_back(std::make_unique<CUgraphNode_st>());
  CUgraphNode node = graph->nodes.back().get();
  node->type = type;
  node->cost = NewNodeCost();
  stream->tail = {node};
  TellNode(RFINJECT_VIRTUAL_NODE_CREATED, graph, node);
  return node;
}

bool SpoilCaptures() {
  if (t_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  const Lock lock(StateLock());
  bool any = false;
  for (CUstream stream : Streams()) {
    if (stream->recording == nullptr || stream->recording->mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
    any = Spoil(stream);
  }
  return any;
}

}  // namespace rfinject::virtual_gpu

RFINJECT_CUDA cuStreamCreate(CUstream* stream, unsigned flags) { return NewStream(stream, flags, 0); }
RFINJECT_CUDA cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  return NewStream(stream, flags, priority);
}
RFINJECT_CUDA cuStreamDestroy(CUstream stream) {
  if (RealStream(stream) != stream) return CUDA_ERROR_INVALID_HANDLE;
  const Lock lock(StateLock());
  // The object stays: an event or a thread may still hold the handle, and there are few streams in a program.
  Streams().erase(stream);
  return CUDA_SUCCESS;
}
RFINJECT_CUDA cuStreamQuery(CUstream handle) {
  CUstream stream = RealStream(handle);
  const Lock lock(StateLock());
  if (Spoil(stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return stream->busy_until <= ClockNow() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
RFINJECT_CUDA cuStreamSynchronize(CUstream handle) {
  CUstream stream = RealStream(handle);
  const Lock lock(StateLock());
  if (Spoil(stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  WaitUntil(stream->busy_until);
  return CUDA_SUCCESS;
}
RFINJECT_CUDA cuCtxSynchronize() {
  if (SpoilCaptures()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const Lock lock(StateLock());
  uint64_t last = RealStream(nullptr)->busy_until;
  for (CUstream stream : Streams()) {
    if (stream->context == Current()) last = std::max(last, stream->busy_until);
  }
  WaitUntil(last);
  return CUDA_SUCCESS;
}
RFINJECT_CUDA cuStreamGetPriority(CUstream stream, int* priority) {
  return Set(priority, RealStream(stream)->priority);
}
RFINJECT_CUDA cuStreamGetFlags(CUstream stream, unsigned* flags) { return Set(flags, RealStream(stream)->flags); }
RFINJECT_CUDA cuStreamGetId(CUstream stream, unsigned long long* id) { return Set(id, RealStream(stream)->id); }
RFINJECT_CUDA cuStreamGetCtx(CUstream stream, CUcontext* context) {
  return Set(context, RealStream(stream)->context);
}
RFINJECT_CUDA cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* data, unsigned) {
  callback(stream, CUDA_SUCCESS, data);
  return CUDA_SUCCESS;
}
RFINJECT_CUDA cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
  CUstream stream = RealStream(handle);
  if (stream->recording != nullptr) {
    CUgraphNode node = Capture(stream, CU_GRAPH_NODE_TYPE_HOST);
    node->host = function;
    node->host_data = data;
    return CUDA_SUCCESS;
  }
  function(data);
  return CUDA_SUCCESS;
}
// PyTorch 2.6 looks for the name without a suffix, which is that of the first form; the arguments are the same.
#undef cuStreamWriteValue32
RFINJECT_CUDA cuStreamWriteValue32_v2(CUstream, CUdeviceptr address, cuuint32_t value, unsigned) {
  FillBytes(Pointer(address), value, sizeof value, 1);
  return CUDA_SUCCESS;
}
RFINJECT_CUDA cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
  return cuStreamWriteValue32_v2(stream, address, value, flags);
}

RFINJECT_CUDA cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  return Traced("cuStreamBeginCapture_v2", cuStreamBeginCapture_v2_params{stream, mode}, nullptr,
                [&] { return BeginCapture(stream, nullptr, mode); });
}
RFINJECT_CUDA cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* tail,
                                          const CUgraphEdgeData* edges, size_t count, CUstreamCaptureMode mode) {
  const cuStreamBeginCaptureToGraph_params parameters = {stream, graph, tail, edges, count, mode};
  return Traced("cuStreamBeginCaptureToGraph", parameters, nullptr, [&] {
    const CUresult result = BeginCapture(stream, graph, mode);
    if (result == CUDA_SUCCESS) stream->tail.assign(tail, tail + count);
    return result;
  });
}

namespace {

CUresult EndCapture(CUstream stream, CUgraph* graph) {
  const Lock lock(StateLock());
  if (RealStream(stream) != stream || stream->recording == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  const std::shared_ptr<Recording> recording = stream->recording;
  for (CUstream other : Streams()) {
    if (other->recording != recording) continue;
    other->recording.reset();
    other->tail.clear();
  }
  CountCaptures(-1);
  *graph = recording->spoilt ? nullptr : recording->graph;
  return recording->spoilt ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
}

}  // namespace

RFINJECT_CUDA cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return Traced("cuStreamEndCapture", cuStreamEndCapture_params{stream, graph}, nullptr,
                [&] { return EndCapture(stream, graph); });
}
RFINJECT_CUDA cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return Set(status, Status(RealStream(stream)));
}
// These are two generations of one function; the runtime of CUDA 12 calls the first, that of CUDA 13 the second.
#undef cuStreamGetCaptureInfo
#undef cuStreamUpdateCaptureDependencies
RFINJECT_CUDA cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                        CUgraph* graph, const CUgraphNode** tail, size_t* count) {
  return CaptureInfo(stream, status, id, graph, tail, nullptr, count);
}
RFINJECT_CUDA cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                        CUgraph* graph, const CUgraphNode** tail, const CUgraphEdgeData** edges,
                                        size_t* count) {
  return CaptureInfo(stream, status, id, graph, tail, edges, count);
}
RFINJECT_CUDA cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* nodes, size_t count, unsigned flags) {
  return UpdateTail(stream, nodes, count, flags);
}
RFINJECT_CUDA cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode* nodes, const CUgraphEdgeData*,
                                                   size_t count, unsigned flags) {
  return UpdateTail(stream, nodes, count, flags);
}
RFINJECT_CUDA cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  std::swap(*mode, t_mode);
  return CUDA_SUCCESS;
}

RFINJECT_CUDA cuEventCreate(CUevent* event, unsigned) {
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return Set(event, new CUevent_st);
}
RFINJECT_CUDA cuEventDestroy(CUevent event) {
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  delete event;
  return CUDA_SUCCESS;
}
RFINJECT_CUDA cuEventRecord(CUevent event, CUstream stream) { return RecordEvent(event, stream); }
RFINJECT_CUDA cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned) { return RecordEvent(event, stream); }
RFINJECT_CUDA cuEventQuery(CUevent event) {
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return !event->recorded || event->at <= ClockNow() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
RFINJECT_CUDA cuEventSynchronize(CUevent event) {
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (event->recorded) WaitUntil(event->at);
  return CUDA_SUCCESS;
}
RFINJECT_CUDA cuStreamWaitEvent(CUstream handle, CUevent event, unsigned) {
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  CUstream stream = RealStream(handle);
  const Lock lock(StateLock());
  if (event->recording != nullptr && event->recording->origin->recording == event->recording) {
    // The stream joins the capture that the event belongs to.
    if (stream->recording != nullptr && stream->recording != event->recording) {
      return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    stream->recording = event->recording;
    for (CUgraphNode node : event->tail) {
      if (std::find(stream->tail.begin(), stream->tail.end(), node) == stream->tail.end())
        stream->tail.push_back(node);
    }
    return CUDA_SUCCESS;
  }
  stream->busy_until = std::max(stream->busy_until, event->at);
  return CUDA_SUCCESS;
}
#undef cuEventElapsedTime
RFINJECT_CUDA cuEventElapsedTime(float* milliseconds, CUevent from, CUevent to) {
  return ElapsedTime(milliseconds, from, to);
}
RFINJECT_CUDA cuEventElapsedTime_v2(float* milliseconds, CUevent from, CUevent to) {
  return ElapsedTime(milliseconds, from, to);
}
