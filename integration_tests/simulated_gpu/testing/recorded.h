// File: recorded.h
//
// The simulated GPU without a collector, for the tests that hold it against the recorded one: calls are CUPTI's own,
// and time is virtual, so that all of it is exact.
#ifndef RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_TESTING_RECORDED_H_
#define RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_TESTING_RECORDED_H_

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "integration_tests/simulated_gpu/testing/cupti_calls.h"
#include "integration_tests/simulated_gpu/testing/fixture.h"

namespace rfinject {

inline constexpr uint64_t kMs = 1'000'000;
inline constexpr size_t kBuffer = size_t{256} << 20;
inline const std::vector<std::string> kDram = {"dram__bytes_read.sum", "dram__bytes_write.sum"};
inline const std::vector<std::string> kSampled = {"dram__bytes_read.sum", "dram__bytes_write.sum",
                                                  "sm__pipe_tensor_cycles_active.sum", "sm__cycles_active.sum"};
inline const std::vector<std::string> kSass = {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
                                               "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum"};
// What the collector counted with each group of counters.
inline const std::vector<std::string> kBase = {"dram__bytes_read.sum",
                                               "dram__bytes_write.sum",
                                               "gpu__time_duration.sum",
                                               "gpc__cycles_elapsed.max",
                                               "lts__t_bytes.sum",
                                               "l1tex__t_bytes.sum",
                                               "sm__cycles_elapsed.avg.per_second",
                                               "dram__cycles_elapsed.avg.per_second"};

class Recorded : public ::testing::Test {
 protected:
  void SetUp() override {
    if (access(SIM_REAL_CUPTI_FOLDER "/libcupti.so.13", R_OK) != 0)
      GTEST_SKIP() << "note: no real CUPTI to plan with";
    ASSERT_NO_FATAL_FAILURE(driver_.Open("cupti13/libcupti.so.13"));
    driver_.sim_set_chip_("GH100", 9, 0);
    cupti::LoadOptions options;
    options.driver_ready = true;
    cupti::LoadResult loaded = cupti::LoadApi(options);
    ASSERT_EQ(loaded.status, cupti::LoadStatus::kOk) << loaded.error;
    api_ = loaded.api;
    RFINJECT_PARAMS(CUpti_Profiler_Initialize, initialize);
    ASSERT_EQ(api_.cuptiProfilerInitialize(&initialize), CUPTI_SUCCESS);
    int result = 0;
    ranges_host_ = MakeProfilerHost(api_, "GH100", cupti::HostKind::kRangeProfiler, {}, &result);
    samples_host_ = MakeProfilerHost(api_, "GH100", cupti::HostKind::kPmSampling, {}, &result);
    ASSERT_TRUE(ranges_host_ != nullptr && samples_host_ != nullptr);
    ranges_ = std::make_unique<RangeSession>(api_, *ranges_host_);
    sampling_ = std::make_unique<SamplingSession>(api_, *samples_host_);
    void* cupti = dlopen(SIM_FOLDER "/cupti13/libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
    timestamp_ = reinterpret_cast<decltype(timestamp_)>(dlsym(cupti, "cuptiGetTimestamp"));
    stamp_by_ = reinterpret_cast<decltype(stamp_by_)>(dlsym(cupti, "cuptiActivityRegisterTimestampCallback"));
  }

  // A kernel whose bytes are read.
  const SimKernel& Kernel(const char* name, uint64_t ns, double bytes, double ffma = 0, double hfma = 0) {
    auto& metrics = *new std::vector<SimMetric>{
        {"dram__bytes_read.sum", bytes}, {kSass[0].c_str(), ffma}, {kSass[1].c_str(), hfma}};
    return *new SimKernel{name, ns, metrics.data(), metrics.size(), nullptr};
  }
  void Launch(const SimKernel& kernel, CUstream stream = nullptr) {
    EXPECT_EQ(driver_.cuLaunchKernel_(reinterpret_cast<CUfunction>(const_cast<SimKernel*>(&kernel)), 8, 1, 1, 128, 1,
                                      1, 0, stream, nullptr, nullptr),
              CUDA_SUCCESS);
  }
  // The recorded program's step: 377 kernels, 27.1 ms.
  static constexpr int kLaunches = 377;
  void Step(int ranges = 0) {
    static const SimKernel& kernel = Kernel("kernel", 27'100'000 / kLaunches, 1000, 10);
    for (int i = 0; i < kLaunches; ++i) {
      const bool inside = i < ranges;
      int failed = inside ? ranges_->Push("r" + std::to_string(range_++)) : 0;
      Launch(kernel);
      failed += inside ? ranges_->Pop() : 0;
      EXPECT_EQ(failed, 0);
    }
  }
  // How long steps take, each, to the end of the last on the GPU, in ms.
  double StepMs(int steps, int ranges = 0) {
    driver_.cuCtxSynchronize_();
    return MsOf([&] {
             for (int i = 0; i < steps; ++i) Step(ranges);
             driver_.cuCtxSynchronize_();
           }) /
           steps;
  }
  template <typename Calls>
  double MsOf(const Calls& calls) {
    const uint64_t begin = driver_.sim_now_();
    calls();
    return static_cast<double>(driver_.sim_now_() - begin) / 1e6;
  }

  Driver driver_;
  cupti::Api api_;
  std::unique_ptr<cupti::MetricHost> ranges_host_, samples_host_;
  std::unique_ptr<RangeSession> ranges_;
  std::unique_ptr<SamplingSession> sampling_;
  decltype(&cuptiGetTimestamp) timestamp_ = nullptr;
  decltype(&cuptiActivityRegisterTimestampCallback) stamp_by_ = nullptr;
  int range_ = 0;
};

}  // namespace rfinject

#endif  // RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_TESTING_RECORDED_H_
