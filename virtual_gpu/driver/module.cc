// Modules, libraries and the kernels in them; how many blocks of one an SM holds; launches.
#include <cupti.h>
#include <stdio.h>

#include <algorithm>

#include "virtual_gpu/driver/state.h"
#include "virtual_gpu/virtual_gpu.h"

using namespace rfinject::virtual_gpu;

namespace {

// A library and a module, and a kernel and a function, are the same thing under two names.
CUlib_st* Library(CUmodule module) { return reinterpret_cast<CUlib_st*>(module); }
CUfunction Function(CUkernel kernel) { return reinterpret_cast<CUfunction>(kernel); }
const char* NameOf(CUfunction function) { return function != nullptr ? function->name.c_str() : nullptr; }

CUresult Load(const void* data, CUlib_st** library, bool by_program = false) {
  auto loaded = std::make_unique<CUlib_st>();
  const int sm = TheBoard().sm();
  if (!ReadImage(data, sm, &loaded->image)) return CUDA_ERROR_INVALID_SOURCE;
  if (loaded->image.other_chip && loaded->image.sm != 0) {
    char text[160];
    snprintf(
        text, sizeof text,
        "this program's kernels are not built for sm_%d, no such GPU could run it; the virtual one launches those "
        "of sm_%d",
        sm, loaded->image.sm);
    SayOnce(text);
  }
  loaded->by_program = by_program;
  *library = loaded.release();  // until the process ends: kernels' names are given away
  return CUDA_SUCCESS;
}

CUresult GetFunction(CUlib_st* library, const char* name, CUfunction* function) {
  const Lock lock(StateLock());
  auto& known = library->functions[name];
  if (known == nullptr) {
    KernelInfo info;
    if (library->image.parsed) {
      const auto at = library->image.kernels.find(name);
      if (at == library->image.kernels.end()) {
        library->functions.erase(name);
        return CUDA_ERROR_NOT_FOUND;
      }
      info = at->second;
    }
    known = std::make_unique<CUfunc_st>();
    known->name = name;
    known->library = library;
    known->info = std::move(info);
  }
  *function = known.get();
  return CUDA_SUCCESS;
}

// The size taken for a variable of an image that could not be read, which is not known; it is that of the whole
// constant memory.
constexpr size_t kUnknownVariableBytes = 64 << 10;

CUresult GetVariable(CUlib_st* library, const char* name, CUdeviceptr* address, size_t* bytes) {
  const Lock lock(StateLock());
  auto at = library->variables.find(name);
  if (at == library->variables.end()) {
    size_t size = kUnknownVariableBytes;
    if (library->image.parsed) {
      const auto known = library->image.variables.find(name);
      if (known == library->image.variables.end()) return CUDA_ERROR_NOT_FOUND;
      size = known->second;
    }
    CUdeviceptr place = 0;
    const int device = Current() != nullptr ? Current()->device : 0;
    if (const CUresult result = AllocateOn(device, std::max<size_t>(size, 1), &place); result != CUDA_SUCCESS) {
      return result;
    }
    at = library->variables.emplace(name, std::pair(place, size)).first;
  }
  if (address != nullptr) *address = at->second.first;
  if (bytes != nullptr) *bytes = at->second.second;
  return CUDA_SUCCESS;
}

CUresult GetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  const KernelInfo& info = function->info;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = std::min({info.max_threads, 65536 / std::max(8, info.registers) / 32 * 32, 1024});
      break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = info.static_shared_bytes;
      break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = info.registers;
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = function->library->image.sm != 0 ? function->library->image.sm : TheBoard().sm();
      break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = function->dynamic_shared_max;
      break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = function->carveout;
      break;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      *value = function->non_portable_cluster;
      break;
    default:
      *value = 0;
  }
  return CUDA_SUCCESS;
}

CUresult SetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    const ChipLimits& limits = LimitsOf(TheBoard().sm());
    if (value + function->info.static_shared_bytes > limits.shared_bytes_per_block_optin) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    function->dynamic_shared_max = value;
  } else if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
    function->carveout = value;
  } else if (attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) {
    function->non_portable_cluster = value;
  }
  return CUDA_SUCCESS;
}

// Blocks of `threads` that fit on one SM: the rules of NVIDIA's occupancy calculator (registers go to warps in units
// of 256, shared memory to blocks in units of 128 bytes).
int BlocksPerSm(const KernelInfo& info, int threads, size_t dynamic_shared) {
  if (threads <= 0) return 0;
  const ChipLimits& limits = LimitsOf(TheBoard().sm());
  const int warps = (threads + 31) / 32;
  const int registers_per_warp = (std::max(info.registers, 16) * 32 + 255) / 256 * 256;
  const size_t reserved = TheBoard().cc_major >= 8 ? 1024 : 0;
  const size_t shared = (static_cast<size_t>(info.static_shared_bytes) + dynamic_shared + reserved + 127) / 128 * 128;
  const int by_threads = limits.threads_per_sm / (warps * 32);
  const int by_registers = 65536 / (registers_per_warp * warps);
  const int by_shared =
      shared != 0 ? static_cast<int>(static_cast<size_t>(limits.shared_bytes_per_sm) / shared) : limits.blocks_per_sm;
  return std::min({by_threads, by_registers, by_shared, limits.blocks_per_sm});
}

CUresult Launch(CUfunction function, const unsigned* grid, const unsigned* block, unsigned shared, CUstream handle,
                void* const* arguments) {
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const uint64_t threads = uint64_t{block[0]} * block[1] * block[2];
  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || threads == 0 || threads > 1024 || grid[1] > 65535 ||
      grid[2] > 65535 || static_cast<int64_t>(shared) > function->dynamic_shared_max) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUstream stream = RealStream(handle);
  const Work work = TakeWork();
  if (stream->recording != nullptr) {
    CountLaunch();
    CUgraphNode node = Capture(stream, CU_GRAPH_NODE_TYPE_KERNEL);
    node->function = function;
    std::copy_n(grid, 3, node->grid);
    std::copy_n(block, 3, node->block);
    node->shared = shared;
    node->work = work;
  } else {
    NoteLaunch(function, grid, block, shared, work, stream);
  }
  if (function->library->by_program) NoteLoadedLaunch(function, grid, block, shared, arguments, stream);
  return CUDA_SUCCESS;
}

}  // namespace

RFINJECT_CUDA cuModuleLoadData(CUmodule* module, const void* data) {
  return Load(data, reinterpret_cast<CUlib_st**>(module), true);
}
RFINJECT_CUDA cuModuleLoadDataEx(CUmodule* module, const void* data, unsigned, CUjit_option*, void**) {
  return Load(data, reinterpret_cast<CUlib_st**>(module), true);
}
RFINJECT_CUDA cuModuleLoadFatBinary(CUmodule* module, const void* data) {
  return Load(data, reinterpret_cast<CUlib_st**>(module), true);
}
RFINJECT_CUDA cuModuleLoad(CUmodule* module, const char* path) {
  std::string content;
  FILE* file = fopen(path, "rbe");
  if (file == nullptr) return CUDA_ERROR_FILE_NOT_FOUND;
  char buffer[1 << 14];
  for (size_t got = 0; (got = fread(buffer, 1, sizeof buffer, file)) > 0;) content.append(buffer, got);
  fclose(file);
  if (content.size() < sizeof(uint32_t)) return CUDA_ERROR_INVALID_SOURCE;
  return Load(content.data(), reinterpret_cast<CUlib_st**>(module), true);
}
RFINJECT_CUDA cuModuleUnload(CUmodule) { return CUDA_SUCCESS; }
RFINJECT_CUDA cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) { return Set(mode, CU_MODULE_LAZY_LOADING); }
RFINJECT_CUDA cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return GetFunction(Library(module), name, function);
}
RFINJECT_CUDA cuModuleGetGlobal(CUdeviceptr* address, size_t* bytes, CUmodule module, const char* name) {
  return GetVariable(Library(module), name, address, bytes);
}
RFINJECT_CUDA cuLibraryLoadData(CUlibrary* library, const void* data, CUjit_option*, void**, unsigned,
                                CUlibraryOption*, void**, unsigned) {
  return Load(data, library);
}
RFINJECT_CUDA cuLibraryUnload(CUlibrary) { return CUDA_SUCCESS; }
RFINJECT_CUDA cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return GetFunction(library, name, reinterpret_cast<CUfunction*>(kernel));
}
RFINJECT_CUDA cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
  return Set(count, static_cast<unsigned>(library->image.kernels.size()));
}
RFINJECT_CUDA cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary library) {
  unsigned i = 0;
  for (const auto& [name, info] : library->image.kernels) {
    if (i == count) break;
    GetFunction(library, name.c_str(), reinterpret_cast<CUfunction*>(&kernels[i++]));
  }
  return CUDA_SUCCESS;
}
RFINJECT_CUDA cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  return Set(module, reinterpret_cast<CUmodule>(library));
}
RFINJECT_CUDA cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library, const char* name) {
  return GetVariable(library, name, address, bytes);
}
RFINJECT_CUDA cuKernelGetFunction(CUfunction* function, CUkernel kernel) { return Set(function, Function(kernel)); }
RFINJECT_CUDA cuKernelGetName(const char** name, CUkernel kernel) {
  return Set(name, Function(kernel)->name.c_str());
}
RFINJECT_CUDA cuFuncGetName(const char** name, CUfunction function) { return Set(name, function->name.c_str()); }
RFINJECT_CUDA cuFuncGetModule(CUmodule* module, CUfunction function) {
  return Set(module, reinterpret_cast<CUmodule>(function->library));
}
RFINJECT_CUDA cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  return GetAttribute(value, attribute, function);
}
RFINJECT_CUDA cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return SetAttribute(function, attribute, value);
}
RFINJECT_CUDA cuFuncSetCacheConfig(CUfunction, CUfunc_cache) { return CUDA_SUCCESS; }
RFINJECT_CUDA cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel, CUdevice) {
  return GetAttribute(value, attribute, Function(kernel));
}
RFINJECT_CUDA cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice) {
  return SetAttribute(Function(kernel), attribute, value);
}
RFINJECT_CUDA cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* bytes) {
  const auto& parameters = function->info.parameters;
  if (index >= parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = parameters[index].first;
  if (bytes != nullptr) *bytes = parameters[index].second;
  return CUDA_SUCCESS;
}

RFINJECT_CUDA cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int threads,
                                                          size_t dynamic_shared) {
  return Set(blocks, BlocksPerSm(function->info, threads, dynamic_shared));
}
RFINJECT_CUDA cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function, int threads,
                                                                   size_t dynamic_shared, unsigned) {
  return Set(blocks, BlocksPerSm(function->info, threads, dynamic_shared));
}
RFINJECT_CUDA cuOccupancyMaxActiveClusters(int* clusters, CUfunction function, const CUlaunchConfig* config) {
  int size = 1;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config->attrs[i];
    if (attribute.id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
    const auto& dimension = attribute.value.clusterDim;
    size = static_cast<int>(dimension.x * dimension.y * dimension.z);
  }
  const int threads = static_cast<int>(config->blockDimX * config->blockDimY * config->blockDimZ);
  *clusters = TheBoard().sm_count * BlocksPerSm(function->info, threads, config->sharedMemBytes) / std::max(1, size);
  return CUDA_SUCCESS;
}

RFINJECT_CUDA cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                             unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void** arguments,
                             void** extra) {
  const unsigned grid[] = {grid_x, grid_y, grid_z};
  const unsigned block[] = {block_x, block_y, block_z};
  const cuLaunchKernel_params parameters = {function, grid_x, grid_y, grid_z,    block_x, block_y,
                                            block_z,  shared, stream, arguments, extra};
  return Traced("cuLaunchKernel", parameters, NameOf(function),
                [&] { return Launch(function, grid, block, shared, stream, arguments); });
}
RFINJECT_CUDA cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments, void** extra) {
  const unsigned grid[] = {config->gridDimX, config->gridDimY, config->gridDimZ};
  const unsigned block[] = {config->blockDimX, config->blockDimY, config->blockDimZ};
  const cuLaunchKernelEx_params parameters = {config, function, arguments, extra};
  return Traced("cuLaunchKernelEx", parameters, NameOf(function),
                [&] { return Launch(function, grid, block, config->sharedMemBytes, config->hStream, arguments); });
}
RFINJECT_CUDA cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                        CUstream stream, void** arguments) {
  const unsigned grid[] = {grid_x, grid_y, grid_z};
  const unsigned block[] = {block_x, block_y, block_z};
  const cuLaunchCooperativeKernel_params parameters = {function, grid_x,  grid_y, grid_z, block_x,
                                                       block_y,  block_z, shared, stream, arguments};
  return Traced("cuLaunchCooperativeKernel", parameters, NameOf(function),
                [&] { return Launch(function, grid, block, shared, stream, arguments); });
}

// Only a kernel would read what a tensor map says of its tensor.
RFINJECT_CUDA cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                                     const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                                     CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  return Set(map, CUtensorMap{});
}

RFINJECT_DOOR void* rfinject_virtual_gpu_named_kernel(const char* name) {
  static CUlib_st* const library = [] {
    auto* made = new CUlib_st;
    made->image.sm = TheBoard().sm();
    return made;
  }();
  CUfunction function = nullptr;
  GetFunction(library, name, &function);
  function->dynamic_shared_max = LimitsOf(TheBoard().sm()).shared_bytes_per_block_optin;
  return function;
}
