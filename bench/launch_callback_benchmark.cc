// File: launch_callback_benchmark.cc
//
// What a launch costs the program while nothing is armed: the callback's entry and exit, with attribution, into an
// active recorder; and an empty callback, for the ratio. On the simulated GPU, whose own cost is left out by calling
// the subscribed callback directly. (The real driver and CUPTI add theirs.)
//   ninja -C build/release launch_callback_benchmark && build/release/bin/launch_callback_benchmark
#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "collector/cupti/api.h"
#include "collector/cupti/hardware_source.h"
#include "collector/recorder.h"
#include "collector/settings.h"
#include "collector/site.h"
#include "integration_tests/simulated_gpu/simulator.h"

namespace rfinject {
namespace {

thread_local Site t_site;
Site ThreadSite() noexcept { return t_site; }

void CUPTIAPI Empty(void* user, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
  benchmark::DoNotOptimize(user);
  benchmark::DoNotOptimize(data);
}

CUpti_CallbackFunc Subscribed() {
  static CUpti_CallbackFunc callback = []() -> CUpti_CallbackFunc {
    setenv("SIM_REAL_CUPTI", "", 1);  // nothing is planned here: times only
    void* driver = dlopen(SIM_FOLDER "/driver/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver == nullptr || dlopen(SIM_FOLDER "/cupti13/libcupti.so.13", RTLD_NOW | RTLD_LOCAL) == nullptr) {
      fprintf(stderr, "%s\n", dlerror());
      exit(1);
    }
    CUcontext context = nullptr;
    reinterpret_cast<decltype(&::cuInit)>(dlsym(driver, "cuInit"))(0);
    reinterpret_cast<decltype(&::cuDevicePrimaryCtxRetain)>(dlsym(driver, "cuDevicePrimaryCtxRetain"))(&context, 0);
    reinterpret_cast<decltype(&::cuCtxSetCurrent)>(dlsym(driver, "cuCtxSetCurrent"))(context);
    g_site_function.store(&ThreadSite);
    auto* settings = new Settings;
    settings->mode = "times";
    Recorder::Get().Activate();
    Source* source = MakeHardwareSource(*settings, Recorder::Get());
    source->OnStepEnd(0);
    return reinterpret_cast<CUpti_CallbackFunc>(
        reinterpret_cast<decltype(&::sim_callback)>(dlsym(driver, "sim_callback"))());
  }();
  return callback;
}

// 64 kernels in 16 layers, as a small model has them.
template <bool kEmpty>
void Launches(benchmark::State& state) {
  CUpti_CallbackFunc callback = kEmpty ? &Empty : Subscribed();
  cuLaunchKernel_params params = {};
  params.blockDimX = 256;
  CUpti_CallbackData data = {};
  data.functionParams = &params;
  data.symbolName = "kernel";
  CUresult result = CUDA_SUCCESS;
  data.functionReturnValue = &result;
  unsigned launch = 0;
  constexpr int kBatch = 1000;
  while (state.KeepRunningBatch(kBatch)) {
    for (int i = 0; i < kBatch; ++i, ++launch) {
      t_site = Site{launch % 16, launch % 8, 0, Phase::kForward};
      params.f = reinterpret_cast<CUfunction>(uintptr_t{4096} + launch % 64 * 256);
      params.gridDimX = 1 + launch % 64;
      data.callbackSite = CUPTI_API_ENTER;
      callback(nullptr, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &data);
      data.callbackSite = CUPTI_API_EXIT;
      callback(nullptr, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &data);
    }
    state.PauseTiming();
    usleep(200);  // the program's own work, in which the writer keeps up
    state.ResumeTiming();
  }
}
BENCHMARK(Launches<true>)->Name("empty_callback")->Iterations(1'000'000);
BENCHMARK(Launches<false>)->Name("unarmed_launch")->Iterations(1'000'000);

}  // namespace
}  // namespace rfinject

int main(int argc, char** argv) {
  char folder[] = "/tmp/rfinject_benchmark_XXXXXX";
  if (mkdtemp(folder) == nullptr) return 1;
  setenv("RFINJECT_OUTPUT", (std::string(folder) + "/").c_str(), 1);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  rfinject::Recorder::Get().Finish("exit");
  return system(("rm -r " + std::string(folder)).c_str()) == 0 ? 0 : 1;
}
