// File: fixture.cc
#include "integration_tests/simulated_gpu/testing/fixture.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <set>
#include <thread>

#include "proto/wire/conditions.h"

#ifdef __SANITIZE_ADDRESS__
// The source, its buffers and the simulator's contexts live as long as the process on purpose, because something may
// still call them.
extern "C" int __lsan_is_turned_off() { return 1; }
#endif

namespace rfinject {

thread_local Site t_site;

namespace {

void ThreadSite(Site* site) noexcept { *site = t_site; }

}  // namespace

void Driver::Open(const char* cupti) {
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
#undef SIM_FUNCTIONS

std::vector<TestKernel> KernelsOf(const std::string& chip) {
  if (chip == "GV100") {
    std::vector<TestKernel> kernels = KernelsOf("GA100");
    kernels[0].metrics[2].name = "sm__ops_path_tensor_src_fp16_dst_fp32.sum";
    kernels[0].flop = {};
    kernels[0].flop[static_cast<size_t>(Precision::kFp16Tensor)] = 7'000'000;
    kernels[1].metrics[1].name = "sm__ops_path_tensor_src_fp16_dst_fp16.sum";
    return kernels;
  }
  const char* tf32 = chip == "GH100" ? "sm__ops_path_tensor_op_hgmma_src_tf32_dst_fp32_sparsity_off.sum"
                                     : "sm__ops_path_tensor_src_tf32_dst_fp32_sparsity_off.sum";
  // FP16 is counted by metrics of two groups: of this kernel the second counts something.
  const char* fp16 = chip == "GH100" ? "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp16_sparsity_off.sum"
                                     : "sm__ops_path_tensor_src_fp16_dst_fp16_sparsity_off.sum";
  std::vector<TestKernel> kernels(3);
  kernels[0] = {"conv", 100'000, {{"dram__bytes_read.sum", 1000}, {"dram__bytes_write.sum", 500}, {tf32, 7'000'000}}};
  kernels[0].flop[static_cast<size_t>(Precision::kTf32Tensor)] = 7'000'000;
  kernels[0].dram = 1500;
  kernels[1] = {"gemm", 50'000, {{"dram__bytes_read.sum", 300}, {fp16, 1'000'024}}};
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

void Bind(std::vector<TestKernel>* kernels) {
  for (TestKernel& kernel : *kernels) {
    kernel.kernel = {kernel.name.c_str(), kernel.ns, kernel.metrics.data(), kernel.metrics.size(), nullptr};
  }
}

void SimulatedGpu::SetUp() {
  if (access(SIM_REAL_CUPTI_FOLDER "/libcupti.so.13", R_OK) != 0) GTEST_SKIP() << "note: no real CUPTI to plan with";
  g_site_function.store(&ThreadSite);
  ASSERT_NO_FATAL_FAILURE(driver_.Open(cupti_));
  driver_.sim_set_chip_(chip_.c_str(), chip_ == "GH100" ? 9 : chip_ == "GV100" ? 7 : 8, 0);
  // Our own thread's time is the machine's.
  driver_.sim_set_time_(/*real=*/1, /*costs=*/0);
  kernels_ = KernelsOf(chip_);
  Bind(&kernels_);
  source_ = MakeHardwareSource(settings_, recorder_);
  ASSERT_NE(source_, nullptr);
}

CUresult SimulatedGpu::Launch(const TestKernel& kernel, uint32_t layer, Phase phase, uint32_t grid) {
  t_site = Site{layer, 0, 0, phase};
  return driver_.cuLaunchKernel_(reinterpret_cast<CUfunction>(const_cast<SimKernel*>(&kernel.kernel)), grid, 1, 1,
                                 128, 1, 1, 0, nullptr, nullptr, nullptr);
}

CUresult SimulatedGpu::LaunchEx(const TestKernel& kernel, uint32_t layer, Phase phase) {
  t_site = Site{layer, 0, 0, phase};
  CUlaunchConfig config = {};
  config.gridDimX = 16;
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 256;
  config.blockDimY = config.blockDimZ = 1;
  return driver_.cuLaunchKernelEx_(&config, reinterpret_cast<CUfunction>(const_cast<SimKernel*>(&kernel.kernel)),
                                   nullptr, nullptr);
}

void SimulatedGpu::Step() {
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
  std::thread other(backward, 2);
  // At once, or one after the other: threads that always launch at once would leave no launch to be counted alone.
  if (step_ % 2 != 0) other.join();
  std::thread third(backward, 1);
  if (other.joinable()) other.join();
  third.join();
  failed_ += Launch(kernels_[2], 0, Phase::kOptimizer) != CUDA_SUCCESS;
  launched_ += 10;
  driver_.sim_spend_(host_ns_);
  source_->OnStepEnd(step_++);
  recorder_.EndStep(1);
}

void SimulatedGpu::RunOnASecond() {
  CUcontext second = nullptr;
  driver_.cuDevicePrimaryCtxRetain_(&second, 1);
  driver_.cuCtxSetCurrent_(second);
  failed_ += Launch(kernels_[0], 7, Phase::kForward) != CUDA_SUCCESS;
  driver_.cuCtxSetCurrent_(driver_.context);
}

uint64_t SimulatedGpu::ValueOf(const std::string& name, uint32_t metric) const {
  for (const TestKernel& kernel : kernels_) {
    if (kernel.name == name) return metric == kDramBytes ? kernel.dram : kernel.flop[metric - kFlopFirst];
  }
  ADD_FAILURE() << name;
  return 0;
}

auto SimulatedGpu::CountSamples() const -> Counts {
  Counts counts;
  for (const LaunchRecord& record : recorder_.CopyRecords()) {
    auto& count =
        counts[{recorder_.Name(record.identity.kernel), record.identity.site.layer, record.identity.site.phase}];
    count[0] += record.launches;
    for (uint32_t i = 0; i < record.sample_count; ++i) ++count[record.samples[i].metric];
  }
  return counts;
}

bool SimulatedGpu::IsComplete(uint64_t bytes) {
  // Of a few samples the solver makes one for a kernel that is shorter than a sample.
  if (step_ % 8 != 0) return false;
  Counts counts = CountSamples();
  if (counts.size() < 8) return false;
  for (auto& [key, count] : counts) {
    if (count[kTime] < 3 || count[kDramBytes] < (std::get<0>(key) == "relu" ? 0 : bytes)) return false;
    for (const Precision precision : {Precision::kFp64, Precision::kFp32, Precision::kFp16, Precision::kFp16Tensor}) {
      if (count[kFlopFirst + static_cast<uint32_t>(precision)] == 0) return false;
    }
  }
  return true;
}

auto SimulatedGpu::CheckSamples() -> Counts {
  for (const LaunchRecord& record : recorder_.CopyRecords()) {
    const std::string name = recorder_.Name(record.identity.kernel);
    const TestKernel* kernel = nullptr;
    for (const TestKernel& candidate : kernels_) {
      if (candidate.name == name) kernel = &candidate;
    }
    if (kernel == nullptr) {
      ADD_FAILURE() << "a kernel that nobody launched: " << name;
      continue;
    }
    for (uint32_t i = 0; i < record.sample_count; ++i) {
      const Sample& sample = record.samples[i];
      if (sample.metric == kTime) {
        EXPECT_EQ(sample.value, kernel->ns) << name;
      }
      if (sample.metric == kDramBytes) {
        const double bytes = static_cast<double>(kernel->dram);
        EXPECT_NEAR(static_cast<double>(sample.value), bytes, 0.15 * bytes + 2) << name;
      }
      if (sample.metric >= kFlopFirst && sample.metric < kFlopFirst + kPrecisionCount) {
        EXPECT_EQ(sample.value, kernel->flop[sample.metric - kFlopFirst])
            << name << " " << kPrecisionNames[sample.metric - kFlopFirst];
      }
    }
  }
  return CountSamples();
}

std::vector<std::string> SimulatedGpu::DiagnosticIds() const {
  std::vector<std::string> ids;
  for (const auto& diagnostic : recorder_.diagnostics()) ids.push_back(diagnostic.id);
  return ids;
}

}  // namespace rfinject
