#include "collector/cupti/launch_keys.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <thread>
#include <vector>

#include "collector/native_stack.h"
#include "collector/testing/fake_recorder.h"

namespace rfinject::cupti {
namespace {

int g_stacks = 0;
size_t TakeStack(std::span<NativeFrame> frames) noexcept {
  ++g_stacks;
  frames[0] = {1, 0x1234};
  return 1;
}

class StackRecorder : public rfinject::testing::FakeRecorder {
 public:
  void NoteStack(const LaunchIdentity& identity, std::span<const NativeFrame>) noexcept override {
    noted.push_back(identity);
  }
  std::vector<LaunchIdentity> noted;
};

// What the launch callback asks for every launch: a kernel that is launched outside modules and operators (by a
// CUDA extension, a C++ library) gets its native stack at the first launch of each key.
TEST(LaunchKeysTest, AKeyInNoLayerGetsItsNativeStackOnce) {
  g_native_stack.store(TakeStack);
  StackRecorder recorder;
  LaunchKeys keys;
  int function = 0;
  LaunchCall call;
  call.function = &function;
  call.grid[0] = 4;
  const LaunchIdentity* identity = nullptr;
  for (int i = 0; i < 50; ++i) keys.Find(call, "my_kernel", recorder, &identity);
  EXPECT_EQ(g_stacks, 1);
  ASSERT_EQ(recorder.noted.size(), 1u);
  EXPECT_EQ(recorder.noted[0], *identity);

  call.grid[0] = 5;  // another key
  keys.Find(call, "my_kernel", recorder, &identity);
  EXPECT_EQ(g_stacks, 2);

  call.site.layer = 7;
  keys.Find(call, "my_kernel", recorder, &identity);
  EXPECT_EQ(g_stacks, 2);
  g_native_stack.store(nullptr);
}

TEST(LaunchKeysTest, CopiesHaveNoCounters) {
  rfinject::testing::FakeRecorder recorder;
  LaunchKeys keys;
  const LaunchIdentity* identity = nullptr;
  LaunchCall call;
  const uint32_t kernel = keys.Find(call, "my_kernel", recorder, &identity);
  call.transfer = true;
  call.function = &keys;
  const uint32_t copy = keys.Find(call, "cuMemcpyAsync", recorder, &identity);
  EXPECT_TRUE(keys.HasCounters(kernel));
  EXPECT_FALSE(keys.HasCounters(copy));
  EXPECT_FALSE(keys.HasCounters(LaunchKeys::kNoKey));
}

TEST(LaunchKeysTest, CommunicationIsToldByTheNamesOfNcclsKernels) {
  rfinject::testing::FakeRecorder recorder;
  LaunchKeys keys;
  char function = 0;
  const auto phase_of = [&](const char* name) {
    LaunchCall call;
    call.function = &function;
    call.grid[0] = static_cast<uint32_t>(keys.size()) + 1;
    call.site.phase = Phase::kBackward;
    const LaunchIdentity* identity = nullptr;
    keys.Find(call, name, recorder, &identity);
    return identity->site.phase;
  };
  // As CUPTI spells them: mangled.
  EXPECT_EQ(phase_of("_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE"),
            Phase::kCommunication);
  EXPECT_EQ(phase_of("ncclKernel_AllReduce_RING_LL_Sum_float"), Phase::kCommunication);
  EXPECT_EQ(phase_of("standin_ncclDevKernel_AllReduce"), Phase::kCommunication);
  EXPECT_EQ(phase_of("_Z7reducerP4nccl"), Phase::kBackward);
  EXPECT_EQ(phase_of("_ZN2at6native4nccl6kernelEv"), Phase::kBackward);
}

TEST(LaunchKeysTest, ALossScalersUpdateIsToldByItsKernel) {
  rfinject::testing::FakeRecorder recorder;
  LaunchKeys keys;
  const auto is_update = [&](const char* name, uint32_t blocks) {
    LaunchCall call;
    call.function = name;
    call.grid[0] = blocks;
    const LaunchIdentity* identity = nullptr;
    keys.Find(call, name, recorder, &identity);
    return keys.IsScaleUpdate(*identity);
  };
  const char* update = "_ZN2at6native28amp_update_scale_cuda_kernelEPfPiPKfddi";
  EXPECT_FALSE(is_update("_ZN2at6native29vectorized_elementwise_kernelEv", 1));
  EXPECT_TRUE(is_update(update, 1));
  EXPECT_TRUE(is_update(update, 2));
  EXPECT_TRUE(is_update(update, 1));
  EXPECT_FALSE(is_update("_ZN2at6native29vectorized_elementwise_kernelEv", 1));
}

// The destructor of another library's thread data: what it allocates may lie where the thread's cache lay.
void LaunchManyKernels(void* keys) {
  std::vector<char> allocated(100 << 10, 'a');
  rfinject::testing::FakeRecorder recorder;
  for (uint32_t i = 1; i <= 100; ++i) {
    LaunchCall call;
    call.grid[0] = i;
    const LaunchIdentity* identity = nullptr;
    static_cast<LaunchKeys*>(keys)->Find(call, "late", recorder, &identity);
    EXPECT_EQ(identity->grid[0], i);
  }
  EXPECT_EQ(std::count(allocated.begin(), allocated.end(), 'a'), std::ssize(allocated));
}

TEST(LaunchKeysTest, AThreadMayLaunchWhenItsCacheWasFreed) {
  rfinject::testing::FakeRecorder recorder;
  LaunchKeys keys;
  const LaunchIdentity* identity = nullptr;
  keys.Find({}, "early", recorder, &identity);
  // Of two keys the destructor of the one that was made first runs first.
  pthread_key_t later;
  ASSERT_EQ(pthread_key_create(&later, &LaunchManyKernels), 0);
  std::thread([&] {
    keys.Find({}, "early", recorder, &identity);
    pthread_setspecific(later, &keys);
  }).join();
  EXPECT_EQ(keys.size(), 101u);
  pthread_key_delete(later);
}

}  // namespace
}  // namespace rfinject::cupti
