// File: range_profiler.cc
//
// The Range Profiler. In automatic ranges CUPTI opens one for each kernel of the context, in launch order, and waits
// for the context after each launch; in user ranges we open and close them, and nothing waits. Kernels are never
// replayed: every configuration is planned to take one pass. With one pass no mode replays anything; UserReplay is
// asked for, because in it CUPTI could not replay by itself.
#include "collector/cupti/counter_backend.h"

namespace rfinject::cupti {
namespace {

class RangeProfiler final : public CounterBackend {
 public:
  using CounterBackend::CounterBackend;

  bool has_user_ranges() const override { return true; }

  int Stop(std::vector<double>* values, size_t* ranges, size_t* dropped) override {
    if (!started_) return CUPTI_ERROR_INVALID_OPERATION;
    started_ = false;
    const CUptiResult popped = PopRange();
    RFINJECT_PARAMS(CUpti_RangeProfiler_Stop, stop);
    stop.pRangeProfilerObject = object_;
    CUptiResult result = api_.cuptiRangeProfilerStop(&stop);
    if (result == CUPTI_SUCCESS) result = popped;
    if (result == CUPTI_SUCCESS && stop.isAllPassSubmitted == 0) result = CUPTI_ERROR_INVALID_OPERATION;
    if (result == CUPTI_SUCCESS) result = Decode(values, ranges, dropped);
    CUptiResult disabled = Disable();
    return result != CUPTI_SUCCESS ? result : disabled;
  }

  void Abandon() override {
    if (started_) {
      started_ = false;
      PopRange();
      RFINJECT_PARAMS(CUpti_RangeProfiler_Stop, stop);
      stop.pRangeProfilerObject = object_;
      api_.cuptiRangeProfilerStop(&stop);
    }
    if (object_ != nullptr) Disable();
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

  bool running() const override { return object_ != nullptr; }

  CUptiResult Begin(size_t max_ranges) override {
    // The profiler is enabled anew for each armed step. Whether a configuration with other metrics may be set without
    // that is not documented, and others have seen it decode wrongly.
    RFINJECT_PARAMS(CUpti_RangeProfiler_Enable, enable);
    enable.ctx = context_;
    CUptiResult result = api_.cuptiRangeProfilerEnable(&enable);
    if (result != CUPTI_SUCCESS) return result;
    object_ = enable.pRangeProfilerObject;
    result = SetConfig(max_ranges);
    if (result == CUPTI_SUCCESS) {
      RFINJECT_PARAMS(CUpti_RangeProfiler_Start, start);
      start.pRangeProfilerObject = object_;
      result = api_.cuptiRangeProfilerStart(&start);
    }
    started_ = result == CUPTI_SUCCESS;
    if (!started_) Disable();
    return result;
  }

  CUptiResult Push(const char* name) override {
    RFINJECT_PARAMS(CUpti_RangeProfiler_PushRange, push);
    push.pRangeProfilerObject = object_;
    push.pRangeName = name;
    return api_.cuptiRangeProfilerPushRange(&push);
  }

  CUptiResult Pop() override {
    RFINJECT_PARAMS(CUpti_RangeProfiler_PopRange, pop);
    pop.pRangeProfilerObject = object_;
    return api_.cuptiRangeProfilerPopRange(&pop);
  }

  CUptiResult SetConfig(size_t max_ranges) {
    const CounterGroup& group = plan_.groups[group_];
    std::vector<const char*> names;
    for (const std::string& metric : group.metrics) names.push_back(metric.c_str());
    RFINJECT_PARAMS(CUpti_RangeProfiler_GetCounterDataSize, size);
    size.pRangeProfilerObject = object_;
    size.pMetricNames = names.data();
    size.numMetrics = names.size();
    size.maxNumOfRanges = max_ranges;
    size.maxNumRangeTreeNodes = static_cast<uint32_t>(max_ranges);
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
    config.range = ranges_;
    config.replayMode = CUPTI_UserReplay;
    config.maxRangesPerPass = max_ranges;
    config.numNestingLevels = 1;
    config.minNestingLevel = 1;
    config.passIndex = 0;
    config.targetNestingLevel = 1;
    return api_.cuptiRangeProfilerSetConfig(&config);
  }

  CUptiResult Decode(std::vector<double>* values, size_t* ranges, size_t* dropped) {
    RFINJECT_PARAMS(CUpti_RangeProfiler_DecodeData, decode);
    decode.pRangeProfilerObject = object_;
    CUptiResult result = api_.cuptiRangeProfilerDecodeData(&decode);
    if (result != CUPTI_SUCCESS) return result;
    *dropped = decode.numOfRangeDropped;
    RFINJECT_PARAMS(CUpti_RangeProfiler_GetCounterDataInfo, info);
    info.pCounterDataImage = counter_data_.data();
    info.counterDataImageSize = counter_data_.size();
    result = api_.cuptiRangeProfilerGetCounterDataInfo(&info);
    if (result != CUPTI_SUCCESS) return result;
    *ranges = info.numTotalRanges;
    if (*dropped != 0) return CUPTI_SUCCESS;  // the step is lost; the next has more room
    return Evaluate(*ranges, values);
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

  CUptiResult Disable() {
    RFINJECT_PARAMS(CUpti_RangeProfiler_Disable, disable);
    disable.pRangeProfilerObject = object_;
    object_ = nullptr;
    return api_.cuptiRangeProfilerDisable(&disable);
  }

  std::unique_ptr<MetricHost> host_;
  std::vector<std::vector<uint8_t>> configs_;  // by group
  CUpti_RangeProfiler_Object* object_ = nullptr;
  bool started_ = false;
};

}  // namespace

std::unique_ptr<CounterBackend> MakeRangeProfiler(const Api& api, CUcontext context) {
  return std::make_unique<RangeProfiler>(api, context);
}

}  // namespace rfinject::cupti
