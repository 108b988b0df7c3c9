// File: sim_cupti_host.cc
//
// The host functions of the simulated CUPTI: planning, which the real CUPTI does (SIM_REAL_CUPTI names its folder),
// so that groups and passes are the real ones. A host object here is an Asked, whose real object is made when it is
// needed.
#include <cupti_profiler_host.h>

#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "integration_tests/simulated_gpu/sim_answers.h"
#include "integration_tests/simulated_gpu/sim_checks.h"
#include "integration_tests/simulated_gpu/sim_cupti_parts.h"

namespace {

using Host = sim::Asked<CUpti_Profiler_Host_Object, CUptiResult>;

struct World {
  std::mutex mutex;
  std::set<const Host*> hosts;
};
World& W() {
  static World* world = new World;
  return *world;
}

template <typename Params>
CUptiResult Forward(const char* name, Params* params) {
  static void* real = [] {
    sim::RealLibrary("libnvperf_host.so");  // which it needs
    return sim::RealLibrary("libcupti.so.13");
  }();
  return sim::CallReal(real, name, params, CUPTI_ERROR_NOT_INITIALIZED);
}

// The host object that a caller means; null, and a violation, when there is none.
Host* HostOf(const char* function, const void* object) {
  std::lock_guard lock(W().mutex);
  const auto at = W().hosts.find(static_cast<const Host*>(object));
  if (at == W().hosts.end()) sim::Violation(function, "no host object");
  return at == W().hosts.end() ? nullptr : const_cast<Host*>(*at);
}

}  // namespace

#define SIM_PARAMS(name, type) \
  SIM_ENTER(name);             \
  SIM_CHECK_PARAMS(name, type)
#define SIM_HOST(name)                                  \
  Host* const host = HostOf(name, params->pHostObject); \
  if (host == nullptr) return CUPTI_ERROR_INVALID_PARAMETER

CUptiResult SimPassesOf(CUpti_Profiler_Host_GetNumOfPasses_Params* params) {
  const std::string image(reinterpret_cast<const char*>(params->pConfigImage), params->configImageSize);
  std::string passes;
  const CUptiResult result = Host().Ask(
      "passes " + image,
      [params](CUpti_Profiler_Host_Object**, std::string* answer) {
        const CUptiResult real = Forward("cuptiProfilerHostGetNumOfPasses", params);
        *answer = sim::Bytes(params->numOfPasses);
        return real;
      },
      &passes);
  sim::FromBytes(passes, &params->numOfPasses);
  return result;
}

extern "C" {

CUptiResult CUPTIAPI cuptiProfilerHostInitialize(CUpti_Profiler_Host_Initialize_Params* params) {
  SIM_PARAMS("cuptiProfilerHostInitialize", CUpti_Profiler_Host_Initialize_Params);
  auto* host = new Host;
  const CUpti_ProfilerType type = params->profilerType;
  const std::string chip = params->pChipName;
  const CUptiResult result = host->Ask(
      "new " + std::to_string(type) + " " + chip, [type, chip](CUpti_Profiler_Host_Object** real, std::string*) {
        // The simulated device's availability means nothing to the real library.
        CUpti_Profiler_Host_Initialize_Params open = {CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE};
        open.profilerType = type;
        open.pChipName = chip.c_str();
        const CUptiResult status = Forward("cuptiProfilerHostInitialize", &open);
        *real = open.pHostObject;
        return status;
      });
  if (result != CUPTI_SUCCESS) {
    delete host;
    return result;
  }
  std::lock_guard lock(W().mutex);
  W().hosts.insert(host);
  params->pHostObject = reinterpret_cast<CUpti_Profiler_Host_Object*>(host);
  return result;
}

CUptiResult CUPTIAPI cuptiProfilerHostDeinitialize(CUpti_Profiler_Host_Deinitialize_Params* params) {
  SIM_PARAMS("cuptiProfilerHostDeinitialize", CUpti_Profiler_Host_Deinitialize_Params);
  SIM_HOST("cuptiProfilerHostDeinitialize");
  CUptiResult result = CUPTI_SUCCESS;
  if (host->MadeReal() != nullptr) {
    CUpti_Profiler_Host_Deinitialize_Params close = *params;
    close.pHostObject = host->MadeReal();
    result = Forward("cuptiProfilerHostDeinitialize", &close);
  }
  std::lock_guard lock(W().mutex);
  W().hosts.erase(host);
  delete host;
  return result;
}

CUptiResult CUPTIAPI cuptiProfilerHostGetBaseMetrics(CUpti_Profiler_Host_GetBaseMetrics_Params* params) {
  SIM_PARAMS("cuptiProfilerHostGetBaseMetrics", CUpti_Profiler_Host_GetBaseMetrics_Params);
  SIM_HOST("cuptiProfilerHostGetBaseMetrics");
  CUpti_Profiler_Host_GetBaseMetrics_Params real = *params;
  real.pHostObject = *host->Real();  // the names that it gives are its own
  const CUptiResult result = Forward("cuptiProfilerHostGetBaseMetrics", &real);
  params->ppMetricNames = real.ppMetricNames;
  params->numMetrics = real.numMetrics;
  return result;
}

CUptiResult CUPTIAPI cuptiProfilerHostConfigAddMetrics(CUpti_Profiler_Host_ConfigAddMetrics_Params* params) {
  SIM_PARAMS("cuptiProfilerHostConfigAddMetrics", CUpti_Profiler_Host_ConfigAddMetrics_Params);
  SIM_HOST("cuptiProfilerHostConfigAddMetrics");
  const std::vector<std::string> names(params->ppMetricNames, params->ppMetricNames + params->numMetrics);
  std::string text = "add";
  for (const std::string& name : names) text += " " + name;
  return host->Ask(text, [names](CUpti_Profiler_Host_Object** real, std::string*) {
    std::vector<const char*> pointers;
    for (const std::string& name : names) pointers.push_back(name.c_str());
    CUpti_Profiler_Host_ConfigAddMetrics_Params add = {CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE};
    add.pHostObject = *real;
    add.ppMetricNames = pointers.data();
    add.numMetrics = pointers.size();
    return Forward("cuptiProfilerHostConfigAddMetrics", &add);
  });
}

CUptiResult CUPTIAPI cuptiProfilerHostGetConfigImageSize(CUpti_Profiler_Host_GetConfigImageSize_Params* params) {
  SIM_PARAMS("cuptiProfilerHostGetConfigImageSize", CUpti_Profiler_Host_GetConfigImageSize_Params);
  SIM_HOST("cuptiProfilerHostGetConfigImageSize");
  std::string size;
  const CUptiResult result = host->Ask(
      "size",
      [](CUpti_Profiler_Host_Object** real, std::string* answer) {
        CUpti_Profiler_Host_GetConfigImageSize_Params get = {
            CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE};
        get.pHostObject = *real;
        const CUptiResult status = Forward("cuptiProfilerHostGetConfigImageSize", &get);
        *answer = sim::Bytes(get.configImageSize);
        return status;
      },
      &size);
  sim::FromBytes(size, &params->configImageSize);
  return result;
}

CUptiResult CUPTIAPI cuptiProfilerHostGetConfigImage(CUpti_Profiler_Host_GetConfigImage_Params* params) {
  SIM_PARAMS("cuptiProfilerHostGetConfigImage", CUpti_Profiler_Host_GetConfigImage_Params);
  SIM_HOST("cuptiProfilerHostGetConfigImage");
  SIM_CHECK("cuptiProfilerHostGetConfigImage", params->pConfigImage != nullptr, CUPTI_ERROR_INVALID_PARAMETER);
  const size_t size = params->configImageSize;
  std::string image;
  const CUptiResult result = host->Ask(
      "image " + std::to_string(size),
      [size](CUpti_Profiler_Host_Object** real, std::string* answer) {
        answer->resize(size);
        CUpti_Profiler_Host_GetConfigImage_Params get = {CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE};
        get.pHostObject = *real;
        get.configImageSize = size;
        get.pConfigImage = reinterpret_cast<uint8_t*>(answer->data());
        return Forward("cuptiProfilerHostGetConfigImage", &get);
      },
      &image);
  if (image.size() <= size) memcpy(params->pConfigImage, image.data(), image.size());
  return result;
}

CUptiResult CUPTIAPI cuptiProfilerHostGetNumOfPasses(CUpti_Profiler_Host_GetNumOfPasses_Params* params) {
  SIM_PARAMS("cuptiProfilerHostGetNumOfPasses", CUpti_Profiler_Host_GetNumOfPasses_Params);
  return SimPassesOf(params);
}
}
