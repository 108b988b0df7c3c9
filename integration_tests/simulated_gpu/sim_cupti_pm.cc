// File: sim_cupti_pm.cc
//
// PM sampling of the simulated CUPTI: the device's time is cut into samples of the interval, and a kernel's bytes are
// spread over its time. As recorded on an H100 (pm/sessions_and_sampling.txt, pm/exp_samples_*): a sample's edges are
// multiples of 32 ns; the first sample lasts, and counts, from Enable on, or from the last sample of the window
// before; a hardware buffer that was too small ends the session; what did not fit the image is lost. GA100 has no
// trigger by time.
#include <cupti.h>
#include <cupti_pmsampling.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "integration_tests/simulated_gpu/sim_checks.h"
#include "integration_tests/simulated_gpu/sim_cupti_parts.h"

struct CUpti_PmSampling_Object {
  int device;
  bool configured, running, dead;
  uint64_t interval;
  size_t max_samples;
  size_t hardware_samples;  // that the hardware buffer holds
  uint64_t last_end;        // of the last sample, or when it was enabled
  // From Start to Stop, what was not decoded; `next` is the first such sample, 0 the one before Start.
  struct Window {
    uint64_t start, end, next;
  };
  std::deque<Window> windows;
};

namespace {

using Session = CUpti_PmSampling_Object;

constexpr uint64_t kPmMagic = 0x53494D5F504D5353u;
// pm/sessions_and_sampling.txt: of a buffer of 256 MiB 27,772 samples are within, 55,000 not.
constexpr size_t kHardwareBytes = 9'200;
constexpr size_t kImageBytes = 26'000;  // the same: 1,576 MB for 60,000 samples of four metrics
constexpr uint64_t kEdge = 32;          // pm/exp_samples_*
// pm/sessions_and_sampling.txt: samples go on for so long after Stop was called.
constexpr uint64_t kAfterStop = 400'000;
constexpr uint64_t kForEver = UINT64_MAX;

struct PmHeader {
  uint64_t magic;
  uint64_t max_samples;
  uint64_t filled;
};
// A kernel's share of its work in one sample.
struct Part {
  const SimKernel* kernel;
  double share;
};
struct Sample {
  uint64_t start, end, count;
};
constexpr size_t kMostParts = (kImageBytes - sizeof(Sample)) / sizeof(Part);

std::mutex g_mutex;
std::map<int, Session*>& Sessions() {  // by device
  static auto* const sessions = new std::map<int, Session*>;
  return *sessions;
}

#define PM_PARAMS(type) \
  SIM_ENTER(__func__);  \
  SIM_CHECK_PARAMS(__func__, type)
#define PM_CHECK(condition, code) SIM_CHECK(__func__, condition, code)
#define PM_SESSION()                                  \
  Session* const session = params->pPmSamplingObject; \
  PM_CHECK(session != nullptr && IsEnabled(session), CUPTI_ERROR_INVALID_PARAMETER)

bool IsEnabled(const Session* session) {
  std::lock_guard lock(g_mutex);
  return std::any_of(Sessions().begin(), Sessions().end(),
                     [session](const auto& one) { return one.second == session; });
}

uint64_t EdgeOf(const Session& session, const Session::Window& window, uint64_t number) {
  return window.start + number * session.interval / kEdge * kEdge;
}
// How many samples of a window are complete at `now`, with the one before Start.
uint64_t CompleteAt(const Session& session, const Session::Window& window, uint64_t now) {
  const uint64_t end = std::min(now, window.end);
  if (end < window.start) return 0;
  uint64_t number = (end - window.start) / session.interval;
  while (EdgeOf(session, window, number + 1) <= end) ++number;
  return number + 1;
}

// Kills the session if the hardware buffer has overflowed. g_mutex is held.
void CheckOverflow(Session& session) {
  uint64_t waiting = 0;
  for (const Session::Window& window : session.windows) {
    waiting += CompleteAt(session, window, sim_now()) - window.next;
  }
  session.dead = session.dead || waiting > session.hardware_samples;
}

// Takes the samples that are complete out of the hardware buffer. g_mutex is held.
std::vector<SimSpan> TakeSamples(Session& session) {
  std::vector<SimSpan> samples;
  while (!session.windows.empty()) {
    Session::Window& window = session.windows.front();
    const uint64_t complete = CompleteAt(session, window, sim_now());
    for (; window.next < complete; ++window.next) {
      const uint64_t end = EdgeOf(session, window, window.next);
      samples.push_back({session.last_end, end});
      session.last_end = end;
    }
    if (window.end > sim_now()) break;
    session.windows.pop_front();
  }
  return samples;
}

struct Busy {
  const SimKernel* kernel;
  SimSpan span;
};
std::vector<Busy> KernelsOf(int device, SimSpan when) {
  std::vector<Busy> kernels;
  sim_kernels_between(
      device, when.start, when.end,
      [](void* user, const SimKernel* kernel, SimSpan span) {
        static_cast<std::vector<Busy>*>(user)->push_back({kernel, span});
      },
      &kernels);
  std::sort(kernels.begin(), kernels.end(), [](const Busy& a, const Busy& b) { return a.span.start < b.span.start; });
  return kernels;
}

// Writes a sample's place in the image: which kernels have done which share of their work in it.
void WriteSample(const std::vector<Busy>& kernels, size_t* first, SimSpan span, uint8_t* place) {
  // Kernels are by their start, and few run at once.
  while (*first < kernels.size() && kernels[*first].span.end <= span.start) ++*first;
  std::map<const SimKernel*, double> shares;
  for (size_t i = *first; i < kernels.size() && kernels[i].span.start < span.end; ++i) {
    const SimSpan& one = kernels[i].span;
    if (one.end <= span.start || one.end == one.start) continue;
    const uint64_t both = std::min(one.end, span.end) - std::max(one.start, span.start);
    shares[kernels[i].kernel] += static_cast<double>(both) / static_cast<double>(one.end - one.start);
  }
  Sample sample = {span.start, span.end, 0};
  for (const auto& [kernel, share] : shares) {
    if (sample.count == kMostParts) break;
    const Part part = {kernel, share};
    memcpy(place + sizeof sample + sample.count++ * sizeof part, static_cast<const void*>(&part), sizeof part);
  }
  memcpy(place, &sample, sizeof sample);
}

double MetricOf(const SimKernel* kernel, std::string_view name) {
  double sum = 0;
  for (size_t i = 0; i < kernel->metric_count; ++i) {
    if (name == kernel->metrics[i].name) sum += kernel->metrics[i].value;
  }
  return sum;
}
// What one kernel adds to a sample's value. Active cycles are of one SM with a clock of 1 GHz.
double ValueOf(const Part& part, std::string_view name, const Sample& sample) {
  const double ns = part.share * static_cast<double>(part.kernel->ns);
  const bool tensor = name.find("pipe_tensor") != name.npos;
  if (name.find("cycles_active") == name.npos) return part.share * MetricOf(part.kernel, name);
  if (tensor && !sim::UsesTensor(part.kernel)) return 0;
  return name.ends_with("pct_of_peak_sustained_elapsed") ? 100 * ns / static_cast<double>(sample.end - sample.start)
                                                         : ns;
}
size_t ImageSize(const Session& session) { return sizeof(PmHeader) + session.max_samples * kImageBytes; }

}  // namespace

bool SimPmIsEnabled() {
  std::lock_guard lock(g_mutex);
  return !Sessions().empty();
}

bool SimPmOwns(const uint8_t* image, size_t size) {
  uint64_t magic = 0;
  if (image == nullptr || size < sizeof magic) return false;
  memcpy(&magic, image, sizeof magic);
  return magic == kPmMagic;
}

CUptiResult SimPmEvaluate(CUpti_Profiler_Host_EvaluateToGpuValues_Params* params) {
  PmHeader header;
  PM_CHECK(params->counterDataImageSize >= sizeof header, CUPTI_ERROR_INVALID_PARAMETER);
  memcpy(&header, params->pCounterDataImage, sizeof header);
  PM_CHECK(params->rangeIndex < header.filled, CUPTI_ERROR_INVALID_PARAMETER);
  const uint8_t* place = params->pCounterDataImage + sizeof header + params->rangeIndex * kImageBytes;
  Sample sample;
  memcpy(&sample, place, sizeof sample);
  std::fill_n(params->pMetricValues, params->numMetrics, 0.0);
  if (sim_zeros() != 0) return CUPTI_SUCCESS;
  for (size_t i = 0; i < params->numMetrics; ++i) {
    if (std::string_view(params->ppMetricNames[i]).find("cycles_elapsed") == std::string_view::npos) continue;
    params->pMetricValues[i] = static_cast<double>(sample.end - sample.start) * sim_clock_khz() * 1e-6;
  }
  for (size_t k = 0; k < sample.count; ++k) {
    Part part;
    memcpy(static_cast<void*>(&part), place + sizeof sample + k * sizeof part, sizeof part);
    for (size_t i = 0; i < params->numMetrics; ++i) {
      params->pMetricValues[i] += ValueOf(part, params->ppMetricNames[i], sample);
    }
  }
  return CUPTI_SUCCESS;
}

extern "C" {

CUptiResult CUPTIAPI cuptiPmSamplingGetCounterAvailability(CUpti_PmSampling_GetCounterAvailability_Params* params) {
  PM_PARAMS(CUpti_PmSampling_GetCounterAvailability_Params);
  PM_CHECK(SimProfilerIsInitialised(), CUPTI_ERROR_NOT_INITIALIZED);
  PM_CHECK(!SimPmIsEnabled() && !SimRangeSession(nullptr), CUPTI_ERROR_INVALID_OPERATION);
  if (params->pCounterAvailabilityImage == nullptr) {
    params->counterAvailabilityImageSize = 64;
    return CUPTI_SUCCESS;
  }
  PM_CHECK(params->counterAvailabilityImageSize >= 64, CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
  memset(params->pCounterAvailabilityImage, 0, 64);
  charged.Add("cuptiPmSamplingGetCounterAvailability, image");
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiPmSamplingEnable(CUpti_PmSampling_Enable_Params* params) {
  PM_PARAMS(CUpti_PmSampling_Enable_Params);
  PM_CHECK(SimProfilerIsInitialised(), CUPTI_ERROR_NOT_INITIALIZED);
  if (SimRangeSession(nullptr) && sim_exclusive() != 0) return CUPTI_ERROR_HARDWARE_BUSY;
  const int device = static_cast<int>(params->deviceIndex);
  std::lock_guard lock(g_mutex);
  PM_CHECK(Sessions().count(device) == 0, CUPTI_ERROR_INVALID_OPERATION);
  auto* session = new Session{};
  session->device = device;
  session->last_end = sim_now();
  sim_keep_from(device, session->last_end);
  params->pPmSamplingObject = Sessions()[device] = session;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiPmSamplingDisable(CUpti_PmSampling_Disable_Params* params) {
  // The device is given back even when it complains.
  Session* const session = params != nullptr ? params->pPmSamplingObject : nullptr;
  const bool enabled = session != nullptr && IsEnabled(session);
  if (enabled) {
    std::lock_guard lock(g_mutex);
    Sessions().erase(session->device);
    sim_keep_from(session->device, 0);
  }
  PM_PARAMS(CUpti_PmSampling_Disable_Params);
  PM_CHECK(enabled, CUPTI_ERROR_INVALID_PARAMETER);
  PM_CHECK(!session->running, CUPTI_ERROR_INVALID_OPERATION);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiPmSamplingSetConfig(CUpti_PmSampling_SetConfig_Params* params) {
  PM_PARAMS(CUpti_PmSampling_SetConfig_Params);
  PM_SESSION();
  PM_CHECK(!session->running, CUPTI_ERROR_INVALID_OPERATION);
  PM_CHECK(params->configSize > 0 && params->pConfig != nullptr, CUPTI_ERROR_INVALID_PARAMETER);
  PM_CHECK(params->samplingInterval > 0 && params->hardwareBufferSize > 0, CUPTI_ERROR_INVALID_PARAMETER);
  const std::string chip = sim_chip();
  const bool by_time = params->triggerMode == CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL;
  PM_CHECK(!by_time || (chip != "GA100" && chip.rfind("TU", 0) != 0), CUPTI_ERROR_NOT_SUPPORTED);
  PM_CHECK(by_time || params->triggerMode == CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL,
           CUPTI_ERROR_INVALID_PARAMETER);
  CUpti_Profiler_Host_GetNumOfPasses_Params passes = {CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE};
  passes.configImageSize = params->configSize;
  passes.pConfigImage = const_cast<uint8_t*>(params->pConfig);
  PM_CHECK(SimPassesOf(&passes) == CUPTI_SUCCESS && passes.numOfPasses == 1, CUPTI_ERROR_NOT_SUPPORTED);
  charged.Each(params->hardwareBufferSize >> 20);
  std::lock_guard lock(g_mutex);
  // The system clock runs at 1 GHz here.
  session->interval = params->samplingInterval;
  session->hardware_samples = params->hardwareBufferSize / kHardwareBytes;
  session->configured = true;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiPmSamplingGetCounterDataSize(CUpti_PmSampling_GetCounterDataSize_Params* params) {
  PM_PARAMS(CUpti_PmSampling_GetCounterDataSize_Params);
  PM_SESSION();
  PM_CHECK(params->numMetrics > 0 && params->maxSamples > 0, CUPTI_ERROR_INVALID_PARAMETER);
  session->max_samples = params->maxSamples;
  params->counterDataSize = ImageSize(*session);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiPmSamplingCounterDataImageInitialize(CUpti_PmSampling_CounterDataImage_Initialize_Params* params) {
  PM_PARAMS(CUpti_PmSampling_CounterDataImage_Initialize_Params);
  charged.OnlyComputes();
  PM_SESSION();
  PM_CHECK(session->max_samples > 0 && params->counterDataSize == ImageSize(*session),
           CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
  charged.Each(session->max_samples);
  const PmHeader header = {kPmMagic, session->max_samples, 0};
  memcpy(params->pCounterData, &header, sizeof header);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiPmSamplingStart(CUpti_PmSampling_Start_Params* params) {
  PM_PARAMS(CUpti_PmSampling_Start_Params);
  PM_SESSION();
  PM_CHECK(session->configured && !session->running, CUPTI_ERROR_INVALID_OPERATION);
  std::lock_guard lock(g_mutex);
  CheckOverflow(*session);
  if (session->dead) return CUPTI_ERROR_UNKNOWN;
  session->running = true;
  session->windows.push_back({charged.end(), kForEver, 0});
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiPmSamplingStop(CUpti_PmSampling_Stop_Params* params) {
  Session* const stopped = params != nullptr ? params->pPmSamplingObject : nullptr;
  bool running = false;
  if (stopped != nullptr && IsEnabled(stopped)) {
    std::lock_guard lock(g_mutex);
    running = std::exchange(stopped->running, false);
    if (running) stopped->windows.back().end = sim_now() + kAfterStop;
  }
  PM_PARAMS(CUpti_PmSampling_Stop_Params);
  PM_SESSION();
  if (session->dead && !running) return CUPTI_ERROR_INVALID_OPERATION;
  PM_CHECK(running, CUPTI_ERROR_INVALID_OPERATION);
  if (sim_costs() == 0) sim_wait_until(sim_now() + kAfterStop);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiPmSamplingDecodeData(CUpti_PmSampling_DecodeData_Params* params) {
  PM_PARAMS(CUpti_PmSampling_DecodeData_Params);
  charged.OnlyComputes();
  PM_SESSION();
  PM_CHECK(SimPmOwns(params->pCounterDataImage, params->counterDataImageSize), CUPTI_ERROR_INVALID_PARAMETER);
  PmHeader header;
  memcpy(&header, params->pCounterDataImage, sizeof header);
  PM_CHECK(header.filled == 0, CUPTI_ERROR_INVALID_PARAMETER);  // not initialised anew
  std::lock_guard lock(g_mutex);
  CheckOverflow(*session);
  params->overflow = session->dead ? 1 : 0;
  params->decodeStopReason = CUPTI_PM_SAMPLING_DECODE_STOP_REASON_OTHER;
  if (session->dead) return CUPTI_ERROR_OUT_OF_MEMORY;
  const std::vector<SimSpan> samples = TakeSamples(*session);
  header.filled = std::min<size_t>(samples.size(), header.max_samples);
  if (!samples.empty()) {
    const std::vector<Busy> kernels = KernelsOf(session->device, {samples.front().start, samples.back().end});
    size_t first = 0;
    for (size_t i = 0; i < header.filled; ++i) {
      WriteSample(kernels, &first, samples[i], params->pCounterDataImage + sizeof header + i * kImageBytes);
    }
    sim_keep_from(session->device, samples.back().end);
  }
  charged.Each(header.filled);
  memcpy(params->pCounterDataImage, &header, sizeof header);
  // What has no room is gone: the next decoding has none of it (README.md of the recording, 5.4; calls/gpt).
  params->decodeStopReason = samples.size() > header.max_samples
                                 ? CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL
                                 : CUPTI_PM_SAMPLING_DECODE_STOP_REASON_END_OF_RECORDS;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiPmSamplingGetCounterDataInfo(CUpti_PmSampling_GetCounterDataInfo_Params* params) {
  PM_PARAMS(CUpti_PmSampling_GetCounterDataInfo_Params);
  PM_CHECK(SimPmOwns(params->pCounterDataImage, params->counterDataImageSize), CUPTI_ERROR_INVALID_PARAMETER);
  PmHeader header;
  memcpy(&header, params->pCounterDataImage, sizeof header);
  params->numTotalSamples = header.max_samples;
  params->numPopulatedSamples = header.filled;
  params->numCompletedSamples = header.filled;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiPmSamplingCounterDataGetSampleInfo(CUpti_PmSampling_CounterData_GetSampleInfo_Params* params) {
  PM_PARAMS(CUpti_PmSampling_CounterData_GetSampleInfo_Params);
  charged.OnlyComputes();
  PM_SESSION();
  PM_CHECK(SimPmOwns(params->pCounterDataImage, params->counterDataImageSize), CUPTI_ERROR_INVALID_PARAMETER);
  PmHeader header;
  memcpy(&header, params->pCounterDataImage, sizeof header);
  PM_CHECK(params->sampleIndex < header.filled, CUPTI_ERROR_INVALID_PARAMETER);
  Sample sample;
  memcpy(&sample, params->pCounterDataImage + sizeof header + params->sampleIndex * kImageBytes, sizeof sample);
  params->startTimestamp = SimStamp(sample.start);
  params->endTimestamp = SimStamp(sample.end);
  return CUPTI_SUCCESS;
}
}
