#include "collector/cupti/counter_backend.h"

#include <charconv>

namespace rfinject::cupti {

int CounterBackend::Open(int device, const std::vector<std::string>& user_metrics, std::string* chip) {
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
  metrics_ = request.metrics;
  plan_ = MakePlan(*host_, request);
  return plan_.groups.empty() ? CUPTI_ERROR_NOT_SUPPORTED : Configure(*chip);
}

int CounterBackend::Start(size_t group, size_t max_ranges, bool user_ranges) {
  if (user_ranges && !has_user_ranges()) return CUPTI_ERROR_NOT_SUPPORTED;
  if (running()) return CUPTI_ERROR_INVALID_OPERATION;
  group_ = group;
  ranges_ = user_ranges ? CUPTI_UserRange : CUPTI_AutoRange;
  range_open_ = false;
  return Begin(max_ranges);
}

int CounterBackend::PushRange(size_t ordinal) {
  if (int result = PopRange(); result != CUPTI_SUCCESS) return result;
  char name[24];
  *std::to_chars(name, name + sizeof name - 1, ordinal).ptr = '\0';
  const CUptiResult result = Push(name);
  range_open_ = result == CUPTI_SUCCESS;
  return result;
}

CUptiResult CounterBackend::PopRange() {
  if (!range_open_) return CUPTI_SUCCESS;
  range_open_ = false;
  return Pop();
}

CUptiResult CounterBackend::Evaluate(size_t ranges, std::vector<double>* values) const {
  const std::vector<std::string>& metrics = plan_.groups[group_].metrics;
  values->assign(ranges * metrics.size(), 0);
  for (size_t range = 0; range < ranges; ++range) {
    size_t place = range;
    if (ranges_ == CUPTI_UserRange && !OrdinalOf(range, &place)) return CUPTI_ERROR_INVALID_OPERATION;
    if (place >= ranges) return CUPTI_ERROR_INVALID_OPERATION;
    const std::span<double> row(values->data() + place * metrics.size(), metrics.size());
    if (!host_->Evaluate(counter_data_, range, metrics, row)) return CUPTI_ERROR_INVALID_METRIC_VALUE;
  }
  return CUPTI_SUCCESS;
}

bool CounterBackend::OrdinalOf(size_t range, size_t* ordinal) const {
  std::string name;
  if (!RangeName(range, &name)) return false;
  const char* end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data(), end, *ordinal);
  return error == std::errc() && at == end;
}

}  // namespace rfinject::cupti
