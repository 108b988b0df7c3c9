// File: range_profiler.cc
//
// The Range Profiler. In automatic ranges CUPTI opens one for each kernel of the context, in launch order, and waits
// for the context after each launch; in user ranges we open and close them, and nothing waits. Kernels are never
// replayed: every configuration is planned to take one pass. With one pass no mode replays anything; UserReplay is
// asked for, because in it CUPTI could not replay by itself.
//
// A user range's name is its ordinal. Ranges of one name would be one node of CUPTI's tree of ranges, and what comes
// of two passes through a node is not documented. Decoded ranges are put in order by their names, never by their
// place.
#include <charconv>
#include <cstring>
#include <new>

#include "collector/cupti/api.h"
#include "collector/cupti/backend_choice.h"
#include "collector/cupti/counter_backend.h"

namespace rfinject::cupti {
namespace {

class RangeProfiler : public CounterBackend {
 public:
  RangeProfiler(const Api& api, CUcontext context) : api_(api), context_(context) {}

  // A session that was never stopped goes with the process: at that time the driver may be gone already.
  ~RangeProfiler() override = default;

  int Open(int device, const std::vector<std::string>& user_metrics, std::string* chip) {
    std::vector<uint8_t> image;
    if (int result = OpenDevice(api_, context_, device, chip, &image); result != CUPTI_SUCCESS) return result;
    int host_result = 0;
    host_ = MakeProfilerHost(api_, *chip, HostKind::kRangeProfiler, image, &host_result);
    if (host_ == nullptr) return host_result;
    PlanRequest request;
    request.metrics = SelectMetrics(host_->BaseMetrics(), *chip);
    request.user_metrics = user_metrics;
    metrics_ = request.metrics;
    plan_ = MakePlan(*host_, request);
    if (plan_.groups.empty()) return CUPTI_ERROR_NOT_SUPPORTED;
    for (const CounterGroup& group : plan_.groups) configs_.push_back(host_->ConfigImage(group.metrics));
    return CUPTI_SUCCESS;
  }

  const std::vector<CounterGroup>& groups() const override { return plan_.groups; }
  const Plan& plan() const override { return plan_; }
  const ChipMetrics& metrics() const override { return metrics_; }

  int Start(size_t group, size_t max_ranges) override { return StartIn(CUPTI_AutoRange, group, max_ranges); }

  bool has_user_ranges() const override {
    return api_.cuptiRangeProfilerPushRange != nullptr && api_.cuptiRangeProfilerPopRange != nullptr &&
           api_.cuptiRangeProfilerCounterDataGetRangeInfo != nullptr;
  }
  int StartUserRanges(size_t group, size_t max_ranges) override {
    if (!has_user_ranges()) return CUPTI_ERROR_NOT_SUPPORTED;
    return StartIn(CUPTI_UserRange, group, max_ranges);
  }

  int PushRange(size_t ordinal) override {
    if (int result = PopRange(); result != CUPTI_SUCCESS) return result;
    char name[24];
    *std::to_chars(name, name + sizeof name - 1, ordinal).ptr = '\0';
    CUpti_RangeProfiler_PushRange_Params push = {CUpti_RangeProfiler_PushRange_Params_STRUCT_SIZE};
    push.pRangeProfilerObject = object_;
    push.pRangeName = name;
    const CUptiResult result = api_.cuptiRangeProfilerPushRange(&push);
    range_open_ = result == CUPTI_SUCCESS;
    return result;
  }
  int PopRange() override {
    if (!range_open_) return CUPTI_SUCCESS;
    range_open_ = false;
    CUpti_RangeProfiler_PopRange_Params pop = {CUpti_RangeProfiler_PopRange_Params_STRUCT_SIZE};
    pop.pRangeProfilerObject = object_;
    return api_.cuptiRangeProfilerPopRange(&pop);
  }

  int StartIn(CUpti_ProfilerRange ranges, size_t group, size_t max_ranges) {
    if (object_ != nullptr) return CUPTI_ERROR_INVALID_OPERATION;
    // The profiler is enabled anew for each armed step. Whether a configuration with other metrics may be set without
    // that is not documented, and others have seen it decode wrongly.
    CUpti_RangeProfiler_Enable_Params enable = {CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE};
    enable.ctx = context_;
    CUptiResult result = api_.cuptiRangeProfilerEnable(&enable);
    if (result != CUPTI_SUCCESS) return result;
    object_ = enable.pRangeProfilerObject;
    group_ = group;
    ranges_ = ranges;
    range_open_ = false;
    result = Configure(max_ranges);
    if (result != CUPTI_SUCCESS) {
      Disable();
      return result;
    }
    CUpti_RangeProfiler_Start_Params start = {CUpti_RangeProfiler_Start_Params_STRUCT_SIZE};
    start.pRangeProfilerObject = object_;
    result = api_.cuptiRangeProfilerStart(&start);
    if (result != CUPTI_SUCCESS) {
      Disable();
    } else {
      started_ = true;
    }
    return result;
  }

  int Stop(std::vector<double>* values, size_t* ranges, size_t* dropped) override {
    if (!started_) return CUPTI_ERROR_INVALID_OPERATION;
    started_ = false;
    const int popped = PopRange();
    CUpti_RangeProfiler_Stop_Params stop = {CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE};
    stop.pRangeProfilerObject = object_;
    CUptiResult result = api_.cuptiRangeProfilerStop(&stop);
    if (result == CUPTI_SUCCESS) result = static_cast<CUptiResult>(popped);
    if (result == CUPTI_SUCCESS && stop.isAllPassSubmitted == 0) result = CUPTI_ERROR_INVALID_OPERATION;
    if (result == CUPTI_SUCCESS) result = Decode(values, ranges, dropped);
    CUptiResult disabled = Disable();
    return result != CUPTI_SUCCESS ? result : disabled;
  }

  void Abandon() override {
    if (started_) {
      started_ = false;
      PopRange();
      CUpti_RangeProfiler_Stop_Params stop = {CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE};
      stop.pRangeProfilerObject = object_;
      api_.cuptiRangeProfilerStop(&stop);
    }
    if (object_ != nullptr) Disable();
  }

 private:
  CUptiResult Configure(size_t max_ranges) {
    const CounterGroup& group = plan_.groups[group_];
    std::vector<const char*> names;
    for (const std::string& metric : group.metrics) names.push_back(metric.c_str());
    CUpti_RangeProfiler_GetCounterDataSize_Params size = {CUpti_RangeProfiler_GetCounterDataSize_Params_STRUCT_SIZE};
    size.pRangeProfilerObject = object_;
    size.pMetricNames = names.data();
    size.numMetrics = names.size();
    size.maxNumOfRanges = max_ranges;
    size.maxNumRangeTreeNodes = static_cast<uint32_t>(max_ranges);
    CUptiResult result = api_.cuptiRangeProfilerGetCounterDataSize(&size);
    if (result != CUPTI_SUCCESS) return result;
    counter_data_.assign(size.counterDataSize, 0);

    CUpti_RangeProfiler_CounterDataImage_Initialize_Params initialize = {
        CUpti_RangeProfiler_CounterDataImage_Initialize_Params_STRUCT_SIZE};
    initialize.pRangeProfilerObject = object_;
    initialize.counterDataSize = counter_data_.size();
    initialize.pCounterData = counter_data_.data();
    result = api_.cuptiRangeProfilerCounterDataImageInitialize(&initialize);
    if (result != CUPTI_SUCCESS) return result;

    CUpti_RangeProfiler_SetConfig_Params config = {CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE};
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
    CUpti_RangeProfiler_DecodeData_Params decode = {CUpti_RangeProfiler_DecodeData_Params_STRUCT_SIZE};
    decode.pRangeProfilerObject = object_;
    CUptiResult result = api_.cuptiRangeProfilerDecodeData(&decode);
    if (result != CUPTI_SUCCESS) return result;
    *dropped = decode.numOfRangeDropped;
    CUpti_RangeProfiler_GetCounterDataInfo_Params info = {CUpti_RangeProfiler_GetCounterDataInfo_Params_STRUCT_SIZE};
    info.pCounterDataImage = counter_data_.data();
    info.counterDataImageSize = counter_data_.size();
    result = api_.cuptiRangeProfilerGetCounterDataInfo(&info);
    if (result != CUPTI_SUCCESS) return result;
    *ranges = info.numTotalRanges;
    if (*dropped != 0) return CUPTI_SUCCESS;  // the step is lost; the next has more room
    const std::vector<std::string>& metrics = plan_.groups[group_].metrics;
    values->assign(*ranges * metrics.size(), 0);
    for (size_t range = 0; range < *ranges; ++range) {
      size_t place = range;
      if (ranges_ == CUPTI_UserRange && !OrdinalOf(range, &place)) return CUPTI_ERROR_INVALID_OPERATION;
      if (place >= *ranges) return CUPTI_ERROR_INVALID_OPERATION;
      std::span<double> row(values->data() + place * metrics.size(), metrics.size());
      if (!host_->Evaluate(counter_data_, range, metrics, row)) return CUPTI_ERROR_INVALID_METRIC_VALUE;
    }
    return CUPTI_SUCCESS;
  }

  bool OrdinalOf(size_t range, size_t* ordinal) const {
    CUpti_RangeProfiler_CounterData_GetRangeInfo_Params info = {
        CUpti_RangeProfiler_CounterData_GetRangeInfo_Params_STRUCT_SIZE};
    info.pCounterDataImage = counter_data_.data();
    info.counterDataImageSize = counter_data_.size();
    info.rangeIndex = range;
    info.rangeDelimiter = "/";
    if (api_.cuptiRangeProfilerCounterDataGetRangeInfo(&info) != CUPTI_SUCCESS || info.rangeName == nullptr) {
      return false;
    }
    const char* end = info.rangeName + std::strlen(info.rangeName);
    const auto [at, error] = std::from_chars(info.rangeName, end, *ordinal);
    return error == std::errc() && at == end;
  }

  CUptiResult Disable() {
    CUpti_RangeProfiler_Disable_Params disable = {CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE};
    disable.pRangeProfilerObject = object_;
    object_ = nullptr;
    return api_.cuptiRangeProfilerDisable(&disable);
  }

  const Api& api_;
  CUcontext context_;
  std::unique_ptr<MetricHost> host_;
  ChipMetrics metrics_;
  Plan plan_;
  std::vector<std::vector<uint8_t>> configs_;  // by group
  std::vector<uint8_t> counter_data_;
  CUpti_RangeProfiler_Object* object_ = nullptr;
  size_t group_ = 0;
  CUpti_ProfilerRange ranges_ = CUPTI_AutoRange;
  bool range_open_ = false;
  bool started_ = false;
};

}  // namespace

std::unique_ptr<CounterBackend> MakeRangeProfiler(const Api& api, void* context, int device,
                                                  const std::vector<std::string>& user_metrics, std::string* chip,
                                                  int* result) {
  auto profiler = std::make_unique<RangeProfiler>(api, static_cast<CUcontext>(context));
  *result = profiler->Open(device, user_metrics, chip);
  if (*result != CUPTI_SUCCESS) return nullptr;
  return profiler;
}

}  // namespace rfinject::cupti
