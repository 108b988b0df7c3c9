#include "virtual_gpu/loader/enter.h"

#include <dirent.h>
#include <dlfcn.h>
#include <string.h>

#include <cctype>
#include <exception>
#include <string>
#include <string_view>

#include "virtual_gpu/loader/elf_imports.h"
#include "virtual_gpu/loader/stub_library.h"

namespace rfinject::virtual_gpu {
namespace {

// NVIDIA's libraries, and what their functions return for "this is not supported here": the enumerations of their
// public headers. A function belongs to the first prefix that fits.
struct Family {
  std::string_view library, prefix;
  int not_supported;
};
constexpr Family kFamilies[] = {
    {"libcudart.so", "cuda", 801},     {"libcudart.so", "__cuda", 801},        {"libcublasLt.so", "cublasLt", 15},
    {"libcublas.so", "cublas", 15},    {"libcudnn.so", "cudnn", 3000},         {"libcufft.so", "cufft", 16},
    {"libcufile.so", "cuFile", 5007},  {"libcupti.so", "cupti", 27},           {"libcurand.so", "curand", 999},
    {"libcusolver.so", "cusolver", 9}, {"libcusparseLt.so", "cusparseLt", 10}, {"libcusparse.so", "cusparse", 10},
    {"libnccl.so", "nccl", 5},         {"libnvrtc.so", "nvrtc", 11},           {"libnvshmem_host.so", "nvshmem", 1},
    {"libnvjpeg.so", "nvjpeg", 9},     {"libnvToolsExt.so", "nvtx", 1},        {"libnvJitLink.so", "nvJitLink", 6},
    {"libcuda.so", "cu", 801},
};

// "libcublas.so.13" is "libcublas.so" with a version.
bool IsOf(std::string_view soname, std::string_view library) {
  return soname.starts_with(library) && (soname.size() == library.size() || soname[library.size()] == '.');
}

bool IsNvidia(std::string_view soname) {
  for (const Family& family : kFamilies) {
    if (IsOf(soname, family.library)) return true;
  }
  return false;
}

const Family* FamilyOf(std::string_view function) {
  for (const Family& family : kFamilies) {
    if (!function.starts_with(family.prefix)) continue;
    // The name of a driver's function continues with a capital: cuInit, but not cublasCreate.
    if (family.prefix == "cu" &&
        (function.size() < 3 || std::isupper(static_cast<unsigned char>(function[2])) == 0)) {
      return nullptr;
    }
    return &family;
  }
  return nullptr;
}

// Whether a function's type is const char*: those that say what a status means.
bool IsText(std::string_view function) {
  if (function == "ncclGetLastError" || function == "pncclGetLastError") return true;
  const bool text = function.ends_with("ErrorString") || function.ends_with("ErrorName") ||
                    function.ends_with("StatusString") || function.ends_with("StatusName");
  return text && FamilyOf(function)->prefix != "cu";  // the driver's return a status, and the text elsewhere
}

// Whether a function's type is a pointer to memory: null is what says that there is none.
bool IsPointer(std::string_view function) {
  return function.starts_with("nvshmem") && (function.ends_with("_malloc") || function.ends_with("_calloc") ||
                                             function.ends_with("_align") || function.ends_with("_ptr"));
}

// The major version of CUDA that the program was built for, from the name of its runtime; 0 when it names none.
int CudaMajor(const Imports& imports) {
  for (const std::string& library : imports.libraries) {
    constexpr std::string_view kRuntime = "libcudart.so.";
    if (library.starts_with(kRuntime)) return std::atoi(library.c_str() + kRuntime.size());
  }
  return 0;
}

std::string Folder() {
  Dl_info own{};
  if (dladdr(reinterpret_cast<const void*>(&Folder), &own) == 0 || own.dli_fname == nullptr) return {};
  const std::string path = own.dli_fname;
  return path.substr(0, path.rfind('/') + 1);
}

bool ReadTorch(const std::string& folder, Imports* imports) {
  DIR* directory = opendir(folder.c_str());
  if (directory == nullptr) return false;
  bool complete = true;
  while (const dirent* entry = readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name.ends_with(".so")) complete = ReadImports(folder + "/" + std::string(name), imports) && complete;
  }
  closedir(directory);
  return complete;
}

class Libraries {
 public:
  // Loads a library. Returns null, or dlerror's text.
  const char* Load(const std::string& path) {
    void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_GLOBAL | RTLD_NODELETE);
    if (library == nullptr) return dlerror();
    handles_[count_++] = library;
    return nullptr;
  }
  void* Find(const char* function) const {
    for (int i = 0; i < count_; ++i) {
      if (void* found = dlsym(handles_[i], function); found != nullptr) return found;
    }
    return nullptr;
  }

 private:
  void* handles_[4] = {};
  int count_ = 0;
};

// Those that virtual_gpu/CMakeLists.txt builds a runtime for.
constexpr int kOldestCuda = 11, kNewestCuda = 13;

const char* Keep(const std::string& text) { return strdup(text.c_str()); }

// Says what to do where the runtime of a torch's CUDA cannot be loaded. `error` is dlerror's text.
const char* NoRuntime(int major, const std::string& error) {
  const std::string what = "this build of rfinject has no runtime for CUDA " + std::to_string(major);
  if (major < kOldestCuda || major > kNewestCuda) {
    return Keep(what + "; install a torch that is built for CUDA 11, 12 or 13");
  }
  return Keep(what + " (" + error + "); scripts/setup fetches that CUDA's headers, and scripts/build then builds it");
}

const char* Enter(const std::string& torch, const rfinject_virtual_board& board) {
  Imports imports;
  if (!ReadTorch(torch, &imports)) return Keep("the libraries in " + torch + " cannot be read");
  const int major = CudaMajor(imports);
  if (major == 0) return Keep("the torch in " + torch + " names no CUDA runtime");

  const std::string folder = Folder();
  Libraries libraries;
  const std::string runtime = folder + "librfinject_cuda" + std::to_string(major) + ".so";
  for (const std::string& path : {folder + "libcuda.so.1", folder + "libnvidia-ml.so.1", runtime}) {
    const char* error = libraries.Load(path);
    if (error == nullptr) continue;
    return path == runtime ? NoRuntime(major, error) : Keep(error);
  }
  using Report = int (*)(const char*, int);
  const auto report = reinterpret_cast<Report>(libraries.Find("rfinject_virtual_gpu_missing"));
  const auto start =
      reinterpret_cast<decltype(&rfinject_virtual_gpu_start)>(libraries.Find("rfinject_virtual_gpu_start"));
  if (report == nullptr || start == nullptr) return "the virtual GPU's driver is of another version";

  std::vector<Stub> stubs;
  for (const std::string& function : imports.functions) {
    const Family* family = FamilyOf(function);
    if (family == nullptr || libraries.Find(function.c_str()) != nullptr) continue;
    stubs.push_back({function, IsPointer(function) ? 0 : family->not_supported, IsText(function)});
  }
  constexpr const char* kStubs = "librfinject_stubs.so";
  if (const std::string error = LoadLibraryBytes(MakeLibrary(kStubs, stubs, report), kStubs); !error.empty()) {
    return Keep(error);
  }
  for (const std::string& library : imports.libraries) {
    if (!IsNvidia(library) || IsOf(library, "libcuda.so")) continue;
    // A program may open it by its name, and look for functions in it alone.
    const std::string bytes = MakeLibrary(library, {}, nullptr, {runtime.substr(folder.size()), kStubs});
    if (const std::string error = LoadLibraryBytes(bytes, library); !error.empty()) {
      return Keep(error);
    }
  }
  start(&board);
  return nullptr;
}

}  // namespace
}  // namespace rfinject::virtual_gpu

extern "C" __attribute__((visibility("default"))) const char* rfinject_virtual_gpu_enter(
    const char* torch_libraries, const rfinject_virtual_board* board) {
  try {
    return rfinject::virtual_gpu::Enter(torch_libraries, *board);
  } catch (const std::exception&) {
    return "out of memory";
  }
}
