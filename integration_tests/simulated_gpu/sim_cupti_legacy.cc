// File: sim_cupti_legacy.cc
//
// The legacy Profiling API (cuptiProfiler*) of the simulated CUPTI. Each call is checked as cupti_profiler_target.h
// demands: size of the structure, NULL where NULL must be, alignment, and the order of session, configuration, pass
// and profiling. The calls that end something have ended it even when they are made to fail, as the real ones have;
// what the calls that begin something would have begun is then not there.
#include <cupti_profiler_target.h>
#include <nvperf_host.h>
#include <nvperf_target.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "integration_tests/simulated_gpu/sim_checks.h"
#include "integration_tests/simulated_gpu/sim_legacy.h"

namespace {

constexpr uint64_t kScratchMagic = 0x53494D5F53435241u;
constexpr size_t kScratchSize = 128;

struct Session {
  bool configured = false, pass = false, enabled = false, submitted = false;
  uint8_t* image = nullptr;
  CUpti_ProfilerRange mode = CUPTI_AutoRange;
  size_t max_ranges = 0;
  std::vector<sim::LegacyRange*> ranges;
  sim::LegacyRange* open = nullptr;  // of user ranges
  size_t dropped = 0;
};

struct World {
  std::mutex mutex;
  std::map<CUcontext, Session> sessions;
};
World& W() {
  static World* world = new World;
  return *world;
}

// As many passes as the real Perfworks says that the configuration takes; 0 when it does not know it.
size_t Passes(const uint8_t* config) {
  static void* real = sim::RealLibrary("libnvperf_host.so");
  NVPW_Config_GetNumPasses_Params params = {NVPW_Config_GetNumPasses_Params_STRUCT_SIZE};
  params.pConfig = config;
  if (sim::CallReal(real, "NVPW_Config_GetNumPasses", &params, NVPA_STATUS_NOT_LOADED) != NVPA_STATUS_SUCCESS)
    return 0;
  return params.numPipelinedPasses + params.numIsolatedPasses;
}

bool Aligned(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 8 == 0; }

// 0: the options are wrong.
size_t ImageSize(const char* function, size_t size, const CUpti_Profiler_CounterDataImageOptions* options) {
  auto wrong = [&](const char* what) {
    sim::Violation(function, what);
    return size_t{0};
  };
  if (size != CUpti_Profiler_CounterDataImageOptions_STRUCT_SIZE || options == nullptr) return wrong("options");
  if (options->structSize != CUpti_Profiler_CounterDataImageOptions_STRUCT_SIZE) return wrong("options' size");
  if (options->pPriv != nullptr) return wrong("options' pPriv");
  if (options->pCounterDataPrefix == nullptr || options->counterDataPrefixSize == 0) return wrong("no prefix");
  if (!Aligned(options->pCounterDataPrefix)) return wrong("the prefix is not aligned");
  if (options->maxNumRanges == 0) return wrong("no ranges");
  if (options->maxNumRangeTreeNodes < options->maxNumRanges) return wrong("fewer nodes than ranges");
  if (options->maxRangeNameLength == 0) return wrong("no room for a range's name");
  return sizeof(sim::LegacyImage) + options->maxNumRanges * sizeof(sim::LegacyRange*);
}

bool IsImage(const uint8_t* image, size_t size) {
  sim::LegacyImage header;
  if (image == nullptr || !Aligned(image) || size < sizeof header) return false;
  memcpy(&header, image, sizeof header);
  return header.magic == sim::kLegacyImageMagic &&
         size == sizeof header + header.max_ranges * sizeof(sim::LegacyRange*);
}

}  // namespace

namespace sim {

void LegacyRun(const SimLaunch* launch) {
  std::lock_guard lock(W().mutex);
  auto at = W().sessions.find(launch->context);
  if (at == W().sessions.end() || !at->second.enabled) return;
  Session& session = at->second;
  std::vector<const SimKernel*> kernels;
  if (launch->kernel != nullptr) kernels.push_back(launch->kernel);
  for (size_t i = 0; launch->graph != nullptr && i < launch->graph->count; ++i) {
    if (launch->graph->nodes[i].kernel != nullptr) kernels.push_back(launch->graph->nodes[i].kernel);
  }
  if (kernels.empty()) return;
  if (session.mode == CUPTI_UserRange) {
    // What is launched outside of any range is not counted.
    if (session.open != nullptr) {
      session.open->kernels.insert(session.open->kernels.end(), kernels.begin(), kernels.end());
    }
  } else if (launch->kernel == nullptr) {
    // A graph is no range of its own without kernel replay.
  } else if (session.ranges.size() < session.max_ranges) {
    session.ranges.push_back(new LegacyRange{std::to_string(session.ranges.size()), kernels});
  } else {
    ++session.dropped;
  }
}

bool LegacySession(CUcontext context) {
  std::lock_guard lock(W().mutex);
  return W().sessions.count(context) != 0;
}

bool LegacyEnabled() {
  std::lock_guard lock(W().mutex);
  for (const auto& [context, session] : W().sessions) {
    if (session.enabled) return true;
  }
  return false;
}

}  // namespace sim

#define SIM_PARAMS_ANYWHERE(name, type)                                     \
  SIM_ENTER(name);                                                          \
  SIM_CHECK(name, sim::ProfilerInitialised(), CUPTI_ERROR_NOT_INITIALIZED); \
  SIM_CHECK_PARAMS(name, type)
#define SIM_PARAMS(name, type)     \
  SIM_PARAMS_ANYWHERE(name, type); \
  SIM_CHECK(name, sim_inside_launch() == 0, CUPTI_ERROR_INVALID_OPERATION)
// The session of params->ctx, which must be there.
#define SIM_SESSION(name)                                                                                         \
  std::lock_guard lock(W().mutex);                                                                                \
  SIM_CHECK(name, params->ctx != nullptr && W().sessions.count(params->ctx) != 0, CUPTI_ERROR_INVALID_OPERATION); \
  Session& session = W().sessions[params->ctx]

extern "C" {

CUptiResult CUPTIAPI
cuptiProfilerCounterDataImageCalculateSize(CUpti_Profiler_CounterDataImage_CalculateSize_Params* params) {
  constexpr const char* kName = "cuptiProfilerCounterDataImageCalculateSize";
  SIM_PARAMS(kName, CUpti_Profiler_CounterDataImage_CalculateSize_Params);
  params->counterDataImageSize = ImageSize(kName, params->sizeofCounterDataImageOptions, params->pOptions);
  return params->counterDataImageSize != 0 ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult CUPTIAPI
cuptiProfilerCounterDataImageInitialize(CUpti_Profiler_CounterDataImage_Initialize_Params* params) {
  constexpr const char* kName = "cuptiProfilerCounterDataImageInitialize";
  SIM_PARAMS(kName, CUpti_Profiler_CounterDataImage_Initialize_Params);
  const size_t size = ImageSize(kName, params->sizeofCounterDataImageOptions, params->pOptions);
  SIM_CHECK(kName, size != 0 && params->counterDataImageSize == size, CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
  SIM_CHECK(kName, params->pCounterDataImage != nullptr, CUPTI_ERROR_INVALID_PARAMETER);
  sim::LegacyImage header = {sim::kLegacyImageMagic, params->pOptions->maxNumRanges, 0};
  memcpy(params->pCounterDataImage, &header, sizeof header);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiProfilerCounterDataImageCalculateScratchBufferSize(
    CUpti_Profiler_CounterDataImage_CalculateScratchBufferSize_Params* params) {
  constexpr const char* kName = "cuptiProfilerCounterDataImageCalculateScratchBufferSize";
  SIM_PARAMS(kName, CUpti_Profiler_CounterDataImage_CalculateScratchBufferSize_Params);
  SIM_CHECK(kName, IsImage(params->pCounterDataImage, params->counterDataImageSize), CUPTI_ERROR_INVALID_PARAMETER);
  params->counterDataScratchBufferSize = kScratchSize;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiProfilerCounterDataImageInitializeScratchBuffer(
    CUpti_Profiler_CounterDataImage_InitializeScratchBuffer_Params* params) {
  constexpr const char* kName = "cuptiProfilerCounterDataImageInitializeScratchBuffer";
  SIM_PARAMS(kName, CUpti_Profiler_CounterDataImage_InitializeScratchBuffer_Params);
  SIM_CHECK(kName, IsImage(params->pCounterDataImage, params->counterDataImageSize), CUPTI_ERROR_INVALID_PARAMETER);
  SIM_CHECK(kName, params->counterDataScratchBufferSize >= kScratchSize, CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
  SIM_CHECK(kName, params->pCounterDataScratchBuffer != nullptr, CUPTI_ERROR_INVALID_PARAMETER);
  memcpy(params->pCounterDataScratchBuffer, &kScratchMagic, sizeof kScratchMagic);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiProfilerBeginSession(CUpti_Profiler_BeginSession_Params* params) {
  constexpr const char* kName = "cuptiProfilerBeginSession";
  SIM_PARAMS(kName, CUpti_Profiler_BeginSession_Params);
  SIM_CHECK(kName, params->ctx != nullptr, CUPTI_ERROR_INVALID_CONTEXT);
  SIM_CHECK(kName, !sim::KernelRecordsOn(), CUPTI_ERROR_NOT_COMPATIBLE);
  SIM_CHECK(kName, IsImage(params->pCounterDataImage, params->counterDataImageSize), CUPTI_ERROR_INVALID_PARAMETER);
  SIM_CHECK(kName,
            params->pCounterDataScratchBuffer != nullptr && params->counterDataScratchBufferSize >= kScratchSize &&
                memcmp(params->pCounterDataScratchBuffer, &kScratchMagic, sizeof kScratchMagic) == 0,
            CUPTI_ERROR_INVALID_PARAMETER);
  SIM_CHECK(kName, params->bDumpCounterDataInFile == 0, CUPTI_ERROR_INVALID_PARAMETER);
  SIM_CHECK(kName, params->range == CUPTI_AutoRange || params->range == CUPTI_UserRange,
            CUPTI_ERROR_INVALID_PARAMETER);
  // Kernel replay would save and restore the memory of each kernel.
  SIM_CHECK(kName, params->replayMode == CUPTI_UserReplay, CUPTI_ERROR_INVALID_PARAMETER);
  sim::LegacyImage header;
  memcpy(&header, params->pCounterDataImage, sizeof header);
  SIM_CHECK(kName, params->maxRangesPerPass > 0 && params->maxRangesPerPass <= header.max_ranges,
            CUPTI_ERROR_INVALID_PARAMETER);
  SIM_CHECK(kName, params->maxLaunchesPerPass >= params->maxRangesPerPass, CUPTI_ERROR_INVALID_PARAMETER);
  std::lock_guard lock(W().mutex);
  SIM_CHECK(kName, W().sessions.count(params->ctx) == 0, CUPTI_ERROR_INVALID_OPERATION);
  Session& session = W().sessions[params->ctx];
  session.image = params->pCounterDataImage;
  session.mode = params->range;
  session.max_ranges = params->maxRangesPerPass;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiProfilerEndSession(CUpti_Profiler_EndSession_Params* params) {
  constexpr const char* kName = "cuptiProfilerEndSession";
  bool was_there = false, open = false;
  if (params != nullptr) {
    std::lock_guard lock(W().mutex);
    if (auto at = W().sessions.find(params->ctx); at != W().sessions.end()) {
      was_there = true;
      open = at->second.configured || at->second.pass || at->second.enabled;
      W().sessions.erase(at);
    }
  }
  SIM_CHECK(kName, was_there, CUPTI_ERROR_INVALID_OPERATION);
  SIM_CHECK(kName, !open, CUPTI_ERROR_INVALID_OPERATION);
  SIM_PARAMS(kName, CUpti_Profiler_EndSession_Params);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiProfilerSetConfig(CUpti_Profiler_SetConfig_Params* params) {
  constexpr const char* kName = "cuptiProfilerSetConfig";
  SIM_PARAMS(kName, CUpti_Profiler_SetConfig_Params);
  SIM_SESSION(kName);
  SIM_CHECK(kName, !session.configured && !session.pass, CUPTI_ERROR_INVALID_OPERATION);
  SIM_CHECK(kName, params->pConfig != nullptr && params->configSize > 0 && Aligned(params->pConfig),
            CUPTI_ERROR_INVALID_PARAMETER);
  SIM_CHECK(kName, params->minNestingLevel == 1 && params->numNestingLevels == 1, CUPTI_ERROR_INVALID_PARAMETER);
  SIM_CHECK(kName, params->passIndex == 0 && params->targetNestingLevel == params->minNestingLevel,
            CUPTI_ERROR_INVALID_PARAMETER);
  SIM_CHECK(kName, Passes(params->pConfig) == 1, CUPTI_ERROR_INVALID_PARAMETER);
  session.configured = true;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiProfilerUnsetConfig(CUpti_Profiler_UnsetConfig_Params* params) {
  constexpr const char* kName = "cuptiProfilerUnsetConfig";
  bool was_set = false;
  if (params != nullptr) {
    std::lock_guard lock(W().mutex);
    if (auto at = W().sessions.find(params->ctx); at != W().sessions.end()) {
      was_set = at->second.configured && !at->second.pass;
      at->second.configured = false;
    }
  }
  SIM_CHECK(kName, was_set, CUPTI_ERROR_INVALID_OPERATION);
  SIM_PARAMS(kName, CUpti_Profiler_UnsetConfig_Params);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiProfilerBeginPass(CUpti_Profiler_BeginPass_Params* params) {
  constexpr const char* kName = "cuptiProfilerBeginPass";
  SIM_PARAMS(kName, CUpti_Profiler_BeginPass_Params);
  SIM_SESSION(kName);
  SIM_CHECK(kName, session.configured && !session.pass && !session.submitted, CUPTI_ERROR_INVALID_OPERATION);
  session.pass = true;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiProfilerEndPass(CUpti_Profiler_EndPass_Params* params) {
  constexpr const char* kName = "cuptiProfilerEndPass";
  bool was_open = false;
  if (params != nullptr) {
    std::lock_guard lock(W().mutex);
    if (auto at = W().sessions.find(params->ctx); at != W().sessions.end()) {
      was_open = at->second.pass && !at->second.enabled;
      at->second.pass = false;
      at->second.submitted = true;
    }
  }
  SIM_CHECK(kName, was_open, CUPTI_ERROR_INVALID_OPERATION);
  SIM_PARAMS(kName, CUpti_Profiler_EndPass_Params);
  params->allPassesSubmitted = 1;
  params->passIndex = 0;
  params->targetNestingLevel = 1;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiProfilerEnableProfiling(CUpti_Profiler_EnableProfiling_Params* params) {
  constexpr const char* kName = "cuptiProfilerEnableProfiling";
  SIM_PARAMS(kName, CUpti_Profiler_EnableProfiling_Params);
  SIM_SESSION(kName);
  SIM_CHECK(kName, session.pass && !session.enabled, CUPTI_ERROR_INVALID_OPERATION);
  session.enabled = true;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiProfilerDisableProfiling(CUpti_Profiler_DisableProfiling_Params* params) {
  constexpr const char* kName = "cuptiProfilerDisableProfiling";
  bool was_enabled = false;
  if (params != nullptr) {
    std::lock_guard lock(W().mutex);
    if (auto at = W().sessions.find(params->ctx); at != W().sessions.end()) {
      was_enabled = at->second.enabled && at->second.open == nullptr;
      at->second.enabled = false;
    }
  }
  SIM_CHECK(kName, was_enabled, CUPTI_ERROR_INVALID_OPERATION);
  SIM_PARAMS(kName, CUpti_Profiler_DisableProfiling_Params);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiProfilerFlushCounterData(CUpti_Profiler_FlushCounterData_Params* params) {
  constexpr const char* kName = "cuptiProfilerFlushCounterData";
  SIM_PARAMS(kName, CUpti_Profiler_FlushCounterData_Params);
  SIM_SESSION(kName);
  SIM_CHECK(kName, session.submitted && !session.pass, CUPTI_ERROR_INVALID_OPERATION);
  sim::LegacyImage header;
  memcpy(&header, session.image, sizeof header);
  header.ranges = session.ranges.size();
  memcpy(session.image, &header, sizeof header);
  if (!session.ranges.empty()) {
    memcpy(session.image + sizeof header, static_cast<const void*>(session.ranges.data()),
           session.ranges.size() * sizeof(sim::LegacyRange*));
  }
  params->numRangesDropped = session.dropped;
  params->numTraceBytesDropped = 0;
  return CUPTI_SUCCESS;
}

// Of user ranges only. They are called around launches, so from inside launch callbacks, too.
CUptiResult CUPTIAPI cuptiProfilerPushRange(CUpti_Profiler_PushRange_Params* params) {
  constexpr const char* kName = "cuptiProfilerPushRange";
  SIM_PARAMS_ANYWHERE(kName, CUpti_Profiler_PushRange_Params);
  SIM_SESSION(kName);
  SIM_CHECK(kName, session.mode == CUPTI_UserRange && session.enabled, CUPTI_ERROR_INVALID_OPERATION);
  SIM_CHECK(kName, session.open == nullptr, CUPTI_ERROR_INVALID_OPERATION);  // one nesting level
  SIM_CHECK(kName, params->pRangeName != nullptr && params->pRangeName[0] != '\0', CUPTI_ERROR_INVALID_PARAMETER);
  SIM_CHECK(kName, params->rangeNameLength == 0 || params->rangeNameLength == strlen(params->pRangeName),
            CUPTI_ERROR_INVALID_PARAMETER);
  for (const sim::LegacyRange* range : session.ranges) {
    SIM_CHECK(kName, range->name != params->pRangeName, CUPTI_ERROR_INVALID_PARAMETER);
  }
  session.open = new sim::LegacyRange{params->pRangeName, {}};
  if (session.ranges.size() < session.max_ranges) {
    session.ranges.push_back(session.open);
  } else {
    ++session.dropped;
  }
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiProfilerPopRange(CUpti_Profiler_PopRange_Params* params) {
  constexpr const char* kName = "cuptiProfilerPopRange";
  bool was_open = false;
  if (params != nullptr) {
    std::lock_guard lock(W().mutex);
    if (auto at = W().sessions.find(params->ctx); at != W().sessions.end()) {
      was_open = at->second.open != nullptr;
      at->second.open = nullptr;
    }
  }
  SIM_CHECK(kName, was_open, CUPTI_ERROR_INVALID_OPERATION);
  SIM_PARAMS_ANYWHERE(kName, CUpti_Profiler_PopRange_Params);
  return CUPTI_SUCCESS;
}
}
