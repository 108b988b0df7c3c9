// File: callback_cost_test.cc
//
// Tests what the callback of a launch costs a step that is not armed: it must allocate nothing.
#include <gtest/gtest.h>

#include <cstdlib>

#include "integration_tests/simulated_gpu/testing/fixture.h"

#ifndef __SANITIZE_ADDRESS__
#ifndef __SANITIZE_THREAD__
#define RFINJECT_COUNT_ALLOCATIONS 1
thread_local bool t_counting = false;
thread_local uint64_t t_allocations = 0;
// The names under which glibc has the functions that these replace.
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

namespace rfinject {
namespace {

#ifdef RFINJECT_COUNT_ALLOCATIONS
// A recorder that allocates nothing, so that every allocation that is counted is the callback's.
class SilentRecorder : public FakeRecorder {
 public:
  void Record(const LaunchRecord&) noexcept override { ++records; }
  uint64_t records = 0;
};

TEST_F(SimulatedGpu, TheUnarmedCallbackAllocatesNothing) {
  SilentRecorder silent;
  settings_.operators = "none";  // a step whose operators are observed notes what it launches
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
  // This shows that the counter counts: a launch that is new to the thread does allocate.
  t_counting = true;
  launch(101);
  t_counting = false;
  EXPECT_GT(t_allocations, 0u);
  source_->Stop();
}
#endif

}  // namespace
}  // namespace rfinject
