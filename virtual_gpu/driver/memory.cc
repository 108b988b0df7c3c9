// Memory. A device's is address space of this process: reserved without being committed, and committed page by page
// where the host copies something in. What was not written reads as zeros, because the kernel gives a page of zeros
// for it; and copies within the device move only what was written, so that a model's activations cost nothing.
#include <cupti.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "virtual_gpu/driver/host_memory.h"
#include "virtual_gpu/driver/known.h"
#include "virtual_gpu/driver/state.h"
#include "virtual_gpu/driver/written.h"
#include "virtual_gpu/virtual_gpu.h"

using namespace rfinject::virtual_gpu;

namespace {

enum class Kind : uint8_t { kDevice, kHost, kManaged, kRegistered };

constexpr size_t kPage = WrittenPages::kPage;
// What the driver gives out begins here at multiples of this; torch relies on 512.
constexpr size_t kGranularity = 2 << 20;

struct Block {
  size_t bytes = 0;
  size_t mapped = 0;
  int device = 0;
  Kind kind = Kind::kDevice;
  unsigned flags = 0;
  uint64_t id = 0;
  WrittenPages written;  // by the host, or as a value that was computed
};

std::map<uintptr_t, Block>& Blocks() {
  static auto* const blocks = new std::map<uintptr_t, Block>;
  return *blocks;
}

// Memory that each device has given out.
std::map<int, uint64_t>& Used() {
  static auto* const used = new std::map<int, uint64_t>;
  return *used;
}

// What a context takes for itself, so that mem_get_info begins below the total, as it does on a real board.
constexpr uint64_t kContextBytes = 512ull << 20;

uint64_t FreeBytes(int device) {
  const uint64_t taken = Used()[device] + kContextBytes;
  const uint64_t total = TheBoard().memory_bytes;
  return taken < total ? total - taken : 0;
}

size_t RoundUp(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

void* Map(size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  // A page of 2 MiB for each byte that was written would commit what was not written.
  madvise(at, bytes, MADV_NOHUGEPAGE);
  return at;
}

std::map<uintptr_t, Block>::iterator Find(uintptr_t address) {
  auto& blocks = Blocks();
  auto at = blocks.upper_bound(address);
  if (at == blocks.begin()) return blocks.end();
  --at;
  return address < at->first + at->second.bytes ? at : blocks.end();
}

// Whether the host has that much more for what the program will write: where values are computed, that is everything.
bool HostHolds(size_t bytes) {
  if (!TheBoard().computes) return true;
  uint64_t wanted = bytes;
  for (const auto& [address, block] : Blocks()) {
    if (block.kind != Kind::kDevice) continue;
    wanted += block.bytes - std::min(block.bytes, block.written.Bytes());
  }
  if (wanted <= HostBytesLeft()) return true;
  SayOnce(
      "the virtual GPU's memory is the host's where values are computed, and the host has no more: the program gets "
      "an out-of-memory error (docs/use/VIRTUAL_GPU.md)");
  return false;
}

// New memory counts as known: a GPU's may hold anything. While an operator is told how much its kernels have found
// (rfinject_virtual_gpu_answer) it does not, because the operator reads that from new memory.
void NoteNew(uintptr_t address, size_t bytes) {
  if (TheBoard().computes && !Answers()) NoteKnown(address, bytes);
}

CUresult Allocate(int device, size_t bytes, Kind kind, unsigned flags, CUdeviceptr* address) {
  if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock(StateLock());
  // The device gives out whole pages of its own.
  const size_t mapped = RoundUp(bytes, bytes < (1 << 20) ? kPage : kGranularity);
  if (kind == Kind::kDevice && (mapped > FreeBytes(device) || !HostHolds(mapped))) return CUDA_ERROR_OUT_OF_MEMORY;
  void* at = Map(mapped);
  if (at == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  Blocks()[reinterpret_cast<uintptr_t>(at)] = {bytes, mapped, device, kind, flags, NewId(), {}};
  if (kind == Kind::kDevice) {
    Used()[device] += mapped;
    NoteNew(reinterpret_cast<uintptr_t>(at), bytes);
  }
  *address = reinterpret_cast<CUdeviceptr>(at);
  return CUDA_SUCCESS;
}

CUresult AllocateHere(size_t bytes, Kind kind, unsigned flags, CUdeviceptr* address) {
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return Allocate(Current()->device, bytes, kind, flags, address);
}

CUresult Free(CUdeviceptr address) {
  if (address == 0) return CUDA_SUCCESS;
  const Lock lock(StateLock());
  const auto at = Blocks().find(address);
  if (at == Blocks().end()) return CUDA_ERROR_INVALID_VALUE;
  if (at->second.kind == Kind::kRegistered) return CUDA_ERROR_INVALID_VALUE;
  if (at->second.kind == Kind::kDevice) Used()[at->second.device] -= at->second.mapped;
  ForgetKnown(address, at->second.bytes);
  munmap(reinterpret_cast<void*>(address), at->second.mapped);
  Blocks().erase(at);
  return CUDA_SUCCESS;
}

bool OnDevice(uintptr_t address) {
  const auto at = Find(address);
  return at != Blocks().end() && at->second.kind == Kind::kDevice;
}

// Calls `visit(begin, bytes, written)` for the parts of a device's memory from `address` on, as far as one block
// goes. Returns how many bytes that were.
template <typename Visit>
size_t ForParts(uintptr_t address, size_t bytes, const Visit& visit) {
  const auto at = Find(address);
  if (at == Blocks().end()) return 0;
  const auto& [begin, block] = *at;
  const size_t length = std::min(bytes, begin + block.bytes - address);
  block.written.ForParts(address - begin, length, [&visit, from = begin](size_t offset, size_t part, bool written) {
    visit(from + offset, part, written);
  });
  return length;
}

// Notes that the host wrote there.
void MarkWritten(uintptr_t address, size_t bytes) {
  while (bytes > 0) {
    const auto at = Find(address);
    if (at == Blocks().end() || at->second.kind != Kind::kDevice) return;
    const size_t length = std::min(bytes, at->first + at->second.bytes - address);
    at->second.written.Mark(address - at->first, length);
    address += length;
    bytes -= length;
  }
}

void ClearPages(uintptr_t begin, size_t bytes) {
  const uintptr_t first_page = RoundUp(begin, kPage);
  const uintptr_t last_page = (begin + bytes) / kPage * kPage;
  // To give a few pages back, and to get them again, takes longer than to fill them.
  constexpr uintptr_t kFewBytes = 32 << 10;
  if (first_page + kFewBytes >= last_page) {
    memset(reinterpret_cast<void*>(begin), 0, bytes);
    return;
  }
  memset(reinterpret_cast<void*>(begin), 0, first_page - begin);
  madvise(reinterpret_cast<void*>(first_page), last_page - first_page, MADV_DONTNEED);
  memset(reinterpret_cast<void*>(last_page), 0, begin + bytes - last_page);
}

// Makes what lies there zeros again, and gives the pages back. Every tensor that torch allocates goes through it.
void Clear(uintptr_t address, size_t bytes) {
  while (bytes > 0) {
    const auto at = Find(address);
    if (at == Blocks().end()) return;
    auto& [begin, block] = *at;
    const size_t offset = address - begin;
    const size_t length = std::min(bytes, block.bytes - offset);
    block.written.ForParts(offset, length, [from = begin](size_t part, size_t part_bytes, bool written) {
      if (written) ClearPages(from + part, part_bytes);
    });
    block.written.Forget(offset, length);
    address += length;
    bytes -= length;
  }
}

// Copies between two places in the memory of devices.
void CopyWithin(uintptr_t to, uintptr_t from, size_t bytes) {
  const bool overlap = to < from + bytes && from < to + bytes;
  if (overlap) {  // cudaMemcpy does not allow it: do what memmove does
    memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    MarkWritten(to, bytes);
    return;
  }
  while (bytes > 0) {
    const uintptr_t base = from;
    const size_t length = ForParts(from, bytes, [&](uintptr_t begin, size_t part, bool written) {
      const uintptr_t target = to + (begin - base);
      if (written) {
        memcpy(reinterpret_cast<void*>(target), reinterpret_cast<const void*>(begin), part);
        MarkWritten(target, part);
      } else {
        Clear(target, part);
      }
    });
    if (length == 0) return;
    from += length;
    to += length;
    bytes -= length;
  }
}

bool PointerAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  const Lock lock(StateLock());
  const auto at = Find(address);
  const bool known = at != Blocks().end();
  const Block* block = known ? &at->second : nullptr;
  const bool host = known && (block->kind == Kind::kHost || block->kind == Kind::kRegistered);
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: {
      CUcontext context = nullptr;
      if (known) cuDevicePrimaryCtxRetain(&context, block->device);
      *static_cast<CUcontext*>(value) = context;
      break;
    }
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(value) = !known                          ? 0
                                       : host                          ? CU_MEMORYTYPE_HOST
                                       : block->kind == Kind::kManaged ? CU_MEMORYTYPE_UNIFIED
                                                                       : CU_MEMORYTYPE_DEVICE;
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      *static_cast<CUdeviceptr*>(value) = known ? address : 0;
      break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      *static_cast<CUdeviceptr*>(value) = known && block->kind != Kind::kDevice ? address : 0;
      break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      *static_cast<unsigned long long*>(value) = known ? block->id : 0;
      break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *static_cast<unsigned*>(value) = known && block->kind == Kind::kManaged;
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(value) = known ? block->device : -2;
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<CUdeviceptr*>(value) = known ? at->first : 0;
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<size_t*>(value) = known ? block->bytes : 0;
      break;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      *static_cast<unsigned*>(value) = known;
      break;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      *static_cast<unsigned long long*>(value) = 0;
      break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      *static_cast<void**>(value) = nullptr;
      break;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      *static_cast<unsigned*>(value) = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
      break;
    default:
      *static_cast<unsigned*>(value) = 0;
  }
  return known;
}

// Physical memory of CUDA's virtual memory management, which torch's expandable segments use.
struct Physical {
  size_t bytes;
  int device;
};

}  // namespace

// Pools are the device's memory under another name; they keep nothing back.
struct CUmemPoolHandle_st {
  int device = 0;
  std::map<int, uint64_t> attributes;
};

namespace {

CUmemoryPool DefaultPool(int device) {
  static auto* const pools = new std::map<int, CUmemoryPool>;
  const Lock lock(StateLock());
  CUmemoryPool& pool = (*pools)[device];
  if (pool == nullptr) pool = new CUmemPoolHandle_st{device, {}};
  return pool;
}

// The attributes from RESERVED_MEM_CURRENT on are 64-bit counts, those before are flags.
bool IsFlag(CUmemPool_attribute attribute) { return attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES; }

}  // namespace

namespace rfinject::virtual_gpu {

CUresult AllocateOn(int device, size_t bytes, CUdeviceptr* address) {
  return Allocate(device, bytes, Kind::kDevice, 0, address);
}

bool IsDeviceMemory(const void* address) {
  const Lock lock(StateLock());
  return OnDevice(reinterpret_cast<uintptr_t>(address));
}

bool HoldsResults(const void* address, size_t bytes) {
  const Lock lock(StateLock());
  const auto at = reinterpret_cast<uintptr_t>(address);
  return OnDevice(at) && !IsKnown(at, bytes);
}

void CopyBytes(void* to, const void* from, size_t bytes) {
  const Lock lock(StateLock());
  const auto target = reinterpret_cast<uintptr_t>(to);
  const auto source = reinterpret_cast<uintptr_t>(from);
  if (OnDevice(target) && OnDevice(source)) {
    CopyWithin(target, source, bytes);
    CopyKnown(target, source, bytes);
    return;
  }
  memmove(to, from, bytes);
  MarkWritten(target, bytes);
  if (OnDevice(target)) NoteKnown(target, bytes);
}

void FillBytes(void* to, unsigned value, size_t value_bytes, size_t count) {
  const Lock lock(StateLock());
  const auto target = reinterpret_cast<uintptr_t>(to);
  if (OnDevice(target)) NoteKnown(target, count * value_bytes);
  if (value == 0 && OnDevice(target)) {
    Clear(target, count * value_bytes);
    return;
  }
  if (value_bytes == 1) {
    memset(to, static_cast<int>(value), count);
  } else if (value_bytes == 2) {
    std::fill_n(static_cast<uint16_t*>(to), count, static_cast<uint16_t>(value));
  } else {
    std::fill_n(static_cast<uint32_t*>(to), count, value);
  }
  MarkWritten(target, count * value_bytes);
}

}  // namespace rfinject::virtual_gpu

RFINJECT_CUDA cuMemAlloc(CUdeviceptr* address, size_t bytes) {
  return Traced("cuMemAlloc_v2", cuMemAlloc_v2_params{address, bytes}, nullptr,
                [&] { return AllocateHere(bytes, Kind::kDevice, 0, address); });
}
RFINJECT_CUDA cuMemFree(CUdeviceptr address) {
  return Traced("cuMemFree_v2", cuMemFree_v2_params{address}, nullptr, [&] { return Free(address); });
}
RFINJECT_CUDA cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned flags) {
  return AllocateHere(bytes, Kind::kManaged, flags, address);
}
RFINJECT_CUDA cuMemHostAlloc(void** address, size_t bytes, unsigned flags) {
  CUdeviceptr at = 0;
  const CUresult result = AllocateHere(std::max<size_t>(bytes, 1), Kind::kHost, flags, &at);
  *address = Pointer(at);
  return result;
}
RFINJECT_CUDA cuMemAllocHost(void** address, size_t bytes) { return cuMemHostAlloc(address, bytes, 0); }
RFINJECT_CUDA cuMemFreeHost(void* address) { return Free(reinterpret_cast<CUdeviceptr>(address)); }
RFINJECT_CUDA cuMemHostGetDevicePointer(CUdeviceptr* device, void* host, unsigned) {
  return Set(device, reinterpret_cast<CUdeviceptr>(host));
}
RFINJECT_CUDA cuMemHostGetFlags(unsigned* flags, void* host) {
  const Lock lock(StateLock());
  const auto at = Find(reinterpret_cast<uintptr_t>(host));
  if (at == Blocks().end()) return CUDA_ERROR_INVALID_VALUE;
  return Set(flags, at->second.flags);
}
RFINJECT_CUDA cuMemHostRegister(void* address, size_t bytes, unsigned flags) {
  if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock(StateLock());
  const auto at = reinterpret_cast<uintptr_t>(address);
  if (Find(at) != Blocks().end()) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  const int device = Current() != nullptr ? Current()->device : 0;
  Blocks()[at] = {bytes, bytes, device, Kind::kRegistered, flags, NewId(), {}};
  return CUDA_SUCCESS;
}
RFINJECT_CUDA cuMemHostUnregister(void* address) {
  const Lock lock(StateLock());
  const auto at = Blocks().find(reinterpret_cast<uintptr_t>(address));
  if (at == Blocks().end() || at->second.kind != Kind::kRegistered) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  Blocks().erase(at);
  return CUDA_SUCCESS;
}
RFINJECT_CUDA cuMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const Lock lock(StateLock());
  *free_bytes = FreeBytes(Current()->device);
  *total_bytes = TheBoard().memory_bytes;
  return CUDA_SUCCESS;
}
RFINJECT_CUDA cuMemGetAddressRange(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  const Lock lock(StateLock());
  const auto at = Find(address);
  if (at == Blocks().end()) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = at->first;
  if (bytes != nullptr) *bytes = at->second.bytes;
  return CUDA_SUCCESS;
}
RFINJECT_CUDA cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  return PointerAttribute(value, attribute, address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
RFINJECT_CUDA cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** values,
                                     CUdeviceptr address) {
  for (unsigned i = 0; i < count; ++i) PointerAttribute(values[i], attributes[i], address);
  return CUDA_SUCCESS;
}
RFINJECT_CUDA cuPointerSetAttribute(const void*, CUpointer_attribute, CUdeviceptr) { return CUDA_SUCCESS; }

RFINJECT_CUDA cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  return Set(pool, DefaultPool(device));
}
RFINJECT_CUDA cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) { return Set(pool, DefaultPool(device)); }
RFINJECT_CUDA cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  const Lock lock(StateLock());
  pool->attributes[attribute] =
      IsFlag(attribute) ? static_cast<uint64_t>(*static_cast<int*>(value)) : *static_cast<cuuint64_t*>(value);
  return CUDA_SUCCESS;
}
RFINJECT_CUDA cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  const Lock lock(StateLock());
  const auto at = pool->attributes.find(attribute);
  if (IsFlag(attribute)) {
    *static_cast<int*>(value) = at != pool->attributes.end() ? static_cast<int>(at->second) : 1;
  } else if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
    *static_cast<cuuint64_t*>(value) = at != pool->attributes.end() ? at->second : 0;
  } else {
    *static_cast<cuuint64_t*>(value) = Used()[pool->device];
  }
  return CUDA_SUCCESS;
}
RFINJECT_CUDA cuMemPoolSetAccess(CUmemoryPool, const CUmemAccessDesc*, size_t) { return CUDA_SUCCESS; }
RFINJECT_CUDA cuMemPoolTrimTo(CUmemoryPool, size_t) { return CUDA_SUCCESS; }
RFINJECT_CUDA cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream) {
  return AllocateHere(bytes, Kind::kDevice, 0, address);
}
RFINJECT_CUDA cuMemFreeAsync(CUdeviceptr address, CUstream) { return Free(address); }

RFINJECT_CUDA cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp*,
                                            CUmemAllocationGranularity_flags) {
  return Set(bytes, kGranularity);
}
RFINJECT_CUDA cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t, CUdeviceptr, unsigned long long) {
  // The range is aligned to the granularity; what lies before and behind it is given back.
  void* at = mmap(nullptr, bytes + kGranularity, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto begin = reinterpret_cast<uintptr_t>(at);
  const uintptr_t aligned = RoundUp(begin, kGranularity);
  if (aligned != begin) munmap(at, aligned - begin);
  munmap(Pointer(aligned + bytes), begin + kGranularity - aligned);
  *address = aligned;
  return CUDA_SUCCESS;
}
RFINJECT_CUDA cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  return munmap(Pointer(address), bytes) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
RFINJECT_CUDA cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp* properties,
                          unsigned long long flags) {
  return Traced("cuMemCreate", cuMemCreate_params{handle, bytes, properties, flags}, nullptr, [&] {
    const Lock lock(StateLock());
    const int device = properties->location.id;
    if (bytes > FreeBytes(device) || !HostHolds(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    Used()[device] += bytes;
    *handle = reinterpret_cast<CUmemGenericAllocationHandle>(new Physical{bytes, device});
    return CUDA_SUCCESS;
  });
}
RFINJECT_CUDA cuMemRelease(CUmemGenericAllocationHandle handle) {
  return Traced("cuMemRelease", cuMemRelease_params{handle}, nullptr, [&] {
    const Lock lock(StateLock());
    auto* physical = reinterpret_cast<Physical*>(handle);
    Used()[physical->device] -= physical->bytes;
    delete physical;
    return CUDA_SUCCESS;
  });
}
RFINJECT_CUDA cuMemMap(CUdeviceptr address, size_t bytes, size_t, CUmemGenericAllocationHandle handle,
                       unsigned long long) {
  const Lock lock(StateLock());
  if (mprotect(Pointer(address), bytes, PROT_READ | PROT_WRITE) != 0) return CUDA_ERROR_INVALID_VALUE;
  madvise(Pointer(address), bytes, MADV_NOHUGEPAGE);
  const int device = reinterpret_cast<Physical*>(handle)->device;
  Blocks()[address] = {bytes, bytes, device, Kind::kDevice, 0, NewId(), {}};
  NoteNew(address, bytes);
  return CUDA_SUCCESS;
}
RFINJECT_CUDA cuMemUnmap(CUdeviceptr address, size_t bytes) {
  const Lock lock(StateLock());
  ForgetKnown(address, bytes);
  madvise(Pointer(address), bytes, MADV_DONTNEED);
  mprotect(Pointer(address), bytes, PROT_NONE);
  auto& blocks = Blocks();
  blocks.erase(blocks.lower_bound(address), blocks.lower_bound(address + bytes));
  return CUDA_SUCCESS;
}
RFINJECT_CUDA cuMemSetAccess(CUdeviceptr, size_t, const CUmemAccessDesc*, size_t) { return CUDA_SUCCESS; }

RFINJECT_DOOR uint64_t rfinject_virtual_gpu_written(uint64_t address, size_t bytes, size_t* length) {
  const Lock lock(StateLock());
  uint64_t found = 0;
  *length = 0;
  while (bytes > 0) {
    const size_t passed = ForParts(address, bytes, [&](uintptr_t begin, size_t part, bool written) {
      if (!written) return;
      if (found == 0) found = begin;
      if (begin == found + *length) *length += part;
    });
    if (passed == 0 || found != 0) break;
    address += passed;
    bytes -= passed;
  }
  return found;
}
RFINJECT_DOOR void rfinject_virtual_gpu_clear(uint64_t address, size_t bytes) {
  const Lock lock(StateLock());
  Clear(address, bytes);
  ForgetKnown(address, bytes);
  NoteNew(address, bytes);
}

RFINJECT_DOOR int rfinject_virtual_gpu_known(uint64_t address, size_t bytes) {
  const Lock lock(StateLock());
  return IsKnown(address, bytes) ? 1 : 0;
}
RFINJECT_DOOR void rfinject_virtual_gpu_computed(uint64_t address, size_t bytes, int known) {
  const Lock lock(StateLock());
  if (!OnDevice(address)) return;
  MarkWritten(address, bytes);
  if (known != 0) {
    NoteKnown(address, bytes);
  } else {
    ForgetKnown(address, bytes);
  }
}
RFINJECT_DOOR void rfinject_virtual_gpu_changed(uint64_t address, size_t bytes) {
  if (!MayBeKnown(address, bytes)) return;
  const Lock lock(StateLock());
  ForgetKnown(address, bytes);
}
