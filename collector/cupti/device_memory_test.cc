#include "collector/cupti/device_memory.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "collector/cupti/launch_call.h"

namespace rfinject::cupti {
namespace {

// The driver's side: what it answers, and how often it was asked.
size_t g_free = 0;
int g_asked = 0;
CUresult g_result = CUDA_SUCCESS;
CUcontext g_current = nullptr;
constexpr size_t kTotal = 1000;

CUresult CUDAAPI MemGetInfo(size_t* free, size_t* total) {
  ++g_asked;
  *free = g_free;
  *total = kTotal;
  return g_result;
}
CUresult CUDAAPI GetCurrent(CUcontext* context) {
  *context = g_current;
  return CUDA_SUCCESS;
}

class DeviceMemoryTest : public ::testing::Test {
 protected:
  DeviceMemoryTest() {
    g_free = 900;
    g_asked = 0;
    g_result = CUDA_SUCCESS;
    g_current = context_;
    api_.cuMemGetInfo = &MemGetInfo;
    api_.cuCtxGetCurrent = &GetCurrent;
  }

  void Call(CUpti_CallbackId cbid, const void* params, CUresult result = CUDA_SUCCESS) {
    EXPECT_EQ(ListOf(cbid), CallList::kMemory);
    CUpti_CallbackData data = {};
    data.context = context_;
    data.functionParams = params;
    data.callbackSite = CUPTI_API_ENTER;
    memory_.OnCall(cbid, data);
    data.callbackSite = CUPTI_API_EXIT;
    data.functionReturnValue = &result;
    memory_.OnCall(cbid, data);
  }
  void Allocate(CUdeviceptr address, size_t bytes, CUresult result = CUDA_SUCCESS) {
    cuMemAlloc_v2_params params = {&address, bytes};
    Call(CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2, &params, result);
    if (result == CUDA_SUCCESS) g_free -= bytes;
  }
  void Free(CUdeviceptr address, size_t bytes) {
    cuMemFree_v2_params params = {address};
    Call(CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2, &params);
    g_free += bytes;
  }
  // Ends a step. Returns what is in use and the peak; 0, 0 when nothing is known.
  std::pair<uint64_t, uint64_t> Step(int64_t after_ns = 100'000'000) {
    now_ += after_ns;
    DeviceMemory::Reading reading;
    if (!memory_.OnStepEnd(now_, &reading)) return {0, 0};
    return {reading.in_use, reading.peak};
  }

  Api api_;
  CUcontext context_ = reinterpret_cast<CUcontext>(&api_);
  DeviceMemory memory_{api_, context_};
  int64_t now_ = 1'000'000'000'000;
};

using Pair = std::pair<uint64_t, uint64_t>;

TEST_F(DeviceMemoryTest, WhatIsFreedWithinTheStepIsInItsPeak) {
  EXPECT_EQ(Step(), Pair(100, 100));
  Allocate(1, 50);
  Allocate(2, 200);
  Free(2, 200);
  EXPECT_EQ(Step(), Pair(150, 350));
  // The next step begins where this one ended.
  EXPECT_EQ(Step(), Pair(150, 150));
  Free(1, 50);
  EXPECT_EQ(Step(), Pair(100, 150));
}

TEST_F(DeviceMemoryTest, PitchedAndVirtualMemoryCount) {
  EXPECT_EQ(Step(), Pair(100, 100));
  CUdeviceptr address = 7;
  size_t pitch = 32;
  cuMemAllocPitch_v2_params pitched = {&address, &pitch, 20, 10, 4};
  Call(CUPTI_DRIVER_TRACE_CBID_cuMemAllocPitch_v2, &pitched);
  g_free -= 320;
  CUmemGenericAllocationHandle handle = 8;
  CUmemAllocationProp prop = {};
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  cuMemCreate_params created = {&handle, 64, &prop, 0};
  Call(CUPTI_DRIVER_TRACE_CBID_cuMemCreate, &created);
  cuMemRelease_params released = {handle};
  Call(CUPTI_DRIVER_TRACE_CBID_cuMemRelease, &released);
  prop.location.type = CU_MEM_LOCATION_TYPE_HOST;
  Call(CUPTI_DRIVER_TRACE_CBID_cuMemCreate, &created);
  EXPECT_EQ(Step(), Pair(420, 484));
}

TEST_F(DeviceMemoryTest, AFailedAllocationIsNone) {
  Step();
  Allocate(1, 500, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(Step(), Pair(100, 100));
}

TEST_F(DeviceMemoryTest, AnotherProcessShowsWithinASecond) {
  Step();
  g_free -= 30;
  EXPECT_EQ(Step(), Pair(100, 100));
  EXPECT_EQ(g_asked, 1);
  EXPECT_EQ(Step(1'000'000'000), Pair(130, 130));
  EXPECT_EQ(g_asked, 2);
}

TEST_F(DeviceMemoryTest, TheDriverIsAskedOnlyWhenSomethingChanged) {
  for (int step = 0; step < 100; ++step) Step(1'000'000);
  EXPECT_EQ(g_asked, 1);
  Allocate(1, 10);
  EXPECT_EQ(Step(), Pair(110, 110));
  EXPECT_EQ(g_asked, 2);
}

TEST_F(DeviceMemoryTest, FreeingWhatWasThereBeforeUsNeedsTheDriver) {
  Step();
  Free(99, 40);
  EXPECT_EQ(Step(), Pair(60, 100));
}

TEST_F(DeviceMemoryTest, AnotherContextsMemoryIsNotCounted) {
  Step();
  CUpti_CallbackData data = {};
  CUdeviceptr address = 1;
  cuMemAlloc_v2_params params = {&address, 77};
  CUresult ok = CUDA_SUCCESS;
  data.functionParams = &params;
  data.functionReturnValue = &ok;
  data.callbackSite = CUPTI_API_EXIT;
  memory_.OnCall(CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2, data);
  EXPECT_EQ(Step(), Pair(100, 100));
  g_current = nullptr;
  EXPECT_EQ(Step(2'000'000'000), Pair(0, 0));
  g_current = context_;
  EXPECT_EQ(Step(), Pair(100, 100));
}

TEST_F(DeviceMemoryTest, ADriverThatFailsIsNotAskedAgain) {
  g_result = CUDA_ERROR_INVALID_CONTEXT;
  EXPECT_EQ(Step(), Pair(0, 0));
  EXPECT_EQ(Step(2'000'000'000), Pair(0, 0));
  EXPECT_EQ(g_asked, 1);
}

TEST_F(DeviceMemoryTest, ThreadsMayAllocateAtOnce) {
  Step();
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([this, thread] {
      for (uint64_t i = 0; i < 500; ++i) {
        CUdeviceptr address = 1 + thread * 1000 + i;
        cuMemAlloc_v2_params params = {&address, 1};
        Call(CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2, &params);
        cuMemFree_v2_params freed = {address};
        if (i % 2 == 0) Call(CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2, &freed);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  g_free = 0;  // the driver's answer comes first
  const Pair now = Step();
  EXPECT_EQ(now.first, kTotal);
  EXPECT_LE(now.second, kTotal + 4);
  EXPECT_GE(now.second, kTotal);
}

TEST(DeviceMemoryCalls, OnlyMemoryCalls) {
  for (uint32_t cbid : kMemoryCbids) EXPECT_EQ(ListOf(cbid), CallList::kMemory);
  EXPECT_NE(ListOf(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel), CallList::kMemory);
  EXPECT_NE(ListOf(CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2), CallList::kMemory);
  EXPECT_NE(ListOf(1u << 20), CallList::kMemory);
}

}  // namespace
}  // namespace rfinject::cupti
