// File: fixture.h
//
// The hardware source on the simulated GPU: a driver with three kernels whose work is known, a training step, and
// what every sample must therefore be. Each test runs in a process of its own (ISOLATED).
#ifndef RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_TESTING_FIXTURE_H_
#define RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_TESTING_FIXTURE_H_

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "collector/cupti/api.h"
#include "collector/cupti/hardware_source.h"
#include "collector/settings.h"
#include "collector/source.h"
#include "collector/testing/fake_recorder.h"
#include "integration_tests/simulated_gpu/simulator.h"

namespace rfinject {

using testing::FakeRecorder;

// Where the launches of this thread are, as the injector would know it.
extern thread_local Site t_site;

// The simulated driver's functions, as a program has them.
struct Driver {
#define SIM_FUNCTION(name) decltype(&::name) name##_ = nullptr;
#define SIM_FUNCTIONS(F)         \
  F(cuInit)                      \
  F(cuDevicePrimaryCtxRetain)    \
  F(cuCtxSetCurrent)             \
  F(cuLaunchKernel)              \
  F(cuLaunchKernelEx)            \
  F(cuGraphLaunch)               \
  F(cuGraphInstantiateWithFlags) \
  F(cuGraphDestroy)              \
  F(cuGraphExecDestroy)          \
  F(cuMemcpyHtoDAsync_v2)        \
  F(cuMemAlloc_v2)               \
  F(cuStreamBeginCapture_v2)     \
  F(cuStreamEndCapture)          \
  F(cuCtxSynchronize)            \
  F(cuStreamSynchronize)         \
  F(cuMemFree_v2)                \
  F(sim_set_chip)                \
  F(sim_set_time)                \
  F(sim_set_exclusive)           \
  F(sim_set_zeros)               \
  F(sim_set_clock_khz)           \
  F(sim_now)                     \
  F(sim_spend)                   \
  F(sim_set_graph_ids) F(sim_callback) F(sim_fail) F(sim_calls) F(sim_function) F(sim_violations) F(sim_share_answers)
  SIM_FUNCTIONS(SIM_FUNCTION)
#undef SIM_FUNCTION
  CUresult (*create)(CUcontext*, unsigned int, CUdevice) = nullptr;
  CUresult (*destroy)(CUcontext) = nullptr;
  CUcontext context = nullptr;

  // Opens the driver and CUPTI of the simulator's folder (CUPTI: null for none) and makes the first device's context.
  void Open(const char* cupti);
};

struct TestKernel {
  std::string name;
  uint64_t ns;
  std::vector<SimMetric> metrics;
  SimKernel kernel = {};
  std::array<uint64_t, kPrecisionCount> flop{};
  uint64_t dram = 0;
};

// Three kernels whose work is known, by the names that the chip's counters have. A V100 has tensor cores for fp16
// only.
std::vector<TestKernel> KernelsOf(const std::string& chip);

// Points the simulator's descriptions at the kernels where they are now; to be called when the vector is complete.
void Bind(std::vector<TestKernel>* kernels);

class SimulatedGpu : public ::testing::Test {
 protected:
  explicit SimulatedGpu(const char* cupti = "cupti13/libcupti.so.13", std::string chip = "GA100")
      : cupti_(cupti), chip_(std::move(chip)) {}
  // Whether the simulated CUPTI is of the version of the real one.
  bool newest_cupti() const { return std::string_view(cupti_) == "cupti13/libcupti.so.13"; }

  // Opens the driver, CUPTI and the source. A test may still set settings_ and the environment: the source reads them
  // when the first step ends.
  void SetUp() override;

  // Our own thread must not outlive the recorder.
  void TearDown() override {
    if (source_ != nullptr) source_->Stop();
  }

  CUresult Launch(const TestKernel& kernel, uint32_t layer, Phase phase, uint32_t grid = 8);
  CUresult LaunchEx(const TestKernel& kernel, uint32_t layer, Phase phase);

  // A training step: forward on this thread, backward on another, as autograd does it; two streams' worth of
  // launches at once from a third.
  void Step();
  void RunOnASecond();
  void Run(int steps) {
    while (steps-- > 0) Step();
  }
  // Runs steps until `done`, which our own thread's work may take a while for. Returns whether that came to pass.
  template <typename Done>
  bool RunUntil(Done done, int most = 10'000) {
    for (; most > 0 && !done(); --most) Step();
    return done();
  }
  // Whether the source has what it can have of each key of Step(): times, bytes and FLOP of each precision.
  bool IsComplete(uint64_t bytes = 2);

  uint64_t ValueOf(const std::string& name, uint32_t metric) const;
  static bool IsCounter(uint32_t metric) {
    return metric == kDramBytes || (metric >= kFlopFirst && metric < kFlopFirst + kPrecisionCount);
  }

  // Every sample must be what the kernel is known to do: times and FLOP exactly, bytes as near as samples of the
  // whole device tell them. Returns how many samples each key has of each metric.
  using Key = std::tuple<std::string, uint32_t, Phase>;
  using Counts = std::map<Key, std::map<uint32_t, uint64_t>>;
  Counts CheckSamples();
  Counts CountSamples() const;

  std::vector<std::string> DiagnosticIds() const;

  const char* cupti_;
  std::string chip_;
  Driver driver_;
  Settings settings_;
  FakeRecorder recorder_;
  Source* source_ = nullptr;  // leaked, as in a program
  std::vector<TestKernel> kernels_;
  // How long the host is busy with other things in a step. As long as this is more than the GPU's 654 us, nothing
  // runs any more when the step ends.
  uint64_t host_ns_ = 1'000'000;
  uint64_t step_ = 0;
  std::atomic<int> failed_{0};
  uint64_t launched_ = 0;
};

// A V100 under a CUPTI that has the legacy profiler only.
class SimulatedV100 : public SimulatedGpu {
 protected:
  SimulatedV100() : SimulatedGpu("cupti124/libcupti.so.12", "GV100") {}
};

}  // namespace rfinject

#endif  // RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_TESTING_FIXTURE_H_
