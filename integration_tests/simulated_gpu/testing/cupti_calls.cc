#include "integration_tests/simulated_gpu/testing/cupti_calls.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace rfinject {
namespace {

const cupti::Api* g_api = nullptr;
std::vector<KernelOf> g_kernels;

void CUPTIAPI Request(uint8_t** buffer, size_t* size, size_t* records) {
  *size = size_t{1} << 20;
  *buffer = static_cast<uint8_t*>(calloc(1, *size));
  *records = 0;
}
void CUPTIAPI Complete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* record = nullptr;
  while (g_api->cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    cupti::KernelRecordPrefix kernel;
    memcpy(&kernel, record, sizeof kernel);
    if (kernel.kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      g_kernels.push_back({kernel.name, kernel.start, kernel.end});
    }
  }
  free(buffer);
}

std::vector<const char*> Pointers(const std::vector<std::string>& names) {
  std::vector<const char*> pointers;
  for (const std::string& name : names) pointers.push_back(name.c_str());
  return pointers;
}

}  // namespace

#define SIM_CALL(params, name, object)           \
  RFINJECT_PARAMS(CUpti_##params, params_value); \
  params_value.object = object_;                 \
  return api_.name(&params_value)

int RangeSession::Enable(CUcontext context) {
  RFINJECT_PARAMS(CUpti_RangeProfiler_Enable, enable);
  enable.ctx = context;
  const int result = api_.cuptiRangeProfilerEnable(&enable);
  object_ = enable.pRangeProfilerObject;
  return result;
}

int RangeSession::Configure(std::vector<std::string> metrics, size_t ranges, bool automatic) {
  metrics_ = std::move(metrics);
  config_ = host_.ConfigImage(metrics_);
  std::vector<const char*> names = Pointers(metrics_);
  RFINJECT_PARAMS(CUpti_RangeProfiler_GetCounterDataSize, size);
  size.pRangeProfilerObject = object_;
  size.pMetricNames = names.data();
  size.numMetrics = names.size();
  size.maxNumOfRanges = size.maxNumRangeTreeNodes = static_cast<uint32_t>(ranges);
  if (const int result = api_.cuptiRangeProfilerGetCounterDataSize(&size); result != CUPTI_SUCCESS) return result;
  image_.assign(size.counterDataSize, 0);
  RFINJECT_PARAMS(CUpti_RangeProfiler_CounterDataImage_Initialize, initialize);
  initialize.pRangeProfilerObject = object_;
  initialize.counterDataSize = image_.size();
  initialize.pCounterData = image_.data();
  if (const int result = api_.cuptiRangeProfilerCounterDataImageInitialize(&initialize); result != CUPTI_SUCCESS) {
    return result;
  }
  RFINJECT_PARAMS(CUpti_RangeProfiler_SetConfig, config);
  config.pRangeProfilerObject = object_;
  config.configSize = config_.size();
  config.pConfig = config_.data();
  config.counterDataImageSize = image_.size();
  config.pCounterDataImage = image_.data();
  config.range = automatic ? CUPTI_AutoRange : CUPTI_UserRange;
  config.replayMode = CUPTI_UserReplay;
  config.maxRangesPerPass = ranges;
  config.numNestingLevels = config.minNestingLevel = config.targetNestingLevel = 1;
  return api_.cuptiRangeProfilerSetConfig(&config);
}

int RangeSession::Start() { SIM_CALL(RangeProfiler_Start, cuptiRangeProfilerStart, pRangeProfilerObject); }
int RangeSession::Stop() { SIM_CALL(RangeProfiler_Stop, cuptiRangeProfilerStop, pRangeProfilerObject); }
int RangeSession::Pop() { SIM_CALL(RangeProfiler_PopRange, cuptiRangeProfilerPopRange, pRangeProfilerObject); }
int RangeSession::Disable() { SIM_CALL(RangeProfiler_Disable, cuptiRangeProfilerDisable, pRangeProfilerObject); }
int RangeSession::Push(const std::string& name) {
  RFINJECT_PARAMS(CUpti_RangeProfiler_PushRange, push);
  push.pRangeProfilerObject = object_;
  push.pRangeName = name.c_str();
  return api_.cuptiRangeProfilerPushRange(&push);
}

std::map<std::string, std::vector<double>> RangeSession::Values() {
  std::map<std::string, std::vector<double>> values;
  RFINJECT_PARAMS(CUpti_RangeProfiler_DecodeData, decode);
  decode.pRangeProfilerObject = object_;
  if (api_.cuptiRangeProfilerDecodeData(&decode) != CUPTI_SUCCESS) return values;
  RFINJECT_PARAMS(CUpti_RangeProfiler_GetCounterDataInfo, info);
  info.pCounterDataImage = image_.data();
  info.counterDataImageSize = image_.size();
  api_.cuptiRangeProfilerGetCounterDataInfo(&info);
  for (size_t i = 0; i < info.numTotalRanges; ++i) {
    RFINJECT_PARAMS(CUpti_RangeProfiler_CounterData_GetRangeInfo, range);
    range.pCounterDataImage = image_.data();
    range.counterDataImageSize = image_.size();
    range.rangeIndex = i;
    range.rangeDelimiter = "/";
    api_.cuptiRangeProfilerCounterDataGetRangeInfo(&range);
    std::vector<double>& of_range = values[range.rangeName];
    of_range.resize(metrics_.size());
    host_.Evaluate(image_, i, metrics_, of_range);
  }
  return values;
}

int SamplingSession::Enable() {
  RFINJECT_PARAMS(CUpti_PmSampling_Enable, enable);
  enable.deviceIndex = device_;
  const int result = api_.cuptiPmSamplingEnable(&enable);
  object_ = enable.pPmSamplingObject;
  return result;
}

int SamplingSession::Configure(std::vector<std::string> metrics, uint64_t interval, uint32_t samples,
                               size_t hardware_bytes) {
  metrics_ = std::move(metrics);
  config_ = host_.ConfigImage(metrics_);
  RFINJECT_PARAMS(CUpti_PmSampling_SetConfig, config);
  config.pPmSamplingObject = object_;
  config.configSize = config_.size();
  config.pConfig = config_.data();
  config.hardwareBufferSize = hardware_bytes;
  config.samplingInterval = interval;
  config.triggerMode = CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL;
  config.hwBufferAppendMode = CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST;
  if (const int result = api_.cuptiPmSamplingSetConfig(&config); result != CUPTI_SUCCESS) return result;
  std::vector<const char*> names = Pointers(metrics_);
  RFINJECT_PARAMS(CUpti_PmSampling_GetCounterDataSize, size);
  size.pPmSamplingObject = object_;
  size.pMetricNames = names.data();
  size.numMetrics = names.size();
  size.maxSamples = samples;
  const int result = api_.cuptiPmSamplingGetCounterDataSize(&size);
  image_.assign(size.counterDataSize, 0);
  return result;
}

int SamplingSession::Start() { SIM_CALL(PmSampling_Start, cuptiPmSamplingStart, pPmSamplingObject); }
int SamplingSession::Stop() { SIM_CALL(PmSampling_Stop, cuptiPmSamplingStop, pPmSamplingObject); }
int SamplingSession::Disable() { SIM_CALL(PmSampling_Disable, cuptiPmSamplingDisable, pPmSamplingObject); }

SamplingSession::Decoded SamplingSession::Decode() {
  Decoded decoded;
  RFINJECT_PARAMS(CUpti_PmSampling_CounterDataImage_Initialize, initialize);
  initialize.pPmSamplingObject = object_;
  initialize.counterDataSize = image_.size();
  initialize.pCounterData = image_.data();
  api_.cuptiPmSamplingCounterDataImageInitialize(&initialize);
  RFINJECT_PARAMS(CUpti_PmSampling_DecodeData, decode);
  decode.pPmSamplingObject = object_;
  decode.pCounterDataImage = image_.data();
  decode.counterDataImageSize = image_.size();
  decoded.result = api_.cuptiPmSamplingDecodeData(&decode);
  decoded.overflow = decode.overflow != 0;
  decoded.stop_reason = decode.decodeStopReason;
  if (decoded.result != CUPTI_SUCCESS) return decoded;
  RFINJECT_PARAMS(CUpti_PmSampling_GetCounterDataInfo, info);
  info.pCounterDataImage = image_.data();
  info.counterDataImageSize = image_.size();
  api_.cuptiPmSamplingGetCounterDataInfo(&info);
  for (size_t i = 0; i < info.numCompletedSamples; ++i) {
    RFINJECT_PARAMS(CUpti_PmSampling_CounterData_GetSampleInfo, sample);
    sample.pPmSamplingObject = object_;
    sample.pCounterDataImage = image_.data();
    sample.counterDataImageSize = image_.size();
    sample.sampleIndex = i;
    api_.cuptiPmSamplingCounterDataGetSampleInfo(&sample);
    SampleOf& one = decoded.samples.emplace_back(SampleOf{sample.startTimestamp, sample.endTimestamp, {}});
    one.values.resize(metrics_.size());
    host_.Evaluate(image_, i, metrics_, one.values);
  }
  return decoded;
}

void RecordKernels(const cupti::Api& api) {
  g_api = &api;
  api.cuptiActivityRegisterCallbacks(&Request, &Complete);
  api.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}

std::vector<KernelOf> FlushKernels(const cupti::Api& api, bool forced) {
  api.cuptiActivityFlushAll(forced ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
  std::vector<KernelOf> kernels = std::exchange(g_kernels, {});
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const KernelOf& a, const KernelOf& b) { return a.start < b.start; });
  return kernels;
}

}  // namespace rfinject
