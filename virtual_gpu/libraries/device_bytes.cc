#include "virtual_gpu/libraries/device_bytes.h"

#include <cuda.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>

#include "virtual_gpu/virtual_gpu.h"

namespace rfinject::virtual_gpu {
namespace {

// A run of bytes: where it begins, how long it is, and then its bytes.
struct Run {
  uint64_t offset, bytes;
};

// Calls `visit(offset, bytes of the run)` for every run. False for a damaged text.
template <typename Visit>
bool ForRuns(std::string_view packed, size_t bytes, const Visit& visit) {
  while (!packed.empty()) {
    Run run;
    if (packed.size() < sizeof run) return false;
    memcpy(&run, packed.data(), sizeof run);
    packed.remove_prefix(sizeof run);
    if (run.bytes > packed.size() || run.offset > bytes || run.bytes > bytes - run.offset) return false;
    visit(static_cast<size_t>(run.offset), packed.substr(0, run.bytes));
    packed.remove_prefix(run.bytes);
  }
  return true;
}

}  // namespace

std::string PackDeviceBytes(const void* device, size_t bytes) {
  const auto begin = reinterpret_cast<uint64_t>(device);
  const size_t most = rfinject_virtual_gpu_computes() != 0 ? SIZE_MAX : kMostBytesCarried;
  std::string packed;
  size_t length = 0;
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t at = rfinject_virtual_gpu_written(begin + done, bytes - done, &length);
    if (at == 0) break;
    done = at - begin + length;
    const auto* first = reinterpret_cast<const char*>(at);
    if (std::all_of(first, first + length, [](char byte) { return byte == 0; })) continue;
    if (length > most - packed.size()) return {};
    const Run run = {at - begin, length};
    packed.append(reinterpret_cast<const char*>(&run), sizeof run);
    packed.append(first, length);
  }
  return packed;
}

bool UnpackDeviceBytes(std::string_view packed, void* device, size_t bytes) {
  const auto begin = reinterpret_cast<CUdeviceptr>(device);
  rfinject_virtual_gpu_clear(begin, bytes);
  return ForRuns(packed, bytes, [begin](size_t offset, std::string_view run) {
    cuMemcpyHtoD(begin + offset, run.data(), run.size());
  });
}

bool UnpackToHost(std::string_view packed, char* host, size_t bytes) {
  return ForRuns(packed, bytes,
                 [host](size_t offset, std::string_view run) { memcpy(host + offset, run.data(), run.size()); });
}

bool IsZeros(std::string_view packed) { return packed.empty(); }

}  // namespace rfinject::virtual_gpu
