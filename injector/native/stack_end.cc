#include <dlfcn.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "injector/native/unwinder.h"

namespace rfinject {
namespace {

struct Stack {
  bool asked;
  uintptr_t begin;
  uintptr_t end;
};
__attribute__((tls_model("initial-exec"))) constinit thread_local Stack t_stack{};

// Where the main thread's stack ends, as the loader has noted it. pthread_getattr_np would read /proc/self/maps.
std::atomic<uintptr_t> g_main_end{0};
// No more than this is believed to be the main thread's stack, which grows: the kernel leaves a gap of at least 128
// MiB below it.
constexpr uintptr_t kMostOfMain = uintptr_t{64} << 20;
std::atomic<uintptr_t> g_main_size{kMostOfMain};

// How much of the stack an unwind itself may use (it takes about 16 KiB).
constexpr uintptr_t kRoom = 48 << 10;

[[gnu::noinline]] void AskForStack() noexcept {
  t_stack.asked = true;
  if (syscall(SYS_gettid) == getpid()) {
    t_stack.end = g_main_end.load(std::memory_order_relaxed);
    t_stack.begin = t_stack.end - std::min(t_stack.end, g_main_size.load(std::memory_order_relaxed));
    return;
  }
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  void* begin = nullptr;
  size_t size = 0;
  if (pthread_attr_getstack(&attributes, &begin, &size) == 0) {
    t_stack.begin = reinterpret_cast<uintptr_t>(begin);
    t_stack.end = t_stack.begin + size;
  }
  pthread_attr_destroy(&attributes);
}

}  // namespace

void PrepareStackEnd() noexcept {
  void* const* end = static_cast<void* const*>(dlsym(RTLD_DEFAULT, "__libc_stack_end"));
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < kMostOfMain) {
    g_main_size.store(limit.rlim_cur, std::memory_order_relaxed);
  }
  if (end != nullptr) g_main_end.store(reinterpret_cast<uintptr_t>(*end), std::memory_order_relaxed);
}

uintptr_t StackEnd() noexcept {
  if (!t_stack.asked) AskForStack();
  // A coroutine's stack, or a signal's, lies elsewhere.
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return here > t_stack.begin && here - t_stack.begin > kRoom && here < t_stack.end ? t_stack.end : 0;
}

}  // namespace rfinject
