// NCCL for ranks that all have the same: no byte goes from one process to another.
//
// What a rank would receive is what it sends itself: a gather gives the rank's own part in every place, a reduction
// its own value (a sum is not multiplied). Programs that compare what the ranks hold, as DistributedDataParallel does
// with the shapes of its parameters, find them equal. Every collective launches one kernel.
#include <nccl.h>
#include <string.h>

#include <atomic>

#include "virtual_gpu/libraries/launch.h"

using namespace rfinject::virtual_gpu;

struct ncclComm {
  int rank = 0, ranks = 1, device = 0;
};

namespace {

size_t Bytes(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
    case ncclFloat8e4m3:
    case ncclFloat8e5m2:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    default:
      return 4;
  }
}

void Copy(void* to, const void* from, size_t bytes, CUstream stream) {
  if (to == from || bytes == 0) return;
  cuMemcpyDtoDAsync(reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from), bytes, stream);
}

// NCCL's kernels have a block a channel, of which there are a few dozen at most.
ncclResult_t Launch(const char* name, CUstream stream) {
  LaunchStandin(std::string("standin_ncclDevKernel_") + name, {.blocks = 24, .threads = 512}, stream);
  return ncclSuccess;
}

ncclResult_t NewComm(ncclComm_t* comm, int ranks, int rank) {
  CUdevice device = 0;
  cuCtxGetDevice(&device);
  *comm = new ncclComm{rank, ranks, device};
  return ncclSuccess;
}

const char* At(const void* base, size_t offset) { return static_cast<const char*>(base) + offset; }
char* At(void* base, size_t offset) { return static_cast<char*>(base) + offset; }

}  // namespace

RFINJECT_STANDIN ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
RFINJECT_STANDIN const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclSuccess ? "no error" : "the virtual GPU's NCCL cannot do this";
}
RFINJECT_STANDIN const char* ncclGetLastError(ncclComm_t) { return ""; }
RFINJECT_STANDIN ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<unsigned> next{1};
  const unsigned number = next.fetch_add(1);
  memset(id, 0, sizeof *id);
  memcpy(id, &number, sizeof number);
  return ncclSuccess;
}
RFINJECT_STANDIN ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId, int rank) {
  return NewComm(comm, ranks, rank);
}
RFINJECT_STANDIN ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId, int rank,
                                                     ncclConfig_t*) {
  return NewComm(comm, ranks, rank);
}
RFINJECT_STANDIN ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int ranks, int rank, int, ncclUniqueId*,
                                                       ncclConfig_t*) {
  return NewComm(comm, ranks, rank);
}
RFINJECT_STANDIN ncclResult_t ncclCommInitAll(ncclComm_t* comms, int count, const int* devices) {
  for (int i = 0; i < count; ++i) comms[i] = new ncclComm{i, count, devices != nullptr ? devices[i] : i};
  return ncclSuccess;
}
// Which ranks take part in the new communicator only the other ranks know; all of the old one is the guess.
RFINJECT_STANDIN ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int, ncclComm_t* made, ncclConfig_t*) {
  *made = color == NCCL_SPLIT_NOCOLOR ? nullptr : new ncclComm(*comm);
  return ncclSuccess;
}
RFINJECT_STANDIN ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }
RFINJECT_STANDIN ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  delete comm;
  return ncclSuccess;
}
RFINJECT_STANDIN ncclResult_t ncclCommAbort(ncclComm_t comm) {
  delete comm;
  return ncclSuccess;
}
RFINJECT_STANDIN ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* error) {
  *error = ncclSuccess;
  return ncclSuccess;
}
RFINJECT_STANDIN ncclResult_t ncclCommCount(const ncclComm_t comm, int* ranks) {
  *ranks = comm->ranks;
  return ncclSuccess;
}
RFINJECT_STANDIN ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  *rank = comm->rank;
  return ncclSuccess;
}
RFINJECT_STANDIN ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  *device = comm->device;
  return ncclSuccess;
}
RFINJECT_STANDIN ncclResult_t ncclCommRegister(const ncclComm_t, void*, size_t, void** handle) {
  *handle = nullptr;
  return ncclSuccess;
}
RFINJECT_STANDIN ncclResult_t ncclCommDeregister(const ncclComm_t, void*) { return ncclSuccess; }
RFINJECT_STANDIN ncclResult_t ncclGroupStart() { return ncclSuccess; }
RFINJECT_STANDIN ncclResult_t ncclGroupEnd() { return ncclSuccess; }

RFINJECT_STANDIN ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type,
                                            ncclRedOp_t, ncclComm_t, cudaStream_t stream) {
  Copy(receive, send, count * Bytes(type), stream);
  return Launch("AllReduce", stream);
}
RFINJECT_STANDIN ncclResult_t ncclReduce(const void* send, void* receive, size_t count, ncclDataType_t type,
                                         ncclRedOp_t, int root, ncclComm_t comm, cudaStream_t stream) {
  if (comm->rank == root) Copy(receive, send, count * Bytes(type), stream);
  return Launch("Reduce", stream);
}
RFINJECT_STANDIN ncclResult_t ncclBcast(void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t stream) {
  return Launch("Broadcast", stream);
}
RFINJECT_STANDIN ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type,
                                            int root, ncclComm_t comm, cudaStream_t stream) {
  if (comm->rank == root) Copy(receive, send, count * Bytes(type), stream);
  return Launch("Broadcast", stream);
}
RFINJECT_STANDIN ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type,
                                            ncclComm_t comm, cudaStream_t stream) {
  const size_t bytes = count * Bytes(type);
  for (int rank = 0; rank < comm->ranks; ++rank)
    Copy(At(receive, static_cast<size_t>(rank) * bytes), send, bytes, stream);
  return Launch("AllGather", stream);
}
RFINJECT_STANDIN ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type,
                                                ncclRedOp_t, ncclComm_t comm, cudaStream_t stream) {
  const size_t bytes = count * Bytes(type);
  Copy(receive, At(send, static_cast<size_t>(comm->rank) * bytes), bytes, stream);
  return Launch("ReduceScatter", stream);
}
RFINJECT_STANDIN ncclResult_t ncclSend(const void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t stream) {
  return Launch("SendRecv", stream);
}
RFINJECT_STANDIN ncclResult_t ncclRecv(void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t stream) {
  return Launch("SendRecv", stream);
}
RFINJECT_STANDIN ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* operation, void*, ncclDataType_t,
                                                       ncclScalarResidence_t, ncclComm_t) {
  *operation = ncclSum;
  return ncclSuccess;
}
RFINJECT_STANDIN ncclResult_t ncclRedOpDestroy(ncclRedOp_t, ncclComm_t) { return ncclSuccess; }
