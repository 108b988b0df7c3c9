#include "injector/native/unwinder.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstdlib>
#include <cstring>
#include <set>
#include <vector>

#include "collector/testing/failing_memory.h"
#include "injector/native/objects.h"

#ifdef __SANITIZE_ADDRESS__
// The list of objects lives as long as the process, on purpose: whoever still reads it must find it.
extern "C" int __lsan_is_turned_off() { return 1; }
#endif

namespace rfinject {
namespace {

// Only a build without libunwind may skip: with it, an unwinder that does not start is a failure.
#ifdef RFINJECT_WITH_LIBUNWIND
constexpr bool kBuiltWithLibunwind = true;
#else
constexpr bool kBuiltWithLibunwind = false;
#endif

struct Taken {
  StackFrame frames[kMaxStackFrames];
  size_t count = 0;
};

[[gnu::noinline]] void Take(Taken* taken) {
  taken->count = Unwind(taken->frames);
  asm volatile("" ::: "memory");
}

// `depth` frames of two shapes: one fixed, one whose size is known at run time only.
[[gnu::noinline]] void Descend(int depth, Taken* taken) {
  if (depth == 0) {
    Take(taken);
  } else if (depth % 2 == 0) {
    Descend(depth - 1, taken);
  } else {
    volatile char* room = static_cast<char*>(alloca(static_cast<size_t>(depth) * 48));
    room[0] = 1;
    Descend(depth - 1, taken);
    room[1] = 2;
  }
  asm volatile("" ::: "memory");
}

class UnwinderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kBuiltWithLibunwind) GTEST_SKIP() << "note: built without libunwind";
    ASSERT_TRUE(PrepareUnwinder());
  }
};

TEST_F(UnwinderTest, FollowsFixedAndVariableFrames) {
  Taken taken;
  Descend(12, &taken);
  ASSERT_GT(taken.count, 13u);
  // The first return address lies where Descend calls Take, the next twelve at its two calls of itself, in turn.
  const uintptr_t begin = reinterpret_cast<uintptr_t>(&Descend);
  std::set<uintptr_t> places;
  for (size_t i = 0; i < 13; ++i) {
    EXPECT_GT(taken.frames[i].ip, begin);
    EXPECT_LT(taken.frames[i].ip, begin + 4096);
    places.insert(taken.frames[i].ip);
    if (i > 2) {
      EXPECT_EQ(taken.frames[i].ip, taken.frames[i - 2].ip) << i;
    }
  }
  EXPECT_EQ(places.size(), 3u);
  EXPECT_EQ(places.count(taken.frames[13].ip), 0u);
  for (size_t i = 1; i < taken.count; ++i) EXPECT_GT(taken.frames[i].slot, taken.frames[i - 1].slot);
}

TEST_F(UnwinderTest, SlotsHoldTheReturnAddresses) {
  struct Check {
    static void Run(Taken* taken) {
      Take(taken);
      // Every frame but the first is still there.
      for (size_t i = 0; i < taken->count; ++i) {
        if (taken->frames[i].slot < reinterpret_cast<uintptr_t>(__builtin_frame_address(0))) continue;
        EXPECT_EQ(*reinterpret_cast<const uintptr_t*>(taken->frames[i].slot), taken->frames[i].ip) << i;
      }
    }
  };
  Taken taken;
  Check::Run(&taken);
  EXPECT_GT(taken.count, 3u);
}

TEST_F(UnwinderTest, IsBounded) {
  Taken taken;
  Descend(3 * kMaxStackFrames, &taken);
  EXPECT_LE(taken.count, kMaxStackFrames);
  EXPECT_GE(taken.count, kMaxStackFrames - 2);
  StackFrame two[2];
  EXPECT_EQ(Unwind(two), 2u);
}

TEST_F(UnwinderTest, ThreadsHaveStacks) {
  pthread_t thread;
  Taken taken;
  ASSERT_EQ(pthread_create(
                &thread, nullptr,
                [](void* data) -> void* {
                  Descend(4, static_cast<Taken*>(data));
                  return nullptr;
                },
                &taken),
            0);
  pthread_join(thread, nullptr);
  EXPECT_GT(taken.count, 5u);
  EXPECT_LT(taken.count, 12u);
}

// A coroutine's stack is not the thread's: how far it can be read is not known.
TEST_F(UnwinderTest, TakesNoStackOfACoroutine) {
  static ucontext_t outer;
  static ucontext_t inner;
  static Taken taken;
  taken.count = 99;
  std::vector<char> stack(64 << 10);
  ASSERT_EQ(getcontext(&inner), 0);
  inner.uc_stack.ss_sp = stack.data();
  inner.uc_stack.ss_size = stack.size();
  inner.uc_link = &outer;
  makecontext(
      &inner, [] { Take(&taken); }, 0);
  ASSERT_EQ(swapcontext(&outer, &inner), 0);
  EXPECT_EQ(taken.count, 0u);
}

// A JIT makes code without unwind tables. The walk ends there and does not guess.
TEST_F(UnwinderTest, StopsAtCodeWithoutADescription) {
  // push rbx; mov rbx, rdi; mov rdi, rsi; call rbx; pop rbx; ret
  constexpr unsigned char kCode[] = {0x53, 0x48, 0x89, 0xfb, 0x48, 0x89, 0xf7, 0xff, 0xd3, 0x5b, 0xc3};
  void* code = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(code, MAP_FAILED);
  std::memcpy(code, kCode, sizeof kCode);
  ASSERT_EQ(mprotect(code, 4096, PROT_READ | PROT_EXEC), 0);
  Taken taken;
  auto call = reinterpret_cast<void (*)(void (*)(Taken*), Taken*)>(code);
  call(&Take, &taken);
  EXPECT_EQ(taken.count, 1u);
  munmap(code, 4096);
}

// One thread unwinds at a time; a second one does not wait.
TEST_F(UnwinderTest, ThreadsDoNotWaitForEachOther) {
  constexpr int kThreads = 4;
  pthread_t threads[kThreads];
  struct Result {
    size_t whole = 0;
    size_t none = 0;
  } results[kThreads];
  for (int t = 0; t < kThreads; ++t) {
    pthread_create(
        &threads[t], nullptr,
        [](void* data) -> void* {
          auto* result = static_cast<Result*>(data);
          for (int i = 0; i < 2000; ++i) {
            Taken taken;
            Descend(6, &taken);
            ++(taken.count == 0 ? result->none : result->whole);
          }
          return nullptr;
        },
        &results[t]);
  }
  size_t whole = 0;
  for (int t = 0; t < kThreads; ++t) {
    pthread_join(threads[t], nullptr);
    whole += results[t].whole;
    EXPECT_EQ(results[t].whole + results[t].none, 2000u);
  }
  EXPECT_GT(whole, 0u);
}

TEST_F(UnwinderTest, AllocatesNothingOnceItRan) {
  Taken taken;
  Descend(8, &taken);
  EXPECT_EQ(testing::FailEachAllocation([&] {
              for (int i = 0; i < 100; ++i) Descend(8, &taken);
            }),
            0);
  EXPECT_GT(taken.count, 8u);
}

TEST(ObjectsTest, KnowsThisProgramAndTheCLibrary) {
  RefreshObjects();
  LoadedObject own;
  ASSERT_TRUE(FindObject(reinterpret_cast<uintptr_t>(&Descend), &own));
  LoadedObject libc;
  ASSERT_TRUE(FindObject(reinterpret_cast<uintptr_t>(dlsym(RTLD_DEFAULT, "gnu_get_libc_version")), &libc));
  EXPECT_NE(own.begin, libc.begin);
  EXPECT_TRUE(libc.CanRead(libc.unwind_table, 64));
  ObjectFile file;
  ASSERT_TRUE(DescribeObject(own, &file));
  EXPECT_NE(file.path.find("unwinder_test"), std::string::npos) << file.path;
  ASSERT_TRUE(DescribeObject(libc, &file));
  EXPECT_NE(file.path.find("libc"), std::string::npos) << file.path;
  EXPECT_FALSE(file.build_id.empty());
  LoadedObject none;
  EXPECT_FALSE(FindObject(reinterpret_cast<uintptr_t>(&own), &none));  // the stack
}

// The last test of this program: what it changes stays changed.
TEST(ZObjectListTest, AnOlderGlibcUnwindsByTheList) {
  if (!kBuiltWithLibunwind) GTEST_SKIP() << "note: built without libunwind";
  ASSERT_TRUE(PrepareUnwinder());
  Taken before;
  Descend(9, &before);
  LoadedObject by_loader;
  ASSERT_TRUE(FindObject(reinterpret_cast<uintptr_t>(&Descend), &by_loader));
  UseObjectList();
  LoadedObject by_list;
  ASSERT_TRUE(FindObject(reinterpret_cast<uintptr_t>(&Descend), &by_list));
  EXPECT_EQ(by_list.bias, by_loader.bias);
  EXPECT_EQ(by_list.unwind_table, by_loader.unwind_table);
  ASSERT_EQ(by_list.segment_count, by_loader.segment_count);
  Taken after;
  Descend(9, &after);
  ASSERT_EQ(after.count, before.count);
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(after.frames[i].ip, before.frames[i].ip) << i;

  // An object that came after the list was made is not known, and one that has gone is not believed.
  void* library = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) GTEST_SKIP() << "note: no libz here";
  const auto inside = reinterpret_cast<uintptr_t>(dlsym(library, "zlibVersion"));
  LoadedObject object;
  EXPECT_FALSE(FindObject(inside, &object));
  RefreshObjects();
  EXPECT_TRUE(FindObject(inside, &object));
  dlclose(library);
  EXPECT_FALSE(FindObject(inside, &object));
}

}  // namespace
}  // namespace rfinject
