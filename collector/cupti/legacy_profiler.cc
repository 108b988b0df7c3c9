// File: legacy_profiler.cc
//
// The legacy Profiling API (cuptiProfiler*): all that CUPTI has before 12.6 update 2, and the one that it documents
// for Volta. Planned and evaluated by Perfworks (perfworks_host.h).
//
// A session for each armed step:
//   BeginSession, SetConfig, BeginPass, EnableProfiling   between the step before and this one
//   the step's launches: in automatic ranges each is a range of its own, and CUPTI waits for the context after each;
//   in user ranges we open and close them, and nothing waits
//   DisableProfiling, EndPass, FlushCounterData, UnsetConfig, EndSession   after it
// UserReplay leaves repeating passes to us, and one pass is all that a group takes: nothing is ever replayed. (In
// KernelReplay CUPTI would save and restore the kernel's memory.)
#include <algorithm>

#include "collector/cupti/counter_backend.h"
#include "collector/cupti/perfworks_host.h"

namespace rfinject::cupti {
namespace {

// Ranges are named by their number, automatic ones by CUPTI, others by us (counter_backend.h says why).
constexpr uint32_t kRangeNameLength = 16;
// The most launches in a step with user ranges, which hold several launches each, while only the number of ranges is
// known before the step. A step with more launches is not counted.
constexpr size_t kMaxLaunches = 65536;

class LegacyProfiler final : public CounterBackend {
 public:
  using CounterBackend::CounterBackend;

  bool has_user_ranges() const override { return api_.NVPW_Profiler_CounterData_GetRangeDescriptions != nullptr; }

  int Stop(std::vector<double>* values, size_t* ranges, size_t* dropped) override {
    if (state_ != State::kEnabled) return CUPTI_ERROR_INVALID_OPERATION;
    bool all_passes = false;
    const CUptiResult popped = PopRange();
    CUptiResult result = EndPass(&all_passes);
    if (result == CUPTI_SUCCESS) result = popped;
    // The plan said one pass. A second one would be the next step's kernels under this step's names.
    if (result == CUPTI_SUCCESS && !all_passes) result = CUPTI_ERROR_INVALID_OPERATION;
    if (result == CUPTI_SUCCESS) {
      RFINJECT_PARAMS(CUpti_Profiler_FlushCounterData, flush);
      flush.ctx = context_;
      result = api_.cuptiProfilerFlushCounterData(&flush);
      *dropped = flush.numRangesDropped;
    }
    CUptiResult ended = EndSession();
    if (result == CUPTI_SUCCESS) result = ended;
    if (result != CUPTI_SUCCESS) return result;
    if (!host_->Ranges(counter_data_, ranges) || !host_->SetDevice(counter_data_)) {
      return CUPTI_ERROR_INVALID_METRIC_VALUE;
    }
    return Evaluate(*ranges, values);
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

  MetricHost* MakeHost(const std::string& chip, std::span<const uint8_t> availability, int* result) override {
    host_ = MakePerfworksHost(api_, chip, availability, result);
    return host_.get();
  }

  int Configure(const std::string& chip) override {
    if (metrics().tensor.empty()) {
      plan_.rejected.emplace_back("tensor FLOP",
                                  "this CUPTI has no counter for them on " + chip +
                                      " (12.2 update 2 brought them); FLOP are those of CUDA cores only");
    }
    for (const CounterGroup& group : plan_.groups) {
      configs_.push_back({host_->ConfigImage(group.metrics), host_->CounterDataPrefix(group.metrics)});
      if (configs_.back().image.empty() || configs_.back().prefix.empty()) return CUPTI_ERROR_INVALID_METRIC_VALUE;
    }
    return CUPTI_SUCCESS;
  }

  bool running() const override { return state_ != State::kIdle; }

  CUptiResult Begin(size_t max_ranges) override {
    CUptiResult result = InitializeImage(max_ranges);
    if (result == CUPTI_SUCCESS) result = BeginSession(max_ranges);
    if (result == CUPTI_SUCCESS) result = SetConfig();
    if (result == CUPTI_SUCCESS) {
      RFINJECT_PARAMS(CUpti_Profiler_BeginPass, pass);
      pass.ctx = context_;
      result = api_.cuptiProfilerBeginPass(&pass);
      if (result == CUPTI_SUCCESS) state_ = State::kPass;
    }
    if (result == CUPTI_SUCCESS) {
      RFINJECT_PARAMS(CUpti_Profiler_EnableProfiling, enable);
      enable.ctx = context_;
      result = api_.cuptiProfilerEnableProfiling(&enable);
      if (result == CUPTI_SUCCESS) state_ = State::kEnabled;
    }
    if (result != CUPTI_SUCCESS) Abandon();
    return result;
  }

  CUptiResult Push(const char* name) override {
    RFINJECT_PARAMS(CUpti_Profiler_PushRange, push);
    push.ctx = context_;
    push.pRangeName = name;
    return api_.cuptiProfilerPushRange(&push);
  }

  CUptiResult Pop() override {
    RFINJECT_PARAMS(CUpti_Profiler_PopRange, pop);
    pop.ctx = context_;
    return api_.cuptiProfilerPopRange(&pop);
  }

  bool RangeName(size_t range, std::string* name) const override {
    return host_->RangeName(counter_data_, range, name);
  }

  CUptiResult InitializeImage(size_t max_ranges) {
    CUpti_Profiler_CounterDataImageOptions options = {CUpti_Profiler_CounterDataImageOptions_STRUCT_SIZE};
    options.pCounterDataPrefix = configs_[group_].prefix.data();
    options.counterDataPrefixSize = configs_[group_].prefix.size();
    options.maxNumRanges = static_cast<uint32_t>(max_ranges);
    options.maxNumRangeTreeNodes = static_cast<uint32_t>(max_ranges);
    options.maxRangeNameLength = kRangeNameLength;

    RFINJECT_PARAMS(CUpti_Profiler_CounterDataImage_CalculateSize, size);
    size.sizeofCounterDataImageOptions = CUpti_Profiler_CounterDataImageOptions_STRUCT_SIZE;
    size.pOptions = &options;
    CUptiResult result = api_.cuptiProfilerCounterDataImageCalculateSize(&size);
    if (result != CUPTI_SUCCESS) return result;
    counter_data_.assign(size.counterDataImageSize, 0);
    RFINJECT_PARAMS(CUpti_Profiler_CounterDataImage_Initialize, initialize);
    initialize.sizeofCounterDataImageOptions = CUpti_Profiler_CounterDataImageOptions_STRUCT_SIZE;
    initialize.pOptions = &options;
    initialize.counterDataImageSize = counter_data_.size();
    initialize.pCounterDataImage = counter_data_.data();
    result = api_.cuptiProfilerCounterDataImageInitialize(&initialize);
    if (result != CUPTI_SUCCESS) return result;

    RFINJECT_PARAMS(CUpti_Profiler_CounterDataImage_CalculateScratchBufferSize, scratch_size);
    scratch_size.counterDataImageSize = counter_data_.size();
    scratch_size.pCounterDataImage = counter_data_.data();
    result = api_.cuptiProfilerCounterDataImageCalculateScratchBufferSize(&scratch_size);
    if (result != CUPTI_SUCCESS) return result;
    scratch_.assign(scratch_size.counterDataScratchBufferSize, 0);
    RFINJECT_PARAMS(CUpti_Profiler_CounterDataImage_InitializeScratchBuffer, scratch);
    scratch.counterDataImageSize = counter_data_.size();
    scratch.pCounterDataImage = counter_data_.data();
    scratch.counterDataScratchBufferSize = scratch_.size();
    scratch.pCounterDataScratchBuffer = scratch_.data();
    return api_.cuptiProfilerCounterDataImageInitializeScratchBuffer(&scratch);
  }

  CUptiResult BeginSession(size_t max_ranges) {
    RFINJECT_PARAMS(CUpti_Profiler_BeginSession, session);
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
    RFINJECT_PARAMS(CUpti_Profiler_SetConfig, config);
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
      RFINJECT_PARAMS(CUpti_Profiler_DisableProfiling, disable);
      disable.ctx = context_;
      first = api_.cuptiProfilerDisableProfiling(&disable);
      state_ = State::kPass;
    }
    if (state_ == State::kPass) {
      RFINJECT_PARAMS(CUpti_Profiler_EndPass, pass);
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
      RFINJECT_PARAMS(CUpti_Profiler_UnsetConfig, config);
      config.ctx = context_;
      first = api_.cuptiProfilerUnsetConfig(&config);
      state_ = State::kSession;
    }
    if (state_ == State::kSession) {
      RFINJECT_PARAMS(CUpti_Profiler_EndSession, session);
      session.ctx = context_;
      CUptiResult result = api_.cuptiProfilerEndSession(&session);
      if (first == CUPTI_SUCCESS) first = result;
      state_ = State::kIdle;
    }
    return first;
  }

  std::unique_ptr<PerfworksHost> host_;
  std::vector<Config> configs_;  // by group
  std::vector<uint8_t> scratch_;
  State state_ = State::kIdle;
};

}  // namespace

std::unique_ptr<CounterBackend> MakeLegacyProfiler(const Api& api, CUcontext context) {
  return std::make_unique<LegacyProfiler>(api, context);
}

}  // namespace rfinject::cupti
