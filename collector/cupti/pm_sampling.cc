#include "collector/cupti/pm_sampling.h"

#include <time.h>

#include <algorithm>
#include <span>
#include <utility>

#include "collector/sync.h"
#include "gpus/chips.h"

namespace rfinject::cupti {
namespace {

// How many samples are taken in one step: enough for the time axis, few enough to evaluate between two steps.
constexpr uint64_t kSamplesPerStep = 200;
// A shorter interval overflows the buffer (NVIDIA's own example); a longer one has too few samples in a step.
constexpr uint64_t kMinIntervalNs = 100'000, kMaxIntervalNs = 10'000'000;
constexpr uint32_t kSamplesPerDecode = 256;
constexpr size_t kHardwareBuffer = size_t{64} << 20;
// A step that lasts far longer than expected must not keep us decoding.
constexpr int kMaxDecodes = 16;

// By this step the first rotation through the counters should be over; see arming::Options.
constexpr uint64_t kFirstStep = 16;
constexpr uint32_t kMaxWindows = 12;
// The share of what all profiling may cost that PM sampling may use.
constexpr double kShareOfOverhead = 0.1;

void SleepNs(uint64_t ns) {
  timespec time = {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  nanosleep(&time, nullptr);
}

}  // namespace

std::vector<std::string> SelectPmMetrics(MetricHost& host) {
  for (const DramCounters& dram : kDramCounters) {
    const std::vector<std::string> metrics = {std::string(dram.read), std::string(dram.write)};
    if (host.Passes(metrics) != 1) continue;
    std::vector<std::string> with_tensor = metrics;
    with_tensor.emplace_back(kTensorActiveMetric);
    return host.Passes(with_tensor) == 1 ? with_tensor : metrics;
  }
  return {};
}

std::unique_ptr<PmSampling> PmSampling::Open(const Api& api, int device, int* result) {
  if (!api.has(kPmSampling | kProfilerHost)) {
    *result = CUPTI_ERROR_NOT_SUPPORTED;
    return nullptr;
  }
  std::unique_ptr<PmSampling> sampling(new PmSampling(api, device));
  *result = sampling->Plan();
  if (*result != CUPTI_SUCCESS) return nullptr;
  return sampling;
}

int PmSampling::Plan() {
  std::string chip;
  if (const int result = OpenChip(api_, device_, &chip); result != CUPTI_SUCCESS) return result;
  const Chip* const known = FindChip(chip);
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
  metrics_ = SelectPmMetrics(*host_);
  if (metrics_.empty()) return CUPTI_ERROR_NOT_SUPPORTED;
  config_ = host_->ConfigImage(metrics_);
  return config_.empty() ? CUPTI_ERROR_NOT_SUPPORTED : CUPTI_SUCCESS;
}

int PmSampling::Begin(uint64_t interval_ns) {
  if (object_ != nullptr) return CUPTI_ERROR_INVALID_OPERATION;
  interval_ns_ = interval_ns;
  RFINJECT_PARAMS(CUpti_PmSampling_Enable, enable);
  enable.deviceIndex = static_cast<size_t>(device_);
  CUptiResult result = api_.cuptiPmSamplingEnable(&enable);
  if (result != CUPTI_SUCCESS) return result;
  object_ = enable.pPmSamplingObject;
  int configured = Configure();
  if (configured == CUPTI_SUCCESS) {
    RFINJECT_PARAMS(CUpti_PmSampling_Start, start);
    start.pPmSamplingObject = object_;
    configured = api_.cuptiPmSamplingStart(&start);
  }
  if (configured != CUPTI_SUCCESS) {
    Disable();
    return configured;
  }
  started_ = true;
  return CUPTI_SUCCESS;
}

int PmSampling::Configure() {
  RFINJECT_PARAMS(CUpti_PmSampling_SetConfig, config);
  config.pPmSamplingObject = object_;
  config.configSize = config_.size();
  config.pConfig = config_.data();
  config.hardwareBufferSize = kHardwareBuffer;
  // The system clock runs at about 1 to 2 GHz and varies; the real interval is in the samples' times.
  config.samplingInterval = interval_ns_;
  config.triggerMode = by_time_ ? CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL
                                : CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL;
  // The oldest samples are kept, so that a full buffer is seen as an overflow and not missed as a gap.
  config.hwBufferAppendMode = CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST;
  CUptiResult result = api_.cuptiPmSamplingSetConfig(&config);
  if (result != CUPTI_SUCCESS) return result;
  std::vector<const char*> names;
  for (const std::string& metric : metrics_) names.push_back(metric.c_str());
  RFINJECT_PARAMS(CUpti_PmSampling_GetCounterDataSize, size);
  size.pPmSamplingObject = object_;
  size.pMetricNames = names.data();
  size.numMetrics = names.size();
  size.maxSamples = kSamplesPerDecode;
  result = api_.cuptiPmSamplingGetCounterDataSize(&size);
  if (result != CUPTI_SUCCESS) return result;
  counter_data_.assign(size.counterDataSize, 0);
  return CUPTI_SUCCESS;
}

int PmSampling::End(std::vector<PmSample>* samples, bool* overflow) {
  samples->clear();
  *overflow = false;
  if (!started_) return CUPTI_ERROR_INVALID_OPERATION;
  started_ = false;
  RFINJECT_PARAMS(CUpti_PmSampling_Stop, stop);
  stop.pPmSamplingObject = object_;
  int result = api_.cuptiPmSamplingStop(&stop);
  // What is in the buffer must be drained before the session is given up.
  if (result == CUPTI_SUCCESS) result = Decode(samples, overflow);
  const int disabled = Disable();
  if (!samples->empty()) samples->erase(samples->begin());
  return result != CUPTI_SUCCESS ? result : disabled;
}

int PmSampling::Decode(std::vector<PmSample>* samples, bool* overflow) {
  for (int round = 0; round < kMaxDecodes; ++round) {
    RFINJECT_PARAMS(CUpti_PmSampling_CounterDataImage_Initialize, initialize);
    initialize.pPmSamplingObject = object_;
    initialize.counterDataSize = counter_data_.size();
    initialize.pCounterData = counter_data_.data();
    CUptiResult result = api_.cuptiPmSamplingCounterDataImageInitialize(&initialize);
    if (result != CUPTI_SUCCESS) return result;
    RFINJECT_PARAMS(CUpti_PmSampling_DecodeData, decode);
    decode.pPmSamplingObject = object_;
    decode.pCounterDataImage = counter_data_.data();
    decode.counterDataImageSize = counter_data_.size();
    result = api_.cuptiPmSamplingDecodeData(&decode);
    if (decode.overflow != 0 || result == CUPTI_ERROR_OUT_OF_MEMORY) {
      // A full buffer shows in either of these.
      *overflow = true;
      return CUPTI_SUCCESS;
    }
    if (result != CUPTI_SUCCESS) return result;
    RFINJECT_PARAMS(CUpti_PmSampling_GetCounterDataInfo, info);
    info.pCounterDataImage = counter_data_.data();
    info.counterDataImageSize = counter_data_.size();
    result = api_.cuptiPmSamplingGetCounterDataInfo(&info);
    if (result != CUPTI_SUCCESS) return result;
    for (size_t i = 0; i < info.numCompletedSamples; ++i) {
      RFINJECT_PARAMS(CUpti_PmSampling_CounterData_GetSampleInfo, at);
      at.pPmSamplingObject = object_;
      at.pCounterDataImage = counter_data_.data();
      at.counterDataImageSize = counter_data_.size();
      at.sampleIndex = i;
      result = api_.cuptiPmSamplingCounterDataGetSampleInfo(&at);
      if (result != CUPTI_SUCCESS) return result;
      double values[3] = {};
      if (!host_->Evaluate(counter_data_, i, metrics_, std::span(values, metrics_.size()))) {
        return CUPTI_ERROR_INVALID_METRIC_VALUE;
      }
      samples->push_back({at.startTimestamp, at.endTimestamp, values[0], values[1], values[2]});
    }
    // The image did not get full, so that was all. (END_OF_RECORDS also says so; a decoder that says neither must not
    // keep us here.)
    if (decode.decodeStopReason != CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL) return CUPTI_SUCCESS;
  }
  *overflow = true;
  return CUPTI_SUCCESS;
}

int PmSampling::Disable() {
  RFINJECT_PARAMS(CUpti_PmSampling_Disable, disable);
  disable.pPmSamplingObject = std::exchange(object_, nullptr);
  return api_.cuptiPmSamplingDisable(&disable);
}

void PmSampling::Abandon() {
  if (std::exchange(started_, false)) {
    RFINJECT_PARAMS(CUpti_PmSampling_Stop, stop);
    stop.pPmSamplingObject = object_;
    api_.cuptiPmSamplingStop(&stop);
  }
  if (object_ != nullptr) Disable();
}

PmCrossCheck::PmCrossCheck(const Api& api, std::unique_ptr<PmSampling> sampling, double overhead, Recorder& recorder)
    : api_(api),
      sampling_(std::move(sampling)),
      recorder_(recorder),
      overhead_(overhead),
      opened_ns_(MonotonicNs()),
      next_step_(kFirstStep) {}

std::unique_ptr<PmCrossCheck> PmCrossCheck::Open(const Api& api, int device, double overhead, Recorder& recorder) {
  int result = 0;
  std::unique_ptr<PmSampling> sampling = PmSampling::Open(api, device, &result);
  if (sampling == nullptr) {
    recorder.ReportDiagnostic(
        Severity::kInfo, "pm-sampling",
        "no cross-check of DRAM bytes by PM sampling: opening it returned " + std::to_string(result));
    return nullptr;
  }
  return std::unique_ptr<PmCrossCheck>(new PmCrossCheck(api, std::move(sampling), overhead, recorder));
}

void PmCrossCheck::BeforeStep(uint64_t step, uint64_t step_ns) {
  if (off_ || step < next_step_ || windows_ >= kMaxWindows) return;
  const int64_t now = MonotonicNs();
  // The first window is taken on credit, or short jobs would have none.
  if (windows_ > 0 && static_cast<double>(cost_ns_) / windows_ + static_cast<double>(cost_ns_) >
                          kShareOfOverhead * overhead_ * static_cast<double>(now - opened_ns_)) {
    return;
  }
  // Windows come further and further apart, so that a job of any length is seen early and late.
  next_step_ = step + step / 2 + 8;
  // Only this step's kernels shall be in the window; what was launched before must be over.
  if (api_.cuCtxSynchronize != nullptr) api_.cuCtxSynchronize();
  const uint64_t interval = std::clamp(step_ns / kSamplesPerStep, kMinIntervalNs, kMaxIntervalNs);
  if (int result = sampling_->Begin(interval); result != CUPTI_SUCCESS) {
    GiveUp("starting it", result);
    return;
  }
  // The first sample, which is left out, must be over before the step begins.
  SleepNs(sampling_->settle_ns());
  cost_ns_ += MonotonicNs() - now;
}

void PmCrossCheck::AfterStep(uint64_t step) {
  if (!sampling_->running()) return;
  if (api_.cuCtxSynchronize != nullptr) api_.cuCtxSynchronize();
  const int64_t begin = MonotonicNs();
  SleepNs(sampling_->settle_ns());  // the last sample must be complete
  std::vector<PmSample> samples;
  bool overflow = false;
  const int result = sampling_->End(&samples, &overflow);
  cost_ns_ += MonotonicNs() - begin;
  ++windows_;
  if (result != CUPTI_SUCCESS) {
    GiveUp("reading it", result);
    return;
  }
  PmWindow window;
  window.step = step;
  if (overflow) {
    recorder_.CountDrop("windows of PM sampling that overflowed");
  } else if (FoldPmSamples(samples, sampling_->has_tensor(), &window)) {
    recorder_.Keep(std::move(window));
  } else {
    recorder_.CountDrop("windows of PM sampling without a sample");
  }
}

void PmCrossCheck::GiveUp(const char* call, int result) {
  sampling_->Abandon();
  off_ = true;
  recorder_.ReportDiagnostic(Severity::kInfo, "pm-sampling",
                             std::string("no further cross-check of DRAM bytes by PM sampling: ") + call +
                                 " returned " + std::to_string(result));
}

}  // namespace rfinject::cupti
