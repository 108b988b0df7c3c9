#include "injector/torch/symbols.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

namespace {
thread_local int t_fail_in = 0;  // the allocation of this thread that fails, counted from 1; 0: none
}  // namespace

[[gnu::noinline]] void* operator new(size_t size) {
  if (t_fail_in == 1) {
    t_fail_in = 0;
    throw std::bad_alloc();
  }
  if (t_fail_in > 1) --t_fail_in;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace rfinject {
namespace {

// A library of torch's name that has none of its functions.
TEST(TorchSymbols, SayWhatIsMissingOrThatMemoryRanOut) {
  ASSERT_NE(dlopen(RFINJECT_EMPTY_TORCH, RTLD_NOW), nullptr) << dlerror();
  TorchSymbols symbols;
  int failures = 0;
  for (bool whole = false; !whole; failures += whole ? 0 : 1) {
    t_fail_in = failures + 1;
    try {
      EXPECT_TRUE(FindTorchSymbols(&symbols));
      whole = true;
    } catch (const std::bad_alloc&) {
    }
    t_fail_in = 0;
  }
  EXPECT_GE(failures, 2);  // the path, and what is missing
  EXPECT_EQ(symbols.path, RFINJECT_EMPTY_TORCH);
  EXPECT_FALSE(symbols.has_record_function());
  EXPECT_NE(symbols.missing.find("at::addGlobalCallback, at::addThreadLocalCallback"), std::string::npos);
}

}  // namespace
}  // namespace rfinject
