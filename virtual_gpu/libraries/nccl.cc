// NCCL for ranks of one machine. What a rank's host wrote into its device's memory goes to the other ranks, as NCCL
// would carry it, so that what programs compare and agree on (sizes, seeds, flags, shapes) is right; results of
// kernels are zeros on every rank. Every collective launches one kernel.
//
// A call carries its values when it is made, and returns when all ranks have made it: ranks wait for each other on
// the host, where NCCL's kernels would do so on the GPU. The calls of a group are made together, at its end. A call
// that is captured carries nothing.
#include <fcntl.h>
#include <nccl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "virtual_gpu/libraries/device_bytes.h"
#include "virtual_gpu/libraries/launch.h"
#include "virtual_gpu/libraries/peers.h"
#include "virtual_gpu/libraries/reduce.h"
#include "virtual_gpu/tell.h"
#include "virtual_gpu/virtual_gpu.h"

using namespace rfinject::virtual_gpu;

struct ncclComm {
  std::unique_ptr<Peers> peers;
  int device = 0;
  uint32_t splits = 0;  // communicators that were made of this one, the same number on all ranks
};

#ifndef NCCL_SPLIT_NOCOLOR  // before NCCL 2.18, which splits nothing
#define NCCL_SPLIT_NOCOLOR -1
#endif

namespace {

enum class Kind : uint8_t {
  kAllReduce,
  kReduce,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kGather,
  kScatter,
  kSend,
  kReceive
};
constexpr const char* kNames[] = {"AllReduce", "Reduce", "Broadcast", "AllGather", "ReduceScatter",
                                  "AlltoAll",  "Gather", "Scatter",   "SendRecv",  "SendRecv"};

// As torch's own profiler names them.
constexpr const char* kWords[] = {"all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter",
                                  "all_to_all", "gather", "scatter",   "send",       "recv"};

// A call. `count` elements are what one rank has for one other: a gather's receiver gets as many from each.
struct Call {
  Kind kind;
  const void* send;
  void* receive;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t operation;
  int root;  // or the other rank of a send or receive
  ncclComm_t comm;
  CUstream stream;

  size_t bytes() const { return count * Bytes(type); }
  int rank() const { return comm->peers->rank(); }
  int ranks() const { return comm->peers->ranks(); }
  bool reduces() const { return kind == Kind::kAllReduce || kind == Kind::kReduce || kind == Kind::kReduceScatter; }
  bool pair() const { return kind == Kind::kSend || kind == Kind::kReceive; }
  // Whether this rank has something for another, or gets something from it.
  bool SendsTo(int peer) const {
    return kind == Kind::kSend ? peer == root : kind != Kind::kReceive && Carries(rank(), peer);
  }
  bool ReceivesFrom(int peer) const {
    return kind == Kind::kReceive ? peer == root : kind != Kind::kSend && Carries(peer, rank());
  }
  // What a rank has for itself needs no message, except in a send and a receive to itself, which are two calls.
  bool StaysHere(int peer) const { return peer == rank() && !pair(); }
  // Where in this rank's buffers the elements for the rank `to` begin.
  size_t SendOffset(int to) const {
    const bool parts = kind == Kind::kReduceScatter || kind == Kind::kAllToAll || kind == Kind::kScatter;
    return parts ? static_cast<size_t>(to) * bytes() : 0;
  }
  size_t ReceiveOffset(int from) const {
    const bool parts = kind == Kind::kAllGather || kind == Kind::kAllToAll || kind == Kind::kGather;
    return parts ? static_cast<size_t>(from) * bytes() : 0;
  }

 private:
  bool Carries(int from, int to) const {
    if (kind == Kind::kBroadcast || kind == Kind::kScatter) return from == root;
    if (kind == Kind::kReduce || kind == Kind::kGather) return to == root;
    return true;
  }
};

const char* At(const void* base, size_t offset) { return static_cast<const char*>(base) + offset; }
char* At(void* base, size_t offset) { return static_cast<char*>(base) + offset; }

// The last error on this thread. It is plain memory, because exit handlers may call when the thread's own objects are
// gone.
thread_local constinit char t_error[256] = {};

ncclResult_t Fail(const char* name, const std::string& why, ncclResult_t result) {
  snprintf(t_error, sizeof t_error, "the virtual GPU's NCCL: %s: %s", name, why.c_str());
  rfinject_virtual_gpu_say(t_error);
  return result;
}

bool IsCaptured(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void CopyOwn(const Call& call, int peer) {
  const char* from = At(call.send, call.SendOffset(peer));
  char* to = At(call.receive, call.ReceiveOffset(peer));
  if (from == to || call.bytes() == 0) return;
  cuMemcpyDtoDAsync(reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from), call.bytes(),
                    call.stream);
}

// Reduces the `parts` of all ranks to one.
bool WriteReduced(const Call& call, const std::vector<std::string>& parts) {
  bool zeros = true;
  for (const std::string& part : parts) zeros = zeros && IsZeros(part);
  if (zeros) return UnpackDeviceBytes({}, call.receive, call.bytes());
  std::string sum(call.bytes(), '\0');
  if (!UnpackToHost(parts[0], sum.data(), sum.size())) return false;
  for (size_t rank = 1; rank < parts.size(); ++rank) {
    std::string other(call.bytes(), '\0');
    if (!UnpackToHost(parts[rank], other.data(), other.size())) return false;
    Reduce(call.operation, call.type, call.count, sum.data(), other.data());
  }
  if (call.operation == ncclAvg) Average(call.type, call.count, call.ranks(), sum.data());
  return cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(call.receive), sum.data(), sum.size()) == CUDA_SUCCESS;
}

// What the call moves. Sends and receives of one group go both ways at once: the receives then cost nothing more.
void TellCollective(const Call& call, bool beside_sends) {
  const auto all = static_cast<uint64_t>(call.ranks());
  const bool root = call.rank() == call.root;
  uint64_t send = call.bytes(), receive = call.bytes();
  switch (call.kind) {
    case Kind::kAllReduce:
      break;
    case Kind::kReduce:
      if (!root) receive = 0;
      break;
    case Kind::kBroadcast:
      (root ? receive : send) = 0;
      break;
    case Kind::kAllGather:
      receive *= all;
      break;
    case Kind::kReduceScatter:
      send *= all;
      break;
    case Kind::kAllToAll:
      send *= all;
      receive *= all;
      break;
    case Kind::kGather:
      receive = root ? receive * all : 0;
      break;
    case Kind::kScatter:
      send = root ? send * all : 0;
      break;
    case Kind::kSend:
      receive = 0;
      break;
    case Kind::kReceive:
      send = 0;
      break;
  }
  rfinject_virtual_collective collective = {};
  collective.kind = kWords[static_cast<size_t>(call.kind)];
  collective.ranks = call.ranks();
  collective.send_bytes = send;
  collective.receive_bytes = receive;
  const bool by_root = call.kind == Kind::kGather || call.kind == Kind::kScatter;
  collective.bytes = by_root ? call.bytes() * all : send > receive ? send : receive;
  const bool stays = call.pair() && call.root == call.rank();
  if (stays || (beside_sends && call.kind == Kind::kReceive)) collective.bytes = 0;
  Tell<&rfinject_virtual_observer::collective>(&collective);
}

// The values of all calls, and then their kernels.
ncclResult_t RunCollective(const std::vector<Call>& calls) {
  std::vector<Outgoing> outgoing;
  std::vector<Awaited> awaited;
  std::vector<std::vector<std::string>> parts(calls.size());  // by call and rank; this rank's own as well
  for (size_t i = 0; i < calls.size(); ++i) {
    const Call& call = calls[i];
    parts[i].resize(static_cast<size_t>(call.ranks()));
    if (IsCaptured(call.stream)) continue;
    for (int peer = 0; peer < call.ranks(); ++peer) {
      const bool here = call.StaysHere(peer);
      std::string& part = parts[i][static_cast<size_t>(peer)];
      if (call.SendsTo(peer) && (!here || (call.reduces() && call.ranks() > 1))) {
        std::string packed = PackDeviceBytes(At(call.send, call.SendOffset(peer)), call.bytes());
        if (here) {
          part = std::move(packed);
        } else {
          outgoing.push_back({call.comm->peers.get(), peer, std::move(packed)});
        }
      }
      if (call.ReceivesFrom(peer) && !here) awaited.push_back({call.comm->peers.get(), peer, &part});
    }
  }
  if (const std::string why = Exchange(outgoing, awaited); !why.empty()) {
    return Fail(kNames[static_cast<size_t>(calls[0].kind)], why, ncclRemoteError);
  }
  bool sends = false;
  for (const Call& call : calls) sends = sends || call.kind == Kind::kSend;
  for (size_t i = 0; i < calls.size(); ++i) {
    const Call& call = calls[i];
    bool whole = true;
    rfinject_virtual_gpu_hide(1);  // NCCL's kernels move the bytes themselves
    for (int peer = 0; peer < call.ranks() && !IsCaptured(call.stream); ++peer) {
      if (!call.ReceivesFrom(peer)) continue;
      if (call.reduces() && call.ranks() > 1) {
        whole = WriteReduced(call, parts[i]);
        break;
      }
      if (call.StaysHere(peer)) {
        CopyOwn(call, peer);
      } else {
        whole = UnpackDeviceBytes(parts[i][static_cast<size_t>(peer)], At(call.receive, call.ReceiveOffset(peer)),
                                  call.bytes()) &&
                whole;
      }
    }
    rfinject_virtual_gpu_hide(0);
    const char* name = kNames[static_cast<size_t>(call.kind)];
    if (!whole) return Fail(name, "the ranks do not call the same function", ncclInvalidUsage);
    // NCCL's kernels have one block for each channel, and there are a few dozen channels at most.
    LaunchStandin(std::string("standin_ncclDevKernel_") + name, {.blocks = 24, .threads = 512}, call.stream);
    rfinject_virtual_gpu_carried_out();
    TellCollective(call, sends);
  }
  return ncclSuccess;
}

// The calls of the group that this thread has begun; null outside of one.
thread_local constinit std::vector<Call>* t_group = nullptr;
thread_local constinit int t_depth = 0;

ncclResult_t Submit(const Call& call) {
  if (call.comm == nullptr) return ncclInvalidArgument;
  if (t_depth == 0) return RunCollective({call});
  if (t_group == nullptr) t_group = new std::vector<Call>;
  t_group->push_back(call);
  return ncclSuccess;
}

// Makes a text of 128 random bits.
bool NewId(char (&text)[33]) {
  unsigned char bytes[16] = {};
  const int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  const bool read_all = fd >= 0 && read(fd, bytes, sizeof bytes) == static_cast<ssize_t>(sizeof bytes);
  if (fd >= 0) close(fd);
  for (size_t i = 0; i < sizeof bytes; ++i) snprintf(text + 2 * i, 3, "%02x", bytes[i]);
  return read_all;
}

ncclResult_t NewComm(ncclComm_t* comm, const std::string& id, int ranks, int rank) {
  if (ranks <= 0 || rank < 0 || rank >= ranks) return ncclInvalidArgument;
  CUdevice device = 0;
  cuCtxGetDevice(&device);
  auto made = std::make_unique<ncclComm>();
  made->peers = std::make_unique<Peers>(id, rank, ranks);
  made->device = device;
  if (const std::string why = made->peers->Listen(); !why.empty()) {
    return Fail("ncclCommInitRank", why, ncclSystemError);
  }
  *comm = made.release();
  return ncclSuccess;
}

std::string Text(const ncclUniqueId& id) { return {id.internal, strnlen(id.internal, 64)}; }

// Makes a text that is the same on every rank that has the same parts, and that fits into an address.
std::string Derived(const std::string& parent, uint32_t number, int color) {
  const std::string whole = parent + "/" + std::to_string(number) + "/" + std::to_string(color);
  uint64_t hash[2] = {0xcbf29ce484222325, 0x84222325cbf29ce4};  // FNV-1a, from two beginnings
  for (const char byte : whole) {
    for (uint64_t& value : hash) value = (value ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  }
  char text[40];
  snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hash[0]),
           static_cast<unsigned long long>(hash[1]));
  return text;
}

}  // namespace

RFINJECT_STANDIN ncclResult_t ncclGetVersion(int* version) { return Set(version, NCCL_VERSION_CODE); }
RFINJECT_STANDIN const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclSuccess ? "no error" : "the virtual GPU's NCCL cannot do this";
}
RFINJECT_STANDIN const char* ncclGetLastError(ncclComm_t) { return t_error; }
RFINJECT_STANDIN ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  memset(id, 0, sizeof *id);
  char text[33];
  if (!NewId(text)) return Fail("ncclGetUniqueId", "/dev/urandom cannot be read", ncclSystemError);
  memcpy(id->internal, text, sizeof text);
  return ncclSuccess;
}
RFINJECT_STANDIN ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  return NewComm(comm, Text(id), ranks, rank);
}
RFINJECT_STANDIN ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                                     ncclConfig_t*) {
  return NewComm(comm, Text(id), ranks, rank);
}
RFINJECT_STANDIN ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int ranks, int rank, int, ncclUniqueId* ids,
                                                       ncclConfig_t*) {
  return NewComm(comm, Text(ids[0]), ranks, rank);
}
RFINJECT_STANDIN ncclResult_t ncclCommInitAll(ncclComm_t* comms, int count, const int* devices) {
  char id[33];
  if (!NewId(id)) return Fail("ncclCommInitAll", "/dev/urandom cannot be read", ncclSystemError);
  for (int i = 0; i < count; ++i) {
    if (const ncclResult_t result = NewComm(&comms[i], id, count, i); result != ncclSuccess) return result;
    comms[i]->device = devices != nullptr ? devices[i] : i;
  }
  return ncclSuccess;
}
RFINJECT_STANDIN ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made, ncclConfig_t*) {
  struct Wish {
    int color, key;
  };
  Peers* peers = comm->peers.get();
  const Wish own = {color, key};
  std::vector<std::string> wishes(static_cast<size_t>(peers->ranks()));
  std::vector<Outgoing> outgoing;
  std::vector<Awaited> awaited;
  for (int peer = 0; peer < peers->ranks(); ++peer) {
    if (peer == peers->rank()) continue;
    outgoing.push_back({peers, peer, std::string(reinterpret_cast<const char*>(&own), sizeof own)});
    awaited.push_back({peers, peer, &wishes[static_cast<size_t>(peer)]});
  }
  if (const std::string why = Exchange(outgoing, awaited); !why.empty()) {
    return Fail("ncclCommSplit", why, ncclRemoteError);
  }
  const uint32_t number = comm->splits++;
  *made = nullptr;
  if (color == NCCL_SPLIT_NOCOLOR) return ncclSuccess;
  // The new ranks go by key, and among equal ones by the old ranks.
  int ranks = 1, rank = 0;
  for (int peer = 0; peer < peers->ranks(); ++peer) {
    const std::string& bytes = wishes[static_cast<size_t>(peer)];
    if (peer == peers->rank() || bytes.size() != sizeof(Wish)) continue;
    Wish wish;
    memcpy(&wish, bytes.data(), sizeof wish);
    if (wish.color != color) continue;
    ++ranks;
    if (wish.key < key || (wish.key == key && peer < peers->rank())) ++rank;
  }
  return NewComm(made, Derived(peers->id(), number, color), ranks, rank);
}
RFINJECT_STANDIN ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }
RFINJECT_STANDIN ncclResult_t ncclCommDestroy(ncclComm_t comm) { return Unmake(comm); }
// A watchdog calls this while another thread may wait for a rank that never comes. The communicator is kept, and the
// wait ends.
RFINJECT_STANDIN ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->peers->Stop();
  return ncclSuccess;
}
RFINJECT_STANDIN ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* error) {
  return Set(error, ncclSuccess);
}
RFINJECT_STANDIN ncclResult_t ncclCommCount(const ncclComm_t comm, int* ranks) {
  return Set(ranks, comm->peers->ranks());
}
RFINJECT_STANDIN ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  return Set(rank, comm->peers->rank());
}
RFINJECT_STANDIN ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  return Set(device, comm->device);
}
RFINJECT_STANDIN ncclResult_t ncclCommRegister(const ncclComm_t, void*, size_t, void** handle) {
  return Set(handle, nullptr);
}
RFINJECT_STANDIN ncclResult_t ncclCommDeregister(const ncclComm_t, void*) { return ncclSuccess; }
RFINJECT_STANDIN ncclResult_t ncclMemAlloc(void** pointer, size_t bytes) {
  return cuMemAlloc(reinterpret_cast<CUdeviceptr*>(pointer), bytes) == CUDA_SUCCESS ? ncclSuccess
                                                                                    : ncclUnhandledCudaError;
}
RFINJECT_STANDIN ncclResult_t ncclMemFree(void* pointer) {
  return cuMemFree(reinterpret_cast<CUdeviceptr>(pointer)) == CUDA_SUCCESS ? ncclSuccess : ncclInvalidArgument;
}
RFINJECT_STANDIN ncclResult_t ncclGroupStart() {
  ++t_depth;
  return ncclSuccess;
}
RFINJECT_STANDIN ncclResult_t ncclGroupEnd() {
  if (t_depth == 0) return ncclInvalidUsage;
  if (--t_depth > 0 || t_group == nullptr) return ncclSuccess;
  const std::unique_ptr<std::vector<Call>> calls(t_group);
  t_group = nullptr;
  return RunCollective(*calls);
}

RFINJECT_STANDIN ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type,
                                            ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  return Submit({Kind::kAllReduce, send, receive, count, type, operation, 0, comm, stream});
}
RFINJECT_STANDIN ncclResult_t ncclReduce(const void* send, void* receive, size_t count, ncclDataType_t type,
                                         ncclRedOp_t operation, int root, ncclComm_t comm, cudaStream_t stream) {
  return Submit({Kind::kReduce, send, receive, count, type, operation, root, comm, stream});
}
RFINJECT_STANDIN ncclResult_t ncclBcast(void* buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                                        cudaStream_t stream) {
  return Submit({Kind::kBroadcast, buffer, buffer, count, type, ncclSum, root, comm, stream});
}
RFINJECT_STANDIN ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type,
                                            int root, ncclComm_t comm, cudaStream_t stream) {
  return Submit({Kind::kBroadcast, send, receive, count, type, ncclSum, root, comm, stream});
}
RFINJECT_STANDIN ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type,
                                            ncclComm_t comm, cudaStream_t stream) {
  return Submit({Kind::kAllGather, send, receive, count, type, ncclSum, 0, comm, stream});
}
RFINJECT_STANDIN ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type,
                                                ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  return Submit({Kind::kReduceScatter, send, receive, count, type, operation, 0, comm, stream});
}
RFINJECT_STANDIN ncclResult_t ncclAlltoAll(const void* send, void* receive, size_t count, ncclDataType_t type,
                                           ncclComm_t comm, cudaStream_t stream) {
  return Submit({Kind::kAllToAll, send, receive, count, type, ncclSum, 0, comm, stream});
}
RFINJECT_STANDIN ncclResult_t ncclGather(const void* send, void* receive, size_t count, ncclDataType_t type, int root,
                                         ncclComm_t comm, cudaStream_t stream) {
  return Submit({Kind::kGather, send, receive, count, type, ncclSum, root, comm, stream});
}
RFINJECT_STANDIN ncclResult_t ncclScatter(const void* send, void* receive, size_t count, ncclDataType_t type,
                                          int root, ncclComm_t comm, cudaStream_t stream) {
  return Submit({Kind::kScatter, send, receive, count, type, ncclSum, root, comm, stream});
}
RFINJECT_STANDIN ncclResult_t ncclSend(const void* send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                                       cudaStream_t stream) {
  return Submit({Kind::kSend, send, nullptr, count, type, ncclSum, peer, comm, stream});
}
RFINJECT_STANDIN ncclResult_t ncclRecv(void* receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                                       cudaStream_t stream) {
  return Submit({Kind::kReceive, nullptr, receive, count, type, ncclSum, peer, comm, stream});
}
RFINJECT_STANDIN ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* operation, void*, ncclDataType_t,
                                                       ncclScalarResidence_t, ncclComm_t) {
  return Set(operation, ncclSum);
}
RFINJECT_STANDIN ncclResult_t ncclRedOpDestroy(ncclRedOp_t, ncclComm_t) { return ncclSuccess; }
