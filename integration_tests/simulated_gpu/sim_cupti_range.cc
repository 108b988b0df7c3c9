// File: sim_cupti_range.cc
//
// The range profiler of the simulated CUPTI. A range begins when the kernels before it have ended, and counts what is
// launched inside of it. What differs from the headers, or is not said there, is as it was recorded on an H100
// (pm/sessions_and_sampling.txt, probe/session.txt): ranges of one name are added up; a session that was stopped goes
// on in the same image; other metrics in a session that was not disabled are not a number.
#include <cupti_profiler_host.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "integration_tests/simulated_gpu/sim_checks.h"
#include "integration_tests/simulated_gpu/sim_cupti_parts.h"
#include "integration_tests/simulated_gpu/sim_legacy.h"
#include "integration_tests/simulated_gpu/simulator.h"

namespace {

// These are leaked, because counter data images point at them.
struct Range {
  std::string name;
  std::vector<const SimKernel*> kernels;
  bool lost;  // it has no values
};

}  // namespace

struct CUpti_RangeProfiler_Object {
  CUcontext context;
  bool configured, running, enabled, warm;  // warm: it was started since it was enabled
  size_t sized_ranges;                      // of the last GetCounterDataSize
  std::set<std::string> sized_metrics, first_metrics, metrics;
  size_t max_ranges;
  uint8_t* image;
  size_t image_size;
  CUpti_ProfilerRange mode;
  std::vector<Range*> ranges;  // since the last decoding
  Range* open;                 // of user ranges
  size_t dropped;
};

namespace {

using Session = CUpti_RangeProfiler_Object;

constexpr uint64_t kImageMagic = 0x53494D5F494D4147u;
struct ImageHeader {
  uint64_t magic;
  uint64_t max_ranges;
  uint64_t ranges;
  uint64_t filled;
};

std::mutex g_mutex;
std::vector<Session*>& Sessions() {
  static auto* const sessions = new std::vector<Session*>;
  return *sessions;
}

#define SIM_PARAMS(name, type) \
  SIM_ENTER(name);             \
  SIM_CHECK_PARAMS(name, type)

Session* SessionOf(CUcontext context) {
  for (Session* session : Sessions()) {
    if (session->context == context && session->enabled) return session;
  }
  return nullptr;
}

// A range with DRAM metrics alone costs little; one with metrics of SMs, L1, L2, cycles or clocks beside or instead
// of them costs the same whatever they are (README.md of the recording, 2; docs/measurements/h200).
bool IsBeyondDram(const Session& session) {
  return std::any_of(session.metrics.begin(), session.metrics.end(), [](std::string_view metric) {
    return !metric.starts_with("dram__bytes") && !metric.starts_with("smsp__sass_");
  });
}
// Than those that the session was first configured with.
bool OtherMetrics(const Session& session) { return session.metrics != session.first_metrics; }
bool IsSass(const Session& session) {
  return !session.metrics.empty() && session.metrics.begin()->rfind("smsp__sass_", 0) == 0;
}

uint64_t RangeOnGpu() { return sim_costs() != 0 ? sim::CostOf("a range on the GPU").ns : 0; }

Range* RangeOf(const uint8_t* image, size_t index) {
  Range* range = nullptr;
  memcpy(static_cast<void*>(&range), image + sizeof(ImageHeader) + index * sizeof range, sizeof range);
  return range;
}

// Adds what was counted to the image, which may have ranges of before.
void FillImage(Session& session) {
  ImageHeader header;
  memcpy(&header, session.image, sizeof header);
  std::vector<Range*> all;
  for (size_t i = 0; i < header.filled; ++i) all.push_back(RangeOf(session.image, i));
  for (Range* range : std::exchange(session.ranges, {})) {
    const auto same =
        std::find_if(all.begin(), all.end(), [&](const Range* one) { return one->name == range->name; });
    if (same != all.end()) {
      (*same)->kernels.insert((*same)->kernels.end(), range->kernels.begin(), range->kernels.end());
    } else if (all.size() < header.max_ranges) {
      all.push_back(range);
    } else {
      ++session.dropped;
    }
  }
  // A tree of names has an order of its own, so a reader must look at the names.
  if (session.mode == CUPTI_UserRange) {
    std::sort(all.begin(), all.end(), [](const Range* a, const Range* b) { return a->name < b->name; });
  }
  header.filled = all.size();
  memcpy(session.image, &header, sizeof header);
  if (all.empty()) return;
  memcpy(session.image + sizeof header, static_cast<const void*>(all.data()), all.size() * sizeof(Range*));
}

}  // namespace

bool SimRangeSession(CUcontext context) {
  std::lock_guard lock(g_mutex);
  return std::any_of(Sessions().begin(), Sessions().end(), [context](const Session* session) {
    return session->enabled && (context == nullptr || session->context == context);
  });
}
bool SimRangeIsRunning() {
  std::lock_guard lock(g_mutex);
  return std::any_of(Sessions().begin(), Sessions().end(), [](const Session* session) { return session->running; });
}

SimSlow SimRangeBegin(const SimLaunch& launch) {
  std::lock_guard lock(g_mutex);
  const Session* session = SessionOf(launch.context);
  const bool counted =
      session != nullptr && session->running && (session->open != nullptr || session->mode == CUPTI_AutoRange);
  if (!counted || sim_costs() == 0 || !IsSass(*session)) return {1, 0};
  return {sim::kSassTimes, sim::CostOf("a kernel with SASS metrics").ns};
}

void SimRangeRun(const SimLaunch& launch) {
  bool beyond_dram = false;
  {
    std::lock_guard lock(g_mutex);
    Session* session = SessionOf(launch.context);
    if (session == nullptr || !session->running) return;
    if (session->mode == CUPTI_UserRange) {
      // What is launched outside of all ranges is counted in none.
      if (session->open == nullptr) return;
      if (launch.kernel != nullptr) session->open->kernels.push_back(launch.kernel);
      for (size_t i = 0; launch.graph != nullptr && i < launch.graph->count; ++i) {
        const SimKernel* kernel = launch.graph->nodes[i].kernel;
        if (kernel != nullptr) session->open->kernels.push_back(kernel);
      }
      return;
    }
    if (launch.kernel == nullptr) return;
    if (session->ranges.size() < session->max_ranges) {
      session->ranges.push_back(
          new Range{std::to_string(session->ranges.size()), {launch.kernel}, OtherMetrics(*session)});
    } else {
      ++session->dropped;
    }
    beyond_dram = IsBeyondDram(*session);
  }
  // An automatic range waits for its kernel.
  sim_wait_until(sim_idle_at(launch.context));
  sim::Charged charged("a launch that is a range");
  charged.Each(beyond_dram ? 1 : 0);
}

extern "C" {

CUptiResult CUPTIAPI cuptiProfilerHostEvaluateToGpuValues(CUpti_Profiler_Host_EvaluateToGpuValues_Params* params) {
  SIM_PARAMS("cuptiProfilerHostEvaluateToGpuValues", CUpti_Profiler_Host_EvaluateToGpuValues_Params);
  charged.Each(params->numMetrics);
  charged.OnlyComputes();
  if (SimPmOwns(params->pCounterDataImage, params->counterDataImageSize)) return SimPmEvaluate(params);
  SIM_CHECK("Evaluate", params->counterDataImageSize >= sizeof(ImageHeader), CUPTI_ERROR_INVALID_PARAMETER);
  ImageHeader header;
  memcpy(&header, params->pCounterDataImage, sizeof header);
  SIM_CHECK("Evaluate", header.magic == kImageMagic, CUPTI_ERROR_INVALID_PARAMETER);
  SIM_CHECK("Evaluate", params->rangeIndex < header.filled, CUPTI_ERROR_INVALID_PARAMETER);
  const Range* range = RangeOf(params->pCounterDataImage, params->rangeIndex);
  for (size_t i = 0; i < params->numMetrics; ++i) {
    params->pMetricValues[i] = range->lost ? std::nan("") : sim::ValueOf(range->kernels, params->ppMetricNames[i]);
  }
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiRangeProfilerEnable(CUpti_RangeProfiler_Enable_Params* params) {
  SIM_PARAMS("cuptiRangeProfilerEnable", CUpti_RangeProfiler_Enable_Params);
  SIM_CHECK("cuptiRangeProfilerEnable", SimProfilerIsInitialised(), CUPTI_ERROR_NOT_INITIALIZED);
  SIM_CHECK("cuptiRangeProfilerEnable", !SimRangeSession(params->ctx) && params->ctx != nullptr,
            CUPTI_ERROR_INVALID_OPERATION);
  SIM_CHECK("cuptiRangeProfilerEnable", sim_is_current(params->ctx), CUPTI_ERROR_INVALID_CONTEXT);
  SIM_CHECK("cuptiRangeProfilerEnable", !sim::KernelRecordsOn(), CUPTI_ERROR_NOT_COMPATIBLE);
  if (SimPmIsEnabled() && sim_exclusive() != 0) return CUPTI_ERROR_HARDWARE_BUSY;
  SimHookIn();  // a session needs no subscriber
  auto* session = new Session{};
  session->context = params->ctx;
  session->enabled = true;
  std::lock_guard lock(g_mutex);
  Sessions().push_back(session);
  params->pRangeProfilerObject = session;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiRangeProfilerDisable(CUpti_RangeProfiler_Disable_Params* params) {
  // The real one gives the device back even when it complains.
  if (params != nullptr && params->pRangeProfilerObject != nullptr) {
    std::lock_guard lock(g_mutex);
    params->pRangeProfilerObject->enabled = false;
    params->pRangeProfilerObject->running = false;
  }
  SIM_PARAMS("cuptiRangeProfilerDisable", CUpti_RangeProfiler_Disable_Params);
  if (params->pRangeProfilerObject->warm) charged.Each(params->pRangeProfilerObject->max_ranges);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiRangeProfilerGetCounterDataSize(CUpti_RangeProfiler_GetCounterDataSize_Params* params) {
  SIM_PARAMS("cuptiRangeProfilerGetCounterDataSize", CUpti_RangeProfiler_GetCounterDataSize_Params);
  SIM_CHECK("GetCounterDataSize", params->pRangeProfilerObject->enabled, CUPTI_ERROR_INVALID_OPERATION);
  SIM_CHECK("GetCounterDataSize", params->maxNumRangeTreeNodes >= params->maxNumOfRanges,
            CUPTI_ERROR_INVALID_PARAMETER);
  SIM_CHECK("GetCounterDataSize", params->numMetrics > 0, CUPTI_ERROR_INVALID_PARAMETER);
  params->pRangeProfilerObject->sized_ranges = params->maxNumOfRanges;
  params->pRangeProfilerObject->sized_metrics = {params->pMetricNames, params->pMetricNames + params->numMetrics};
  params->counterDataSize = sizeof(ImageHeader) + params->maxNumOfRanges * sizeof(Range*);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI
cuptiRangeProfilerCounterDataImageInitialize(CUpti_RangeProfiler_CounterDataImage_Initialize_Params* params) {
  SIM_PARAMS("cuptiRangeProfilerCounterDataImageInitialize", CUpti_RangeProfiler_CounterDataImage_Initialize_Params);
  const Session& session = *params->pRangeProfilerObject;
  ImageHeader header = {kImageMagic, session.sized_ranges, 0, 0};
  SIM_CHECK("CounterDataImageInitialize",
            params->counterDataSize == sizeof header + header.max_ranges * sizeof(Range*),
            CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
  charged.Each(session.sized_ranges * session.sized_metrics.size());
  memcpy(params->pCounterData, &header, sizeof header);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiRangeProfilerSetConfig(CUpti_RangeProfiler_SetConfig_Params* params) {
  SIM_PARAMS("cuptiRangeProfilerSetConfig", CUpti_RangeProfiler_SetConfig_Params);
  Session* session = params->pRangeProfilerObject;
  SIM_CHECK("SetConfig", session->enabled && !session->running, CUPTI_ERROR_INVALID_OPERATION);
  SIM_CHECK("SetConfig", params->configSize > 0 && params->pConfig != nullptr, CUPTI_ERROR_INVALID_PARAMETER);
  SIM_CHECK("SetConfig", params->range == CUPTI_AutoRange || params->range == CUPTI_UserRange,
            CUPTI_ERROR_INVALID_PARAMETER);
  // Replaying kernels is for automatic ranges, and would run the program's kernels again.
  SIM_CHECK("SetConfig", params->replayMode == CUPTI_UserReplay, CUPTI_ERROR_INVALID_OPERATION);
  SIM_CHECK("SetConfig", params->numNestingLevels == 1, CUPTI_ERROR_INVALID_PARAMETER);
  CUpti_Profiler_Host_GetNumOfPasses_Params passes = {CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE};
  passes.configImageSize = params->configSize;
  passes.pConfigImage = const_cast<uint8_t*>(params->pConfig);
  if (SimPassesOf(&passes) != CUPTI_SUCCESS || passes.numOfPasses != 1) {
    sim::Violation("SetConfig", "the configuration needs more than one pass");
  }
  std::lock_guard lock(g_mutex);
  session->mode = params->range;
  session->image = params->pCounterDataImage;
  session->image_size = params->counterDataImageSize;
  session->metrics = session->sized_metrics;
  if (session->first_metrics.empty()) session->first_metrics = session->metrics;
  // Room for more ranges is made by the next Start.
  session->warm = session->warm && params->maxRangesPerPass <= session->max_ranges;
  session->max_ranges = params->maxRangesPerPass;
  session->configured = true;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiRangeProfilerStart(CUpti_RangeProfiler_Start_Params* params) {
  SIM_PARAMS("cuptiRangeProfilerStart", CUpti_RangeProfiler_Start_Params);
  Session* session = params->pRangeProfilerObject;
  SIM_CHECK("Start", sim_is_current(session->context), CUPTI_ERROR_INVALID_CONTEXT);
  std::lock_guard lock(g_mutex);
  SIM_CHECK("Start", session->enabled && session->configured && !session->running, CUPTI_ERROR_INVALID_OPERATION);
  if (!std::exchange(session->warm, true)) {
    constexpr const char* kFirst = "cuptiRangeProfilerStart, after Enable";
    charged.Add(kFirst);
    charged.Each(kFirst, session->max_ranges);
  }
  session->open = nullptr;
  session->dropped = 0;
  session->running = true;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiRangeProfilerStop(CUpti_RangeProfiler_Stop_Params* params) {
  if (params != nullptr && params->pRangeProfilerObject != nullptr) {
    std::lock_guard lock(g_mutex);
    if (!params->pRangeProfilerObject->running) sim::Violation("Stop", "nothing was started");
    if (params->pRangeProfilerObject->open != nullptr) sim::Violation("Stop", "a range is open");
    if (!sim_is_current(params->pRangeProfilerObject->context) && !SimIsDestroying())
      sim::Violation("Stop", "another context is current");
    params->pRangeProfilerObject->running = false;
  }
  SIM_PARAMS("cuptiRangeProfilerStop", CUpti_RangeProfiler_Stop_Params);
  charged.Each(params->pRangeProfilerObject->ranges.size());
  params->isAllPassSubmitted = 1;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiRangeProfilerPushRange(CUpti_RangeProfiler_PushRange_Params* params) {
  SIM_PARAMS("cuptiRangeProfilerPushRange", CUpti_RangeProfiler_PushRange_Params);
  Session* session = params->pRangeProfilerObject;
  {
    std::lock_guard lock(g_mutex);
    SIM_CHECK("PushRange", session->enabled && session->running && session->mode == CUPTI_UserRange,
              CUPTI_ERROR_INVALID_OPERATION);
    SIM_CHECK("PushRange", sim_is_current(session->context), CUPTI_ERROR_INVALID_CONTEXT);
    SIM_CHECK("PushRange", session->open == nullptr, CUPTI_ERROR_INVALID_OPERATION);  // one nesting level
    SIM_CHECK("PushRange", params->pRangeName != nullptr, CUPTI_ERROR_INVALID_PARAMETER);
    session->open = new Range{params->pRangeName, {}, OtherMetrics(*session)};
    charged.Each(IsBeyondDram(*session) ? 1 : 0);
  }
  sim_barrier(session->context, RangeOnGpu());
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiRangeProfilerPopRange(CUpti_RangeProfiler_PopRange_Params* params) {
  bool beyond_dram = false;
  if (params != nullptr && params->pRangeProfilerObject != nullptr) {
    // This is done even when it returns an error: there is no other way to close it.
    Session* session = params->pRangeProfilerObject;
    {
      std::lock_guard lock(g_mutex);
      SIM_CHECK("PopRange", session->running && session->open != nullptr, CUPTI_ERROR_INVALID_OPERATION);
      Range* range = std::exchange(session->open, nullptr);
      if (session->ranges.size() < session->max_ranges) {
        session->ranges.push_back(range);
      } else {
        ++session->dropped;
      }
      beyond_dram = IsBeyondDram(*session);
    }
    sim_barrier(session->context, RangeOnGpu());
  }
  SIM_PARAMS("cuptiRangeProfilerPopRange", CUpti_RangeProfiler_PopRange_Params);
  charged.Each(beyond_dram ? 1 : 0);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiRangeProfilerDecodeData(CUpti_RangeProfiler_DecodeData_Params* params) {
  SIM_PARAMS("cuptiRangeProfilerDecodeData", CUpti_RangeProfiler_DecodeData_Params);
  Session* session = params->pRangeProfilerObject;
  SIM_CHECK("DecodeData", sim_is_current(session->context), CUPTI_ERROR_INVALID_CONTEXT);
  sim_wait_until(sim_idle_at(session->context));  // as CUPTI's user guide says
  std::lock_guard lock(g_mutex);
  SIM_CHECK("DecodeData", session->enabled && !session->running && session->image != nullptr,
            CUPTI_ERROR_INVALID_OPERATION);
  FillImage(*session);
  params->numOfRangeDropped = session->dropped;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiRangeProfilerGetCounterDataInfo(CUpti_RangeProfiler_GetCounterDataInfo_Params* params) {
  SIM_PARAMS("cuptiRangeProfilerGetCounterDataInfo", CUpti_RangeProfiler_GetCounterDataInfo_Params);
  ImageHeader header;
  memcpy(&header, params->pCounterDataImage, sizeof header);
  params->numTotalRanges = header.filled;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI
cuptiRangeProfilerCounterDataGetRangeInfo(CUpti_RangeProfiler_CounterData_GetRangeInfo_Params* params) {
  SIM_PARAMS("cuptiRangeProfilerCounterDataGetRangeInfo", CUpti_RangeProfiler_CounterData_GetRangeInfo_Params);
  SIM_CHECK("GetRangeInfo", params->rangeDelimiter != nullptr, CUPTI_ERROR_INVALID_PARAMETER);
  ImageHeader header;
  memcpy(&header, params->pCounterDataImage, sizeof header);
  SIM_CHECK("GetRangeInfo", header.magic == kImageMagic && params->rangeIndex < header.filled,
            CUPTI_ERROR_INVALID_PARAMETER);
  params->rangeName = RangeOf(params->pCounterDataImage, params->rangeIndex)->name.c_str();
  return CUPTI_SUCCESS;
}
}
