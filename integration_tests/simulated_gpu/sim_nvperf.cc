// File: sim_nvperf.cc
//
// libnvperf_host.so beside a simulated CUPTI. Planning goes to the real library in SIM_REAL_CUPTI, so that groups and
// passes are the real ones; evaluation answers from the kernels' known metrics. Sizes, NULLs and order are checked.
#include <nvperf_cuda_host.h>
#include <nvperf_host.h>
#include <nvperf_target.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "integration_tests/simulated_gpu/sim_answers.h"
#include "integration_tests/simulated_gpu/sim_checks.h"
#include "integration_tests/simulated_gpu/sim_legacy.h"

namespace {

using Request = std::tuple<size_t, uint8_t, uint8_t, uint16_t>;

enum class Stage { kCreated, kGroup, kAdded, kClosed, kGenerated };

// A caller's configuration points to one of these.
struct Config {
  Stage stage = Stage::kCreated;
  sim::Asked<NVPA_RawMetricsConfig, NVPA_Status> asked;
};

struct World {
  std::mutex mutex;
  bool initialised = false;
  std::map<Request, std::string> names;  // of metrics, by what they were converted to
  std::map<const void*, std::unique_ptr<Config>> configs;
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

// The configuration that a caller means, moved from one stage to the next; null, and a violation, where that cannot
// be.
Config* Advance(const char* function, const void* object, Stage from, Stage to) {
  std::lock_guard lock(W().mutex);
  auto at = W().configs.find(object);
  if (at == W().configs.end() || at->second->stage != from) {
    sim::Violation(function, "out of order");
    return nullptr;
  }
  at->second->stage = to;
  return at->second.get();
}

// Asks the real library to do what has no answer but its status.
template <typename Params>
NVPA_Status Do(Config* config, const char* name, size_t size) {
  return config->asked.Ask(name, [name, size](NVPA_RawMetricsConfig** real, std::string*) {
    Params params = {size};
    params.pRawMetricsConfig = *real;
    return Forward(name, &params);
  });
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
  auto config = std::make_unique<Config>();
  const std::string chip = params->pChipName;
  const NVPA_Status status = config->asked.Ask("new " + chip, [chip](NVPA_RawMetricsConfig** real, std::string*) {
    NVPW_CUDA_RawMetricsConfig_Create_V2_Params create = {NVPW_CUDA_RawMetricsConfig_Create_V2_Params_STRUCT_SIZE};
    create.activityKind = NVPA_ACTIVITY_KIND_PROFILER;
    create.pChipName = chip.c_str();
    const NVPA_Status result = Forward("NVPW_CUDA_RawMetricsConfig_Create_V2", &create);
    *real = create.pRawMetricsConfig;
    return result;
  });
  if (status != NVPA_STATUS_SUCCESS) return status;
  std::lock_guard lock(W().mutex);
  params->pRawMetricsConfig = reinterpret_cast<NVPA_RawMetricsConfig*>(config.get());
  W().configs[config.get()] = std::move(config);
  return status;
}

NVPA_Status NVPW_RawMetricsConfig_Destroy(NVPW_RawMetricsConfig_Destroy_Params* params) {
  // Freed even when told to fail: what the test looks for is that it was called.
  std::unique_ptr<Config> config;
  if (params != nullptr) {
    std::lock_guard lock(W().mutex);
    auto node = W().configs.extract(params->pRawMetricsConfig);
    if (node.empty()) {
      sim::Violation("RawMetricsConfig_Destroy", "not created");
    } else {
      config = std::move(node.mapped());
    }
  }
  SIM_PARAMS(NVPW_RawMetricsConfig_Destroy);
  if (config == nullptr) return NVPA_STATUS_INVALID_ARGUMENT;
  if (config->asked.MadeReal() == nullptr) return NVPA_STATUS_SUCCESS;
  NVPW_RawMetricsConfig_Destroy_Params destroy = {NVPW_RawMetricsConfig_Destroy_Params_STRUCT_SIZE};
  destroy.pRawMetricsConfig = config->asked.MadeReal();
  return Forward("NVPW_RawMetricsConfig_Destroy", &destroy);
}

NVPA_Status NVPW_RawMetricsConfig_SetCounterAvailability(
    NVPW_RawMetricsConfig_SetCounterAvailability_Params* params) {
  SIM_PARAMS(NVPW_RawMetricsConfig_SetCounterAvailability);
  SIM_CHECK("SetCounterAvailability", params->pCounterAvailabilityImage != nullptr, NVPA_STATUS_INVALID_ARGUMENT);
  // Before any counter is scheduled.
  return Advance("SetCounterAvailability", params->pRawMetricsConfig, Stage::kCreated, Stage::kCreated) != nullptr
             ? NVPA_STATUS_SUCCESS
             : NVPA_STATUS_INVALID_ARGUMENT;
}

// Sets `config`, whose stage must be the one, and becomes the other.
#define SIM_STAGE(name, from, to)                                                           \
  SIM_PARAMS(name);                                                                         \
  Config* const config = Advance(#name, params->pRawMetricsConfig, Stage::from, Stage::to); \
  if (config == nullptr) return NVPA_STATUS_INVALID_ARGUMENT
#define SIM_DO(name, from, to)                                          \
  NVPA_Status name(name##_Params* params) {                             \
    SIM_STAGE(name, from, to);                                          \
    return Do<name##_Params>(config, #name, name##_Params_STRUCT_SIZE); \
  }
SIM_DO(NVPW_RawMetricsConfig_BeginPassGroup, kCreated, kGroup)
SIM_DO(NVPW_RawMetricsConfig_EndPassGroup, kAdded, kClosed)
SIM_DO(NVPW_RawMetricsConfig_GenerateConfigImage, kClosed, kGenerated)

NVPA_Status NVPW_RawMetricsConfig_AddMetrics(NVPW_RawMetricsConfig_AddMetrics_Params* params) {
  SIM_STAGE(NVPW_RawMetricsConfig_AddMetrics, kGroup, kAdded);
  std::string text = "add";
  std::vector<std::pair<std::string, NVPA_RawMetricRequest>> requests;
  for (size_t i = 0; i < params->numMetricRequests; ++i) {
    const NVPA_RawMetricRequest& request = params->pRawMetricRequests[i];
    SIM_CHECK("AddMetrics", request.structSize == NVPA_RAW_METRIC_REQUEST_STRUCT_SIZE && request.pPriv == nullptr,
              NVPA_STATUS_INVALID_ARGUMENT);
    requests.emplace_back(request.pMetricName, request);
    text += std::string(" ") + request.pMetricName + sim::Bytes(request.isolated) + sim::Bytes(request.keepInstances);
  }
  return config->asked.Ask(text, [requests](NVPA_RawMetricsConfig** real, std::string*) {
    std::vector<NVPA_RawMetricRequest> copies;
    for (const auto& [name, request] : requests) {
      copies.push_back(request);
      copies.back().pMetricName = name.c_str();
    }
    NVPW_RawMetricsConfig_AddMetrics_Params add = {NVPW_RawMetricsConfig_AddMetrics_Params_STRUCT_SIZE};
    add.pRawMetricsConfig = *real;
    add.pRawMetricRequests = copies.data();
    add.numMetricRequests = copies.size();
    return Forward("NVPW_RawMetricsConfig_AddMetrics", &add);
  });
}

NVPA_Status NVPW_RawMetricsConfig_GetConfigImage(NVPW_RawMetricsConfig_GetConfigImage_Params* params) {
  SIM_STAGE(NVPW_RawMetricsConfig_GetConfigImage, kGenerated, kGenerated);
  const size_t size = params->pBuffer != nullptr ? params->bytesAllocated : 0;
  std::string image;
  const NVPA_Status status = config->asked.Ask(
      "image " + std::to_string(size),
      [size](NVPA_RawMetricsConfig** real, std::string* answer) {
        std::string buffer(size, '\0');
        NVPW_RawMetricsConfig_GetConfigImage_Params get = {NVPW_RawMetricsConfig_GetConfigImage_Params_STRUCT_SIZE};
        get.pRawMetricsConfig = *real;
        get.bytesAllocated = size;
        get.pBuffer = size != 0 ? reinterpret_cast<uint8_t*>(buffer.data()) : nullptr;
        const NVPA_Status result = Forward("NVPW_RawMetricsConfig_GetConfigImage", &get);
        *answer = sim::Bytes(get.bytesCopied) + buffer;
        return result;
      },
      &image);
  sim::FromBytes(image.substr(0, sizeof params->bytesCopied), &params->bytesCopied);
  if (size != 0) memcpy(params->pBuffer, image.data() + sizeof params->bytesCopied, size);
  return status;
}

NVPA_Status NVPW_RawMetricsConfig_GetNumPasses(NVPW_RawMetricsConfig_GetNumPasses_Params* params) {
  SIM_STAGE(NVPW_RawMetricsConfig_GetNumPasses, kGenerated, kGenerated);
  using Passes = std::array<size_t, 2>;  // pipelined, isolated
  std::string passes;
  const NVPA_Status status = config->asked.Ask(
      "passes",
      [](NVPA_RawMetricsConfig** real, std::string* answer) {
        NVPW_RawMetricsConfig_GetNumPasses_Params get = {NVPW_RawMetricsConfig_GetNumPasses_Params_STRUCT_SIZE};
        get.pRawMetricsConfig = *real;
        const NVPA_Status result = Forward("NVPW_RawMetricsConfig_GetNumPasses", &get);
        *answer = sim::Bytes(Passes{get.numPipelinedPasses, get.numIsolatedPasses});
        return result;
      },
      &passes);
  Passes numbers = {params->numPipelinedPasses, params->numIsolatedPasses};
  sim::FromBytes(passes, &numbers);
  params->numPipelinedPasses = numbers[0];
  params->numIsolatedPasses = numbers[1];
  return status;
}

SIM_FORWARD_CHIP(NVPW_CUDA_CounterDataBuilder_Create, pCounterDataBuilder)
SIM_FORWARD(NVPW_CounterDataBuilder_Destroy)
SIM_FORWARD(NVPW_CounterDataBuilder_AddMetrics)
SIM_FORWARD(NVPW_CounterDataBuilder_GetCounterDataPrefix)
}
