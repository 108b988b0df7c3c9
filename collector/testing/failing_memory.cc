#include "collector/testing/failing_memory.h"

#include <cstddef>
#include <cstdlib>

namespace {

thread_local int t_fail_in = 0;  // 0: none fails, or one has
thread_local bool t_failed = false;

void* Allocate(size_t size) {
  const bool fails = t_fail_in == 1;
  if (t_fail_in > 0) --t_fail_in;
  t_failed |= fails;
  return fails ? nullptr : std::malloc(size);
}

}  // namespace

namespace rfinject::testing {

void FailAllocation(int number) {
  t_fail_in = number;
  t_failed = false;
}

bool StopFailing() {
  t_fail_in = 0;
  return t_failed;
}

}  // namespace rfinject::testing

#ifndef __SANITIZE_THREAD__  // whose run time has its own and lets nobody else
[[gnu::noinline]] void* operator new(size_t size) {
  void* const memory = Allocate(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept { return Allocate(size); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
#endif
