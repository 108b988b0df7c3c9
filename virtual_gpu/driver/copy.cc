// Copies and fills, as a stream does them: the driver's calls, and how long each takes the device. Which bytes there
// are to copy is memory.cc's business.
#include <cupti.h>
#include <string.h>

#include <set>
#include <string>

#include "virtual_gpu/driver/state.h"
#include "virtual_gpu/virtual_gpu.h"

using namespace rfinject::virtual_gpu;

namespace {

// What an operator reads of its own kernels' results (rfinject_virtual_gpu_answer).
constinit thread_local bool t_answers = false;
constinit thread_local int64_t t_answer = 0;

// Asks the observers where in the program this thread is. Returns whether one of them knows.
bool FindPlace(char* text, size_t size) {
  for (int i = 0; const rfinject_virtual_observer* observer = rfinject_virtual_gpu_observer(i); ++i) {
    if (observer->place != nullptr && observer->place(text, size) != 0) return true;
  }
  return false;
}

// Says that the program reads what was not computed, once for each of its lines, up to a number of lines.
void SayZeros() {
  if (Hidden()) return;
  constexpr int kLines = 8;
  const char* const advice =
      TheBoard().computes ? " (docs/use/VIRTUAL_GPU.md)" : " (docs/use/VIRTUAL_GPU.md; --values all computes them)";
  char place[256] = "";
  if (!FindPlace(place, sizeof place)) {
    SayOnce(std::string("the program reads results that the virtual GPU did not compute: they are zeros") + advice);
    return;
  }
  static auto* const said = new std::set<std::string>;
  {
    const Lock lock(StateLock());
    if (said->size() > kLines || !said->insert(place).second) return;
    if (said->size() > kLines) strcpy(place, "more of the program");
  }
  SayOnce(std::string(place) + " reads results that the virtual GPU did not compute: they are zeros" + advice);
}

CUresult Copy(void* to, const void* from, size_t bytes, CUstream stream) {
  if (bytes == 0) return CUDA_SUCCESS;
  if (to == nullptr || from == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUstream real = RealStream(stream);
  if (real->recording != nullptr) {
    CUgraphNode node = Capture(real, CU_GRAPH_NODE_TYPE_MEMCPY);
    node->to = to;
    node->from = from;
    node->bytes = bytes;
    return CUDA_SUCCESS;
  }
  const bool reads_results = !IsDeviceMemory(to) && HoldsResults(from, bytes);
  OccupyUntold(real, TransferNs(to, from, bytes));
  CopyBytes(to, from, bytes);
  if (!reads_results) return CUDA_SUCCESS;
  if (t_answers && (bytes == 1 || bytes == sizeof(int32_t) || bytes == sizeof(int64_t))) {
    memcpy(to, &t_answer, bytes);
  } else {
    SayZeros();
  }
  return CUDA_SUCCESS;
}

// The forms without "Async" return when all is done.
CUresult CopyAndWait(void* to, const void* from, size_t bytes) {
  if (SpoilCaptures()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const CUresult result = Copy(to, from, bytes, nullptr);
  WaitUntil(RealStream(nullptr)->busy_until);
  return result;
}

CUresult Fill(CUdeviceptr address, unsigned value, size_t value_bytes, size_t count, CUstream stream) {
  CUstream real = RealStream(stream);
  if (real->recording != nullptr) {
    CUgraphNode node = Capture(real, CU_GRAPH_NODE_TYPE_MEMSET);
    node->to = Pointer(address);
    node->value = value;
    node->value_bytes = value_bytes;
    node->bytes = count;
    return CUDA_SUCCESS;
  }
  OccupyUntold(real, FillNs(count * value_bytes));
  FillBytes(Pointer(address), value, value_bytes, count);
  return CUDA_SUCCESS;
}

CUresult Copy2D(const CUDA_MEMCPY2D* copy, CUstream stream) {
  const auto* from =
      static_cast<const char*>(copy->srcMemoryType == CU_MEMORYTYPE_HOST ? copy->srcHost : Pointer(copy->srcDevice)) +
      copy->srcY * copy->srcPitch + copy->srcXInBytes;
  auto* to =
      static_cast<char*>(copy->dstMemoryType == CU_MEMORYTYPE_HOST ? copy->dstHost : Pointer(copy->dstDevice)) +
      copy->dstY * copy->dstPitch + copy->dstXInBytes;
  for (size_t row = 0; row < copy->Height; ++row) {
    const CUresult result = Copy(to + row * copy->dstPitch, from + row * copy->srcPitch, copy->WidthInBytes, stream);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace

namespace rfinject::virtual_gpu {

bool Answers() { return t_answers; }

uint64_t TransferNs(const void* to, const void* from, size_t bytes) {
  const bool both = IsDeviceMemory(to) && IsDeviceMemory(from);
  const Board& board = TheBoard();
  const double seconds = both ? 2 * static_cast<double>(bytes) / board.dram_bytes_per_s
                              : static_cast<double>(bytes) / board.pcie_bytes_per_s;
  return kCopyStartNs + static_cast<uint64_t>(seconds * 1e9);
}

uint64_t FillNs(size_t bytes) {
  return kLaunchNs + static_cast<uint64_t>(static_cast<double>(bytes) / TheBoard().dram_bytes_per_s * 1e9);
}

}  // namespace rfinject::virtual_gpu

RFINJECT_CUDA cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return Traced("cuMemcpy", cuMemcpy_params{to, from, bytes}, nullptr,
                [&] { return CopyAndWait(Pointer(to), Pointer(from), bytes); });
}
RFINJECT_CUDA cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t bytes) {
  return Traced("cuMemcpyHtoD_v2", cuMemcpyHtoD_v2_params{to, from, bytes}, nullptr,
                [&] { return CopyAndWait(Pointer(to), from, bytes); });
}
RFINJECT_CUDA cuMemcpyDtoH(void* to, CUdeviceptr from, size_t bytes) {
  return Traced("cuMemcpyDtoH_v2", cuMemcpyDtoH_v2_params{to, from, bytes}, nullptr,
                [&] { return CopyAndWait(to, Pointer(from), bytes); });
}
RFINJECT_CUDA cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return Traced("cuMemcpyDtoD_v2", cuMemcpyDtoD_v2_params{to, from, bytes}, nullptr,
                [&] { return CopyAndWait(Pointer(to), Pointer(from), bytes); });
}
RFINJECT_CUDA cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return Traced("cuMemcpyAsync", cuMemcpyAsync_params{to, from, bytes, stream}, nullptr,
                [&] { return Copy(Pointer(to), Pointer(from), bytes, stream); });
}
RFINJECT_CUDA cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return Traced("cuMemcpyHtoDAsync_v2", cuMemcpyHtoDAsync_v2_params{to, from, bytes, stream}, nullptr,
                [&] { return Copy(Pointer(to), from, bytes, stream); });
}
RFINJECT_CUDA cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return Traced("cuMemcpyDtoHAsync_v2", cuMemcpyDtoHAsync_v2_params{to, from, bytes, stream}, nullptr,
                [&] { return Copy(to, Pointer(from), bytes, stream); });
}
RFINJECT_CUDA cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return Traced("cuMemcpyDtoDAsync_v2", cuMemcpyDtoDAsync_v2_params{to, from, bytes, stream}, nullptr,
                [&] { return Copy(Pointer(to), Pointer(from), bytes, stream); });
}
RFINJECT_CUDA cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                size_t bytes, CUstream stream) {
  return Traced("cuMemcpyPeerAsync", cuMemcpyPeerAsync_params{to, to_context, from, from_context, bytes, stream},
                nullptr, [&] { return Copy(Pointer(to), Pointer(from), bytes, stream); });
}
RFINJECT_CUDA cuMemcpy2DAsync(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return Traced("cuMemcpy2DAsync_v2", cuMemcpy2DAsync_v2_params{copy, stream}, nullptr,
                [&] { return Copy2D(copy, stream); });
}
RFINJECT_CUDA cuMemcpy2D(const CUDA_MEMCPY2D* copy) {
  return Traced("cuMemcpy2D_v2", cuMemcpy2D_v2_params{copy}, nullptr, [&] {
    const CUresult result = Copy2D(copy, nullptr);
    WaitUntil(RealStream(nullptr)->busy_until);
    return result;
  });
}

RFINJECT_CUDA cuMemsetD8(CUdeviceptr to, unsigned char value, size_t count) {
  return Traced("cuMemsetD8_v2", cuMemsetD8_v2_params{to, value, count}, nullptr,
                [&] { return Fill(to, value, 1, count, nullptr); });
}
RFINJECT_CUDA cuMemsetD16(CUdeviceptr to, unsigned short value, size_t count) {
  return Traced("cuMemsetD16_v2", cuMemsetD16_v2_params{to, value, count}, nullptr,
                [&] { return Fill(to, value, 2, count, nullptr); });
}
RFINJECT_CUDA cuMemsetD32(CUdeviceptr to, unsigned value, size_t count) {
  return Traced("cuMemsetD32_v2", cuMemsetD32_v2_params{to, value, count}, nullptr,
                [&] { return Fill(to, value, 4, count, nullptr); });
}
RFINJECT_CUDA cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return Traced("cuMemsetD8Async", cuMemsetD8Async_params{to, value, count, stream}, nullptr,
                [&] { return Fill(to, value, 1, count, stream); });
}
RFINJECT_CUDA cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  return Traced("cuMemsetD16Async", cuMemsetD16Async_params{to, value, count, stream}, nullptr,
                [&] { return Fill(to, value, 2, count, stream); });
}
RFINJECT_CUDA cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
  return Traced("cuMemsetD32Async", cuMemsetD32Async_params{to, value, count, stream}, nullptr,
                [&] { return Fill(to, value, 4, count, stream); });
}

RFINJECT_DOOR void rfinject_virtual_gpu_answer(const int64_t* value) {
  t_answers = value != nullptr;
  if (value != nullptr) t_answer = *value;
}

RFINJECT_DOOR int rfinject_virtual_gpu_answered(int64_t* value) {
  if (t_answers) *value = t_answer;
  return t_answers ? 1 : 0;
}
