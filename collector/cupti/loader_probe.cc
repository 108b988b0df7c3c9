// File: loader_probe.cc
//
// Shows what a process sees that has one folder with CUPTI in it and no loader cache. api_test.cc runs it as `ld.so
// --inhibit-cache loader_probe bare|ours PATH_OF_LIBCUPTI`. Prints the result of CUPTI's first host function.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "collector/cupti/api.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::string path = argv[2];
  decltype(&::cuptiProfilerHostGetSupportedChips) get_chips = nullptr;
  if (strcmp(argv[1], "bare") == 0) {
    if (dlopen("libnvperf_host.so", RTLD_NOW | RTLD_LOCAL) != nullptr) return 3;  // cannot be hidden on this machine
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return 4;
    get_chips = reinterpret_cast<decltype(get_chips)>(dlsym(handle, "cuptiProfilerHostGetSupportedChips"));
  } else {
    rfinject::cupti::LoadOptions options;
    options.folders = {path.substr(0, path.rfind('/'))};
    rfinject::cupti::LoadResult result = rfinject::cupti::LoadApi(options);
    if (result.status != rfinject::cupti::LoadStatus::kOk) {
      fprintf(stderr, "%s\n", result.error.c_str());
      return 4;
    }
    get_chips = result.api.cuptiProfilerHostGetSupportedChips;
  }
  if (get_chips == nullptr) return 5;
  CUpti_Profiler_Host_GetSupportedChips_Params params = {CUpti_Profiler_Host_GetSupportedChips_Params_STRUCT_SIZE};
  CUptiResult rc = get_chips(&params);
  printf("%d\n", static_cast<int>(rc));
  fflush(stdout);
  _Exit(0);  // CUPTI's own exit handlers are not what is tested
}
