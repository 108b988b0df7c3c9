// File: api.h
//
// The functions of the CUDA driver, of CUPTI and of the Perfworks host library, as one table that is filled at run
// time. Nothing of CUDA is linked, and every entry is optional: what a CUPTI can do is asked of the table (Feature),
// never of a header's version, so that one binary works with CUPTI 11, 12 and 13.
//
// Which libcupti: the one that the process has loaded already. Two copies in one process fail in ways that look like
// anything but two copies, and a copy of another version under the same SONAME makes a later `import torch` fail.
// Only when there is none, one is looked for beside the process's libcudart, then in the toolkit, of libcudart's
// major version.
//
// libcupti opens libnvperf_host.so by its bare name and has no RUNPATH: outside the loader's paths (in every pip
// environment) its host functions then answer NOT_INITIALIZED. So both Perfworks libraries beside libcupti are opened
// by their absolute paths first; the loader then finds them by SONAME.
#ifndef RFINJECT_COLLECTOR_CUPTI_API_H_
#define RFINJECT_COLLECTOR_CUPTI_API_H_

#include <cuda.h>
#include <cupti.h>
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#include <nvperf_cuda_host.h>
#include <nvperf_host.h>
#include <nvperf_target.h>

#include <cstdint>
#include <string>
#include <vector>

// NAME is expanded before it is made a string: cuda.h renames functions (cuMemGetInfo is cuMemGetInfo_v2).
#define RFINJECT_DRIVER_FUNCTIONS(F) \
  F(cuDriverGetVersion)              \
  F(cuCtxGetCurrent)                 \
  F(cuCtxGetDevice)                  \
  F(cuCtxSynchronize)                \
  F(cuCtxPushCurrent)                \
  F(cuCtxPopCurrent)                 \
  F(cuDeviceGetAttribute)            \
  F(cuDeviceGetName)                 \
  F(cuDeviceTotalMem)                \
  F(cuMemGetInfo)

// What each feature needs; it counts only when all of its functions are there.
#define RFINJECT_CALLBACK_FUNCTIONS(F) \
  F(cuptiSubscribe)                    \
  F(cuptiUnsubscribe)                  \
  F(cuptiEnableCallback)
#define RFINJECT_ACTIVITY_FUNCTIONS(F) \
  F(cuptiActivityRegisterCallbacks)    \
  F(cuptiActivityEnable)               \
  F(cuptiActivityDisable)              \
  F(cuptiActivityGetNextRecord)        \
  F(cuptiActivityFlushAll)             \
  F(cuptiActivitySetAttribute)
// One subscriber's activity records, beside those of others (13.3). The headers that we are compiled with may be
// older, so these come with their parameters.
#define RFINJECT_OWN_RECORDS_FUNCTIONS(F)                                                                            \
  F(cuptiActivityRegisterCallbacks_v2, (CUpti_SubscriberHandle, RecordsRequest, RecordsComplete))                    \
  F(cuptiActivityEnable_v2, (CUpti_SubscriberHandle, CUpti_ActivityKind, void* config))                              \
  F(cuptiActivityDisable_v2, (CUpti_SubscriberHandle, CUpti_ActivityKind, void* config))                             \
  F(cuptiActivityGetNextRecord_v2, (CUpti_SubscriberHandle, uint8_t * buffer, size_t valid, CUpti_Activity**))       \
  F(cuptiActivityGetNumDroppedRecords_v2, (CUpti_SubscriberHandle, CUcontext, uint32_t stream, size_t * dropped))    \
  F(cuptiActivitySetAttribute_v2, (CUpti_SubscriberHandle, CUpti_ActivityAttribute, size_t * size, void* value))     \
  F(cuptiActivityPushExternalCorrelationId_v2, (CUpti_SubscriberHandle, CUpti_ExternalCorrelationKind, uint64_t id)) \
  F(cuptiActivityPopExternalCorrelationId_v2,                                                                        \
    (CUpti_SubscriberHandle, CUpti_ExternalCorrelationKind, uint64_t * id))                                          \
  F(cuptiActivityEnableDriverApi_v2, (CUpti_SubscriberHandle, CUpti_CallbackId, uint8_t enable))                     \
  F(cuptiActivityEnableRuntimeApi_v2, (CUpti_SubscriberHandle, CUpti_CallbackId, uint8_t enable))                    \
  F(cuptiGetTimestamp_v2, (CUpti_SubscriberHandle, uint64_t * ns))
#define RFINJECT_PROFILER_HOST_FUNCTIONS(F) \
  F(cuptiProfilerHostInitialize)            \
  F(cuptiProfilerHostDeinitialize)          \
  F(cuptiProfilerHostGetBaseMetrics)        \
  F(cuptiProfilerHostConfigAddMetrics)      \
  F(cuptiProfilerHostGetConfigImageSize)    \
  F(cuptiProfilerHostGetConfigImage)        \
  F(cuptiProfilerHostGetNumOfPasses)        \
  F(cuptiProfilerHostEvaluateToGpuValues)
// What all three profilers need.
#define RFINJECT_PROFILER_FUNCTIONS(F)   \
  F(cuptiProfilerInitialize)             \
  F(cuptiProfilerGetCounterAvailability) \
  F(cuptiDeviceGetChipName)
#define RFINJECT_RANGE_PROFILER_FUNCTIONS(F)      \
  F(cuptiRangeProfilerEnable)                     \
  F(cuptiRangeProfilerDisable)                    \
  F(cuptiRangeProfilerSetConfig)                  \
  F(cuptiRangeProfilerStart)                      \
  F(cuptiRangeProfilerStop)                       \
  F(cuptiRangeProfilerPushRange)                  \
  F(cuptiRangeProfilerPopRange)                   \
  F(cuptiRangeProfilerDecodeData)                 \
  F(cuptiRangeProfilerGetCounterDataSize)         \
  F(cuptiRangeProfilerCounterDataImageInitialize) \
  F(cuptiRangeProfilerGetCounterDataInfo)         \
  F(cuptiRangeProfilerCounterDataGetRangeInfo)
#define RFINJECT_PM_SAMPLING_FUNCTIONS(F)      \
  F(cuptiPmSamplingGetCounterAvailability)     \
  F(cuptiPmSamplingEnable)                     \
  F(cuptiPmSamplingDisable)                    \
  F(cuptiPmSamplingSetConfig)                  \
  F(cuptiPmSamplingStart)                      \
  F(cuptiPmSamplingStop)                       \
  F(cuptiPmSamplingDecodeData)                 \
  F(cuptiPmSamplingGetCounterDataSize)         \
  F(cuptiPmSamplingCounterDataImageInitialize) \
  F(cuptiPmSamplingGetCounterDataInfo)         \
  F(cuptiPmSamplingCounterDataGetSampleInfo)
#define RFINJECT_LEGACY_PROFILER_FUNCTIONS(F)                \
  F(cuptiProfilerCounterDataImageCalculateSize)              \
  F(cuptiProfilerCounterDataImageInitialize)                 \
  F(cuptiProfilerCounterDataImageCalculateScratchBufferSize) \
  F(cuptiProfilerCounterDataImageInitializeScratchBuffer)    \
  F(cuptiProfilerBeginSession)                               \
  F(cuptiProfilerEndSession)                                 \
  F(cuptiProfilerSetConfig)                                  \
  F(cuptiProfilerUnsetConfig)                                \
  F(cuptiProfilerBeginPass)                                  \
  F(cuptiProfilerEndPass)                                    \
  F(cuptiProfilerEnableProfiling)                            \
  F(cuptiProfilerDisableProfiling)                           \
  F(cuptiProfilerPushRange)                                  \
  F(cuptiProfilerPopRange)                                   \
  F(cuptiProfilerFlushCounterData)
#define RFINJECT_PERFWORKS_HOST_FUNCTIONS(F)                    \
  F(NVPW_InitializeHost)                                        \
  F(NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize)      \
  F(NVPW_CUDA_MetricsEvaluator_Initialize)                      \
  F(NVPW_MetricsEvaluator_Destroy)                              \
  F(NVPW_MetricsEvaluator_GetMetricNames)                       \
  F(NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest) \
  F(NVPW_MetricsEvaluator_GetMetricRawDependencies)             \
  F(NVPW_MetricsEvaluator_SetDeviceAttributes)                  \
  F(NVPW_MetricsEvaluator_EvaluateToGpuValues)                  \
  F(NVPW_CUDA_RawMetricsConfig_Create_V2)                       \
  F(NVPW_RawMetricsConfig_Destroy)                              \
  F(NVPW_RawMetricsConfig_SetCounterAvailability)               \
  F(NVPW_RawMetricsConfig_BeginPassGroup)                       \
  F(NVPW_RawMetricsConfig_EndPassGroup)                         \
  F(NVPW_RawMetricsConfig_AddMetrics)                           \
  F(NVPW_RawMetricsConfig_GenerateConfigImage)                  \
  F(NVPW_RawMetricsConfig_GetConfigImage)                       \
  F(NVPW_RawMetricsConfig_GetNumPasses)                         \
  F(NVPW_CUDA_CounterDataBuilder_Create)                        \
  F(NVPW_CounterDataBuilder_Destroy)                            \
  F(NVPW_CounterDataBuilder_AddMetrics)                         \
  F(NVPW_CounterDataBuilder_GetCounterDataPrefix)               \
  F(NVPW_CounterData_GetNumRanges)

#define RFINJECT_CUPTI_FUNCTIONS(F)     \
  F(cuptiGetVersion)                    \
  F(cuptiGetDeviceId)                   \
  F(cuptiGetGraphNodeId)                \
  F(cuptiActivityGetNumDroppedRecords)  \
  F(cuptiProfilerHostGetSupportedChips) \
  F(cuptiSubscribe_v2)                  \
  RFINJECT_CALLBACK_FUNCTIONS(F)        \
  RFINJECT_ACTIVITY_FUNCTIONS(F)        \
  RFINJECT_PROFILER_HOST_FUNCTIONS(F)   \
  RFINJECT_PROFILER_FUNCTIONS(F)        \
  RFINJECT_RANGE_PROFILER_FUNCTIONS(F)  \
  RFINJECT_PM_SAMPLING_FUNCTIONS(F)     \
  RFINJECT_LEGACY_PROFILER_FUNCTIONS(F)
#define RFINJECT_PERFWORKS_FUNCTIONS(F) \
  RFINJECT_PERFWORKS_HOST_FUNCTIONS(F)  \
  F(NVPW_Profiler_CounterData_GetRangeDescriptions)

// Declares `name`, the parameters of one of CUPTI's or Perfworks' functions: `RFINJECT_PARAMS(CUpti_PmSampling_Stop,
// stop)`.
#define RFINJECT_PARAMS(type, name) type##_Params name = {type##_Params_STRUCT_SIZE}

namespace rfinject::cupti {

// What the loaded CUPTI can do, judged by the functions that it exports. The values are bits of Api::features.
enum Feature : uint32_t {
  kCallbacks = 1u << 0,       // launch callbacks
  kSubscribeV2 = 1u << 1,     // a refused subscription names who holds it (13.0)
  kActivity = 1u << 2,        // kernel times
  kProfilerHost = 1u << 3,    // planning and evaluation (12.6)
  kRangeProfiler = 1u << 4,   // counters by range (12.6 update 2)
  kPmSampling = 1u << 5,      // counters over time (12.6)
  kLegacyProfiler = 1u << 6,  // cuptiProfiler*: counters by range before 12.6 update 2
  kPerfworksHost = 1u << 7,   // NVPW_*: planning and evaluation for kLegacyProfiler
  kOwnRecords = 1u << 8,      // several subscribers, each with activity records of its own (13.3)
};
// "callbacks+activity+range-profiler", for the trace.
std::string FeatureNames(uint32_t features);

// The callbacks of one subscriber's records. The last parameter is more about the buffer.
using RecordsRequest = void(CUPTIAPI*)(uint8_t** buffer, size_t* size, size_t* max_records, void* info);
using RecordsComplete = void(CUPTIAPI*)(uint8_t* buffer, size_t size, size_t valid, void* info);

struct Api {
#define RFINJECT_DECLARE(name) decltype(&::name) name = nullptr;
  RFINJECT_DRIVER_FUNCTIONS(RFINJECT_DECLARE)
  RFINJECT_CUPTI_FUNCTIONS(RFINJECT_DECLARE)
  RFINJECT_PERFWORKS_FUNCTIONS(RFINJECT_DECLARE)
#undef RFINJECT_DECLARE
#define RFINJECT_DECLARE(name, parameters) CUptiResult(CUPTIAPI* name) parameters = nullptr;
  RFINJECT_OWN_RECORDS_FUNCTIONS(RFINJECT_DECLARE)
#undef RFINJECT_DECLARE

  uint32_t features = 0;  // Feature bits
  uint32_t version = 0;   // as cuptiGetVersion says it: 18 is 11.8, 24 is 12.6, from 13.0 on xxyyzz; 0: not asked
  std::string path;       // of libcupti
  bool virtual_driver = false;   // libcuda is rfinject's virtual GPU: what CUPTI says of it is invented
  std::string perfworks_remark;  // empty, or what is odd about libnvperf_host.so, one line

  bool has(uint32_t wanted) const { return (features & wanted) == wanted; }
};

// "12.6", "13.0", "13.0.1" from an API version; "unknown" for 0.
std::string VersionName(uint32_t version);

// All but `driver_ready` is for tests.
struct LoadOptions {
  // Major version that a libcupti we load ourselves must have; 0: that of the libcudart in the process, else the
  // driver's.
  int cuda_major = 0;
  // Whether cuInit has succeeded, or is calling us. Otherwise no function of CUPTI is called at all, not even
  // cuptiGetVersion: 13.2 recurses until the stack ends when it cannot reach a driver
  // (docs/inside/HARDWARE_SOURCE.md).
  bool driver_ready = false;
  // Folders searched before all others.
  std::vector<std::string> folders;
};

enum class LoadStatus : uint8_t {
  kOk,
  kNotFound,  // none of a fitting version anywhere
  kBroken,    // it is there, but cannot be opened or lacks its basic functions
};

struct LoadResult {
  LoadStatus status = LoadStatus::kNotFound;
  Api api;
  std::string error;  // one line, empty when kOk
};

// Fills the table. It takes the loader's lock (dlopen) and allocates, so it is not for callbacks. It calls no
// function of CUDA but cuptiGetVersion and cuDriverGetVersion, and those only when the driver is ready.
LoadResult LoadApi(const LoadOptions& options);

// The members of the kernel records of CUPTI 11 to 13 that lie at the same place in each of them: api.cc checks the
// offsets against the oldest and the newest that cupti_activity.h has. A record must only be reached by
// cuptiActivityGetNextRecord, never by adding a size.
#pragma pack(push, 1)
struct KernelRecordPrefix {
  uint32_t kind;  // CUpti_ActivityKind
  uint8_t unused1[12];
  uint64_t start;  // ns, CUPTI's clock; 0: no time was taken
  uint64_t end;    // ns
  uint64_t completed;
  uint32_t device_id;
  uint32_t context_id;
  uint32_t stream_id;
  int32_t grid[3];
  int32_t block[3];
  int32_t static_shared_bytes;
  int32_t dynamic_shared_bytes;
  uint32_t local_memory_per_thread;
  uint32_t local_memory_total;
  uint32_t correlation_id;
  int64_t grid_id;
  const char* name;  // CUPTI's, mangled; copy at once
  uint8_t unused2[24];
  uint8_t launch_type;
  uint8_t unused3[7];
  uint64_t graph_node_id;
  uint8_t unused4[4];
  uint32_t graph_id;  // 0: not launched by a graph
};
// The members that the records of copies and of memory sets, which agree in these, have at the same place in each
// version.
struct TransferRecordPrefix {
  uint32_t kind;
  uint8_t unused1[12];
  uint64_t start;
  uint64_t end;
  uint32_t device_id;
  uint32_t context_id;
  uint32_t stream_id;
  uint32_t correlation_id;
  uint8_t unused2[16];
  uint64_t graph_node_id;  // 0: not launched by a graph
};
#pragma pack(pop)

// Whether the times of a record mean anything: CUPTI leaves zeros when its buffers ran out or its clock failed.
template <typename Record>
bool HasValidTime(const Record& record) {
  return record.start != 0 && record.end >= record.start && record.end != UINT64_MAX;
}

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_API_H_
