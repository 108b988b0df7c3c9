// File: range_profiler.cc
//
// The Range Profiler, in user ranges. A session is Enable, SetConfig and Start. Stop, a new counter data image,
// SetConfig and Start go on with the same metrics in 6 ms; other metrics need Disable and Enable, since what is set
// without them decodes as NaN (docs/inside/HARDWARE_SOURCE.md).
#include "collector/cupti/counter_backend.h"

namespace rfinject::cupti {
namespace {

class RangeProfiler final : public CounterBackend {
 public:
  using CounterBackend::CounterBackend;

  int Pop() override {
    RFINJECT_PARAMS(CUpti_RangeProfiler_PopRange, pop);
    pop.pRangeProfilerObject = object_;
    return api_.cuptiRangeProfilerPopRange(&pop);
  }

  int Restart() override {
    CUptiResult result = SetConfig();
    if (result == CUPTI_SUCCESS) result = StartSession();
    return result;
  }

  int Close() override {
    CUptiResult stopped = CUPTI_SUCCESS;
    if (running_) stopped = Stop();
    started_ = false;
    if (object_ == nullptr) return stopped;
    RFINJECT_PARAMS(CUpti_RangeProfiler_Disable, disable);
    disable.pRangeProfilerObject = object_;
    object_ = nullptr;
    const CUptiResult disabled = api_.cuptiRangeProfilerDisable(&disable);
    return stopped != CUPTI_SUCCESS ? stopped : disabled;
  }

 private:
  MetricHost* MakeHost(const std::string& chip, std::span<const uint8_t> availability, int* result) override {
    host_ = MakeProfilerHost(api_, chip, HostKind::kRangeProfiler, availability, result);
    return host_.get();
  }

  int Configure(const std::string&) override {
    for (const CounterGroup& group : plan_.groups) configs_.push_back(host_->ConfigImage(group.metrics));
    return CUPTI_SUCCESS;
  }

  int Begin() override {
    RFINJECT_PARAMS(CUpti_RangeProfiler_Enable, enable);
    enable.ctx = context_;
    CUptiResult result = api_.cuptiRangeProfilerEnable(&enable);
    if (result != CUPTI_SUCCESS) return result;
    object_ = enable.pRangeProfilerObject;
    result = SetConfig();
    if (result == CUPTI_SUCCESS) result = StartSession();
    if (result != CUPTI_SUCCESS) Close();
    return result;
  }

  CUptiResult StartSession() {
    RFINJECT_PARAMS(CUpti_RangeProfiler_Start, start);
    start.pRangeProfilerObject = object_;
    const CUptiResult result = api_.cuptiRangeProfilerStart(&start);
    running_ = result == CUPTI_SUCCESS;
    return result;
  }

  CUptiResult Stop() {
    running_ = false;
    RFINJECT_PARAMS(CUpti_RangeProfiler_Stop, stop);
    stop.pRangeProfilerObject = object_;
    const CUptiResult result = api_.cuptiRangeProfilerStop(&stop);
    return result == CUPTI_SUCCESS && stop.isAllPassSubmitted == 0 ? CUPTI_ERROR_INVALID_OPERATION : result;
  }

  int PushName(const char* name) override {
    RFINJECT_PARAMS(CUpti_RangeProfiler_PushRange, push);
    push.pRangeProfilerObject = object_;
    push.pRangeName = name;
    return api_.cuptiRangeProfilerPushRange(&push);
  }

  CUptiResult SetConfig() {
    const CounterGroup& group = plan_.groups[group_];
    std::vector<const char*> names;
    for (const std::string& metric : group.metrics) names.push_back(metric.c_str());
    RFINJECT_PARAMS(CUpti_RangeProfiler_GetCounterDataSize, size);
    size.pRangeProfilerObject = object_;
    size.pMetricNames = names.data();
    size.numMetrics = names.size();
    size.maxNumOfRanges = max_ranges_;
    size.maxNumRangeTreeNodes = static_cast<uint32_t>(max_ranges_);
    CUptiResult result = api_.cuptiRangeProfilerGetCounterDataSize(&size);
    if (result != CUPTI_SUCCESS) return result;
    counter_data_.assign(size.counterDataSize, 0);

    RFINJECT_PARAMS(CUpti_RangeProfiler_CounterDataImage_Initialize, initialize);
    initialize.pRangeProfilerObject = object_;
    initialize.counterDataSize = counter_data_.size();
    initialize.pCounterData = counter_data_.data();
    result = api_.cuptiRangeProfilerCounterDataImageInitialize(&initialize);
    if (result != CUPTI_SUCCESS) return result;

    RFINJECT_PARAMS(CUpti_RangeProfiler_SetConfig, config);
    config.pRangeProfilerObject = object_;
    config.configSize = configs_[group_].size();
    config.pConfig = configs_[group_].data();
    config.counterDataImageSize = counter_data_.size();
    config.pCounterDataImage = counter_data_.data();
    config.range = CUPTI_UserRange;
    config.replayMode = CUPTI_UserReplay;
    config.maxRangesPerPass = max_ranges_;
    config.numNestingLevels = 1;
    config.minNestingLevel = 1;
    config.passIndex = 0;
    config.targetNestingLevel = 1;
    return api_.cuptiRangeProfilerSetConfig(&config);
  }

  int Decode(size_t* found) override {
    if (!running_) return CUPTI_ERROR_INVALID_OPERATION;
    CUptiResult result = Stop();
    if (result != CUPTI_SUCCESS) return result;
    RFINJECT_PARAMS(CUpti_RangeProfiler_DecodeData, decode);
    decode.pRangeProfilerObject = object_;
    result = api_.cuptiRangeProfilerDecodeData(&decode);
    if (result != CUPTI_SUCCESS) return result;
    RFINJECT_PARAMS(CUpti_RangeProfiler_GetCounterDataInfo, info);
    info.pCounterDataImage = counter_data_.data();
    info.counterDataImageSize = counter_data_.size();
    result = api_.cuptiRangeProfilerGetCounterDataInfo(&info);
    *found = info.numTotalRanges;
    return result;
  }

  bool RangeName(size_t range, std::string* name) const override {
    RFINJECT_PARAMS(CUpti_RangeProfiler_CounterData_GetRangeInfo, info);
    info.pCounterDataImage = counter_data_.data();
    info.counterDataImageSize = counter_data_.size();
    info.rangeIndex = range;
    info.rangeDelimiter = "/";
    if (api_.cuptiRangeProfilerCounterDataGetRangeInfo(&info) != CUPTI_SUCCESS || info.rangeName == nullptr) {
      return false;
    }
    *name = info.rangeName;
    return true;
  }

  std::unique_ptr<MetricHost> host_;
  std::vector<std::vector<uint8_t>> configs_;  // by group
  CUpti_RangeProfiler_Object* object_ = nullptr;
  bool running_ = false;  // between Start and Stop
};

}  // namespace

std::unique_ptr<CounterBackend> MakeRangeProfiler(const Api& api, CUcontext context) {
  return std::make_unique<RangeProfiler>(api, context);
}

}  // namespace rfinject::cupti
