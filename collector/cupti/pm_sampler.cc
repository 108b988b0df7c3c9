#include "collector/cupti/pm_sampler.h"

#include <cmath>
#include <span>

#include "gpus/chips.h"
#include "gpus/counters.h"

namespace rfinject::cupti {
namespace {

// A sample takes 4.6 to 9.2 kB of the hardware's buffer (h100: 27,800 fit 256 MB, 55,000 do not), and 26 kB of the
// image: 16.6 and 46.8 MB.
constexpr size_t kHardwareBytesOfSample = 9216;
// Sampling by cycles is told cycles of the system clock, which runs at 1.4 GHz or so where it is needed: the real
// interval is in the samples' times.
constexpr double kCyclesOfNs = 1.5;

}  // namespace

std::vector<std::string> SelectSampledMetrics(MetricHost& host) {
  for (const DramCounters& dram : kDramCounters) {
    std::vector<std::string> metrics = {std::string(dram.read), std::string(dram.write)};
    if (host.Passes(metrics) != 1) continue;
    for (const std::string_view name : {kTensorCyclesMetric, kL2BytesMetric, kGpuCyclesMetric}) {
      metrics.emplace_back(name);
      if (host.Passes(metrics) != 1) metrics.pop_back();
    }
    return metrics;
  }
  return {};
}

std::unique_ptr<PmSampler> PmSampler::Plan(const Api& api, int device, int* result) {
  *result = CUPTI_ERROR_NOT_SUPPORTED;
  if (!api.has(kPmSampling | kProfilerHost)) return nullptr;
  std::unique_ptr<PmSampler> sampler(new PmSampler(api, device));
  *result = sampler->MakePlan();
  if (*result != CUPTI_SUCCESS) return nullptr;
  return sampler;
}

int PmSampler::MakePlan() {
  std::string chip;
  if (const int result = OpenChip(api_, device_, &chip); result != CUPTI_SUCCESS) return result;
  const Chip* const known = FindChip(chip);
  if (known != nullptr && known->pm_trigger == PmTrigger::kNone) return CUPTI_ERROR_NOT_SUPPORTED;
  by_time_ = known == nullptr || known->pm_trigger != PmTrigger::kCycles;

  RFINJECT_PARAMS(CUpti_PmSampling_GetCounterAvailability, availability);
  availability.deviceIndex = static_cast<size_t>(device_);
  CUptiResult result = api_.cuptiPmSamplingGetCounterAvailability(&availability);
  if (result != CUPTI_SUCCESS) return result;
  std::vector<uint8_t> image(availability.counterAvailabilityImageSize);
  availability.pCounterAvailabilityImage = image.data();
  result = api_.cuptiPmSamplingGetCounterAvailability(&availability);
  if (result != CUPTI_SUCCESS) return result;

  int host_result = 0;
  host_ = MakeProfilerHost(api_, chip, HostKind::kPmSampling, image, &host_result);
  if (host_ == nullptr) return host_result;
  sampled_ = SelectSampledMetrics(*host_);
  if (sampled_.empty()) return CUPTI_ERROR_NOT_SUPPORTED;
  metrics_ = sampled_;
  if (metrics_.back() == kGpuCyclesMetric) metrics_.pop_back();
  config_ = host_->ConfigImage(sampled_);
  return config_.empty() ? CUPTI_ERROR_NOT_SUPPORTED : CUPTI_SUCCESS;
}

int PmSampler::Open(uint64_t interval_ns) {
  if (object_ != nullptr) return CUPTI_ERROR_INVALID_OPERATION;
  interval_ns_ = interval_ns;
  RFINJECT_PARAMS(CUpti_PmSampling_Enable, enable);
  enable.deviceIndex = static_cast<size_t>(device_);
  const CUptiResult enabled = api_.cuptiPmSamplingEnable(&enable);
  if (enabled != CUPTI_SUCCESS) return enabled;
  object_ = enable.pPmSamplingObject;
  const int result = Configure();
  if (result != CUPTI_SUCCESS) Close();
  return result;
}

int PmSampler::Configure() {
  RFINJECT_PARAMS(CUpti_PmSampling_SetConfig, config);
  config.pPmSamplingObject = object_;
  config.configSize = config_.size();
  config.pConfig = config_.data();
  config.hardwareBufferSize = kSamples * kHardwareBytesOfSample;
  config.samplingInterval =
      by_time_ ? interval_ns_ : static_cast<uint64_t>(kCyclesOfNs * static_cast<double>(interval_ns_));
  config.triggerMode = by_time_ ? CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL
                                : CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL;
  // The oldest samples are kept, so that a full buffer is seen as an overflow and not missed as a gap.
  config.hwBufferAppendMode = CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST;
  CUptiResult result = api_.cuptiPmSamplingSetConfig(&config);
  if (result != CUPTI_SUCCESS) return result;
  std::vector<const char*> names;
  for (const std::string& metric : sampled_) names.push_back(metric.c_str());
  RFINJECT_PARAMS(CUpti_PmSampling_GetCounterDataSize, size);
  size.pPmSamplingObject = object_;
  size.pMetricNames = names.data();
  size.numMetrics = names.size();
  size.maxSamples = kSamples;
  result = api_.cuptiPmSamplingGetCounterDataSize(&size);
  if (result == CUPTI_SUCCESS) image_.resize(size.counterDataSize);
  return result;
}

int PmSampler::Start() {
  if (object_ == nullptr || running_) return CUPTI_ERROR_INVALID_OPERATION;
  RFINJECT_PARAMS(CUpti_PmSampling_Start, start);
  start.pPmSamplingObject = object_;
  const CUptiResult result = api_.cuptiPmSamplingStart(&start);
  running_ = result == CUPTI_SUCCESS;
  return result;
}

int PmSampler::Stop() {
  if (!running_) return CUPTI_ERROR_INVALID_OPERATION;
  running_ = false;
  RFINJECT_PARAMS(CUpti_PmSampling_Stop, stop);
  stop.pPmSamplingObject = object_;
  return api_.cuptiPmSamplingStop(&stop);
}

// One call decodes all: a second one gives nothing once an image was full, and the image has room for every sample
// that the hardware's buffer has.
int PmSampler::Decode(SampleWindow* window, bool* overflow) {
  *overflow = false;
  clock_hz_ = 0;
  *window = {};
  window->metrics = metrics_.size();
  RFINJECT_PARAMS(CUpti_PmSampling_CounterDataImage_Initialize, initialize);
  initialize.pPmSamplingObject = object_;
  initialize.counterDataSize = image_.size();
  initialize.pCounterData = image_.data();
  CUptiResult result = api_.cuptiPmSamplingCounterDataImageInitialize(&initialize);
  if (result != CUPTI_SUCCESS) return result;
  RFINJECT_PARAMS(CUpti_PmSampling_DecodeData, decode);
  decode.pPmSamplingObject = object_;
  decode.pCounterDataImage = image_.data();
  decode.counterDataImageSize = image_.size();
  result = api_.cuptiPmSamplingDecodeData(&decode);
  // A full buffer shows in either of these.
  if (decode.overflow != 0 || result == CUPTI_ERROR_OUT_OF_MEMORY) {
    *overflow = true;
    return CUPTI_SUCCESS;
  }
  if (result != CUPTI_SUCCESS) return result;
  RFINJECT_PARAMS(CUpti_PmSampling_GetCounterDataInfo, info);
  info.pCounterDataImage = image_.data();
  info.counterDataImageSize = image_.size();
  result = api_.cuptiPmSamplingGetCounterDataInfo(&info);
  if (result != CUPTI_SUCCESS) return result;
  std::vector<double> row(sampled_.size());
  uint64_t last_end = 0;
  double cycles = 0, cycles_ns = 0;
  for (size_t i = 1; i < info.numCompletedSamples; ++i) {
    RFINJECT_PARAMS(CUpti_PmSampling_CounterData_GetSampleInfo, at);
    at.pPmSamplingObject = object_;
    at.pCounterDataImage = image_.data();
    at.counterDataImageSize = image_.size();
    at.sampleIndex = i;
    result = api_.cuptiPmSamplingCounterDataGetSampleInfo(&at);
    if (result != CUPTI_SUCCESS) return result;
    if (!host_->Evaluate(image_, i, sampled_, row)) return CUPTI_ERROR_INVALID_METRIC_VALUE;
    last_end = at.endTimestamp;
    const bool follows = window->end.empty() || at.startTimestamp >= window->end.back();
    bool finite = follows && at.endTimestamp > at.startTimestamp;
    for (const double value : row) finite = finite && std::isfinite(value) && value >= 0;
    if (!finite) continue;
    window->begin.push_back(at.startTimestamp);
    window->end.push_back(at.endTimestamp);
    window->values.insert(window->values.end(), row.begin(), row.begin() + static_cast<ptrdiff_t>(metrics_.size()));
    if (sampled_.size() > metrics_.size()) cycles += row.back();
    cycles_ns += static_cast<double>(at.endTimestamp - at.startTimestamp);
  }
  if (cycles_ns > 0) clock_hz_ = cycles / cycles_ns * 1e9;
  // By their own clock, since the interval of a trigger by cycles is not what was asked for.
  while (!window->end.empty() && window->end.back() + kAfterStopNs > last_end) {
    window->begin.pop_back();
    window->end.pop_back();
    window->values.resize(window->values.size() - metrics_.size());
  }
  return CUPTI_SUCCESS;
}

void PmSampler::Close() {
  if (running_) Stop();
  if (object_ == nullptr) return;
  RFINJECT_PARAMS(CUpti_PmSampling_Disable, disable);
  disable.pPmSamplingObject = object_;
  object_ = nullptr;
  api_.cuptiPmSamplingDisable(&disable);
}

}  // namespace rfinject::cupti
