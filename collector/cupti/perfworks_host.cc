// File: perfworks_host.cc
//
// Every question about a set of metrics goes the same way: a metric's name becomes a request, the request its raw
// counters, and the raw counters a configuration (which says how many passes they take) or a counter data prefix.
#include "collector/cupti/perfworks_host.h"

#include <unordered_map>
#include <utility>

#include "collector/cupti/api.h"

namespace rfinject::cupti {
namespace {

// Counters are collected kernel by kernel while the GPU's other work waits, which Perfworks calls isolated. Their
// values are kept by instance, as in NVIDIA's samples, since roll-ups other than the sum need the instances.
constexpr NVPA_Bool kIsolated = 1;
constexpr NVPA_Bool kKeepInstances = 1;

class Perfworks : public PerfworksHost {
 public:
  Perfworks(const Api& api, std::string chip, std::span<const uint8_t> availability)
      : api_(api), chip_(std::move(chip)), availability_(availability.begin(), availability.end()) {}

  ~Perfworks() override {
    if (evaluator_ == nullptr) return;
    RFINJECT_PARAMS(NVPW_MetricsEvaluator_Destroy, params);
    params.pMetricsEvaluator = evaluator_;
    api_.NVPW_MetricsEvaluator_Destroy(&params);
  }

  NVPA_Status Open() {
    RFINJECT_PARAMS(NVPW_InitializeHost, initialize);
    NVPA_Status status = api_.NVPW_InitializeHost(&initialize);
    if (status != NVPA_STATUS_SUCCESS) return status;
    RFINJECT_PARAMS(NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize, size);
    size.pChipName = chip_.c_str();
    size.pCounterAvailabilityImage = availability();
    status = api_.NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize(&size);
    if (status != NVPA_STATUS_SUCCESS) return status;
    scratch_.resize(size.scratchBufferSize);
    RFINJECT_PARAMS(NVPW_CUDA_MetricsEvaluator_Initialize, open);
    open.pScratchBuffer = scratch_.data();
    open.scratchBufferSize = scratch_.size();
    open.pChipName = chip_.c_str();
    open.pCounterAvailabilityImage = availability();
    status = api_.NVPW_CUDA_MetricsEvaluator_Initialize(&open);
    if (status == NVPA_STATUS_SUCCESS) evaluator_ = open.pMetricsEvaluator;
    return status;
  }

  std::vector<std::string> BaseMetrics() override {
    std::vector<std::string> names;
    for (NVPW_MetricType type : {NVPW_METRIC_TYPE_COUNTER, NVPW_METRIC_TYPE_RATIO, NVPW_METRIC_TYPE_THROUGHPUT}) {
      RFINJECT_PARAMS(NVPW_MetricsEvaluator_GetMetricNames, params);
      params.pMetricsEvaluator = evaluator_;
      params.metricType = static_cast<uint8_t>(type);
      if (api_.NVPW_MetricsEvaluator_GetMetricNames(&params) != NVPA_STATUS_SUCCESS) continue;
      for (size_t i = 0; i < params.numMetrics; ++i) {
        names.emplace_back(params.pMetricNames + params.pMetricNameBeginIndices[i]);
      }
    }
    return names;
  }

  size_t Passes(std::span<const std::string> metrics) override {
    size_t passes = 0;
    WithConfig(metrics, [&](NVPA_RawMetricsConfig* config) {
      RFINJECT_PARAMS(NVPW_RawMetricsConfig_GetNumPasses, params);
      params.pRawMetricsConfig = config;
      // There is one nesting level: no ranges within ranges.
      if (api_.NVPW_RawMetricsConfig_GetNumPasses(&params) == NVPA_STATUS_SUCCESS) {
        passes = params.numPipelinedPasses + params.numIsolatedPasses;
      }
    });
    return passes;
  }

  std::vector<uint8_t> ConfigImage(std::span<const std::string> metrics) override {
    std::vector<uint8_t> image;
    WithConfig(metrics, [&](NVPA_RawMetricsConfig* config) {
      RFINJECT_PARAMS(NVPW_RawMetricsConfig_GetConfigImage, params);
      params.pRawMetricsConfig = config;
      if (api_.NVPW_RawMetricsConfig_GetConfigImage(&params) != NVPA_STATUS_SUCCESS) return;
      image.resize(params.bytesCopied);
      params.bytesAllocated = image.size();
      params.pBuffer = image.data();
      if (api_.NVPW_RawMetricsConfig_GetConfigImage(&params) != NVPA_STATUS_SUCCESS) image.clear();
    });
    return image;
  }

  std::vector<uint8_t> CounterDataPrefix(std::span<const std::string> metrics) override {
    std::vector<NVPA_RawMetricRequest> requests;
    if (!RawRequests(metrics, &requests)) return {};
    RFINJECT_PARAMS(NVPW_CUDA_CounterDataBuilder_Create, create);
    create.pChipName = chip_.c_str();
    create.pCounterAvailabilityImage = availability();
    if (api_.NVPW_CUDA_CounterDataBuilder_Create(&create) != NVPA_STATUS_SUCCESS) return {};
    std::vector<uint8_t> prefix = CounterDataPrefix(create.pCounterDataBuilder, requests);
    RFINJECT_PARAMS(NVPW_CounterDataBuilder_Destroy, destroy);
    destroy.pCounterDataBuilder = create.pCounterDataBuilder;
    api_.NVPW_CounterDataBuilder_Destroy(&destroy);
    return prefix;
  }

  bool Ranges(std::span<const uint8_t> counter_data, size_t* ranges) override {
    RFINJECT_PARAMS(NVPW_CounterData_GetNumRanges, params);
    params.pCounterDataImage = counter_data.data();
    if (api_.NVPW_CounterData_GetNumRanges(&params) != NVPA_STATUS_SUCCESS) return false;
    *ranges = params.numRanges;
    return true;
  }

  bool RangeName(std::span<const uint8_t> counter_data, size_t range, std::string* name) override {
    if (api_.NVPW_Profiler_CounterData_GetRangeDescriptions == nullptr) return false;
    RFINJECT_PARAMS(NVPW_Profiler_CounterData_GetRangeDescriptions, params);
    params.pCounterDataImage = counter_data.data();
    params.rangeIndex = range;
    if (api_.NVPW_Profiler_CounterData_GetRangeDescriptions(&params) != NVPA_STATUS_SUCCESS) return false;
    std::vector<const char*> names(params.numDescriptions);
    params.ppDescriptions = names.data();
    if (api_.NVPW_Profiler_CounterData_GetRangeDescriptions(&params) != NVPA_STATUS_SUCCESS) return false;
    if (names.empty() || names.back() == nullptr) return false;
    *name = names.back();
    return true;
  }

  bool SetDevice(std::span<const uint8_t> counter_data) override {
    RFINJECT_PARAMS(NVPW_MetricsEvaluator_SetDeviceAttributes, params);
    params.pMetricsEvaluator = evaluator_;
    params.pCounterDataImage = counter_data.data();
    params.counterDataImageSize = counter_data.size();
    return api_.NVPW_MetricsEvaluator_SetDeviceAttributes(&params) == NVPA_STATUS_SUCCESS;
  }

  bool Evaluate(std::span<const uint8_t> counter_data, size_t range, std::span<const std::string> metrics,
                std::span<double> values) override {
    std::vector<NVPW_MetricEvalRequest> requests;
    requests.reserve(metrics.size());
    for (const std::string& metric : metrics) {
      const Known* known = Find(metric);
      if (known == nullptr) return false;
      requests.push_back(known->request);
    }
    RFINJECT_PARAMS(NVPW_MetricsEvaluator_EvaluateToGpuValues, params);
    params.pMetricsEvaluator = evaluator_;
    params.pMetricEvalRequests = requests.data();
    params.numMetricEvalRequests = requests.size();
    params.metricEvalRequestStructSize = NVPW_MetricEvalRequest_STRUCT_SIZE;
    params.metricEvalRequestStrideSize = sizeof(NVPW_MetricEvalRequest);
    params.pCounterDataImage = counter_data.data();
    params.counterDataImageSize = counter_data.size();
    params.rangeIndex = range;
    params.isolated = kIsolated;
    params.pMetricValues = values.data();
    return api_.NVPW_MetricsEvaluator_EvaluateToGpuValues(&params) == NVPA_STATUS_SUCCESS;
  }

 private:
  struct Known {
    NVPW_MetricEvalRequest request = {};
    std::vector<std::string> raw;  // names of the counters that it is computed from
  };

  const uint8_t* availability() const { return availability_.empty() ? nullptr : availability_.data(); }

  // Returns nullptr if the chip has no such metric. The planner asks for the same few again and again, so answers are
  // kept; a failure is not kept, since it may be one of this call only.
  const Known* Find(const std::string& metric) {
    if (auto at = known_.find(metric); at != known_.end()) return &at->second;
    Known known;
    RFINJECT_PARAMS(NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest, convert);
    convert.pMetricsEvaluator = evaluator_;
    convert.pMetricName = metric.c_str();
    convert.pMetricEvalRequest = &known.request;
    convert.metricEvalRequestStructSize = NVPW_MetricEvalRequest_STRUCT_SIZE;
    if (api_.NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest(&convert) != NVPA_STATUS_SUCCESS) {
      return nullptr;
    }
    RFINJECT_PARAMS(NVPW_MetricsEvaluator_GetMetricRawDependencies, raw);
    raw.pMetricsEvaluator = evaluator_;
    raw.pMetricEvalRequests = &known.request;
    raw.numMetricEvalRequests = 1;
    raw.metricEvalRequestStructSize = NVPW_MetricEvalRequest_STRUCT_SIZE;
    raw.metricEvalRequestStrideSize = sizeof(NVPW_MetricEvalRequest);
    if (api_.NVPW_MetricsEvaluator_GetMetricRawDependencies(&raw) != NVPA_STATUS_SUCCESS) return nullptr;
    std::vector<const char*> names(raw.numRawDependencies);
    raw.ppRawDependencies = names.data();
    if (api_.NVPW_MetricsEvaluator_GetMetricRawDependencies(&raw) != NVPA_STATUS_SUCCESS) return nullptr;
    names.resize(raw.numRawDependencies);
    known.raw.assign(names.begin(), names.end());
    return &known_.emplace(metric, std::move(known)).first->second;
  }

  // The raw counters of `metrics`; false when one of the metrics does not exist. The names belong to known_, whose
  // nodes do not move.
  bool RawRequests(std::span<const std::string> metrics, std::vector<NVPA_RawMetricRequest>* requests) {
    for (const std::string& metric : metrics) {
      const Known* known = Find(metric);
      if (known == nullptr) return false;
      for (const std::string& raw : known->raw) {
        NVPA_RawMetricRequest request = {NVPA_RAW_METRIC_REQUEST_STRUCT_SIZE};
        request.pMetricName = raw.c_str();
        request.isolated = kIsolated;
        request.keepInstances = kKeepInstances;
        requests->push_back(request);
      }
    }
    return !requests->empty();
  }

  template <typename Use>
  void WithConfig(std::span<const std::string> metrics, Use use) {
    std::vector<NVPA_RawMetricRequest> requests;
    if (!RawRequests(metrics, &requests)) return;
    RFINJECT_PARAMS(NVPW_CUDA_RawMetricsConfig_Create_V2, create);
    create.activityKind = NVPA_ACTIVITY_KIND_PROFILER;
    create.pChipName = chip_.c_str();
    create.pCounterAvailabilityImage = availability();
    if (api_.NVPW_CUDA_RawMetricsConfig_Create_V2(&create) != NVPA_STATUS_SUCCESS) return;
    if (Generate(create.pRawMetricsConfig, requests) == NVPA_STATUS_SUCCESS) use(create.pRawMetricsConfig);
    RFINJECT_PARAMS(NVPW_RawMetricsConfig_Destroy, destroy);
    destroy.pRawMetricsConfig = create.pRawMetricsConfig;
    api_.NVPW_RawMetricsConfig_Destroy(&destroy);
  }

  NVPA_Status Generate(NVPA_RawMetricsConfig* config, const std::vector<NVPA_RawMetricRequest>& requests) {
    if (!availability_.empty()) {
      // Counters that the device does not offer must not be scheduled.
      RFINJECT_PARAMS(NVPW_RawMetricsConfig_SetCounterAvailability, available);
      available.pRawMetricsConfig = config;
      available.pCounterAvailabilityImage = availability_.data();
      NVPA_Status status = api_.NVPW_RawMetricsConfig_SetCounterAvailability(&available);
      if (status != NVPA_STATUS_SUCCESS) return status;
    }
    RFINJECT_PARAMS(NVPW_RawMetricsConfig_BeginPassGroup, begin);
    begin.pRawMetricsConfig = config;
    NVPA_Status status = api_.NVPW_RawMetricsConfig_BeginPassGroup(&begin);
    if (status != NVPA_STATUS_SUCCESS) return status;
    RFINJECT_PARAMS(NVPW_RawMetricsConfig_AddMetrics, add);
    add.pRawMetricsConfig = config;
    add.pRawMetricRequests = requests.data();
    add.numMetricRequests = requests.size();
    status = api_.NVPW_RawMetricsConfig_AddMetrics(&add);
    if (status != NVPA_STATUS_SUCCESS) return status;
    RFINJECT_PARAMS(NVPW_RawMetricsConfig_EndPassGroup, end);
    end.pRawMetricsConfig = config;
    status = api_.NVPW_RawMetricsConfig_EndPassGroup(&end);
    if (status != NVPA_STATUS_SUCCESS) return status;
    RFINJECT_PARAMS(NVPW_RawMetricsConfig_GenerateConfigImage, generate);
    generate.pRawMetricsConfig = config;
    return api_.NVPW_RawMetricsConfig_GenerateConfigImage(&generate);
  }

  std::vector<uint8_t> CounterDataPrefix(NVPA_CounterDataBuilder* builder,
                                         const std::vector<NVPA_RawMetricRequest>& requests) {
    RFINJECT_PARAMS(NVPW_CounterDataBuilder_AddMetrics, add);
    add.pCounterDataBuilder = builder;
    add.pRawMetricRequests = requests.data();
    add.numMetricRequests = requests.size();
    if (api_.NVPW_CounterDataBuilder_AddMetrics(&add) != NVPA_STATUS_SUCCESS) return {};
    RFINJECT_PARAMS(NVPW_CounterDataBuilder_GetCounterDataPrefix, get);
    get.pCounterDataBuilder = builder;
    if (api_.NVPW_CounterDataBuilder_GetCounterDataPrefix(&get) != NVPA_STATUS_SUCCESS) return {};
    std::vector<uint8_t> prefix(get.bytesCopied);
    get.bytesAllocated = prefix.size();
    get.pBuffer = prefix.data();
    if (api_.NVPW_CounterDataBuilder_GetCounterDataPrefix(&get) != NVPA_STATUS_SUCCESS) return {};
    return prefix;
  }

  const Api& api_;
  std::string chip_;
  std::vector<uint8_t> availability_;
  std::vector<uint8_t> scratch_;  // the evaluator's memory
  NVPW_MetricsEvaluator* evaluator_ = nullptr;
  std::unordered_map<std::string, Known> known_;
};

}  // namespace

int CuptiResultOf(int nvpa_status) {
  constexpr std::pair<NVPA_Status, CUptiResult> kResultOf[] = {
      {NVPA_STATUS_SUCCESS, CUPTI_SUCCESS},
      {NVPA_STATUS_NOT_INITIALIZED, CUPTI_ERROR_NOT_INITIALIZED},
      {NVPA_STATUS_NOT_LOADED, CUPTI_ERROR_NOT_INITIALIZED},
      {NVPA_STATUS_FUNCTION_NOT_FOUND, CUPTI_ERROR_NOT_INITIALIZED},
      {NVPA_STATUS_OUT_OF_MEMORY, CUPTI_ERROR_OUT_OF_MEMORY},
      {NVPA_STATUS_INVALID_ARGUMENT, CUPTI_ERROR_INVALID_CHIP_NAME},  // what a chip that it does not know gives
      {NVPA_STATUS_UNSUPPORTED_GPU, CUPTI_ERROR_INVALID_CHIP_NAME},
      {NVPA_STATUS_NOT_SUPPORTED, CUPTI_ERROR_NOT_SUPPORTED},
      {NVPA_STATUS_NOT_IMPLEMENTED, CUPTI_ERROR_NOT_SUPPORTED},
      {NVPA_STATUS_INSUFFICIENT_PRIVILEGE, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES},
      {NVPA_STATUS_PROFILING_NOT_ALLOWED, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES},
      {NVPA_STATUS_RESOURCE_UNAVAILABLE, CUPTI_ERROR_HARDWARE_BUSY},
      {NVPA_STATUS_VIRTUALIZED_DEVICE_NOT_SUPPORTED, CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED},
  };
  for (const auto& [status, result] : kResultOf) {
    if (status == nvpa_status) return result;
  }
  return CUPTI_ERROR_UNKNOWN;
}

std::unique_ptr<PerfworksHost> MakePerfworksHost(const Api& api, const std::string& chip,
                                                 std::span<const uint8_t> availability, int* result) {
  if (!api.has(kPerfworksHost)) {
    *result = CUPTI_ERROR_NOT_INITIALIZED;
    return nullptr;
  }
  auto host = std::make_unique<Perfworks>(api, chip, availability);
  *result = CuptiResultOf(host->Open());
  if (*result != CUPTI_SUCCESS) return nullptr;
  return host;
}

}  // namespace rfinject::cupti
