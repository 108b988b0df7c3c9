// File: sim_nvperf.cc
//
// libnvperf_host.so beside a simulated CUPTI. Planning goes to the real library in SIM_REAL_CUPTI, so that groups and
// passes are the real ones; evaluation answers from the kernels' known metrics. Sizes, NULLs and order are checked.
#include <nvperf_cuda_host.h>
#include <nvperf_host.h>
#include <nvperf_target.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "integration_tests/simulated_gpu/sim_checks.h"
#include "integration_tests/simulated_gpu/sim_legacy.h"

namespace {

using Request = std::tuple<size_t, uint8_t, uint8_t, uint16_t>;

enum class Stage { kCreated, kGroup, kAdded, kClosed, kGenerated };

struct World {
  std::mutex mutex;
  bool initialised = false;
  std::map<Request, std::string> names;  // of metrics, by what they were converted to
  std::map<const void*, Stage> configs;
  const uint8_t* device_image = nullptr;
};
World& W() {
  static World* world = new World;
  return *world;
}

template <typename Params>
NVPA_Status Forward(const char* name, Params* params) {
  static void* real = sim::RealLibrary("libnvperf_host.so");
  return sim::CallReal(real, name, params, NVPA_STATUS_NOT_LOADED);
}

const sim::LegacyRange* RangeOf(const uint8_t* image, size_t index) {
  const sim::LegacyRange* range = nullptr;
  memcpy(static_cast<void*>(&range), image + sizeof(sim::LegacyImage) + index * sizeof range, sizeof range);
  return range;
}

Request KeyOf(const NVPW_MetricEvalRequest& request) {
  return {request.metricIndex, request.metricType, request.rollupOp, request.submetric};
}

// Moves a configuration from one stage to the next.
bool Advance(const char* function, const void* config, Stage from, Stage to) {
  std::lock_guard lock(W().mutex);
  auto at = W().configs.find(config);
  if (at == W().configs.end() || at->second != from) {
    sim::Violation(function, "out of order");
    return false;
  }
  at->second = to;
  return true;
}

}  // namespace

#define SIM_PARAMS(name)                                                                           \
  if (int code = sim_take_failure(#name); code != 0) return static_cast<NVPA_Status>(code);        \
  SIM_CHECK(#name, params != nullptr, NVPA_STATUS_INVALID_ARGUMENT);                               \
  SIM_CHECK(#name, params->structSize == name##_Params_STRUCT_SIZE, NVPA_STATUS_INVALID_ARGUMENT); \
  SIM_CHECK(#name, params->pPriv == nullptr, NVPA_STATUS_INVALID_ARGUMENT);                        \
  SIM_CHECK(#name, W().initialised || !strcmp(#name, "NVPW_InitializeHost"), NVPA_STATUS_NOT_INITIALIZED)
#define SIM_FORWARD(name)                   \
  NVPA_Status name(name##_Params* params) { \
    SIM_PARAMS(name);                       \
    return Forward(#name, params);          \
  }
// The simulated device's availability image means nothing to the real library.
#define SIM_FORWARD_CHIP(name, result)                                            \
  NVPA_Status name(name##_Params* params) {                                       \
    SIM_PARAMS(name);                                                             \
    SIM_CHECK(#name, params->pChipName != nullptr, NVPA_STATUS_INVALID_ARGUMENT); \
    name##_Params copy = *params;                                                 \
    copy.pCounterAvailabilityImage = nullptr;                                     \
    NVPA_Status status = Forward(#name, &copy);                                   \
    params->result = copy.result;                                                 \
    return status;                                                                \
  }

extern "C" {

NVPA_Status NVPW_InitializeHost(NVPW_InitializeHost_Params* params) {
  SIM_PARAMS(NVPW_InitializeHost);
  W().initialised = true;
  return Forward("NVPW_InitializeHost", params);
}

SIM_FORWARD(NVPW_GetSupportedChipNames)
SIM_FORWARD_CHIP(NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize, scratchBufferSize)
SIM_FORWARD_CHIP(NVPW_CUDA_MetricsEvaluator_Initialize, pMetricsEvaluator)
SIM_FORWARD(NVPW_MetricsEvaluator_Destroy)
SIM_FORWARD(NVPW_MetricsEvaluator_GetMetricNames)

NVPA_Status NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest(
    NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest_Params* params) {
  SIM_PARAMS(NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest);
  SIM_CHECK("ConvertMetricName", params->metricEvalRequestStructSize == NVPW_MetricEvalRequest_STRUCT_SIZE,
            NVPA_STATUS_INVALID_ARGUMENT);
  NVPA_Status status = Forward("NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest", params);
  std::lock_guard lock(W().mutex);
  if (status == NVPA_STATUS_SUCCESS) W().names[KeyOf(*params->pMetricEvalRequest)] = params->pMetricName;
  return status;
}

NVPA_Status NVPW_MetricsEvaluator_GetMetricRawDependencies(
    NVPW_MetricsEvaluator_GetMetricRawDependencies_Params* params) {
  SIM_PARAMS(NVPW_MetricsEvaluator_GetMetricRawDependencies);
  SIM_CHECK("GetMetricRawDependencies", params->metricEvalRequestStructSize == NVPW_MetricEvalRequest_STRUCT_SIZE,
            NVPA_STATUS_INVALID_ARGUMENT);
  SIM_CHECK("GetMetricRawDependencies", params->metricEvalRequestStrideSize == sizeof(NVPW_MetricEvalRequest),
            NVPA_STATUS_INVALID_ARGUMENT);
  return Forward("NVPW_MetricsEvaluator_GetMetricRawDependencies", params);
}

NVPA_Status NVPW_MetricsEvaluator_SetDeviceAttributes(NVPW_MetricsEvaluator_SetDeviceAttributes_Params* params) {
  SIM_PARAMS(NVPW_MetricsEvaluator_SetDeviceAttributes);
  sim::LegacyImage header;
  SIM_CHECK("SetDeviceAttributes", params->pMetricsEvaluator != nullptr, NVPA_STATUS_INVALID_ARGUMENT);
  SIM_CHECK("SetDeviceAttributes", params->counterDataImageSize >= sizeof header, NVPA_STATUS_INVALID_ARGUMENT);
  memcpy(&header, params->pCounterDataImage, sizeof header);
  SIM_CHECK("SetDeviceAttributes", header.magic == sim::kLegacyImageMagic, NVPA_STATUS_INVALID_ARGUMENT);
  W().device_image = params->pCounterDataImage;
  return NVPA_STATUS_SUCCESS;
}

NVPA_Status NVPW_CounterData_GetNumRanges(NVPW_CounterData_GetNumRanges_Params* params) {
  SIM_PARAMS(NVPW_CounterData_GetNumRanges);
  sim::LegacyImage header;
  memcpy(&header, params->pCounterDataImage, sizeof header);
  SIM_CHECK("GetNumRanges", header.magic == sim::kLegacyImageMagic, NVPA_STATUS_INVALID_ARGUMENT);
  params->numRanges = header.ranges;
  return NVPA_STATUS_SUCCESS;
}

NVPA_Status NVPW_Profiler_CounterData_GetRangeDescriptions(
    NVPW_Profiler_CounterData_GetRangeDescriptions_Params* params) {
  SIM_PARAMS(NVPW_Profiler_CounterData_GetRangeDescriptions);
  sim::LegacyImage header;
  memcpy(&header, params->pCounterDataImage, sizeof header);
  SIM_CHECK("GetRangeDescriptions", header.magic == sim::kLegacyImageMagic && params->rangeIndex < header.ranges,
            NVPA_STATUS_INVALID_ARGUMENT);
  if (params->ppDescriptions != nullptr) {
    SIM_CHECK("GetRangeDescriptions", params->numDescriptions >= 1, NVPA_STATUS_INVALID_ARGUMENT);
    params->ppDescriptions[0] = RangeOf(params->pCounterDataImage, params->rangeIndex)->name.c_str();
  }
  params->numDescriptions = 1;
  return NVPA_STATUS_SUCCESS;
}

NVPA_Status NVPW_MetricsEvaluator_EvaluateToGpuValues(NVPW_MetricsEvaluator_EvaluateToGpuValues_Params* params) {
  SIM_PARAMS(NVPW_MetricsEvaluator_EvaluateToGpuValues);
  constexpr const char* kName = "EvaluateToGpuValues";
  SIM_CHECK(kName, params->pMetricsEvaluator != nullptr, NVPA_STATUS_INVALID_ARGUMENT);
  SIM_CHECK(kName, params->metricEvalRequestStructSize == NVPW_MetricEvalRequest_STRUCT_SIZE,
            NVPA_STATUS_INVALID_ARGUMENT);
  SIM_CHECK(kName, params->metricEvalRequestStrideSize == sizeof(NVPW_MetricEvalRequest),
            NVPA_STATUS_INVALID_ARGUMENT);
  SIM_CHECK(kName, params->isolated == 1, NVPA_STATUS_INVALID_ARGUMENT);  // as the counters were asked for
  SIM_CHECK(kName, params->pCounterDataImage == W().device_image, NVPA_STATUS_INVALID_ARGUMENT);
  sim::LegacyImage header;
  memcpy(&header, params->pCounterDataImage, sizeof header);
  SIM_CHECK(kName, header.magic == sim::kLegacyImageMagic, NVPA_STATUS_INVALID_ARGUMENT);
  SIM_CHECK(kName, params->rangeIndex < header.ranges, NVPA_STATUS_INVALID_ARGUMENT);
  const sim::LegacyRange* range = RangeOf(params->pCounterDataImage, params->rangeIndex);
  std::lock_guard lock(W().mutex);
  for (size_t i = 0; i < params->numMetricEvalRequests; ++i) {
    auto name = W().names.find(KeyOf(params->pMetricEvalRequests[i]));
    SIM_CHECK(kName, name != W().names.end(), NVPA_STATUS_INVALID_ARGUMENT);
    params->pMetricValues[i] = sim::ValueOf(range->kernels, name->second);
  }
  return NVPA_STATUS_SUCCESS;
}

NVPA_Status NVPW_CUDA_RawMetricsConfig_Create_V2(NVPW_CUDA_RawMetricsConfig_Create_V2_Params* params) {
  SIM_PARAMS(NVPW_CUDA_RawMetricsConfig_Create_V2);
  SIM_CHECK("RawMetricsConfig_Create", params->activityKind == NVPA_ACTIVITY_KIND_PROFILER,
            NVPA_STATUS_INVALID_ARGUMENT);
  NVPW_CUDA_RawMetricsConfig_Create_V2_Params copy = *params;
  copy.pCounterAvailabilityImage = nullptr;
  NVPA_Status status = Forward("NVPW_CUDA_RawMetricsConfig_Create_V2", &copy);
  params->pRawMetricsConfig = copy.pRawMetricsConfig;
  std::lock_guard lock(W().mutex);
  if (status == NVPA_STATUS_SUCCESS) W().configs[copy.pRawMetricsConfig] = Stage::kCreated;
  return status;
}

NVPA_Status NVPW_RawMetricsConfig_Destroy(NVPW_RawMetricsConfig_Destroy_Params* params) {
  // Freed even when told to fail: what the test looks for is that it was called.
  if (params != nullptr) {
    std::lock_guard lock(W().mutex);
    if (W().configs.erase(params->pRawMetricsConfig) == 0) sim::Violation("RawMetricsConfig_Destroy", "not created");
  }
  SIM_PARAMS(NVPW_RawMetricsConfig_Destroy);
  return Forward("NVPW_RawMetricsConfig_Destroy", params);
}

NVPA_Status NVPW_RawMetricsConfig_SetCounterAvailability(
    NVPW_RawMetricsConfig_SetCounterAvailability_Params* params) {
  SIM_PARAMS(NVPW_RawMetricsConfig_SetCounterAvailability);
  SIM_CHECK("SetCounterAvailability", params->pCounterAvailabilityImage != nullptr, NVPA_STATUS_INVALID_ARGUMENT);
  // Before any counter is scheduled.
  return Advance("SetCounterAvailability", params->pRawMetricsConfig, Stage::kCreated, Stage::kCreated)
             ? NVPA_STATUS_SUCCESS
             : NVPA_STATUS_INVALID_ARGUMENT;
}

#define SIM_STAGE(name, from, to)                                                                                \
  NVPA_Status name(name##_Params* params) {                                                                      \
    SIM_PARAMS(name);                                                                                            \
    if (!Advance(#name, params->pRawMetricsConfig, Stage::from, Stage::to)) return NVPA_STATUS_INVALID_ARGUMENT; \
    return Forward(#name, params);                                                                               \
  }
SIM_STAGE(NVPW_RawMetricsConfig_BeginPassGroup, kCreated, kGroup)
SIM_STAGE(NVPW_RawMetricsConfig_AddMetrics, kGroup, kAdded)
SIM_STAGE(NVPW_RawMetricsConfig_EndPassGroup, kAdded, kClosed)
SIM_STAGE(NVPW_RawMetricsConfig_GenerateConfigImage, kClosed, kGenerated)
SIM_STAGE(NVPW_RawMetricsConfig_GetConfigImage, kGenerated, kGenerated)
SIM_STAGE(NVPW_RawMetricsConfig_GetNumPasses, kGenerated, kGenerated)

SIM_FORWARD_CHIP(NVPW_CUDA_CounterDataBuilder_Create, pCounterDataBuilder)
SIM_FORWARD(NVPW_CounterDataBuilder_Destroy)
SIM_FORWARD(NVPW_CounterDataBuilder_AddMetrics)
SIM_FORWARD(NVPW_CounterDataBuilder_GetCounterDataPrefix)
}
