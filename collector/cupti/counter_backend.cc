#include "collector/cupti/counter_backend.h"

#include <charconv>
#include <limits>

namespace rfinject::cupti {

int CounterBackend::Open(int device, const std::vector<std::string>& user_metrics, bool bytes, std::string* chip) {
  if (int result = OpenChip(api_, device, chip); result != CUPTI_SUCCESS) return result;
  RFINJECT_PARAMS(CUpti_Profiler_GetCounterAvailability, image);
  image.ctx = context_;
  CUptiResult result = api_.cuptiProfilerGetCounterAvailability(&image);
  if (result != CUPTI_SUCCESS) return result;
  std::vector<uint8_t> availability(image.counterAvailabilityImageSize);
  image.pCounterAvailabilityImage = availability.data();
  result = api_.cuptiProfilerGetCounterAvailability(&image);
  if (result != CUPTI_SUCCESS) return result;

  int host_result = 0;
  host_ = MakeHost(*chip, availability, &host_result);
  if (host_ == nullptr) return host_result;
  PlanRequest request;
  request.metrics = SelectMetrics(host_->BaseMetrics(), *chip);
  request.user_metrics = user_metrics;
  request.bytes = bytes;
  metrics_ = request.metrics;
  plan_ = MakePlan(*host_, request);
  return plan_.groups.empty() ? CUPTI_ERROR_NOT_SUPPORTED : Configure(*chip);
}

int CounterBackend::Start(size_t group, size_t max_ranges) {
  if (started_) return CUPTI_ERROR_INVALID_OPERATION;
  group_ = group;
  max_ranges_ = max_ranges;
  const int result = Begin();
  started_ = result == CUPTI_SUCCESS;
  return result;
}

int CounterBackend::Push(size_t ordinal) {
  char name[24];
  *std::to_chars(name, name + sizeof name - 1, ordinal).ptr = '\0';
  return PushName(name);
}

int CounterBackend::Collect(size_t ranges, std::vector<double>* values) {
  const std::vector<std::string>& metrics = plan_.groups[group_].metrics;
  values->assign(ranges * metrics.size(), std::numeric_limits<double>::quiet_NaN());
  size_t found = 0;
  if (const int result = Decode(&found); result != CUPTI_SUCCESS) return result;
  for (size_t range = 0; range < found; ++range) {
    std::string name;
    if (!RangeName(range, &name)) return CUPTI_ERROR_INVALID_OPERATION;
    size_t ordinal = ranges;
    const char* end = name.data() + name.size();
    const auto [at, error] = std::from_chars(name.data(), end, ordinal);
    if (error != std::errc() || at != end || ordinal >= ranges) return CUPTI_ERROR_INVALID_OPERATION;
    const std::span<double> row(values->data() + ordinal * metrics.size(), metrics.size());
    if (!host_->Evaluate(counter_data_, range, metrics, row)) return CUPTI_ERROR_INVALID_METRIC_VALUE;
  }
  return CUPTI_SUCCESS;
}

}  // namespace rfinject::cupti
