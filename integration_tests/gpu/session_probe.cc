// File: session_probe.cc
//
// Runs one kernel under the range profiler, called by hand, for scripts/gpu_probe. It shows whether one session may
// be given another configuration without being enabled anew, whether PM sampling and a started session exclude each
// other, and which call fails when we may not use the counters.
//
//   gpu_session_probe LIBCUDA LIBCUPTI
//
// Prints one line a call, "CALL RESULT", and "VALUES anew|kept|beside …": the counts of both configurations, in a
// session each and in one for both, and how many samples came from PM sampling while a session was started. Exit code
// 0: it got to the end; 1: a call failed, which is the last one printed; 2: there is no GPU. The kernel is PTX, so no
// compiler of CUDA's is needed; the simulated driver has it as data.
#include <dlfcn.h>
#include <stdlib.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "collector/cupti/api.h"
#include "collector/cupti/metric_host.h"
#include "collector/cupti/pm_sampler.h"
#include "integration_tests/simulated_gpu/simulator.h"

namespace rfinject::cupti {
namespace {

constexpr uint32_t kNumbers = 1u << 26, kThreads = 256;

// Writes 1.0f to each of `fill_n` numbers.
constexpr const char* kPtx = R"(
.version 6.4
.target sm_70
.address_size 64
.visible .entry fill(.param .u64 fill_p, .param .u32 fill_n) {
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<5>;
  .reg .f32 %f<2>;
  ld.param.u64 %rd1, [fill_p];
  ld.param.u32 %r1, [fill_n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra DONE;
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r5, 4;
  add.s64 %rd4, %rd2, %rd3;
  mov.f32 %f1, 0f3F800000;
  st.global.f32 [%rd4], %f1;
DONE:
  ret;
}
)";

// Ends the program at the first call that fails: what comes after it means nothing.
void Check(const char* call, int result) {
  printf("%s %d\n", call, result);
  fflush(stdout);
  if (result != 0) _Exit(1);
}

// Whether a call that may be refused was not; says which.
bool Asked(const char* call, int result) {
  printf("%s %d\n", call, result);
  return result == 0;
}

class Probe {
 public:
  bool Open(const char* cuda, const std::string& cupti) {
    driver_ = dlopen(cuda, RTLD_NOW | RTLD_LOCAL);
    if (driver_ == nullptr || Call<decltype(&::cuInit)>("cuInit")(0) != CUDA_SUCCESS) return false;
    simulated_ = dlsym(driver_, "sim_set_chip") != nullptr;
    Check("cuDevicePrimaryCtxRetain",
          Call<decltype(&::cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context_, 0));
    Check("cuCtxSetCurrent", Call<decltype(&::cuCtxSetCurrent)>("cuCtxSetCurrent")(context_));
    LoadOptions options;
    options.driver_ready = true;
    options.folders = {cupti.substr(0, cupti.rfind('/'))};
    const size_t version = cupti.rfind(".so.");
    if (version != std::string::npos) options.cuda_major = atoi(cupti.c_str() + version + 4);
    LoadResult loaded = LoadApi(options);
    Check("LoadApi", static_cast<int>(loaded.status));
    api_ = loaded.api;
    Check("range-profiler-is-there", api_.has(kRangeProfiler | kProfilerHost) ? 0 : 1);
    return true;
  }

  void Plan() {
    CUpti_Profiler_Initialize_Params initialize = {CUpti_Profiler_Initialize_Params_STRUCT_SIZE};
    Check("cuptiProfilerInitialize", api_.cuptiProfilerInitialize(&initialize));
    CUpti_Device_GetChipName_Params name = {CUpti_Device_GetChipName_Params_STRUCT_SIZE};
    Check("cuptiDeviceGetChipName", api_.cuptiDeviceGetChipName(&name));
    // This was not fetched before, so that the first call that refuses shows.
    CUpti_Profiler_GetCounterAvailability_Params availability = {
        CUpti_Profiler_GetCounterAvailability_Params_STRUCT_SIZE};
    availability.ctx = context_;
    const CUptiResult available = api_.cuptiProfilerGetCounterAvailability(&availability);
    printf("cuptiProfilerGetCounterAvailability %d\n", static_cast<int>(available));
    int result = 0;
    host_ = MakeProfilerHost(api_, name.pChipName, HostKind::kRangeProfiler, {}, &result);
    Check("cuptiProfilerHostInitialize", result);
    for (const char* dram : {"dram__bytes_write.sum", "dram__bytes_op_write.sum"}) {
      const std::vector<std::string> metrics = {dram};
      if (groups_.empty() && host_->Passes(metrics) == 1) groups_.push_back(metrics);
    }
    groups_.push_back({"smsp__inst_executed.sum", "gpu__time_duration.sum"});
    for (const auto& group : groups_) {
      Check("passes-are-one", host_->Passes(group) == 1 ? 0 : 1);
      configs_.push_back(host_->ConfigImage(group));
    }
  }

  void PrepareKernel() {
    if (simulated_) {
      static SimMetric metrics[] = {{"dram__bytes_write.sum", 4.0 * kNumbers}, {"smsp__inst_executed.sum", 12345}};
      static SimKernel kernel = {"fill", 100000, metrics, 2};
      function_ = reinterpret_cast<CUfunction>(&kernel);
      return;
    }
    CUmodule module = nullptr;
    Check("cuModuleLoadData", Call<decltype(&::cuModuleLoadData)>("cuModuleLoadData")(&module, kPtx));
    Check("cuModuleGetFunction",
          Call<decltype(&::cuModuleGetFunction)>("cuModuleGetFunction")(&function_, module, "fill"));
    Check("cuMemAlloc", Call<decltype(&::cuMemAlloc)>("cuMemAlloc_v2")(&memory_, size_t{4} * kNumbers));
    Launch();  // what is loaded or compiled at the first launch is not counted
  }

  void Launch() {
    uint32_t count = kNumbers;
    void* parameters[] = {&memory_, &count};
    Check("cuLaunchKernel",
          Call<decltype(&::cuLaunchKernel)>("cuLaunchKernel")(function_, kNumbers / kThreads, 1, 1, kThreads, 1, 1, 0,
                                                              nullptr, parameters, nullptr));
    Check("cuCtxSynchronize", Call<decltype(&::cuCtxSynchronize)>("cuCtxSynchronize")());
  }

  void Enable() {
    CUpti_RangeProfiler_Enable_Params enable = {CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE};
    enable.ctx = context_;
    Check("cuptiRangeProfilerEnable", api_.cuptiRangeProfilerEnable(&enable));
    object_ = enable.pRangeProfilerObject;
  }
  void Disable() {
    CUpti_RangeProfiler_Disable_Params disable = {CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE};
    disable.pRangeProfilerObject = object_;
    Check("cuptiRangeProfilerDisable", api_.cuptiRangeProfilerDisable(&disable));
  }

  // Counts one launch by group `group` in the session that is enabled.
  double Count(size_t group) {
    Start(group);
    Launch();
    StopAndDecode();
    const std::vector<std::string>& metrics = groups_[group];
    std::vector<double> values(metrics.size());
    Check("evaluated", host_->Evaluate(image_, 0, metrics, values) ? 0 : 1);
    return values[0];
  }

  void Start(size_t group) {
    const std::vector<std::string>& metrics = groups_[group];
    std::vector<const char*> names;
    for (const std::string& metric : metrics) names.push_back(metric.c_str());
    CUpti_RangeProfiler_GetCounterDataSize_Params size = {CUpti_RangeProfiler_GetCounterDataSize_Params_STRUCT_SIZE};
    size.pRangeProfilerObject = object_;
    size.pMetricNames = names.data();
    size.numMetrics = names.size();
    size.maxNumOfRanges = 4;
    size.maxNumRangeTreeNodes = 4;
    Check("cuptiRangeProfilerGetCounterDataSize", api_.cuptiRangeProfilerGetCounterDataSize(&size));
    image_.assign(size.counterDataSize, 0);
    CUpti_RangeProfiler_CounterDataImage_Initialize_Params initialize = {
        CUpti_RangeProfiler_CounterDataImage_Initialize_Params_STRUCT_SIZE};
    initialize.pRangeProfilerObject = object_;
    initialize.counterDataSize = image_.size();
    initialize.pCounterData = image_.data();
    Check("cuptiRangeProfilerCounterDataImageInitialize",
          api_.cuptiRangeProfilerCounterDataImageInitialize(&initialize));
    CUpti_RangeProfiler_SetConfig_Params config = {CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE};
    config.pRangeProfilerObject = object_;
    config.configSize = configs_[group].size();
    config.pConfig = configs_[group].data();
    config.counterDataImageSize = image_.size();
    config.pCounterDataImage = image_.data();
    config.range = CUPTI_AutoRange;
    config.replayMode = CUPTI_UserReplay;
    config.maxRangesPerPass = 4;
    config.numNestingLevels = 1;
    config.minNestingLevel = 1;
    config.targetNestingLevel = 1;
    Check("cuptiRangeProfilerSetConfig", api_.cuptiRangeProfilerSetConfig(&config));
    CUpti_RangeProfiler_Start_Params start = {CUpti_RangeProfiler_Start_Params_STRUCT_SIZE};
    start.pRangeProfilerObject = object_;
    Check("cuptiRangeProfilerStart", api_.cuptiRangeProfilerStart(&start));
  }

  void StopAndDecode() {
    CUpti_RangeProfiler_Stop_Params stop = {CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE};
    stop.pRangeProfilerObject = object_;
    Check("cuptiRangeProfilerStop", api_.cuptiRangeProfilerStop(&stop));
    Check("all-passes-submitted", stop.isAllPassSubmitted != 0 ? 0 : 1);
    CUpti_RangeProfiler_DecodeData_Params decode = {CUpti_RangeProfiler_DecodeData_Params_STRUCT_SIZE};
    decode.pRangeProfilerObject = object_;
    Check("cuptiRangeProfilerDecodeData", api_.cuptiRangeProfilerDecodeData(&decode));
  }

  void Run() {
    std::vector<double> anew, kept;
    for (int round = 0; round < 2; ++round) {
      for (size_t group = 0; group < groups_.size(); ++group) {
        Enable();
        anew.push_back(Count(group));
        Disable();
      }
    }
    Print("anew", anew);
    Enable();
    for (int round = 0; round < 2; ++round) {
      for (size_t group = 0; group < groups_.size(); ++group) kept.push_back(Count(group));
    }
    Disable();
    Print("kept", kept);
    SampleBeside();
  }

  // Whether the device can be sampled while a session of ranges is started. A call that fails says so.
  void SampleBeside() {
    int result = 0;
    const std::unique_ptr<PmSampler> sampler = PmSampler::Plan(api_, 0, &result);
    if (!Asked("sampling-is-planned", result)) return;
    Enable();
    Start(0);
    const bool begun = Asked("sampling-begins-beside-a-session", sampler->Open(/*interval_ns=*/10'000)) &&
                       Asked("sampling-starts", sampler->Start());
    Launch();
    SampleWindow window;
    bool overflow = false;
    if (begun && Asked("sampling-ends", sampler->Stop()) &&
        Asked("samples-are-decoded", sampler->Decode(&window, &overflow))) {
      Print("beside", {static_cast<double>(window.size())});
    }
    sampler->Close();
    StopAndDecode();
    Disable();
  }

 private:
  template <typename Function>
  Function Call(const char* name) {
    auto function = reinterpret_cast<Function>(dlsym(driver_, name));
    if (function == nullptr) Check(name, -1);
    return function;
  }
  static void Print(const char* what, const std::vector<double>& values) {
    printf("VALUES %s", what);
    for (double value : values) printf(" %.17g", value);
    printf("\n");
  }

  void* driver_ = nullptr;
  bool simulated_ = false;
  CUcontext context_ = nullptr;
  CUfunction function_ = nullptr;
  CUdeviceptr memory_ = 0;
  Api api_;
  std::unique_ptr<MetricHost> host_;
  std::vector<std::vector<std::string>> groups_;
  std::vector<std::vector<uint8_t>> configs_;
  std::vector<uint8_t> image_;
  CUpti_RangeProfiler_Object* object_ = nullptr;
};

}  // namespace
}  // namespace rfinject::cupti

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "gpu_session_probe LIBCUDA LIBCUPTI\n");
    return 2;
  }
  auto* probe = new rfinject::cupti::Probe;
  if (!probe->Open(argv[1], argv[2])) return 2;
  probe->Plan();
  probe->PrepareKernel();
  probe->Run();
  fflush(stdout);
  _Exit(0);  // CUPTI's own exit handlers are not what is asked about
}
