
#include "collector/cupti/api.h"
#include "collector/cupti/metric_host.h"

namespace rfinject::cupti {
namespace {

class ProfilerHost : public MetricHost {
 public:
  ProfilerHost(const Api& api, std::string chip, HostKind kind, std::span<const uint8_t> availability)
      : api_(api), chip_(std::move(chip)), kind_(kind), availability_(availability.begin(), availability.end()) {}

  ~ProfilerHost() override {
    if (object_ != nullptr) Close(object_);
  }

  CUptiResult Open() { return Open(&object_); }

  std::vector<std::string> BaseMetrics() override {
    std::vector<std::string> names;
    for (CUpti_MetricType type : {CUPTI_METRIC_TYPE_COUNTER, CUPTI_METRIC_TYPE_RATIO, CUPTI_METRIC_TYPE_THROUGHPUT}) {
      RFINJECT_PARAMS(CUpti_Profiler_Host_GetBaseMetrics, params);
      params.pHostObject = object_;
      params.metricType = type;
      if (api_.cuptiProfilerHostGetBaseMetrics(&params) != CUPTI_SUCCESS) continue;
      names.insert(names.end(), params.ppMetricNames, params.ppMetricNames + params.numMetrics);
    }
    return names;
  }

  size_t Passes(std::span<const std::string> metrics) override {
    std::vector<uint8_t> image = ConfigImage(metrics);
    if (image.empty()) return 0;
    RFINJECT_PARAMS(CUpti_Profiler_Host_GetNumOfPasses, params);
    params.configImageSize = image.size();
    params.pConfigImage = image.data();
    return api_.cuptiProfilerHostGetNumOfPasses(&params) == CUPTI_SUCCESS ? params.numOfPasses : 0;
  }

  std::vector<uint8_t> ConfigImage(std::span<const std::string> metrics) override {
    // Metrics can only be added to an object, never taken out: each question gets an object of its own (0.1 ms).
    CUpti_Profiler_Host_Object* object = nullptr;
    if (Open(&object) != CUPTI_SUCCESS) return {};
    std::vector<uint8_t> image = ConfigImage(object, metrics);
    Close(object);
    return image;
  }

  bool Evaluate(std::span<const uint8_t> counter_data, size_t range, std::span<const std::string> metrics,
                std::span<double> values) override {
    std::vector<const char*> names = Pointers(metrics);
    RFINJECT_PARAMS(CUpti_Profiler_Host_EvaluateToGpuValues, params);
    params.pHostObject = object_;
    params.pCounterDataImage = counter_data.data();
    params.counterDataImageSize = counter_data.size();
    params.rangeIndex = range;
    params.ppMetricNames = names.data();
    params.numMetrics = names.size();
    params.pMetricValues = values.data();
    return api_.cuptiProfilerHostEvaluateToGpuValues(&params) == CUPTI_SUCCESS;
  }

 private:
  static std::vector<const char*> Pointers(std::span<const std::string> metrics) {
    std::vector<const char*> names;
    names.reserve(metrics.size());
    for (const std::string& metric : metrics) names.push_back(metric.c_str());
    return names;
  }

  CUptiResult Open(CUpti_Profiler_Host_Object** object) {
    RFINJECT_PARAMS(CUpti_Profiler_Host_Initialize, params);
    params.profilerType =
        kind_ == HostKind::kRangeProfiler ? CUPTI_PROFILER_TYPE_RANGE_PROFILER : CUPTI_PROFILER_TYPE_PM_SAMPLING;
    params.pChipName = chip_.c_str();
    params.pCounterAvailabilityImage = availability_.empty() ? nullptr : availability_.data();
    CUptiResult result = api_.cuptiProfilerHostInitialize(&params);
    if (result == CUPTI_SUCCESS) *object = params.pHostObject;
    return result;
  }

  void Close(CUpti_Profiler_Host_Object* object) {
    RFINJECT_PARAMS(CUpti_Profiler_Host_Deinitialize, params);
    params.pHostObject = object;
    api_.cuptiProfilerHostDeinitialize(&params);
  }

  std::vector<uint8_t> ConfigImage(CUpti_Profiler_Host_Object* object, std::span<const std::string> metrics) {
    std::vector<const char*> names = Pointers(metrics);
    RFINJECT_PARAMS(CUpti_Profiler_Host_ConfigAddMetrics, add);
    add.pHostObject = object;
    add.ppMetricNames = names.data();
    add.numMetrics = names.size();
    if (api_.cuptiProfilerHostConfigAddMetrics(&add) != CUPTI_SUCCESS) return {};
    RFINJECT_PARAMS(CUpti_Profiler_Host_GetConfigImageSize, size);
    size.pHostObject = object;
    if (api_.cuptiProfilerHostGetConfigImageSize(&size) != CUPTI_SUCCESS) return {};
    std::vector<uint8_t> image(size.configImageSize);
    RFINJECT_PARAMS(CUpti_Profiler_Host_GetConfigImage, get);
    get.pHostObject = object;
    get.configImageSize = image.size();
    get.pConfigImage = image.data();
    if (api_.cuptiProfilerHostGetConfigImage(&get) != CUPTI_SUCCESS) return {};
    return image;
  }

  const Api& api_;
  std::string chip_;
  HostKind kind_;
  std::vector<uint8_t> availability_;
  CUpti_Profiler_Host_Object* object_ = nullptr;  // for listing and evaluating
};

}  // namespace

int OpenChip(const Api& api, int device, std::string* chip) {
  RFINJECT_PARAMS(CUpti_Profiler_Initialize, initialize);
  CUptiResult result = api.cuptiProfilerInitialize(&initialize);
  if (result != CUPTI_SUCCESS) return result;
  RFINJECT_PARAMS(CUpti_Device_GetChipName, name);
  name.deviceIndex = static_cast<size_t>(device);
  result = api.cuptiDeviceGetChipName(&name);
  if (result == CUPTI_SUCCESS) *chip = name.pChipName;
  return result;
}

std::unique_ptr<MetricHost> MakeProfilerHost(const Api& api, const std::string& chip, HostKind kind,
                                             std::span<const uint8_t> availability, int* result) {
  if (!api.has(kProfilerHost)) {
    *result = CUPTI_ERROR_NOT_SUPPORTED;
    return nullptr;
  }
  auto host = std::make_unique<ProfilerHost>(api, chip, kind, availability);
  *result = host->Open();
  if (*result != CUPTI_SUCCESS) return nullptr;
  return host;
}

}  // namespace rfinject::cupti
