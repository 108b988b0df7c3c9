// File: legacy_profiler.cc
//
// The legacy Profiling API (cuptiProfiler*): all that CUPTI has before 12.6 update 2, and the one that it documents
// for Volta. Planned and evaluated by Perfworks (perfworks_host.h).
//
// A session for each batch of user ranges:
//   BeginSession, SetConfig, BeginPass, EnableProfiling
//   the ranges, while the program launches
//   DisableProfiling, EndPass, FlushCounterData, UnsetConfig, EndSession
#include "collector/cupti/counter_backend.h"
#include "collector/cupti/perfworks_host.h"

namespace rfinject::cupti {
namespace {

constexpr uint32_t kRangeNameLength = 16;  // they are named by their number

class LegacyProfiler final : public CounterBackend {
 public:
  using CounterBackend::CounterBackend;

  int Pop() override {
    RFINJECT_PARAMS(CUpti_Profiler_PopRange, pop);
    pop.ctx = context_;
    return api_.cuptiProfilerPopRange(&pop);
  }

  int Restart() override { return Begin(); }

  int Close() override {
    bool unused = false;
    started_ = false;
    const CUptiResult passed = EndPass(&unused);
    const CUptiResult ended = EndSession();
    return passed != CUPTI_SUCCESS ? passed : ended;
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

  int Begin() override {
    CUptiResult result = InitializeImage();
    if (result == CUPTI_SUCCESS) result = BeginSession();
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
    if (result != CUPTI_SUCCESS) Close();
    return result;
  }

  int PushName(const char* name) override {
    RFINJECT_PARAMS(CUpti_Profiler_PushRange, push);
    push.ctx = context_;
    push.pRangeName = name;
    return api_.cuptiProfilerPushRange(&push);
  }

  int Decode(size_t* found) override {
    if (state_ != State::kEnabled) return CUPTI_ERROR_INVALID_OPERATION;
    bool all_passes = false;
    CUptiResult result = EndPass(&all_passes);
    // The plan said one pass. A second one would be later kernels under these ranges' names.
    if (result == CUPTI_SUCCESS && !all_passes) result = CUPTI_ERROR_INVALID_OPERATION;
    if (result == CUPTI_SUCCESS) {
      RFINJECT_PARAMS(CUpti_Profiler_FlushCounterData, flush);
      flush.ctx = context_;
      result = api_.cuptiProfilerFlushCounterData(&flush);
    }
    const CUptiResult ended = EndSession();
    if (result == CUPTI_SUCCESS) result = ended;
    if (result != CUPTI_SUCCESS) return result;
    return host_->Ranges(counter_data_, found) && host_->SetDevice(counter_data_) ? CUPTI_SUCCESS
                                                                                  : CUPTI_ERROR_INVALID_METRIC_VALUE;
  }

  bool RangeName(size_t range, std::string* name) const override {
    return host_->RangeName(counter_data_, range, name);
  }

  CUptiResult InitializeImage() {
    CUpti_Profiler_CounterDataImageOptions options = {CUpti_Profiler_CounterDataImageOptions_STRUCT_SIZE};
    options.pCounterDataPrefix = configs_[group_].prefix.data();
    options.counterDataPrefixSize = configs_[group_].prefix.size();
    options.maxNumRanges = static_cast<uint32_t>(max_ranges_);
    options.maxNumRangeTreeNodes = static_cast<uint32_t>(max_ranges_);
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

  CUptiResult BeginSession() {
    RFINJECT_PARAMS(CUpti_Profiler_BeginSession, session);
    session.ctx = context_;
    session.counterDataImageSize = counter_data_.size();
    session.pCounterDataImage = counter_data_.data();
    session.counterDataScratchBufferSize = scratch_.size();
    session.pCounterDataScratchBuffer = scratch_.data();
    session.range = CUPTI_UserRange;
    session.replayMode = CUPTI_UserReplay;
    session.maxRangesPerPass = max_ranges_;
    session.maxLaunchesPerPass = max_ranges_;  // one in each
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
