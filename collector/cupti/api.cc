#include "collector/cupti/api.h"

#include <cupti_activity.h>
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <utility>

namespace rfinject::cupti {
namespace {

#define RFINJECT_SAME_OFFSET(ours, theirs)                                                       \
  static_assert(offsetof(KernelRecordPrefix, ours) == offsetof(CUpti_ActivityKernel5, theirs) && \
                offsetof(KernelRecordPrefix, ours) == offsetof(CUpti_ActivityKernel10, theirs))
RFINJECT_SAME_OFFSET(kind, kind);
RFINJECT_SAME_OFFSET(start, start);
RFINJECT_SAME_OFFSET(end, end);
RFINJECT_SAME_OFFSET(device_id, deviceId);
RFINJECT_SAME_OFFSET(context_id, contextId);
RFINJECT_SAME_OFFSET(stream_id, streamId);
RFINJECT_SAME_OFFSET(grid, gridX);
RFINJECT_SAME_OFFSET(block, blockX);
RFINJECT_SAME_OFFSET(dynamic_shared_bytes, dynamicSharedMemory);
RFINJECT_SAME_OFFSET(correlation_id, correlationId);
RFINJECT_SAME_OFFSET(name, name);
RFINJECT_SAME_OFFSET(launch_type, launchType);
RFINJECT_SAME_OFFSET(graph_node_id, graphNodeId);
RFINJECT_SAME_OFFSET(graph_id, graphId);
static_assert(sizeof(KernelRecordPrefix) <= sizeof(CUpti_ActivityKernel5));
#undef RFINJECT_SAME_OFFSET
#define RFINJECT_SAME_OFFSET(ours, theirs)                                                         \
  static_assert(offsetof(TransferRecordPrefix, ours) == offsetof(CUpti_ActivityMemcpy, theirs) &&  \
                offsetof(TransferRecordPrefix, ours) == offsetof(CUpti_ActivityMemcpy6, theirs) && \
                offsetof(TransferRecordPrefix, ours) == offsetof(CUpti_ActivityMemset4, theirs))
RFINJECT_SAME_OFFSET(kind, kind);
RFINJECT_SAME_OFFSET(start, start);
RFINJECT_SAME_OFFSET(end, end);
RFINJECT_SAME_OFFSET(correlation_id, correlationId);
static_assert(offsetof(TransferRecordPrefix, graph_node_id) == offsetof(CUpti_ActivityMemcpy6, graphNodeId) &&
              offsetof(TransferRecordPrefix, graph_node_id) == offsetof(CUpti_ActivityMemcpy4, graphNodeId) &&
              offsetof(TransferRecordPrefix, graph_node_id) == offsetof(CUpti_ActivityMemset2, graphNodeId) &&
              offsetof(TransferRecordPrefix, graph_node_id) == offsetof(CUpti_ActivityMemset4, graphNodeId));
#undef RFINJECT_SAME_OFFSET
static_assert(sizeof(TransferRecordPrefix) <= sizeof(CUpti_ActivityMemset2));

// Newest first: where a process has two, torch's own is the one that its libcudart asked for, and LoadApi prefers
// that major over this order.
constexpr int kMajors[] = {13, 12, 11};

std::vector<std::string> SonamesOf(int major) {
  const std::string soname = "libcupti.so." + std::to_string(major);
  if (major != 11) return {soname};
  // CUPTI 11 has the toolkit's minor version in its SONAME; 11.3 to 11.8 still say 11.3 and so on, so all are tried.
  std::vector<std::string> sonames;
  for (int minor = 8; minor >= 0; --minor) sonames.push_back(soname + "." + std::to_string(minor));
  return sonames;
}

std::string_view Basename(std::string_view path) {
  size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string_view Dirname(std::string_view path) {
  size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view(".") : path.substr(0, slash);
}

std::string RealPath(const std::string& path) {
  char buffer[PATH_MAX];
  return realpath(path.c_str(), buffer) != nullptr ? buffer : path;
}

// Paths of all loaded objects, in the loader's order.
std::vector<std::string> LoadedObjects() {
  std::vector<std::string> paths;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        if (info->dlpi_name != nullptr && info->dlpi_name[0] != '\0') {
          static_cast<std::vector<std::string>*>(out)->emplace_back(info->dlpi_name);
        }
        return 0;
      },
      &paths);
  return paths;
}

// The major version in "libcudart.so.12", "libcudart-d0da41ae.so.11.0"; 0 when `path` is no libcudart.
int CudartMajor(std::string_view path) {
  std::string_view name = Basename(path);
  if (name.substr(0, 9) != "libcudart") return 0;
  size_t so = name.find(".so.");
  return so == std::string_view::npos ? 0 : atoi(std::string(name.substr(so + 4)).c_str());
}

// The major version of a libcupti by its file's name ("libcupti.so.12", "libcupti.so.2025.1.1"); 0: the name does not
// say, -1: `path` is no libcupti.
int CuptiMajor(std::string_view path) {
  std::string_view name = Basename(path);
  if (name.substr(0, 11) != "libcupti.so") return -1;
  if (name.size() <= 12) return 0;
  int major = atoi(std::string(name.substr(12)).c_str());
  return major >= 11 && major < 100 ? major : 0;
}

// The path of the file that `symbol` of `handle` lies in; empty when there is no such symbol. (dlinfo would give the
// path of the handle itself, but a library linked with glibc 2.34 or later would need that version for it.)
std::string PathOf(void* handle, const char* symbol) {
  Dl_info info{};
  void* address = dlsym(handle, symbol);
  if (address == nullptr || dladdr(address, &info) == 0 || info.dli_fname == nullptr) return {};
  return info.dli_fname;
}

void* OpenResident(const char* name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD); }

void* FindResidentCupti(const std::vector<std::string>& objects, int cudart_major) {
  std::vector<int> majors(std::begin(kMajors), std::end(kMajors));
  std::stable_partition(majors.begin(), majors.end(), [&](int major) { return major == cudart_major; });
  for (int major : majors) {
    for (const std::string& soname : SonamesOf(major)) {
      if (void* handle = OpenResident(soname.c_str())) return handle;
    }
  }
  // It may be loaded under a SONAME that we do not know, or without one.
  for (const std::string& path : objects) {
    if (CuptiMajor(path) >= 0) {
      if (void* handle = OpenResident(path.c_str())) return handle;
    }
  }
  return nullptr;
}

// Where a libcupti of `major` may lie, likeliest first.
std::vector<std::string> SearchFolders(const std::vector<std::string>& objects, int major) {
  std::vector<std::string> folders;
  auto add = [&](std::string folder) {
    if (std::find(folders.begin(), folders.end(), folder) == folders.end()) folders.push_back(std::move(folder));
  };
  constexpr std::string_view kSitePackages = "/site-packages/";
  for (const std::string& path : objects) {
    std::string_view name = Basename(path);
    bool cudart = CudartMajor(path) == major;
    bool torch = name.substr(0, 11) == "libc10_cuda" || name.substr(0, 13) == "libtorch_cuda";
    if (!cudart && !torch) continue;
    size_t site = path.rfind(kSitePackages);
    if (site != std::string::npos) {
      std::string packages = path.substr(0, site + kSitePackages.size());
      // The wheels of CUDA 13 share one folder; each wheel of CUDA 11 and 12 has its own.
      add(packages + "nvidia/cu" + std::to_string(major) + "/lib");
      add(packages + "nvidia/cuda_cupti/lib");
      add(packages + "torch/lib");
    }
    if (cudart) {
      std::string folder(Dirname(path));
      add(folder);
      add(folder + "/../extras/CUPTI/lib64");
    }
  }
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* home = getenv(variable);
    if (home == nullptr || home[0] == '\0') continue;
    add(std::string(home) + "/extras/CUPTI/lib64");
    add(std::string(home) + "/lib64");
  }
  for (const std::string& home : {"/usr/local/cuda-" + std::to_string(major), std::string("/usr/local/cuda")}) {
    add(home + "/extras/CUPTI/lib64");
    add(home + "/lib64");
  }
  return folders;
}

// Makes a string of an expanded name. The extra level lets cuda.h's renaming take place first.
#define RFINJECT_TEXT(name) #name
#define RFINJECT_EXPANDED_TEXT(name) RFINJECT_TEXT(name)
#define RFINJECT_LOOK_UP(name, ...) \
  api->name = reinterpret_cast<decltype(api->name)>(dlsym(handle, RFINJECT_EXPANDED_TEXT(name)));

void LookUpCupti(void* handle, Api* api) {
  RFINJECT_CUPTI_FUNCTIONS(RFINJECT_LOOK_UP)
  RFINJECT_OWN_RECORDS_FUNCTIONS(RFINJECT_LOOK_UP)
}

// Opens the Perfworks libraries that belong to the libcupti at `cupti_path` (see api.h). One that is in the process
// already is what libcupti will get, whatever we open: then nothing is opened.
void OpenPerfworks(const std::string& cupti_path, Api* api) {
  std::vector<std::string> folders = {std::string(Dirname(cupti_path))};
  std::string real = RealPath(cupti_path);
  if (Dirname(real) != folders[0]) folders.emplace_back(Dirname(real));
  folders.push_back(std::string(Dirname(real)) + "/../../../lib64");  // from extras/CUPTI/lib64 to the toolkit's

  void* handle = OpenResident("libnvperf_host.so");
  for (const std::string& folder : folders) {
    std::string host = folder + "/libnvperf_host.so";
    if (access(host.c_str(), R_OK) != 0) continue;
    if (handle != nullptr) {
      std::string resident = PathOf(handle, "NVPW_InitializeHost");
      if (RealPath(resident) != RealPath(host)) {
        api->perfworks_remark = "another libnvperf_host.so was there first: " + resident;
      }
      break;
    }
    handle = dlopen(host.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) continue;
    // Planning does not need this library; if it is missing, that shows when a session starts.
    dlopen((folder + "/libnvperf_target.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    break;
  }
  // There is none beside libcupti. The loader's own paths may still have one, and libcupti would look there next.
  if (handle == nullptr) handle = dlopen("libnvperf_host.so", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return;
  // The functions come from the copy that libcupti will use itself, so that both agree on the structures' versions.
  RFINJECT_PERFWORKS_FUNCTIONS(RFINJECT_LOOK_UP)
}

void LookUpDriver(Api* api) {
  void* handle = OpenResident("libcuda.so.1");
  if (handle == nullptr) return;
  api->virtual_driver = dlsym(handle, "rfinject_virtual_gpu_launches") != nullptr;
  RFINJECT_DRIVER_FUNCTIONS(RFINJECT_LOOK_UP)
}

uint32_t FeaturesOf(const Api& api) {
  uint32_t features = 0;
#define RFINJECT_HAS(name, ...) &&api.name != nullptr
  if (true RFINJECT_CALLBACK_FUNCTIONS(RFINJECT_HAS)) features |= kCallbacks;
  if (true RFINJECT_HAS(cuptiSubscribe_v2)) features |= kSubscribeV2;
  if (true RFINJECT_ACTIVITY_FUNCTIONS(RFINJECT_HAS)) features |= kActivity;
  if (true RFINJECT_PROFILER_HOST_FUNCTIONS(RFINJECT_HAS)) features |= kProfilerHost;
  if (true RFINJECT_PROFILER_FUNCTIONS(RFINJECT_HAS)) {
    if (true RFINJECT_RANGE_PROFILER_FUNCTIONS(RFINJECT_HAS)) features |= kRangeProfiler;
    if (true RFINJECT_PM_SAMPLING_FUNCTIONS(RFINJECT_HAS)) features |= kPmSampling;
    if (true RFINJECT_LEGACY_PROFILER_FUNCTIONS(RFINJECT_HAS)) features |= kLegacyProfiler;
  }
  if (true RFINJECT_PERFWORKS_HOST_FUNCTIONS(RFINJECT_HAS)) features |= kPerfworksHost;
  if (true RFINJECT_OWN_RECORDS_FUNCTIONS(RFINJECT_HAS)) features |= kOwnRecords;
#undef RFINJECT_HAS
  return features;
}

}  // namespace

std::string FeatureNames(uint32_t features) {
  constexpr std::pair<uint32_t, const char*> kNames[] = {{kCallbacks, "callbacks"},
                                                         {kSubscribeV2, "subscribe-v2"},
                                                         {kActivity, "activity"},
                                                         {kProfilerHost, "profiler-host"},
                                                         {kRangeProfiler, "range-profiler"},
                                                         {kPmSampling, "pm-sampling"},
                                                         {kLegacyProfiler, "legacy-profiler"},
                                                         {kPerfworksHost, "perfworks-host"},
                                                         {kOwnRecords, "own-records"}};
  std::string names;
  for (auto [bit, name] : kNames) {
    if ((features & bit) == 0) continue;
    if (!names.empty()) names += '+';
    names += name;
  }
  return names;
}

std::string VersionName(uint32_t version) {
  // cupti_version.h numbers the releases up to 12.9 one by one; updates within a release have a number of their own.
  constexpr std::pair<uint32_t, const char*> kOld[] = {
      {13, "11.0"}, {14, "11.1"}, {15, "11.2"}, {16, "11.5"}, {17, "11.6"}, {18, "11.8"}, {19, "12.0"},  {20, "12.2"},
      {21, "12.3"}, {22, "12.4"}, {23, "12.5"}, {24, "12.6"}, {26, "12.8"}, {27, "12.9"}, {28, "12.9.1"}};
  if (version == 0) return "unknown";
  for (auto [number, name] : kOld) {
    if (number == version) return name;
  }
  if (version < 130000) return "API " + std::to_string(version);
  std::string name = std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100);
  if (version % 100 != 0) name += "." + std::to_string(version % 100);
  return name;
}

LoadResult LoadApi(const LoadOptions& options) {
  LoadResult result;
  Api& api = result.api;
  LookUpDriver(&api);

  std::vector<std::string> objects = LoadedObjects();
  int cudart_major = 0;
  for (const std::string& path : objects) {
    if (cudart_major == 0) cudart_major = CudartMajor(path);
  }
  int wanted = options.cuda_major != 0 ? options.cuda_major : cudart_major;

  void* handle = FindResidentCupti(objects, wanted);
  if (handle == nullptr) {
    int driver_version = 0;
    if (wanted == 0 && options.driver_ready && api.cuDriverGetVersion != nullptr &&
        api.cuDriverGetVersion(&driver_version) == CUDA_SUCCESS) {
      wanted = driver_version / 1000;
    }
    // Where a major version must be matched, no other is taken. Otherwise there is nothing to disagree with.
    std::vector<int> majors =
        wanted != 0 ? std::vector<int>{wanted} : std::vector<int>(std::begin(kMajors), std::end(kMajors));
    std::string last_error;
    for (int major : majors) {
      std::vector<std::string> folders = options.folders;
      for (std::string& folder : SearchFolders(objects, major)) folders.push_back(std::move(folder));
      for (const std::string& folder : folders) {
        for (const std::string& soname : SonamesOf(major)) {
          std::string path = folder + "/" + soname;
          if (handle != nullptr || access(path.c_str(), R_OK) != 0) continue;
          handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
          if (handle == nullptr) last_error = dlerror();
        }
      }
      for (const std::string& soname : SonamesOf(major)) {
        if (handle == nullptr) handle = dlopen(soname.c_str(), RTLD_NOW | RTLD_LOCAL);
      }
      if (handle != nullptr) break;
    }
    if (handle == nullptr) {
      result.status = last_error.empty() ? LoadStatus::kNotFound : LoadStatus::kBroken;
      result.error = !last_error.empty() ? last_error
                     : wanted != 0       ? "no libcupti of CUDA " + std::to_string(wanted) + " found"
                                         : "no libcupti found";
      return result;
    }
  }

  api.path = PathOf(handle, "cuptiGetVersion");
  LookUpCupti(handle, &api);
  if (api.cuptiGetVersion == nullptr ||
      (options.driver_ready && api.cuptiGetVersion(&api.version) != CUPTI_SUCCESS)) {
    result.status = LoadStatus::kBroken;
    result.error = api.path + ": cuptiGetVersion is missing or fails";
    return result;
  }
  OpenPerfworks(api.path, &api);
  api.features = FeaturesOf(api);
  result.status = LoadStatus::kOk;
  return result;
}

}  // namespace rfinject::cupti
