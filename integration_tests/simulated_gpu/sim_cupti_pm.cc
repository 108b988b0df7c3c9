// File: sim_cupti_pm.cc
//
// PM sampling of the simulated CUPTI. The device's clock advances with the kernels; each is cut into samples of the
// interval, and its bytes are shared out among them. Like the real one: the first sample is wrong, the last is not
// complete until another interval has passed, GA100 has no trigger by time, and a session excludes the range
// profiler.
#include "integration_tests/simulated_gpu/sim_cupti_pm.h"

#include <cupti.h>
#include <cupti_pmsampling.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

struct CUpti_PmSampling_Object {
  bool enabled, configured, running, sized;
  uint64_t interval;
  uint32_t max_samples;
  size_t image_size;
  size_t hardware_samples;  // that the hardware buffer holds
};

namespace {

constexpr uint64_t kPmMagic = 0x53494D5F504D5353u;
struct Sample {
  uint64_t start, end;
  double read, written, tensor_ns;
};
struct PmHeader {
  uint64_t magic;
  uint64_t max_samples;
  uint64_t filled;
};

struct PmWorld {
  std::mutex mutex;
  CUpti_PmSampling_Object* session = nullptr;
  std::vector<Sample> samples;  // in the hardware buffer
  size_t decoded = 0;
  uint64_t clock = 1'700'000'000'000'000'000;  // CLOCK_REALTIME of the device
};
PmWorld& P() {
  static PmWorld* world = new PmWorld;
  return *world;
}

bool Complain(const char* function, const char* what) {
  sim_violation((std::string(function) + ": " + what).c_str());
  return false;
}

#define PM_CHECK(condition, code)   \
  if (!(condition)) {               \
    Complain(__func__, #condition); \
    return code;                    \
  }
#define PM_PARAMS(type)                                                                                 \
  if (int failure = sim_take_failure(__func__); failure != 0) return static_cast<CUptiResult>(failure); \
  PM_CHECK(params != nullptr, CUPTI_ERROR_INVALID_PARAMETER);                                           \
  PM_CHECK(params->structSize == type##_STRUCT_SIZE, CUPTI_ERROR_INVALID_PARAMETER);                    \
  PM_CHECK(params->pPriv == nullptr, CUPTI_ERROR_INVALID_PARAMETER)
#define PM_SESSION()                                                                         \
  PM_CHECK(params->pPmSamplingObject != nullptr && params->pPmSamplingObject == P().session, \
           CUPTI_ERROR_INVALID_PARAMETER);                                                   \
  [[maybe_unused]] CUpti_PmSampling_Object* session = P().session

double MetricOf(const SimKernel* kernel, std::initializer_list<const char*> names) {
  double sum = 0;
  for (size_t i = 0; i < kernel->metric_count; ++i) {
    for (const char* name : names) {
      if (strcmp(kernel->metrics[i].name, name) == 0) sum += kernel->metrics[i].value;
    }
  }
  return sum;
}

bool UsesTensor(const SimKernel* kernel) {
  for (size_t i = 0; i < kernel->metric_count; ++i) {
    if (strstr(kernel->metrics[i].name, "ops_path_tensor") != nullptr && kernel->metrics[i].value > 0) return true;
  }
  return false;
}

// The device does `kernel` for `ns`, or nothing; P().mutex held.
void Pass(uint64_t ns, const SimKernel* kernel) {
  PmWorld& world = P();
  const uint64_t interval = world.session->interval;
  const double read = kernel == nullptr ? 0 : MetricOf(kernel, {"dram__bytes_read.sum", "dram__bytes_op_read.sum"});
  const double written =
      kernel == nullptr ? 0 : MetricOf(kernel, {"dram__bytes_write.sum", "dram__bytes_op_write.sum"});
  const bool tensor = kernel != nullptr && UsesTensor(kernel);
  for (uint64_t left = ns; left > 0;) {
    if (world.samples.empty() || world.samples.back().end - world.samples.back().start == interval) {
      world.samples.push_back({world.clock, world.clock, 0, 0, 0});
    }
    Sample& sample = world.samples.back();
    const uint64_t part = std::min(left, interval - (sample.end - sample.start));
    const double share = static_cast<double>(part) / static_cast<double>(ns);
    sample.end += part;
    sample.read += read * share;
    sample.written += written * share;
    sample.tensor_ns += tensor ? static_cast<double>(part) : 0;
    world.clock += part;
    left -= part;
  }
}

}  // namespace

void SimPmOnRun(const SimKernel* kernel) {
  std::lock_guard lock(P().mutex);
  if (P().session != nullptr && P().session->running && kernel != nullptr) Pass(kernel->ns, kernel);
}

bool SimPmIsEnabled() { return P().session != nullptr; }

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
  Sample sample;
  memcpy(&sample, params->pCounterDataImage + sizeof header + params->rangeIndex * sizeof sample, sizeof sample);
  for (size_t i = 0; i < params->numMetrics; ++i) {
    const std::string name = params->ppMetricNames[i];
    if (name == "dram__bytes_read.sum" || name == "dram__bytes_op_read.sum") {
      params->pMetricValues[i] = sample.read;
    } else if (name == "dram__bytes_write.sum" || name == "dram__bytes_op_write.sum") {
      params->pMetricValues[i] = sample.written;
    } else {
      PM_CHECK(name == "sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed",
               CUPTI_ERROR_INVALID_METRIC_NAME);
      params->pMetricValues[i] = 100 * sample.tensor_ns / static_cast<double>(sample.end - sample.start);
    }
  }
  return CUPTI_SUCCESS;
}

extern "C" {

CUptiResult CUPTIAPI cuptiPmSamplingGetCounterAvailability(CUpti_PmSampling_GetCounterAvailability_Params* params) {
  PM_PARAMS(CUpti_PmSampling_GetCounterAvailability_Params);
  PM_CHECK(SimProfilerIsInitialised(), CUPTI_ERROR_NOT_INITIALIZED);
  PM_CHECK(P().session == nullptr && !SimRangeSessionIsEnabled(), CUPTI_ERROR_INVALID_OPERATION);
  if (params->pCounterAvailabilityImage == nullptr) {
    params->counterAvailabilityImageSize = 64;
    return CUPTI_SUCCESS;
  }
  PM_CHECK(params->counterAvailabilityImageSize >= 64, CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
  memset(params->pCounterAvailabilityImage, 0, 64);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiPmSamplingEnable(CUpti_PmSampling_Enable_Params* params) {
  PM_PARAMS(CUpti_PmSampling_Enable_Params);
  PM_CHECK(SimProfilerIsInitialised(), CUPTI_ERROR_NOT_INITIALIZED);
  PM_CHECK(P().session == nullptr, CUPTI_ERROR_INVALID_OPERATION);
  PM_CHECK(!SimRangeSessionIsEnabled(), CUPTI_ERROR_HARDWARE_BUSY);
  std::lock_guard lock(P().mutex);
  P().session = new CUpti_PmSampling_Object{};
  P().session->enabled = true;
  P().samples.clear();
  P().decoded = 0;
  params->pPmSamplingObject = P().session;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiPmSamplingDisable(CUpti_PmSampling_Disable_Params* params) {
  // The device is given back even when it complains.
  std::unique_lock lock(P().mutex);
  CUpti_PmSampling_Object* session = P().session;
  const bool ours = params != nullptr && params->pPmSamplingObject == session;
  if (ours) P().session = nullptr;
  lock.unlock();
  PM_PARAMS(CUpti_PmSampling_Disable_Params);
  PM_CHECK(ours && session != nullptr, CUPTI_ERROR_INVALID_PARAMETER);
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
  // The system clock runs at 1 GHz here.
  session->interval = params->samplingInterval;
  session->hardware_samples = params->hardwareBufferSize / 4096;
  session->configured = true;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiPmSamplingGetCounterDataSize(CUpti_PmSampling_GetCounterDataSize_Params* params) {
  PM_PARAMS(CUpti_PmSampling_GetCounterDataSize_Params);
  PM_SESSION();
  PM_CHECK(params->numMetrics > 0 && params->maxSamples > 0, CUPTI_ERROR_INVALID_PARAMETER);
  session->max_samples = params->maxSamples;
  session->image_size = params->counterDataSize = sizeof(PmHeader) + params->maxSamples * sizeof(Sample);
  session->sized = true;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiPmSamplingCounterDataImageInitialize(CUpti_PmSampling_CounterDataImage_Initialize_Params* params) {
  PM_PARAMS(CUpti_PmSampling_CounterDataImage_Initialize_Params);
  PM_SESSION();
  PM_CHECK(session->sized && params->counterDataSize == session->image_size,
           CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
  const PmHeader header = {kPmMagic, session->max_samples, 0};
  memcpy(params->pCounterData, &header, sizeof header);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiPmSamplingStart(CUpti_PmSampling_Start_Params* params) {
  PM_PARAMS(CUpti_PmSampling_Start_Params);
  PM_SESSION();
  PM_CHECK(session->configured && !session->running, CUPTI_ERROR_INVALID_OPERATION);
  std::lock_guard lock(P().mutex);
  session->running = true;
  // The first sample is an outlier.
  P().samples.push_back({P().clock, P().clock + session->interval, 1e15, 1e15, 0});
  P().clock += session->interval;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiPmSamplingStop(CUpti_PmSampling_Stop_Params* params) {
  const bool running = P().session != nullptr && P().session->running;
  if (running) {
    std::lock_guard lock(P().mutex);
    Pass(2 * P().session->interval, nullptr);  // the pause that lets the last sample be complete
    P().session->running = false;
  }
  PM_PARAMS(CUpti_PmSampling_Stop_Params);
  PM_SESSION();
  PM_CHECK(running, CUPTI_ERROR_INVALID_OPERATION);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiPmSamplingDecodeData(CUpti_PmSampling_DecodeData_Params* params) {
  PM_PARAMS(CUpti_PmSampling_DecodeData_Params);
  PM_SESSION();
  PM_CHECK(SimPmOwns(params->pCounterDataImage, params->counterDataImageSize), CUPTI_ERROR_INVALID_PARAMETER);
  PmHeader header;
  memcpy(&header, params->pCounterDataImage, sizeof header);
  PM_CHECK(header.filled == 0, CUPTI_ERROR_INVALID_PARAMETER);  // not initialised anew
  std::lock_guard lock(P().mutex);
  params->overflow = P().samples.size() > session->hardware_samples;
  const size_t left = P().samples.size() - P().decoded;
  header.filled = std::min<size_t>(left, header.max_samples);
  memcpy(params->pCounterDataImage + sizeof header, P().samples.data() + P().decoded, header.filled * sizeof(Sample));
  P().decoded += header.filled;
  memcpy(params->pCounterDataImage, &header, sizeof header);
  params->decodeStopReason = header.filled == header.max_samples
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
  // A sample that is still running is populated, but not complete.
  Sample last = {};
  if (header.filled > 0) {
    memcpy(&last, params->pCounterDataImage + sizeof header + (header.filled - 1) * sizeof last, sizeof last);
    if (P().session != nullptr && last.end - last.start < P().session->interval) --params->numCompletedSamples;
  }
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiPmSamplingCounterDataGetSampleInfo(CUpti_PmSampling_CounterData_GetSampleInfo_Params* params) {
  PM_PARAMS(CUpti_PmSampling_CounterData_GetSampleInfo_Params);
  PM_SESSION();
  PM_CHECK(SimPmOwns(params->pCounterDataImage, params->counterDataImageSize), CUPTI_ERROR_INVALID_PARAMETER);
  PmHeader header;
  memcpy(&header, params->pCounterDataImage, sizeof header);
  PM_CHECK(params->sampleIndex < header.filled, CUPTI_ERROR_INVALID_PARAMETER);
  Sample sample;
  memcpy(&sample, params->pCounterDataImage + sizeof header + params->sampleIndex * sizeof sample, sizeof sample);
  params->startTimestamp = sample.start;
  params->endTimestamp = sample.end;
  return CUPTI_SUCCESS;
}
}
