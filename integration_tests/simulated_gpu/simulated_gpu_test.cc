// File: simulated_gpu_test.cc
//
// The hardware source on the simulated GPU: what it reports must be exactly what the kernels are known to do, and
// whatever fails, the program's launches must not. Each test runs in a process of its own (gtest_discover_tests).
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <map>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "collector/cupti/api.h"
#include "collector/cupti/hardware_source.h"
#include "collector/program_profiler.h"
#include "collector/settings.h"
#include "collector/source.h"
#include "collector/testing/fake_recorder.h"
#include "integration_tests/simulated_gpu/simulator.h"
#include "proto/wire/conditions.h"

#ifndef __SANITIZE_ADDRESS__
#ifndef __SANITIZE_THREAD__
#define RFINJECT_COUNT_ALLOCATIONS 1
thread_local bool t_counting = false;
thread_local uint64_t t_allocations = 0;
// glibc's own names for what these replace.
extern "C" void* __libc_malloc(size_t size);
extern "C" void* __libc_calloc(size_t count, size_t size);
extern "C" void* malloc(size_t size) {
  t_allocations += t_counting;
  return __libc_malloc(size);
}
extern "C" void* calloc(size_t count, size_t size) {
  t_allocations += t_counting;
  return __libc_calloc(count, size);
}
#endif
#endif

#ifdef __SANITIZE_ADDRESS__
// The source, its buffers and the simulator's contexts live as long as the process, on purpose: whoever still calls
// them must find them.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }
#endif

namespace rfinject {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Each;
using testing::FakeRecorder;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::Not;

thread_local Site t_site;
Site ThreadSite() noexcept { return t_site; }

// The simulated driver's functions, as a program has them.
struct Driver {
#define SIM_FUNCTION(name) decltype(&::name) name##_ = nullptr;
#define SIM_FUNCTIONS(F)      \
  F(cuInit)                   \
  F(cuDevicePrimaryCtxRetain) \
  F(cuCtxSetCurrent)          \
  F(cuLaunchKernel)           \
  F(cuLaunchKernelEx)         \
  F(cuGraphLaunch)            \
  F(cuMemcpyHtoDAsync_v2)     \
  F(cuMemAlloc_v2)            \
  F(cuStreamBeginCapture_v2)  \
  F(cuStreamEndCapture)       \
  F(cuMemFree_v2)             \
  F(sim_set_chip) F(sim_callback) F(sim_fail) F(sim_calls) F(sim_function) F(sim_violations)
  SIM_FUNCTIONS(SIM_FUNCTION)
#undef SIM_FUNCTION
  CUresult (*create)(CUcontext*, unsigned int, CUdevice) = nullptr;
  CUresult (*destroy)(CUcontext) = nullptr;
  CUcontext context = nullptr;

  void Open(const char* cupti) {
    setenv("SIM_REAL_CUPTI", SIM_REAL_CUPTI_FOLDER, 1);
    void* handle = dlopen(SIM_FOLDER "/driver/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(handle, nullptr) << dlerror();
#define SIM_LOOK_UP(name)                                              \
  name##_ = reinterpret_cast<decltype(name##_)>(dlsym(handle, #name)); \
  ASSERT_NE(name##_, nullptr) << #name;
    SIM_FUNCTIONS(SIM_LOOK_UP)
#undef SIM_LOOK_UP
    create = reinterpret_cast<decltype(create)>(dlsym(handle, "cuCtxCreate_v2"));
    destroy = reinterpret_cast<decltype(destroy)>(dlsym(handle, "cuCtxDestroy_v2"));
    if (cupti != nullptr) {
      ASSERT_NE(dlopen((std::string(SIM_FOLDER "/") + cupti).c_str(), RTLD_NOW | RTLD_LOCAL), nullptr) << dlerror();
    }
    ASSERT_EQ(cuInit_(0), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain_(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent_(context), CUDA_SUCCESS);
  }
};
#undef SIM_FUNCTIONS

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
std::vector<TestKernel> KernelsOf(const std::string& chip) {
  if (chip == "GV100") {
    std::vector<TestKernel> kernels = KernelsOf("GA100");
    const char* fp16 = "sm__ops_path_tensor_src_fp16_dst_fp32.sum";
    const char* fp16_other = "sm__ops_path_tensor_src_fp16_dst_fp16.sum";
    kernels[0].metrics[2].name = fp16;
    kernels[0].flop = {};
    kernels[0].flop[static_cast<size_t>(Precision::kFp16Tensor)] = 7'000'000;
    kernels[1].metrics[1].name = fp16;
    kernels[1].metrics[2].name = fp16_other;
    return kernels;
  }
  const char* tf32 = chip == "GH100" ? "sm__ops_path_tensor_op_hgmma_src_tf32_dst_fp32_sparsity_off.sum"
                                     : "sm__ops_path_tensor_src_tf32_dst_fp32_sparsity_off.sum";
  // fp16 is counted by metrics of two groups, which must be added.
  const char* fp16 = chip == "GH100" ? "sm__ops_path_tensor_op_hgmma_src_fp16_sparsity_off.sum"
                                     : "sm__ops_path_tensor_src_fp16_dst_fp32_sparsity_off.sum";
  const char* fp16_other = chip == "GH100" ? "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp16_sparsity_off.sum"
                                           : "sm__ops_path_tensor_src_fp16_dst_fp16_sparsity_off.sum";
  std::vector<TestKernel> kernels(3);
  kernels[0] = {"conv", 100'000, {{"dram__bytes_read.sum", 1000}, {"dram__bytes_write.sum", 500}, {tf32, 7'000'000}}};
  kernels[0].flop[static_cast<size_t>(Precision::kTf32Tensor)] = 7'000'000;
  kernels[0].dram = 1500;
  kernels[1] = {"gemm", 50'000, {{"dram__bytes_read.sum", 300}, {fp16, 1'000'000}, {fp16_other, 24}}};
  kernels[1].flop[static_cast<size_t>(Precision::kFp16Tensor)] = 1'000'024;
  kernels[1].dram = 300;
  kernels[2] = {"relu",
                2'000,
                {{"dram__bytes_write.sum", 64},
                 {"lts__t_bytes.sum", 4096},
                 {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 10},
                 {"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", 3},
                 {"smsp__sass_thread_inst_executed_op_hfma_pred_on.sum", 5}}};
  kernels[2].flop[static_cast<size_t>(Precision::kFp32)] = 23;
  kernels[2].flop[static_cast<size_t>(Precision::kFp16)] = 20;
  kernels[2].dram = 64;
  return kernels;
}

// Points the simulator's descriptions at the kernels where they are now; to be called when the vector is complete.
void Bind(std::vector<TestKernel>* kernels) {
  for (TestKernel& kernel : *kernels) {
    kernel.kernel = {kernel.name.c_str(), kernel.ns, kernel.metrics.data(), kernel.metrics.size()};
  }
}

class SimulatedGpu : public ::testing::Test {
 protected:
  void SetUp() override { g_site_function.store(&ThreadSite); }

  void Open(const char* cupti, const std::string& chip = "GA100") {
    if (access(SIM_REAL_CUPTI_FOLDER "/libcupti.so.13", R_OK) != 0) GTEST_SKIP() << "no real CUPTI to plan with";
    driver_.Open(cupti);
    driver_.sim_set_chip_(chip.c_str(), chip == "GH100" ? 9 : chip == "GV100" ? 7 : 8, 0);
    kernels_ = KernelsOf(chip);
    Bind(&kernels_);
    source_ = MakeHardwareSource(settings_, recorder_);
    ASSERT_NE(source_, nullptr);
  }

  CUresult Launch(const TestKernel& kernel, uint32_t layer, Phase phase, uint32_t grid = 8) {
    t_site = Site{layer, 0, 0, phase};
    return driver_.cuLaunchKernel_(reinterpret_cast<CUfunction>(const_cast<SimKernel*>(&kernel.kernel)), grid, 1, 1,
                                   128, 1, 1, 0, nullptr, nullptr, nullptr);
  }
  CUresult LaunchEx(const TestKernel& kernel, uint32_t layer, Phase phase) {
    t_site = Site{layer, 0, 0, phase};
    CUlaunchConfig config = {};
    config.gridDimX = 16;
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 256;
    config.blockDimY = config.blockDimZ = 1;
    return driver_.cuLaunchKernelEx_(&config, reinterpret_cast<CUfunction>(const_cast<SimKernel*>(&kernel.kernel)),
                                     nullptr, nullptr);
  }

  // A training step: forward on this thread, backward on another, as autograd does it; two streams' worth of
  // launches at once from a third.
  void Step() {
    failed_ += Launch(kernels_[0], 1, Phase::kForward) != CUDA_SUCCESS;
    failed_ += Launch(kernels_[2], 1, Phase::kForward) != CUDA_SUCCESS;
    failed_ += LaunchEx(kernels_[1], 2, Phase::kForward) != CUDA_SUCCESS;
    auto backward = [&](uint32_t layer) {
      driver_.cuCtxSetCurrent_(driver_.context);
      int failed = 0;
      failed += Launch(kernels_[1], layer, Phase::kBackward) != CUDA_SUCCESS;
      failed += Launch(kernels_[0], layer, Phase::kBackward) != CUDA_SUCCESS;
      failed += Launch(kernels_[0], layer, Phase::kBackward) != CUDA_SUCCESS;
      failed_ += failed;
    };
    std::thread other(backward, 2), third(backward, 1);
    other.join();
    third.join();
    failed_ += Launch(kernels_[2], 0, Phase::kOptimizer) != CUDA_SUCCESS;
    launched_ += 10;
    source_->OnStepEnd(step_++);
    recorder_.EndStep(1);
  }
  void RunOnASecond() {
    CUcontext second = nullptr;
    driver_.cuDevicePrimaryCtxRetain_(&second, 1);
    driver_.cuCtxSetCurrent_(second);
    failed_ += Launch(kernels_[0], 7, Phase::kForward) != CUDA_SUCCESS;
    driver_.cuCtxSetCurrent_(driver_.context);
  }
  void Run(int steps) {
    while (steps-- > 0) Step();
  }

  // What a layer and phase do in a step, as Step() has it.
  std::map<std::pair<uint32_t, Phase>, std::vector<std::string>> of_layer_ = {
      {{1, Phase::kForward}, {"conv", "relu"}},
      {{2, Phase::kForward}, {"gemm"}},
      {{1, Phase::kBackward}, {"gemm", "conv", "conv"}},
      {{2, Phase::kBackward}, {"gemm", "conv", "conv"}},
      {{0, Phase::kOptimizer}, {"relu"}},
  };
  uint64_t ValueOf(const std::string& name, uint32_t metric) const {
    for (const TestKernel& kernel : kernels_) {
      if (kernel.name == name) return metric == kDramBytes ? kernel.dram : kernel.flop[metric - kFlopFirst];
    }
    ADD_FAILURE() << name;
    return 0;
  }
  static bool IsCounter(uint32_t metric) {
    return metric == kDramBytes || (metric >= kFlopFirst && metric < kFlopFirst + kPrecisionCount);
  }

  // Of samples that are shares of sums over a layer: their total is what the layer does in as many steps.
  size_t CheckShares() {
    std::map<std::tuple<uint32_t, Phase, uint32_t>, uint64_t> totals;
    std::map<std::tuple<uint32_t, Phase, uint32_t>, std::map<std::string, uint64_t>> sums;
    for (const LaunchRecord& record : recorder_.records()) {
      const Site& site = record.identity.site;
      for (uint32_t i = 0; i < record.sample_count; ++i) {
        const uint32_t metric = record.samples[i].metric;
        if (!IsCounter(metric)) continue;
        totals[{site.layer, site.phase, metric}] += record.samples[i].value;
        sums[{site.layer, site.phase, metric}][recorder_.Name(record.identity.kernel)] += record.shared_sums;
      }
    }
    size_t shared = 0;
    for (const auto& [of, total] : totals) {
      const auto& [layer, phase, metric] = of;
      const uint64_t steps = sums[of].begin()->second;
      if (steps == 0) continue;
      ++shared;
      uint64_t a_step = 0;
      for (const std::string& kernel : of_layer_[{layer, phase}]) {
        a_step += ValueOf(kernel, metric);
        EXPECT_EQ(sums[of][kernel], steps) << kernel;
      }
      EXPECT_EQ(total, steps * a_step) << "layer " << layer << " phase " << static_cast<int>(phase) << " metric "
                                       << metric;
    }
    return shared;
  }

  // Every sample must be what the kernel is known to do. Returns how many samples each key has of each metric.
  using Key = std::tuple<std::string, uint32_t, Phase>;
  std::map<Key, std::map<uint32_t, uint64_t>> CheckSamples() {
    std::map<Key, std::map<uint32_t, uint64_t>> counts;
    std::set<std::pair<Key, uint32_t>> shared;  // CheckShares has those
    for (const LaunchRecord& record : recorder_.records()) {
      for (uint32_t i = 0; i < record.sample_count && record.shared_sums != 0; ++i) {
        shared.insert(
            {{recorder_.Name(record.identity.kernel), record.identity.site.layer, record.identity.site.phase},
             record.samples[i].metric});
      }
    }
    for (const LaunchRecord& record : recorder_.records()) {
      const std::string name = recorder_.Name(record.identity.kernel);
      const TestKernel* kernel = nullptr;
      for (const TestKernel& candidate : kernels_) {
        if (candidate.name == name) kernel = &candidate;
      }
      if (kernel == nullptr) {
        ADD_FAILURE() << "a kernel that nobody launched: " << name;
        continue;
      }
      const Key key = {name, record.identity.site.layer, record.identity.site.phase};
      auto& count = counts[{name, record.identity.site.layer, record.identity.site.phase}];
      count[0] += record.launches;
      for (uint32_t i = 0; i < record.sample_count; ++i) {
        const Sample& sample = record.samples[i];
        ++count[sample.metric];
        if (shared.count({key, sample.metric}) != 0) continue;
        if (sample.metric == kTime) {
          EXPECT_EQ(sample.value, kernel->ns) << name;
        }
        if (sample.metric == kDramBytes) {
          EXPECT_EQ(sample.value, kernel->dram) << name;
        }
        if (sample.metric >= kFlopFirst && sample.metric < kFlopFirst + kPrecisionCount) {
          EXPECT_EQ(sample.value, kernel->flop[sample.metric - kFlopFirst])
              << name << " " << kPrecisionNames[sample.metric - kFlopFirst];
        }
      }
    }
    return counts;
  }

  std::vector<std::string> DiagnosticIds() const {
    std::vector<std::string> ids;
    for (const auto& diagnostic : recorder_.diagnostics()) ids.push_back(diagnostic.id);
    return ids;
  }

  Driver driver_;
  Settings settings_;
  FakeRecorder recorder_;
  Source* source_ = nullptr;  // leaked, as in a program
  std::vector<TestKernel> kernels_;
  uint64_t step_ = 0;
  std::atomic<int> failed_{0};
  uint64_t launched_ = 0;
};

struct ExactCase {
  const char* cupti;
  const char* chip;
  const char* collector;
  const char* mode = "auto";
};

std::string NameOf(const ExactCase& c) {
  const std::string cupti = c.cupti;
  return c.chip + ("_" + cupti.substr(0, cupti.find('/'))) + "_" + c.mode;
}
void PrintTo(const ExactCase& c, std::ostream* out) { *out << NameOf(c); }

class Exact : public SimulatedGpu, public ::testing::WithParamInterface<ExactCase> {};

TEST_P(Exact, FlopBytesAndTimesOfEveryLaunchKey) {
  settings_.mode = GetParam().mode;
  settings_.overhead_percent = 50;  // so that it takes few steps on a chip with few groups, too
  Open(GetParam().cupti, GetParam().chip);
  if (IsSkipped() || HasFatalFailure()) return;
  // How often a step is armed depends on how long steps take, so on the machine.
  while (step_ < 60 ||
         (step_ < 6000 && (recorder_.armed().size() < 6 || driver_.sim_calls_("cuptiActivityFlushAll") < 4))) {
    Step();
  }
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_EQ(failed_, 0);
  const bool volta = GetParam().chip == std::string("GV100");
  auto counts = CheckSamples();
  EXPECT_EQ(counts.size(), 8u);  // kernel, layer and phase
  for (auto& [key, count] : counts) {
    const std::string name = std::get<0>(key) + " in layer " + std::to_string(std::get<1>(key));
    EXPECT_GE(count[kTime], 3u) << name;
    EXPECT_GE(count[kDramBytes], 2u) << name;
    for (Precision precision : {Precision::kFp64, Precision::kFp32, Precision::kFp16, Precision::kTf32Tensor,
                                Precision::kFp16Tensor, Precision::kBf16Tensor, Precision::kFp64Tensor}) {
      if (volta && precision >= Precision::kTf32Tensor && precision != Precision::kFp16Tensor) continue;
      EXPECT_GE(count[kFlopFirst + static_cast<uint32_t>(precision)], 1u)
          << name << " " << kPrecisionNames[static_cast<size_t>(precision)];
    }
  }
  // Launches are counted in all steps but the first, at whose end the source starts.
  EXPECT_EQ((counts[{"conv", 1, Phase::kForward}][0]), step_ - 1);
  EXPECT_EQ((counts[{"conv", 2, Phase::kBackward}][0]), 2 * (step_ - 1));
  EXPECT_THAT(recorder_.drops(), IsEmpty());
  const bool legacy = GetParam().collector == std::string("legacy-profiler");
  EXPECT_EQ(recorder_.armed().size(),
            driver_.sim_calls_(legacy ? "cuptiProfilerEnableProfiling" : "cuptiRangeProfilerStart"));
  EXPECT_EQ(driver_.sim_calls_(legacy ? "cuptiRangeProfilerEnable" : "cuptiProfilerBeginSession"), 0u);
  ASSERT_FALSE(recorder_.facts().empty());
  EXPECT_EQ(recorder_.facts()[0].source, SourceKind::kMeasured);
  EXPECT_EQ(recorder_.facts()[0].collector, GetParam().collector);
  EXPECT_EQ(recorder_.facts()[0].device[0].chip, GetParam().chip);
  // Which profiler counts, and why, is said wherever it is not the usual one; nothing else went wrong.
  EXPECT_EQ(DiagnosticIds(), legacy ? std::vector<std::string>{"counter-backend"} : std::vector<std::string>{});
  source_->Stop();
}

INSTANTIATE_TEST_SUITE_P(Chips, Exact,
                         ::testing::Values(ExactCase{"cupti13/libcupti.so.13", "GA100", "range-profiler"},
                                           ExactCase{"cupti13/libcupti.so.13", "GH100", "range-profiler"},
                                           ExactCase{"cupti12/libcupti.so.12", "GA100", "range-profiler"},
                                           ExactCase{"cupti124/libcupti.so.12", "GV100", "legacy-profiler"},
                                           ExactCase{"cupti124/libcupti.so.12", "GA100", "legacy-profiler"},
                                           ExactCase{"cupti124/libcupti.so.12", "GH100", "legacy-profiler", "range"},
                                           ExactCase{"cupti118/libcupti.so.11.8", "GV100", "legacy-profiler",
                                                     "legacy"},
                                           ExactCase{"cupti13/libcupti.so.13", "GV100", "range-profiler", "range"}),
                         [](const auto& info) { return NameOf(info.param); });

TEST_F(SimulatedGpu, ConvergesAndThenLeavesTheProgramAlone) {
  // Steps are so short here that what the machine does besides decides how many are armed; a large budget makes that
  // matter less.
  settings_.overhead_percent = 50;
  Open("cupti13/libcupti.so.13");
  if (IsSkipped() || HasFatalFailure()) return;
  uint64_t armed = 0, timed = 0, quiet = 0;
  for (int chunk = 0; chunk < 60 && quiet < 4; ++chunk) {
    Run(250);
    const uint64_t armed_now = driver_.sim_calls_("cuptiRangeProfilerStart");
    const uint64_t timed_now = driver_.sim_calls_("cuptiActivityFlushAll");
    quiet = armed_now == armed && timed_now == timed ? quiet + 1 : 0;
    armed = armed_now;
    timed = timed_now;
  }
  EXPECT_EQ(quiet, 4u);
  // All values are equal in each step, so the first look (3 samples) and what follows it are enough.
  EXPECT_LE(armed, 40u);
  EXPECT_GE(armed, 5u);
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

TEST_F(SimulatedGpu, MoreLaunchesThanRangesThrowTheStepAwayAndTheNextHasRoom) {
  Open("cupti13/libcupti.so.13");
  if (IsSkipped() || HasFatalFailure()) return;
  for (int step = 0; step < 60; ++step) {
    for (int i = 0; i < 400; ++i) Launch(kernels_[2], 3, Phase::kForward);
    Step();
  }
  EXPECT_STREQ(driver_.sim_violations_(), "");
  auto counts = CheckSamples();
  EXPECT_GE((counts[{"relu", 3, Phase::kForward}][kDramBytes]), 400u);
}

TEST_F(SimulatedGpu, AFailingLaunchIsNoRange) {
  Open("cupti13/libcupti.so.13");
  if (IsSkipped() || HasFatalFailure()) return;
  for (int step = 0; step < 60; ++step) {
    driver_.sim_fail_("cuLaunchKernel", CUDA_ERROR_INVALID_VALUE, 0);
    EXPECT_EQ(Launch(kernels_[0], 9, Phase::kForward), CUDA_ERROR_INVALID_VALUE);
    Step();
  }
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_THAT(recorder_.drops(), IsEmpty());
  CheckSamples();
}

TEST_F(SimulatedGpu, CopiesHaveTimesAndCommunicationAPhaseOfItsOwn) {
  Open("cupti13/libcupti.so.13");
  if (IsSkipped() || HasFatalFailure()) return;
  TestKernel nccl = kernels_[2];
  nccl.name = "ncclDevKernel_AllReduce";
  kernels_.push_back(nccl);
  TestKernel copy;
  copy.name = "cuMemcpyHtoDAsync_v2";
  copy.ns = 700;
  kernels_.push_back(copy);
  Bind(&kernels_);
  for (int step = 0; step < 60; ++step) {
    t_site = Site{};
    EXPECT_EQ(driver_.cuMemcpyHtoDAsync_v2_(0, nullptr, 64, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(Launch(kernels_[3], 2, Phase::kBackward), CUDA_SUCCESS);
    Step();
  }
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_THAT(recorder_.drops(), IsEmpty());
  auto counts = CheckSamples();
  EXPECT_GE((counts[{"cuMemcpyHtoDAsync_v2", 0, Phase::kData}][kTime]), 3u);
  EXPECT_EQ((counts[{"cuMemcpyHtoDAsync_v2", 0, Phase::kData}][kDramBytes]), 0u);
  EXPECT_GE((counts[{"ncclDevKernel_AllReduce", 2, Phase::kCommunication}][kTime]), 3u);
}

TEST_F(SimulatedGpu, CommunicationEndsCountingKernelByKernel) {
  Open("cupti13/libcupti.so.13");
  if (IsSkipped() || HasFatalFailure()) return;
  TestKernel nccl = kernels_[0];
  nccl.name = "ncclDevKernel_AllReduce";
  kernels_.push_back(nccl);
  Bind(&kernels_);
  of_layer_[{2, Phase::kCommunication}] = {"ncclDevKernel_AllReduce"};
  for (int step = 0; step < 60; ++step) {
    EXPECT_EQ(Launch(kernels_[3], 2, Phase::kBackward), CUDA_SUCCESS);
    Step();
  }
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_THAT(DiagnosticIds(), Contains("counters-by-layer"));
  EXPECT_GT(driver_.sim_calls_("cuptiRangeProfilerPushRange"), 0u);
  // What the layer computes and what it sends are not one sum.
  EXPECT_GT(CheckShares(), 0u);
  auto counts = CheckSamples();
  EXPECT_GE((counts[{"ncclDevKernel_AllReduce", 2, Phase::kCommunication}][kDramBytes]), 2u);
}

TEST_F(SimulatedGpu, AGraphIsOneRange) {
  Open("cupti13/libcupti.so.13");
  if (IsSkipped() || HasFatalFailure()) return;
  kernels_.reserve(4);
  Bind(&kernels_);
  const SimKernel* inside[] = {&kernels_[0].kernel, &kernels_[2].kernel, &kernels_[2].kernel};
  const SimGraph graph = {inside, 3};
  TestKernel whole;
  whole.name = "(CUDA graph)";
  whole.ns = kernels_[0].ns + 2 * kernels_[2].ns;
  whole.dram = kernels_[0].dram + 2 * kernels_[2].dram;
  for (size_t i = 0; i < kPrecisionCount; ++i) whole.flop[i] = kernels_[0].flop[i] + 2 * kernels_[2].flop[i];
  kernels_.push_back(whole);
  of_layer_ = {{{1, Phase::kForward}, {"conv", "gemm", "relu"}}};
  for (int step = 0; step < 60; ++step) {
    for (size_t i = 0; i < 3; ++i) {
      Launch(kernels_[i], 1, Phase::kForward);
      if (i > 0) continue;
      EXPECT_EQ(driver_.cuGraphLaunch_(reinterpret_cast<CUgraphExec>(const_cast<SimGraph*>(&graph)), nullptr),
                CUDA_SUCCESS);
    }
    source_->OnStepEnd(step_++);
    recorder_.EndStep(1);
  }
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_THAT(DiagnosticIds(), Contains("counters-by-layer"));
  EXPECT_THAT(recorder_.drops(), IsEmpty());
  // The graph's values are its own and not shared with the kernels of the same layer.
  auto counts = CheckSamples();
  EXPECT_GE((counts[{"(CUDA graph)", 1, Phase::kForward}][kDramBytes]), 2u);
  EXPECT_GE((counts[{"(CUDA graph)", 1, Phase::kForward}][kTime]), 3u);
  EXPECT_GE((counts[{"(CUDA graph)", 1, Phase::kForward}][kFlopFirst + static_cast<uint32_t>(Precision::kFp32)]), 1u);
}

TEST_F(SimulatedGpu, KernelByKernelForcedOnAGraphCountsNothingAndSaysSo) {
  settings_.mode = "range";
  Open("cupti13/libcupti.so.13");
  if (IsSkipped() || HasFatalFailure()) return;
  const SimGraph graph = {nullptr, 0};
  for (int step = 0; step < 60; ++step) {
    driver_.cuGraphLaunch_(reinterpret_cast<CUgraphExec>(const_cast<SimGraph*>(&graph)), nullptr);
    for (const TestKernel& kernel : kernels_) Launch(kernel, 1, Phase::kForward);
    source_->OnStepEnd(step_++);
    recorder_.EndStep(1);
  }
  EXPECT_THAT(DiagnosticIds(), Contains("cuda-graphs"));
  EXPECT_EQ(driver_.sim_calls_("cuptiRangeProfilerPushRange"), 0u);
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

// The same of the legacy profiler, whose session has more to close: context, ranges, fork and exit.
TEST_F(SimulatedGpu, ADestroyedContextClosesTheLegacySession) {
  Open("cupti124/libcupti.so.12", "GV100");
  if (IsSkipped() || HasFatalFailure()) return;
  while (driver_.sim_calls_("cuptiProfilerBeginSession") == driver_.sim_calls_("cuptiProfilerEndSession")) Step();
  Launch(kernels_[0], 1, Phase::kForward);
  EXPECT_EQ(driver_.destroy(driver_.context), CUDA_SUCCESS);
  EXPECT_EQ(driver_.sim_calls_("cuptiProfilerBeginSession"), driver_.sim_calls_("cuptiProfilerEndSession"));
  source_->OnStepEnd(step_++);
  source_->Stop();
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_THAT(DiagnosticIds(), Contains("context-gone"));
}

TEST_F(SimulatedGpu, TheLegacyProfilerMakesRoomForMoreLaunches) {
  Open("cupti124/libcupti.so.12", "GV100");
  if (IsSkipped() || HasFatalFailure()) return;
  for (int step = 0; step < 60; ++step) {
    for (int i = 0; i < 400; ++i) Launch(kernels_[2], 3, Phase::kForward);
    Step();
  }
  EXPECT_STREQ(driver_.sim_violations_(), "");
  auto counts = CheckSamples();
  EXPECT_GE((counts[{"relu", 3, Phase::kForward}][kDramBytes]), 400u);
}

TEST_F(SimulatedGpu, AForkedChildTouchesNothingOfTheLegacyProfiler) {
  Open("cupti124/libcupti.so.12", "GV100");
  if (IsSkipped() || HasFatalFailure()) return;
  while (driver_.sim_calls_("cuptiProfilerBeginSession") == driver_.sim_calls_("cuptiProfilerEndSession")) Step();
  const pid_t child = fork();
  if (child == 0) {
    source_->OnStepEnd(step_);
    source_->Stop();
    _exit(driver_.sim_calls_("cuptiProfilerDisableProfiling") + 1 == driver_.sim_calls_("cuptiProfilerBeginSession")
              ? 0
              : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  Run(20);
  CheckSamples();
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

TEST_F(SimulatedGpu, ADestroyedContextEndsItWithoutACall) {
  Open("cupti13/libcupti.so.13");
  if (IsSkipped() || HasFatalFailure()) return;
  // In a step with counters: the session must be closed before the context goes.
  while (driver_.sim_calls_("cuptiRangeProfilerStart") == driver_.sim_calls_("cuptiRangeProfilerStop")) Step();
  Launch(kernels_[0], 1, Phase::kForward);
  EXPECT_EQ(driver_.destroy(driver_.context), CUDA_SUCCESS);
  source_->OnStepEnd(step_++);
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_THAT(DiagnosticIds(), Contains("context-gone"));
  CUcontext second = nullptr;
  ASSERT_EQ(driver_.create(&second, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(Launch(kernels_[0], 1, Phase::kForward), CUDA_SUCCESS);
  source_->OnStepEnd(step_++);
  source_->Stop();
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

TEST_F(SimulatedGpu, ASecondContextIsNotCountedIntoTheFirst) {
  Open("cupti13/libcupti.so.13");
  if (IsSkipped() || HasFatalFailure()) return;
  CUcontext second = nullptr;
  ASSERT_EQ(driver_.create(&second, 0, 0), CUDA_SUCCESS);
  for (int step = 0; step < 40; ++step) {
    driver_.cuCtxSetCurrent_(second);
    EXPECT_EQ(Launch(kernels_[0], 5, Phase::kForward), CUDA_SUCCESS);
    driver_.cuCtxSetCurrent_(driver_.context);
    Step();
  }
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_THAT(recorder_.drops(),
              Not(Contains(::testing::Key("armed steps whose ranges did not match their launches"))));
  CheckSamples();
}

// DataParallel: a thread for each GPU, and what joins their work on the first.
class TwoGpus : public SimulatedGpu {
 protected:
  void OpenTwo() {
    Open("cupti13/libcupti.so.13");
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_EQ(driver_.cuDevicePrimaryCtxRetain_(&second_, 1), CUDA_SUCCESS);
  }
  // Replicas do the same, but the second has a kernel more.
  void StepOnTwo() {
    auto replica = [&](CUcontext context) {
      driver_.cuCtxSetCurrent_(context);
      failed_ += Launch(kernels_[0], 1, Phase::kForward) != CUDA_SUCCESS;
      failed_ += Launch(kernels_[2], 1, Phase::kForward) != CUDA_SUCCESS;
      if (context == second_) failed_ += Launch(kernels_[1], 2, Phase::kForward) != CUDA_SUCCESS;
    };
    std::thread first(replica, driver_.context), other(replica, second_);
    first.join();
    other.join();
    failed_ += Launch(kernels_[2], 0, Phase::kOptimizer) != CUDA_SUCCESS;
    source_->OnStepEnd(step_++);
    recorder_.EndStep(1);
  }
  // Samples and launches of each kernel, by device.
  std::map<std::tuple<std::string, uint32_t, uint32_t>, uint64_t> OfDevices() {
    std::map<std::tuple<std::string, uint32_t, uint32_t>, uint64_t> counts;
    for (const LaunchRecord& record : recorder_.records()) {
      const std::string name = recorder_.Name(record.identity.kernel);
      counts[{name, record.identity.device, 0}] += record.launches;
      for (uint32_t i = 0; i < record.sample_count; ++i) {
        ++counts[{name, record.identity.device, record.samples[i].metric}];
      }
    }
    return counts;
  }
  CUcontext second_ = nullptr;
};

TEST_F(TwoGpus, EachIsCountedByItself) {
  OpenTwo();
  if (IsSkipped() || HasFatalFailure()) return;
  for (int step = 0; step < 60; ++step) StepOnTwo();
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_EQ(failed_, 0);
  EXPECT_THAT(recorder_.drops(), IsEmpty());
  EXPECT_THAT(DiagnosticIds(), Contains("several-devices"));
  CheckSamples();
  auto counts = OfDevices();
  for (uint32_t device : {0u, 1u}) {
    EXPECT_GE((counts[{"conv", device, kTime}]), 3u) << device;
    EXPECT_GE((counts[{"conv", device, kDramBytes}]), 2u) << device;
    EXPECT_GE((counts[{"conv", device, kFlopFirst + static_cast<uint32_t>(Precision::kTf32Tensor)}]), 1u) << device;
  }
  EXPECT_EQ((counts[{"gemm", 0, 0}]), 0u);
  EXPECT_EQ((counts[{"gemm", 1, 0}]), 59u);
  EXPECT_GE((counts[{"gemm", 1, kDramBytes}]), 2u);
  const auto& facts = recorder_.facts().back();
  ASSERT_EQ(facts.device.size(), 2u);
  EXPECT_EQ(facts.device[1].index, 1u);
  EXPECT_EQ(facts.device[1].chip, "GA100");
}

TEST_F(TwoGpus, LayerByLayerToo) {
  settings_.mode = "user";
  OpenTwo();
  if (IsSkipped() || HasFatalFailure()) return;
  for (int step = 0; step < 60; ++step) StepOnTwo();
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_THAT(recorder_.drops(), IsEmpty());
  CheckSamples();
  // The layers' sums, each device's by itself: as many as steps were armed with them, two devices each.
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> sums, steps;  // device, metric
  for (const LaunchRecord& record : recorder_.records()) {
    if (record.identity.site.layer != 1 || record.identity.site.phase != Phase::kForward) continue;
    for (uint32_t i = 0; i < record.sample_count; ++i) {
      if (!IsCounter(record.samples[i].metric)) continue;
      sums[{record.identity.device, record.samples[i].metric}] += record.samples[i].value;
      if (recorder_.Name(record.identity.kernel) == "conv") {
        steps[{record.identity.device, record.samples[i].metric}] += record.shared_sums;
      }
    }
  }
  EXPECT_EQ(sums.size(), 2u * 8u);
  for (const auto& [of, sum] : sums) {
    EXPECT_EQ(sum, steps[of] * (ValueOf("conv", of.second) + ValueOf("relu", of.second))) << of.first;
  }
}

TEST_F(TwoGpus, OneWithoutCountersHasTimesAndIsNamed) {
  OpenTwo();
  if (IsSkipped() || HasFatalFailure()) return;
  StepOnTwo();  // the source starts; the second context is still unknown
  driver_.sim_fail_("cuptiProfilerGetCounterAvailability", CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, 0);
  for (int step = 0; step < 60; ++step) StepOnTwo();
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_THAT(DiagnosticIds(), Contains("device-not-counted"));
  CheckSamples();
  auto counts = OfDevices();
  EXPECT_GE((counts[{"conv", 0, kDramBytes}]), 2u);
  EXPECT_EQ((counts[{"conv", 1, kDramBytes}]), 0u);
  EXPECT_GE((counts[{"conv", 1, kTime}]), 3u);
}

TEST_F(TwoGpus, TheSecondsContextMayGoAndAnotherComeInItsPlace) {
  OpenTwo();
  if (IsSkipped() || HasFatalFailure()) return;
  StepOnTwo();
  StepOnTwo();
  while (driver_.sim_calls_("cuptiRangeProfilerStart") == driver_.sim_calls_("cuptiRangeProfilerStop")) StepOnTwo();
  // In a step with counters.
  EXPECT_EQ(driver_.destroy(second_), CUDA_SUCCESS);
  ASSERT_EQ(driver_.cuDevicePrimaryCtxRetain_(&second_, 1), CUDA_SUCCESS);  // at the same address
  const uint64_t before = OfDevices()[{"conv", 1, kDramBytes}];
  for (int step = 0; step < 60; ++step) StepOnTwo();
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_THAT(DiagnosticIds(), Not(Contains("context-gone")));
  CheckSamples();
  EXPECT_GE((OfDevices()[{"conv", 0, kDramBytes}]), 2u);
  EXPECT_GT((OfDevices()[{"conv", 1, kDramBytes}]), before);
}

TEST_F(TwoGpus, TheFirstsContextGoesAndTheSecondsSessionIsEndedToo) {
  OpenTwo();
  if (IsSkipped() || HasFatalFailure()) return;
  StepOnTwo();
  StepOnTwo();
  while (driver_.sim_calls_("cuptiRangeProfilerStart") == driver_.sim_calls_("cuptiRangeProfilerStop")) StepOnTwo();
  EXPECT_EQ(driver_.destroy(driver_.context), CUDA_SUCCESS);
  source_->OnStepEnd(step_++);
  EXPECT_THAT(DiagnosticIds(), Contains("context-gone"));
  EXPECT_EQ(driver_.destroy(second_), CUDA_SUCCESS);  // the simulator complains if its session is still there
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

TEST_F(SimulatedGpu, AForkedChildTouchesNothing) {
  Open("cupti13/libcupti.so.13");
  if (IsSkipped() || HasFatalFailure()) return;
  while (driver_.sim_calls_("cuptiRangeProfilerStart") == driver_.sim_calls_("cuptiRangeProfilerStop")) Step();
  const pid_t child = fork();
  if (child == 0) {
    const uint64_t before = driver_.sim_calls_("cuptiRangeProfilerStop");
    source_->OnStepEnd(step_);
    source_->Stop();
    _exit(driver_.sim_calls_("cuptiRangeProfilerStop") == before ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  Run(20);
  CheckSamples();
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

TEST_F(SimulatedGpu, StoppingInAnArmedStepAndLaunchesAfterItAreHarmless) {
  Open("cupti13/libcupti.so.13");
  if (IsSkipped() || HasFatalFailure()) return;
  while (driver_.sim_calls_("cuptiRangeProfilerStart") == driver_.sim_calls_("cuptiRangeProfilerStop")) Step();
  source_->Stop();
  const size_t records = recorder_.records().size();
  EXPECT_EQ(Launch(kernels_[0], 1, Phase::kForward), CUDA_SUCCESS);
  source_->OnStepEnd(step_++);
  source_->Stop();
  EXPECT_EQ(recorder_.records().size(), records);
}

TEST_F(SimulatedGpu, SeveralRanksAreCountedLayerByLayer) {
  setenv("WORLD_SIZE", "2", 1);
  Open("cupti13/libcupti.so.13");
  if (IsSkipped() || HasFatalFailure()) return;
  Run(60);
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_THAT(DiagnosticIds(), Contains("counters-by-layer"));
  EXPECT_THAT(recorder_.drops(), IsEmpty());
  EXPECT_GT(driver_.sim_calls_("cuptiRangeProfilerPushRange"), 0u);
  EXPECT_EQ(driver_.sim_calls_("cuptiRangeProfilerPushRange"), driver_.sim_calls_("cuptiRangeProfilerPopRange"));
  // Bytes and seven precisions of three layers and phases with several kernels.
  EXPECT_EQ(CheckShares(), 3u * 8u);
  auto counts = CheckSamples();
  EXPECT_GE((counts[{"conv", 1, Phase::kForward}][kTime]), 3u);
  // Alone in its layer and phase: its own value, as good as kernel by kernel.
  for (const auto& key : {Key{"gemm", 2, Phase::kForward}, Key{"relu", 0, Phase::kOptimizer}}) {
    EXPECT_GE(counts[key][kDramBytes], 2u);
    EXPECT_GE(counts[key][kFlopFirst + static_cast<uint32_t>(Precision::kFp16Tensor)], 1u);
  }
}

TEST_F(SimulatedGpu, SeveralRanksOfV100AreCountedLayerByLayer) {
  setenv("WORLD_SIZE", "2", 1);
  settings_.overhead_percent = 50;
  Open("cupti124/libcupti.so.12", "GV100");
  if (IsSkipped() || HasFatalFailure()) return;
  while (step_ < 60 || (step_ < 6000 && recorder_.armed().size() < 6)) Step();
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_THAT(DiagnosticIds(), Contains("counters-by-layer"));
  EXPECT_THAT(recorder_.drops(), IsEmpty());
  EXPECT_GT(driver_.sim_calls_("cuptiProfilerPushRange"), 0u);
  EXPECT_EQ(driver_.sim_calls_("cuptiProfilerPushRange"), driver_.sim_calls_("cuptiProfilerPopRange"));
  // Bytes and four precisions of three layers and phases with several kernels.
  EXPECT_EQ(CheckShares(), 3u * 5u);
  auto counts = CheckSamples();
  for (const auto& key : {Key{"gemm", 2, Phase::kForward}, Key{"relu", 0, Phase::kOptimizer}}) {
    EXPECT_GE(counts[key][kDramBytes], 2u);
    EXPECT_GE(counts[key][kFlopFirst + static_cast<uint32_t>(Precision::kFp16Tensor)], 1u);
  }
}

TEST_F(SimulatedGpu, SeveralRanksAreCountedKernelByKernelWhenForced) {
  setenv("WORLD_SIZE", "2", 1);
  settings_.mode = "range";
  Open("cupti13/libcupti.so.13");
  if (IsSkipped() || HasFatalFailure()) return;
  Run(60);
  EXPECT_EQ(driver_.sim_calls_("cuptiRangeProfilerPushRange"), 0u);
  EXPECT_EQ(CheckShares(), 0u);
  auto counts = CheckSamples();
  EXPECT_GE((counts[{"conv", 1, Phase::kForward}][kDramBytes]), 2u);
}

// More ranges than there is room for: launches of two layers that take turns.
TEST_F(SimulatedGpu, MoreRangesThanRoomThrowTheStepAwayAndTheNextHasRoom) {
  settings_.mode = "user";
  Open("cupti13/libcupti.so.13");
  if (IsSkipped() || HasFatalFailure()) return;
  of_layer_[{3, Phase::kForward}] = of_layer_[{4, Phase::kForward}] = {};
  for (int i = 0; i < 200; ++i) {
    of_layer_[{3, Phase::kForward}].push_back(i % 2 == 0 ? "relu" : "conv");
    of_layer_[{4, Phase::kForward}].push_back("relu");
  }
  for (int step = 0; step < 60; ++step) {
    for (int i = 0; i < (step < 9 ? 0 : 200); ++i) {
      Launch(kernels_[i % 2 == 0 ? 2 : 0], 3, Phase::kForward);
      Launch(kernels_[2], 4, Phase::kForward);
    }
    Step();
  }
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_THAT(recorder_.drops(), Contains(::testing::Key("armed steps whose ranges did not match their launches")));
  EXPECT_THAT(DiagnosticIds(), Not(Contains("ranges-mismatch")));
  EXPECT_GT(CheckShares(), 0u);
  auto counts = CheckSamples();
  EXPECT_GE((counts[{"conv", 3, Phase::kForward}][kDramBytes]), 100u);
  EXPECT_GE((counts[{"relu", 4, Phase::kForward}][kDramBytes]), 1u);
}

// exit() from a thread that is not the main one, in a step with counters, while another thread goes on launching, and
// a handler of the program that runs after ours launches too.
TEST_F(SimulatedGpu, ExitFromAThreadAndLaunchesDuringExitAreHarmless) {
  if (access(SIM_REAL_CUPTI_FOLDER "/libcupti.so.13", R_OK) != 0) GTEST_SKIP() << "no real CUPTI to plan with";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  static decltype(this) self;
  static std::atomic<uint64_t> launches{0};
  static std::atomic<bool> over{false};
  self = this;
  const auto program = [this] {
    Open("cupti13/libcupti.so.13");
    while (driver_.sim_calls_("cuptiRangeProfilerStart") == driver_.sim_calls_("cuptiRangeProfilerStop")) Step();
    auto launch_on = [] {
      self->driver_.cuCtxSetCurrent_(self->driver_.context);
      while (!over) {
        if (self->Launch(self->kernels_[0], 1, Phase::kBackward) == CUDA_SUCCESS) ++launches;
      }
    };
    std::thread(launch_on).detach();
    while (launches == 0) {
    }
    // Handlers run in the reverse order: ours, as the injector has it, then the program's.
    std::atexit([] {
      const uint64_t before = launches;
      self->driver_.cuCtxSetCurrent_(self->driver_.context);
      const bool works = self->Launch(self->kernels_[2], 0, Phase::kOther) == CUDA_SUCCESS;
      while (launches < before + 100) {
      }
      over = true;
      if (!works) _exit(11);
      if (self->driver_.sim_violations_()[0] != '\0') _exit(12);
    });
    std::atexit([] { self->source_->Stop(); });
    std::thread([] { std::exit(7); }).join();
  };
  EXPECT_EXIT(program(), ::testing::ExitedWithCode(7), "");
}

TEST_F(SimulatedGpu, TheHolderOfTheSubscriptionIsNamed) {
  Open("cupti13/libcupti.so.13");
  if (IsSkipped() || HasFatalFailure()) return;
  driver_.sim_fail_("cuptiSubscribe_v2", 39, 1);
  Run(5);
  ASSERT_EQ(recorder_.diagnostics().size(), 1u);
  EXPECT_EQ(recorder_.diagnostics()[0].id, "cupti-subscriber");
  EXPECT_THAT(recorder_.diagnostics()[0].text, ::testing::HasSubstr("CUPTI for Simulated Tool"));
  EXPECT_EQ(driver_.sim_calls_("cuptiActivityRegisterCallbacks"), 0u);
}

TEST_F(SimulatedGpu, MemoryInUseAndItsPeakAreKnownForEachStep) {
  Open("cupti13/libcupti.so.13");
  if (IsSkipped() || HasFatalFailure()) return;
  constexpr uint64_t kMiB = 1 << 20, kBefore = uint64_t{10} << 30;
  Step();
  CUdeviceptr kept = 0, workspace = 0;
  ASSERT_EQ(driver_.cuMemAlloc_v2_(&kept, 100 * kMiB), CUDA_SUCCESS);
  ASSERT_EQ(driver_.cuMemAlloc_v2_(&workspace, 50 * kMiB), CUDA_SUCCESS);
  ASSERT_EQ(driver_.cuMemFree_v2_(workspace), CUDA_SUCCESS);
  Step();
  Step();
  ASSERT_EQ(driver_.cuMemFree_v2_(kept), CUDA_SUCCESS);
  Step();
  EXPECT_THAT(recorder_.memory(), ::testing::ElementsAre(std::pair(kBefore + 100 * kMiB, kBefore + 150 * kMiB),
                                                         std::pair(kBefore + 100 * kMiB, kBefore + 100 * kMiB),
                                                         std::pair(kBefore, kBefore + 100 * kMiB)));
  // Allocations are neither launches nor copies.
  CheckSamples();
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

// The optimizer's step may be part of what is captured into a graph: a step ends while it is.
TEST_F(SimulatedGpu, AStepThatEndsInACaptureDoesNotSpoilIt) {
  settings_.overhead_percent = 50;
  Open("cupti13/libcupti.so.13");
  if (IsSkipped() || HasFatalFailure()) return;
  Run(1);
  CUgraph before = nullptr;  // we came into a capture, and see its end alone
  ASSERT_EQ(driver_.cuStreamEndCapture_(nullptr, &before), CUDA_SUCCESS);
  for (int i = 0; i < 60; ++i) {  // steps with counters, with times, with PM sampling, and with nothing
    Run(1 + i % 3);
    ASSERT_EQ(driver_.cuStreamBeginCapture_v2_(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    source_->OnStepEnd(step_++);
    CUgraph graph = nullptr;
    ASSERT_EQ(driver_.cuStreamEndCapture_(nullptr, &graph), CUDA_SUCCESS) << i;
  }
  EXPECT_GE(recorder_.armed().size(), 1u);
  CheckSamples();
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

// --- Others that want the same of CUPTI.

class Busy : public SimulatedGpu, public ::testing::WithParamInterface<const char*> {};

TEST_P(Busy, CountersAreTakenWhenTheyAreFree) {
  settings_.overhead_percent = 50;  // steps are so short that one per cent of them is nothing
  Open("cupti13/libcupti.so.13");
  if (IsSkipped() || HasFatalFailure()) return;
  driver_.sim_fail_(GetParam(), CUPTI_ERROR_HARDWARE_BUSY, 1);
  Run(400);
  EXPECT_EQ(recorder_.armed().size(), 0u);
  auto counts = CheckSamples();
  EXPECT_GE((counts[{"conv", 1, Phase::kForward}][kTime]), 3u);  // times go on
  std::vector<std::string> ids = DiagnosticIds();
  EXPECT_EQ(std::count(ids.begin(), ids.end(), "counters-busy"), 1);
  EXPECT_LE(driver_.sim_calls_(GetParam()), 8u);  // not at every step
  driver_.sim_fail_(GetParam(), 0, 0);
  // As soon as it is due, and then as the schedule has it.
  for (int i = 0; i < 40 && recorder_.armed().size() < 3; ++i) Run(100);
  EXPECT_GE(recorder_.armed().size(), 3u);
  counts = CheckSamples();
  EXPECT_GE((counts[{"conv", 1, Phase::kForward}][kDramBytes]), 1u);
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

INSTANTIATE_TEST_SUITE_P(Calls, Busy,
                         ::testing::Values("cuptiProfilerGetCounterAvailability", "cuptiRangeProfilerEnable",
                                           "cuptiRangeProfilerStart"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(SimulatedGpu, CountersThatAreNeverFreeAreGivenUp) {
  // Steps that cost nothing: the budget must not keep attempts from being made.
  settings_.overhead_percent = 50;
  Open("cupti13/libcupti.so.13");
  if (IsSkipped() || HasFatalFailure()) return;
  driver_.sim_fail_("cuptiProfilerGetCounterAvailability", CUPTI_ERROR_HARDWARE_BUSY, 1);
  source_->OnStepEnd(0);
  for (uint64_t step = 1; step < 600'000; ++step) source_->OnStepEnd(step);
  EXPECT_EQ(driver_.sim_calls_("cuptiProfilerGetCounterAvailability"), 12u);
  EXPECT_THAT(DiagnosticIds(), Contains("counters-busy-for-good"));
}

// torch.profiler: takes CUPTI's activity records without asking, and expects every record.
std::atomic<bool> g_profiles{false};
std::atomic<uint64_t> g_profiled_records{0};
CUptiResult (*g_next_record)(uint8_t*, size_t, CUpti_Activity**) = nullptr;

void CUPTIAPI ProfilerRequest(uint8_t** buffer, size_t* size, size_t* max_records) {
  *size = size_t{1} << 20;
  *buffer = static_cast<uint8_t*>(calloc(1, *size));
  *max_records = 0;
}
void CUPTIAPI ProfilerComplete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* record = nullptr;
  while (g_next_record(buffer, valid, &record) == CUPTI_SUCCESS) ++g_profiled_records;
}

class OtherTool : public SimulatedGpu {
 protected:
  void Find() {
    void* cupti = dlopen(SIM_FOLDER "/cupti13/libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
    ASSERT_NE(cupti, nullptr);
    register_ = reinterpret_cast<decltype(register_)>(dlsym(cupti, "cuptiActivityRegisterCallbacks"));
    enable_ = reinterpret_cast<decltype(enable_)>(dlsym(cupti, "cuptiActivityEnable"));
    disable_ = reinterpret_cast<decltype(disable_)>(dlsym(cupti, "cuptiActivityDisable"));
    flush_ = reinterpret_cast<decltype(flush_)>(dlsym(cupti, "cuptiActivityFlushAll"));
    g_next_record = reinterpret_cast<decltype(g_next_record)>(dlsym(cupti, "cuptiActivityGetNextRecord"));
  }
  // Runs steps until a window of ours is open.
  void RunIntoWindow() {
    for (bool open = false; !open;) {
      const uint64_t enabled = driver_.sim_calls_("cuptiActivityEnable");
      Launch(kernels_[0], 1, Phase::kForward, 200 + static_cast<uint32_t>(step_));  // so that there is always need
      Step();
      open = driver_.sim_calls_("cuptiActivityEnable") != enabled;
      ASSERT_LT(step_, 20'000u);
    }
  }
  void StartProfiler() {
    g_profiled_records = 0;
    register_(&ProfilerRequest, &ProfilerComplete);
    enable_(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  }
  void StopProfiler() {
    flush_(1);
    disable_(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  }
  uint64_t Times() {
    uint64_t times = 0;
    for (auto& [key, count] : CheckSamples()) times += count[kTime];
    return times;
  }
  decltype(&cuptiActivityRegisterCallbacks) register_ = nullptr;
  decltype(&cuptiActivityEnable) enable_ = nullptr;
  decltype(&cuptiActivityDisable) disable_ = nullptr;
  decltype(&cuptiActivityFlushAll) flush_ = nullptr;
};

// Three in a row are no accident.
TEST_F(OtherTool, ThatComesIntoEveryWindowHasTheRecordsToItselfInTheEnd) {
  settings_.overhead_percent = 10;
  Open("cupti13/libcupti.so.13");
  if (IsSkipped() || HasFatalFailure()) return;
  Find();
  for (int round = 0; round < 3; ++round) {
    ASSERT_FALSE(recorder_.HasDiagnostic("activity-taken"));
    RunIntoWindow();
    Launch(kernels_[0], 1, Phase::kForward);
    StartProfiler();
    Run(20);
    StopProfiler();
  }
  Run(100);
  EXPECT_TRUE(recorder_.HasDiagnostic("activity-taken"));
  const uint64_t enabled = driver_.sim_calls_("cuptiActivityEnable");
  for (int i = 0; i < 500; ++i) {
    Launch(kernels_[0], 1, Phase::kForward, 200 + static_cast<uint32_t>(step_));
    Step();
  }
  EXPECT_EQ(driver_.sim_calls_("cuptiActivityEnable"), enabled);
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

class Profiled : public OtherTool, public ::testing::WithParamInterface<bool> {};

// With `GetParam()` the injector tells that it runs, without we must see it ourselves.
TEST_P(Profiled, TheProgramsProfilerGetsEveryRecordAndOursGoOnAfterwards) {
  settings_.overhead_percent = 10;
  if (GetParam()) g_program_profiles = +[]() noexcept { return g_profiles.load(); };
  Open("cupti13/libcupti.so.13");
  if (IsSkipped() || HasFatalFailure()) return;
  Find();
  // Told of or not, it may come in the middle of one of our windows. Untold, the first comes before one.
  for (int round = 0; round < (GetParam() ? 3 : 2); ++round) {
    const bool before = !GetParam() && round == 0;
    before ? Run(7) : RunIntoWindow();
    if (HasFatalFailure()) return;
    Launch(kernels_[0], 1, Phase::kForward);
    StartProfiler();
    g_profiles = true;
    const uint64_t launched = launched_;
    Run(20);
    const uint64_t wanted = launched_ - launched;
    StopProfiler();
    g_profiles = false;
    EXPECT_GE(g_profiled_records, wanted) << round;
    EXPECT_LE(g_profiled_records, wanted + 1) << round;  // and the launch before it, which our buffer held
  }
  const uint64_t times = Times();
  for (int i = 0; i < 40 && Times() == times; ++i) {
    // A new shape, so that there is something to measure.
    for (int step = 0; step < 50; ++step) {
      Launch(kernels_[0], 1, Phase::kForward, 100);
      Step();
    }
  }
  EXPECT_GT(Times(), times);
  EXPECT_STREQ(driver_.sim_violations_(), "");
  std::vector<std::string> ids = DiagnosticIds();
  EXPECT_EQ(std::count(ids.begin(), ids.end(), "program-profiler"), GetParam() ? 1 : 0);
  EXPECT_THAT(ids, Not(Contains("activity-taken")));
}

INSTANTIATE_TEST_SUITE_P(Announced, Profiled, ::testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "Yes" : "No"); });

// --- The watchdog.

TEST_F(SimulatedGpu, AnArmedStepWithoutProgressIsSaidAtOnceAndDisarmsForGood) {
  g_stall_ns = 1'000'000;
  Open("cupti13/libcupti.so.13");
  if (IsSkipped() || HasFatalFailure()) return;
  while (driver_.sim_calls_("cuptiRangeProfilerStart") == driver_.sim_calls_("cuptiRangeProfilerStop")) Step();
  const uint64_t started = driver_.sim_calls_("cuptiRangeProfilerStart");
  const auto stalled = [&] { return recorder_.HasDiagnostic("stalled"); };
  // Nothing is launched. It is said although the step has not ended.
  for (int i = 0; i < 6000 && !stalled(); ++i) usleep(10'000);
  ASSERT_TRUE(stalled());
  Run(2000);
  EXPECT_EQ(driver_.sim_calls_("cuptiRangeProfilerStart"), started);
  EXPECT_STREQ(driver_.sim_violations_(), "");
  auto counts = CheckSamples();
  EXPECT_GE((counts[{"conv", 1, Phase::kForward}][kTime]), 3u);
}

// --- PM sampling: what the whole device does in a few steps that have no other collection.

class PmSampled : public SimulatedGpu, public ::testing::WithParamInterface<const char*> {};

TEST_P(PmSampled, AWindowHasTheBytesAndTheTensorTimeOfItsStep) {
  Open("cupti13/libcupti.so.13", GetParam());
  if (IsSkipped() || HasFatalFailure()) return;
  Run(60);
  ASSERT_GE(recorder_.pm_windows().size(), 1u);
  for (const PmWindow& window : recorder_.pm_windows()) {
    EXPECT_EQ(window.dram_read_bytes + window.dram_write_bytes, 5 * 1500u + 3 * 300u + 2 * 64u) << window.step;
    EXPECT_TRUE(window.has_tensor);
    EXPECT_EQ(window.tensor_active_ns, 5 * 100'000u + 3 * 50'000u);
    EXPECT_GE(window.duration_ns, window.tensor_active_ns);
    EXPECT_LE(window.bin_dram_bytes.size(), kMaxPmBins);
    // Nothing else was collected in that step.
    for (const auto& [step, group] : recorder_.armed()) EXPECT_NE(step, window.step);
  }
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_THAT(recorder_.drops(), IsEmpty());
  EXPECT_THAT(DiagnosticIds(), IsEmpty());
  EXPECT_EQ(driver_.sim_calls_("cuptiPmSamplingEnable"), driver_.sim_calls_("cuptiPmSamplingDisable"));
  CheckSamples();
}
INSTANTIATE_TEST_SUITE_P(Chips, PmSampled, ::testing::Values("GA100", "GH100"));

TEST_F(SimulatedGpu, PmSamplingIsBounded) {
  settings_.overhead_percent = 50;
  Open("cupti13/libcupti.so.13");
  if (IsSkipped() || HasFatalFailure()) return;
  Run(4000);
  EXPECT_LE(recorder_.pm_windows().size(), 12u);
  EXPECT_EQ(driver_.sim_calls_("cuptiPmSamplingStart"), recorder_.pm_windows().size());
}

TEST_F(SimulatedGpu, SeveralRanksHaveWindowsToo) {
  setenv("WORLD_SIZE", "2", 1);
  Open("cupti13/libcupti.so.13");
  if (IsSkipped() || HasFatalFailure()) return;
  Run(60);
  EXPECT_GE(recorder_.pm_windows().size(), 1u);
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

TEST_F(SimulatedGpu, AModeThatWasAskedForExcludesPmSampling) {
  settings_.mode = "range";
  Open("cupti13/libcupti.so.13");
  if (IsSkipped() || HasFatalFailure()) return;
  Run(40);
  EXPECT_EQ(driver_.sim_calls_("cuptiPmSamplingGetCounterAvailability"), 0u);
  EXPECT_GE(driver_.sim_calls_("cuptiRangeProfilerStart"), 1u);
}

TEST_F(SimulatedGpu, ThePmModeHasNoCounters) {
  settings_.mode = "pm";
  Open("cupti13/libcupti.so.13");
  if (IsSkipped() || HasFatalFailure()) return;
  Run(40);
  EXPECT_GE(recorder_.pm_windows().size(), 1u);
  EXPECT_EQ(driver_.sim_calls_("cuptiRangeProfilerEnable"), 0u);
  auto counts = CheckSamples();
  EXPECT_GE((counts[{"conv", 1, Phase::kForward}][kTime]), 3u);
}

TEST_F(SimulatedGpu, AnOverflowLosesTheWindowAndIsCounted) {
  settings_.mode = "pm";
  Open("cupti13/libcupti.so.13");
  if (IsSkipped() || HasFatalFailure()) return;
  driver_.sim_fail_("cuptiPmSamplingDecodeData", CUPTI_ERROR_OUT_OF_MEMORY, 0);
  Run(20);
  EXPECT_THAT(recorder_.pm_windows(), IsEmpty());
  EXPECT_THAT(recorder_.drops(), Contains(::testing::Key("windows of PM sampling that overflowed")));
  EXPECT_THAT(DiagnosticIds(), IsEmpty());
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

TEST_F(SimulatedGpu, AContextThatGoesAwayInAWindowTakesTheSessionWithIt) {
  settings_.mode = "pm";
  Open("cupti13/libcupti.so.13");
  if (IsSkipped() || HasFatalFailure()) return;
  while (driver_.sim_calls_("cuptiPmSamplingStart") == driver_.sim_calls_("cuptiPmSamplingStop") && step_ < 60)
    Step();
  ASSERT_LT(step_, 60u);
  EXPECT_EQ(driver_.destroy(driver_.context), CUDA_SUCCESS);
  EXPECT_EQ(driver_.sim_calls_("cuptiPmSamplingDisable"), driver_.sim_calls_("cuptiPmSamplingEnable"));
  source_->OnStepEnd(step_++);
  EXPECT_THAT(DiagnosticIds(), Contains("context-gone"));
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

#ifdef RFINJECT_COUNT_ALLOCATIONS
// A recorder that costs nothing, so that what is counted is the callback's.
class SilentRecorder : public FakeRecorder {
 public:
  void Record(const LaunchRecord&) noexcept override { ++records; }
  uint64_t records = 0;
};

TEST_F(SimulatedGpu, TheUnarmedCallbackAllocatesNothing) {
  Open("cupti13/libcupti.so.13");
  if (IsSkipped() || HasFatalFailure()) return;
  SilentRecorder silent;
  source_ = MakeHardwareSource(settings_, silent);
  source_->OnStepEnd(0);
  auto callback = reinterpret_cast<CUpti_CallbackFunc>(driver_.sim_callback_());
  ASSERT_NE(callback, nullptr);
  t_site = Site{1, 2, 3, Phase::kForward};
  cuLaunchKernel_params params = {};
  params.f = reinterpret_cast<CUfunction>(&kernels_[0].kernel);
  CUpti_CallbackData data = {};
  data.functionParams = &params;
  data.symbolName = "kernel";
  data.context = driver_.context;
  auto launch = [&](unsigned grid) {
    params.gridDimX = grid;
    data.callbackSite = CUPTI_API_ENTER;
    callback(nullptr, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &data);
    data.callbackSite = CUPTI_API_EXIT;
    callback(nullptr, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &data);
  };
  for (unsigned grid = 1; grid <= 100; ++grid) launch(grid);  // now the thread knows them
  t_counting = true;
  for (int round = 0; round < 100; ++round) {
    for (unsigned grid = 1; grid <= 100; ++grid) launch(grid);
  }
  t_counting = false;
  EXPECT_EQ(t_allocations, 0u);
  EXPECT_EQ(silent.records, 10100u);
  // That the counter counts: a launch that is new to the thread does allocate.
  t_counting = true;
  launch(101);
  t_counting = false;
  EXPECT_GT(t_allocations, 0u);
}
#endif

// --- Every function fails with every code that it may fail with, once and for ever. The program must not notice.

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kCodes[] = {1, 35, 999};  // a forked process costs much more here
#else
constexpr int kCodes[] = {1, 7, 8, 9, 14, 15, 26, 27, 33, 35, 36, 38, 39, 40, 41, 43, 45, 46, 999};
#endif

// Perfworks has numbers of its own: of NVPA_Status all that its header does not call unused.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kPerfworksCodes[] = {1, 17};
#else
constexpr int kPerfworksCodes[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 14, 15, 17, 20, 22, 24, 25, 999};
#endif

// What is called only when counting layer by layer.
bool NeedsLayers(const std::string& call) {
  return call == "cuptiRangeProfilerPushRange" || call == "cuptiRangeProfilerPopRange" ||
         call == "cuptiRangeProfilerCounterDataGetRangeInfo" || call == "cuptiProfilerPushRange" ||
         call == "cuptiProfilerPopRange" || call == "NVPW_Profiler_CounterData_GetRangeDescriptions";
}

// What is called only when a second device is in use.
bool NeedsTwoDevices(const std::string& call) {
  return call == "cuptiGetDeviceId" || call == "cuCtxPushCurrent" || call == "cuCtxPopCurrent";
}

class Failing : public SimulatedGpu, public ::testing::WithParamInterface<const char*> {
 protected:
  void TheProgramDoesNotNotice(const char* cupti, const char* chip);
};

TEST_P(Failing, TheProgramDoesNotNotice) { TheProgramDoesNotNotice("cupti13/libcupti.so.13", "GA100"); }

class FailingLegacy : public Failing {};

TEST_P(FailingLegacy, TheProgramDoesNotNotice) { TheProgramDoesNotNotice("cupti124/libcupti.so.12", "GV100"); }

void Failing::TheProgramDoesNotNotice(const char* cupti, const char* chip) {
  Open(cupti, chip);
  if (IsSkipped() || HasFatalFailure()) return;
  const bool perfworks = std::string(GetParam()).rfind("NVPW_", 0) == 0;
  for (int code : perfworks ? std::span<const int>(kPerfworksCodes) : std::span<const int>(kCodes)) {
    for (int every : {0, 1}) {
      // For ever is as good as once for most codes, and costs as much.
      if (every != 0 && code != 1 && code != (perfworks ? 17 : 35)) continue;
      // A process each: the source lives as long as its process.
      const pid_t child = fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        if (NeedsLayers(GetParam())) setenv("WORLD_SIZE", "2", 1);
        if (NeedsTwoDevices(GetParam())) RunOnASecond();
        driver_.sim_fail_(GetParam(), code, every);
        for (int step = 0; step < 32; ++step) {  // the first rotation
          if (NeedsTwoDevices(GetParam())) RunOnASecond();
          Step();
        }
        source_->Stop();
        const bool called = driver_.sim_calls_(GetParam()) > 0;
        CheckSamples();  // what there is must be right
        CheckShares();
        bool said = true;
        for (const auto& diagnostic : recorder_.diagnostics()) said = said && !diagnostic.text.empty();
        // Violations: a refused call may leave CUPTI in a state that the next call must respect.
        const bool clean = driver_.sim_violations_()[0] == '\0';
        if (!clean) fprintf(stderr, "%s", driver_.sim_violations_());
        _exit(HasFailure() ? 10 : failed_ != 0 ? 11 : !called ? 12 : !said ? 13 : !clean ? 14 : 0);
      }
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      EXPECT_TRUE(WIFEXITED(status)) << GetParam() << " returning " << code << ": signal " << WTERMSIG(status);
      EXPECT_EQ(WEXITSTATUS(status), 0) << GetParam() << " returning " << code << (every ? " always" : " once");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Calls, Failing,
    ::testing::Values(
        "cuptiGetVersion", "cuptiSubscribe_v2", "cuptiEnableCallback", "cuptiActivitySetAttribute",
        "cuptiActivityRegisterCallbacks", "cuptiActivityEnable", "cuptiActivityDisable", "cuptiActivityFlushAll",
        "cuptiActivityGetNextRecord", "cuptiActivityGetNumDroppedRecords", "cuptiProfilerInitialize",
        "cuptiDeviceGetChipName", "cuptiProfilerGetCounterAvailability", "cuptiProfilerHostInitialize",
        "cuptiProfilerHostDeinitialize", "cuptiProfilerHostGetBaseMetrics", "cuptiProfilerHostConfigAddMetrics",
        "cuptiProfilerHostGetConfigImageSize", "cuptiProfilerHostGetConfigImage", "cuptiProfilerHostGetNumOfPasses",
        "cuptiProfilerHostEvaluateToGpuValues", "cuptiRangeProfilerEnable", "cuptiRangeProfilerDisable",
        "cuptiRangeProfilerGetCounterDataSize", "cuptiRangeProfilerCounterDataImageInitialize",
        "cuptiRangeProfilerSetConfig", "cuptiRangeProfilerStart", "cuptiRangeProfilerStop",
        "cuptiRangeProfilerDecodeData", "cuptiRangeProfilerGetCounterDataInfo", "cuptiRangeProfilerPushRange",
        "cuptiRangeProfilerPopRange", "cuptiRangeProfilerCounterDataGetRangeInfo",
        "cuptiPmSamplingGetCounterAvailability", "cuptiPmSamplingEnable", "cuptiPmSamplingDisable",
        "cuptiPmSamplingSetConfig", "cuptiPmSamplingGetCounterDataSize", "cuptiPmSamplingCounterDataImageInitialize",
        "cuptiPmSamplingStart", "cuptiPmSamplingStop", "cuptiPmSamplingDecodeData",
        "cuptiPmSamplingGetCounterDataInfo", "cuptiPmSamplingCounterDataGetSampleInfo", "cuCtxGetCurrent",
        "cuptiGetDeviceId", "cuCtxPushCurrent", "cuCtxPopCurrent", "cuCtxGetDevice", "cuCtxSynchronize",
        "cuMemGetInfo", "cuDriverGetVersion", "cuDeviceGetName", "cuDeviceTotalMem", "cuDeviceGetAttribute"),
    [](const auto& info) { return std::string(info.param); });

INSTANTIATE_TEST_SUITE_P(
    LegacyCalls, FailingLegacy,
    ::testing::Values(
        "cuptiSubscribe", "cuptiProfilerInitialize", "cuptiDeviceGetChipName", "cuptiProfilerGetCounterAvailability",
        "cuptiProfilerCounterDataImageCalculateSize", "cuptiProfilerCounterDataImageInitialize",
        "cuptiProfilerCounterDataImageCalculateScratchBufferSize",
        "cuptiProfilerCounterDataImageInitializeScratchBuffer", "cuptiProfilerBeginSession",
        "cuptiProfilerEndSession", "cuptiProfilerSetConfig", "cuptiProfilerUnsetConfig", "cuptiProfilerBeginPass",
        "cuptiProfilerEndPass", "cuptiProfilerEnableProfiling", "cuptiProfilerDisableProfiling",
        "cuptiProfilerFlushCounterData", "cuptiProfilerPushRange", "cuptiProfilerPopRange",
        "NVPW_Profiler_CounterData_GetRangeDescriptions", "cuDeviceGetAttribute", "NVPW_InitializeHost",
        "NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize", "NVPW_CUDA_MetricsEvaluator_Initialize",
        "NVPW_MetricsEvaluator_GetMetricNames", "NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest",
        "NVPW_MetricsEvaluator_GetMetricRawDependencies", "NVPW_MetricsEvaluator_SetDeviceAttributes",
        "NVPW_MetricsEvaluator_EvaluateToGpuValues", "NVPW_CounterData_GetNumRanges",
        "NVPW_CUDA_RawMetricsConfig_Create_V2", "NVPW_RawMetricsConfig_Destroy",
        "NVPW_RawMetricsConfig_SetCounterAvailability", "NVPW_RawMetricsConfig_BeginPassGroup",
        "NVPW_RawMetricsConfig_AddMetrics", "NVPW_RawMetricsConfig_EndPassGroup",
        "NVPW_RawMetricsConfig_GenerateConfigImage", "NVPW_RawMetricsConfig_GetConfigImage",
        "NVPW_RawMetricsConfig_GetNumPasses", "NVPW_CUDA_CounterDataBuilder_Create",
        "NVPW_CounterDataBuilder_Destroy", "NVPW_CounterDataBuilder_AddMetrics",
        "NVPW_CounterDataBuilder_GetCounterDataPrefix"),
    [](const auto& info) { return std::string(info.param); });

// The list above must be complete: what a good run calls is on it.
void ExpectAllAreMadeToFail(const Driver& driver) {
  std::vector<std::string> known;
  for (size_t i = 0; driver.sim_function_(i) != nullptr; ++i) known.push_back(driver.sim_function_(i));
  const auto* unit = ::testing::UnitTest::GetInstance();
  for (const std::string& name : known) {
    if (name.rfind("cuLaunch", 0) == 0) continue;  // the program's own
    bool found = false;
    for (int i = 0; i < unit->total_test_suite_count(); ++i) {
      const auto* suite = unit->GetTestSuite(i);
      if (std::string(suite->name()).find("/Failing") == std::string::npos) continue;
      for (int k = 0; k < suite->total_test_count(); ++k) {
        found = found || std::string(suite->GetTestInfo(k)->name()) == "TheProgramDoesNotNotice/" + name;
      }
    }
    EXPECT_TRUE(found) << name;
  }
}

TEST_F(SimulatedGpu, EveryCallIsMadeToFailSomewhere) {
  setenv("WORLD_SIZE", "2", 1);  // layer by layer calls all that kernel by kernel does, and more
  Open("cupti13/libcupti.so.13");
  if (IsSkipped() || HasFatalFailure()) return;
  for (int step = 0; step < 60; ++step) {
    RunOnASecond();
    Step();
  }
  EXPECT_GT(driver_.sim_calls_("cuptiRangeProfilerPushRange"), 0u);
  ExpectAllAreMadeToFail(driver_);
}

TEST_F(SimulatedGpu, EveryLegacyCallIsMadeToFailSomewhere) {
  setenv("WORLD_SIZE", "2", 1);
  Open("cupti124/libcupti.so.12", "GV100");
  if (IsSkipped() || HasFatalFailure()) return;
  Run(60);
  ExpectAllAreMadeToFail(driver_);
}

}  // namespace
}  // namespace rfinject
