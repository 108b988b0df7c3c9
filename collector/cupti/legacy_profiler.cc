// File: legacy_profiler.cc
//
// The legacy Profiling API (cuptiProfiler*): all that CUPTI has before 12.6 update 2, and the one that it documents
// for Volta. Planned and evaluated by Perfworks (perfworks_host.h).
//
// A session for each armed step:
//   BeginSession, SetConfig, BeginPass, EnableProfiling   between the step before and this one
//   the step's launches: in automatic ranges each is a range of its own, and CUPTI waits for the context after each;
//   in user ranges we open and close them, and nothing waits DisableProfiling, EndPass, FlushCounterData,
//   UnsetConfig, EndSession   after it
// UserReplay leaves repeating passes to us, and one pass is all that a group takes: nothing is ever replayed. (In
// KernelReplay CUPTI would save and restore the kernel's memory.)
#include <algorithm>
#include <charconv>
#include <new>

#include "collector/cupti/api.h"
#include "collector/cupti/backend_choice.h"
#include "collector/cupti/perfworks_host.h"

namespace rfinject::cupti {
namespace {

// Ranges are named by their number, automatic ones by CUPTI, others by us (range_profiler.cc says why).
constexpr uint32_t kRangeNameLength = 16;
// The most launches in a step with user ranges, which hold several launches each, while only the number of ranges is
// known before the step. A step with more launches is not counted.
constexpr size_t kMaxLaunches = 65536;

class LegacyProfiler : public CounterBackend {
 public:
  LegacyProfiler(const Api& api, CUcontext context) : api_(api), context_(context) {}

  // A session that was never ended goes with the process: at that time the driver may be gone already.
  ~LegacyProfiler() override = default;

  int Open(int device, const std::vector<std::string>& user_metrics, std::string* chip) {
    std::vector<uint8_t> image;
    if (int result = OpenDevice(api_, context_, device, chip, &image); result != CUPTI_SUCCESS) return result;
    int host_result = 0;
    host_ = MakePerfworksHost(api_, *chip, image, &host_result);
    if (host_ == nullptr) return host_result;
    PlanRequest request;
    request.metrics = SelectMetrics(host_->BaseMetrics(), *chip);
    request.user_metrics = user_metrics;
    metrics_ = request.metrics;
    plan_ = MakePlan(*host_, request);
    if (plan_.groups.empty()) return CUPTI_ERROR_NOT_SUPPORTED;
    if (metrics_.tensor.empty()) {
      plan_.rejected.emplace_back("tensor FLOP",
                                  "this CUPTI has no counter for them on " + *chip +
                                      " (12.2 update 2 brought them); FLOP are those of CUDA cores only");
    }
    for (const CounterGroup& group : plan_.groups) {
      configs_.push_back({host_->ConfigImage(group.metrics), host_->CounterDataPrefix(group.metrics)});
      if (configs_.back().image.empty() || configs_.back().prefix.empty()) return CUPTI_ERROR_INVALID_METRIC_VALUE;
    }
    return CUPTI_SUCCESS;
  }

  const std::vector<CounterGroup>& groups() const override { return plan_.groups; }
  const Plan& plan() const override { return plan_; }
  const ChipMetrics& metrics() const override { return metrics_; }

  int Start(size_t group, size_t max_ranges) override { return StartIn(CUPTI_AutoRange, group, max_ranges); }

  bool has_user_ranges() const override { return api_.NVPW_Profiler_CounterData_GetRangeDescriptions != nullptr; }
  int StartUserRanges(size_t group, size_t max_ranges) override {
    if (!has_user_ranges()) return CUPTI_ERROR_NOT_SUPPORTED;
    return StartIn(CUPTI_UserRange, group, max_ranges);
  }

  int PushRange(size_t ordinal) override {
    if (int result = PopRange(); result != CUPTI_SUCCESS) return result;
    char name[24];
    *std::to_chars(name, name + sizeof name - 1, ordinal).ptr = '\0';
    CUpti_Profiler_PushRange_Params push = {CUpti_Profiler_PushRange_Params_STRUCT_SIZE};
    push.ctx = context_;
    push.pRangeName = name;
    const CUptiResult result = api_.cuptiProfilerPushRange(&push);
    range_open_ = result == CUPTI_SUCCESS;
    return result;
  }
  int PopRange() override {
    if (!range_open_) return CUPTI_SUCCESS;
    range_open_ = false;
    CUpti_Profiler_PopRange_Params pop = {CUpti_Profiler_PopRange_Params_STRUCT_SIZE};
    pop.ctx = context_;
    return api_.cuptiProfilerPopRange(&pop);
  }

  int StartIn(CUpti_ProfilerRange ranges, size_t group, size_t max_ranges) {
    if (state_ != State::kIdle) return CUPTI_ERROR_INVALID_OPERATION;
    group_ = group;
    ranges_ = ranges;
    range_open_ = false;
    CUptiResult result = InitializeImage(max_ranges);
    if (result == CUPTI_SUCCESS) result = BeginSession(max_ranges);
    if (result == CUPTI_SUCCESS) result = SetConfig();
    if (result == CUPTI_SUCCESS) {
      CUpti_Profiler_BeginPass_Params pass = {CUpti_Profiler_BeginPass_Params_STRUCT_SIZE};
      pass.ctx = context_;
      result = api_.cuptiProfilerBeginPass(&pass);
      if (result == CUPTI_SUCCESS) state_ = State::kPass;
    }
    if (result == CUPTI_SUCCESS) {
      CUpti_Profiler_EnableProfiling_Params enable = {CUpti_Profiler_EnableProfiling_Params_STRUCT_SIZE};
      enable.ctx = context_;
      result = api_.cuptiProfilerEnableProfiling(&enable);
      if (result == CUPTI_SUCCESS) state_ = State::kEnabled;
    }
    if (result != CUPTI_SUCCESS) Abandon();
    return result;
  }

  int Stop(std::vector<double>* values, size_t* ranges, size_t* dropped) override {
    if (state_ != State::kEnabled) return CUPTI_ERROR_INVALID_OPERATION;
    bool all_passes = false;
    const int popped = PopRange();
    CUptiResult result = EndPass(&all_passes);
    if (result == CUPTI_SUCCESS) result = static_cast<CUptiResult>(popped);
    // The plan said one pass. A second one would be the next step's kernels under this step's names.
    if (result == CUPTI_SUCCESS && !all_passes) result = CUPTI_ERROR_INVALID_OPERATION;
    if (result == CUPTI_SUCCESS) {
      CUpti_Profiler_FlushCounterData_Params flush = {CUpti_Profiler_FlushCounterData_Params_STRUCT_SIZE};
      flush.ctx = context_;
      result = api_.cuptiProfilerFlushCounterData(&flush);
      *dropped = flush.numRangesDropped;
    }
    CUptiResult ended = EndSession();
    if (result == CUPTI_SUCCESS) result = ended;
    return result == CUPTI_SUCCESS ? Evaluate(values, ranges) : result;
  }

  void Abandon() override {
    bool unused = false;
    PopRange();
    EndPass(&unused);
    EndSession();
  }

 private:
  // What has been begun and must be ended.
  enum class State : uint8_t { kIdle, kSession, kConfig, kPass, kEnabled };

  struct Config {
    std::vector<uint8_t> image;
    std::vector<uint8_t> prefix;
  };

  CUptiResult InitializeImage(size_t max_ranges) {
    CUpti_Profiler_CounterDataImageOptions options = {CUpti_Profiler_CounterDataImageOptions_STRUCT_SIZE};
    options.pCounterDataPrefix = configs_[group_].prefix.data();
    options.counterDataPrefixSize = configs_[group_].prefix.size();
    options.maxNumRanges = static_cast<uint32_t>(max_ranges);
    options.maxNumRangeTreeNodes = static_cast<uint32_t>(max_ranges);
    options.maxRangeNameLength = kRangeNameLength;

    CUpti_Profiler_CounterDataImage_CalculateSize_Params size = {
        CUpti_Profiler_CounterDataImage_CalculateSize_Params_STRUCT_SIZE};
    size.sizeofCounterDataImageOptions = CUpti_Profiler_CounterDataImageOptions_STRUCT_SIZE;
    size.pOptions = &options;
    CUptiResult result = api_.cuptiProfilerCounterDataImageCalculateSize(&size);
    if (result != CUPTI_SUCCESS) return result;
    counter_data_.assign(size.counterDataImageSize, 0);
    CUpti_Profiler_CounterDataImage_Initialize_Params initialize = {
        CUpti_Profiler_CounterDataImage_Initialize_Params_STRUCT_SIZE};
    initialize.sizeofCounterDataImageOptions = CUpti_Profiler_CounterDataImageOptions_STRUCT_SIZE;
    initialize.pOptions = &options;
    initialize.counterDataImageSize = counter_data_.size();
    initialize.pCounterDataImage = counter_data_.data();
    result = api_.cuptiProfilerCounterDataImageInitialize(&initialize);
    if (result != CUPTI_SUCCESS) return result;

    CUpti_Profiler_CounterDataImage_CalculateScratchBufferSize_Params scratch_size = {
        CUpti_Profiler_CounterDataImage_CalculateScratchBufferSize_Params_STRUCT_SIZE};
    scratch_size.counterDataImageSize = counter_data_.size();
    scratch_size.pCounterDataImage = counter_data_.data();
    result = api_.cuptiProfilerCounterDataImageCalculateScratchBufferSize(&scratch_size);
    if (result != CUPTI_SUCCESS) return result;
    scratch_.assign(scratch_size.counterDataScratchBufferSize, 0);
    CUpti_Profiler_CounterDataImage_InitializeScratchBuffer_Params scratch = {
        CUpti_Profiler_CounterDataImage_InitializeScratchBuffer_Params_STRUCT_SIZE};
    scratch.counterDataImageSize = counter_data_.size();
    scratch.pCounterDataImage = counter_data_.data();
    scratch.counterDataScratchBufferSize = scratch_.size();
    scratch.pCounterDataScratchBuffer = scratch_.data();
    return api_.cuptiProfilerCounterDataImageInitializeScratchBuffer(&scratch);
  }

  CUptiResult BeginSession(size_t max_ranges) {
    CUpti_Profiler_BeginSession_Params session = {CUpti_Profiler_BeginSession_Params_STRUCT_SIZE};
    session.ctx = context_;
    session.counterDataImageSize = counter_data_.size();
    session.pCounterDataImage = counter_data_.data();
    session.counterDataScratchBufferSize = scratch_.size();
    session.pCounterDataScratchBuffer = scratch_.data();
    session.range = ranges_;
    session.replayMode = CUPTI_UserReplay;
    session.maxRangesPerPass = max_ranges;
    session.maxLaunchesPerPass = ranges_ == CUPTI_AutoRange ? max_ranges : std::max(max_ranges, kMaxLaunches);
    CUptiResult result = api_.cuptiProfilerBeginSession(&session);
    if (result == CUPTI_SUCCESS) state_ = State::kSession;
    return result;
  }

  CUptiResult SetConfig() {
    CUpti_Profiler_SetConfig_Params config = {CUpti_Profiler_SetConfig_Params_STRUCT_SIZE};
    config.ctx = context_;
    config.pConfig = configs_[group_].image.data();
    config.configSize = configs_[group_].image.size();
    config.minNestingLevel = 1;
    config.numNestingLevels = 1;
    config.passIndex = 0;
    config.targetNestingLevel = 1;
    CUptiResult result = api_.cuptiProfilerSetConfig(&config);
    if (result == CUPTI_SUCCESS) state_ = State::kConfig;
    return result;
  }

  // Ends whatever of a pass has been begun. Each end is tried although the one before failed: what is left open would
  // keep the GPU in its profiling state. The first failure is returned.
  CUptiResult EndPass(bool* all_passes) {
    CUptiResult first = CUPTI_SUCCESS;
    if (state_ == State::kEnabled) {
      CUpti_Profiler_DisableProfiling_Params disable = {CUpti_Profiler_DisableProfiling_Params_STRUCT_SIZE};
      disable.ctx = context_;
      first = api_.cuptiProfilerDisableProfiling(&disable);
      state_ = State::kPass;
    }
    if (state_ == State::kPass) {
      CUpti_Profiler_EndPass_Params pass = {CUpti_Profiler_EndPass_Params_STRUCT_SIZE};
      pass.ctx = context_;
      CUptiResult result = api_.cuptiProfilerEndPass(&pass);
      if (first == CUPTI_SUCCESS) first = result;
      *all_passes = pass.allPassesSubmitted != 0;
      state_ = State::kConfig;
    }
    return first;
  }

  // Ends the session, whose pass has ended. Returns the first failure.
  CUptiResult EndSession() {
    CUptiResult first = CUPTI_SUCCESS;
    if (state_ == State::kConfig) {
      CUpti_Profiler_UnsetConfig_Params config = {CUpti_Profiler_UnsetConfig_Params_STRUCT_SIZE};
      config.ctx = context_;
      first = api_.cuptiProfilerUnsetConfig(&config);
      state_ = State::kSession;
    }
    if (state_ == State::kSession) {
      CUpti_Profiler_EndSession_Params session = {CUpti_Profiler_EndSession_Params_STRUCT_SIZE};
      session.ctx = context_;
      CUptiResult result = api_.cuptiProfilerEndSession(&session);
      if (first == CUPTI_SUCCESS) first = result;
      state_ = State::kIdle;
    }
    return first;
  }

  CUptiResult Evaluate(std::vector<double>* values, size_t* ranges) {
    const std::vector<std::string>& metrics = plan_.groups[group_].metrics;
    if (!host_->Ranges(counter_data_, ranges) || !host_->SetDevice(counter_data_)) {
      return CUPTI_ERROR_INVALID_METRIC_VALUE;
    }
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
    std::string name;
    if (!host_->RangeName(counter_data_, range, &name)) return false;
    const char* end = name.data() + name.size();
    const auto [at, error] = std::from_chars(name.data(), end, *ordinal);
    return error == std::errc() && at == end;
  }

  const Api& api_;
  CUcontext context_;
  std::unique_ptr<PerfworksHost> host_;
  ChipMetrics metrics_;
  Plan plan_;
  std::vector<Config> configs_;  // by group
  std::vector<uint8_t> counter_data_;
  std::vector<uint8_t> scratch_;
  size_t group_ = 0;
  State state_ = State::kIdle;
  CUpti_ProfilerRange ranges_ = CUPTI_AutoRange;
  bool range_open_ = false;
};

}  // namespace

std::unique_ptr<CounterBackend> MakeLegacyProfiler(const Api& api, void* context, int device,
                                                   const std::vector<std::string>& user_metrics, std::string* chip,
                                                   int* result) {
  auto profiler = std::make_unique<LegacyProfiler>(api, static_cast<CUcontext>(context));
  *result = profiler->Open(device, user_metrics, chip);
  if (*result != CUPTI_SUCCESS) return nullptr;
  return profiler;
}

}  // namespace rfinject::cupti
