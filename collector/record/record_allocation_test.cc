// Record must not allocate after a thread's first call. A program of its own, since it replaces malloc.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>

#include "collector/record/trace_recorder.h"
#include "collector/testing/trace_content.h"

namespace {

// Allocations are counted for the calling thread only, since the writer thread may allocate.
thread_local uint64_t t_allocations = 0;
void CountAllocation(const volatile void*, size_t) { ++t_allocations; }

}  // namespace

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// The sanitizers' allocators have hooks of their own.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, size_t),
                                                         void (*)(const volatile void*));
static void Ignore(const volatile void*) {}
static void InstallHooks() { __sanitizer_install_malloc_and_free_hooks(&CountAllocation, &Ignore); }
#else
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* malloc(size_t size) {
  CountAllocation(nullptr, size);
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  CountAllocation(nullptr, count * size);
  return __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) {
  CountAllocation(nullptr, size);
  return __libc_realloc(memory, size);
}
}
static void InstallHooks() {}
#endif

namespace rfinject {
namespace {

TEST(RecordAllocation, NoneAfterAThreadsFirstCall) {
  InstallHooks();
  const testing::TemporaryFolder folder;
  auto* settings = new Settings;
  settings->output = folder.path() + "/t.rfx";
  settings->verbosity = -1;
  Recorder& recorder = *new TraceRecorder(*settings);
  recorder.Activate();
  LaunchRecord record;
  record.identity.kernel = recorder.Intern("k");
  record.sample_count = 1;
  record.samples[0] = {kTime, 1};

  const uint64_t at_start = t_allocations;
  void* volatile seen = std::malloc(1);
  std::free(seen);
  ASSERT_EQ(t_allocations, at_start + 1) << "the counter counts";

  recorder.Record(record);
  const uint64_t before = t_allocations;
  // Over the ring's end, over its half (the writer is woken), and with known names between.
  for (uint64_t i = 0; i < 100'000; ++i) {
    record.identity.grid[0] = static_cast<uint32_t>(i % 1000);
    recorder.Record(record);
    if (i % 10'000 == 0) recorder.Intern("k");
  }
  const uint64_t after = t_allocations;
  EXPECT_EQ(after, before);
  recorder.Finish("exit");
  EXPECT_EQ(testing::ReadTrace(settings->output).error, "");
}

}  // namespace
}  // namespace rfinject
