#include "cli/attach/stopped_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace rfinject::cli {
namespace {

// A sanitizer's code in the functions that a thread calls here stays in them for ever.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

extern "C" void rfinject_test_trap();
asm(".globl rfinject_test_trap\nrfinject_test_trap:\n int3\n");

// Leaves in no register that a function need not keep what was there before, and asks for what calls rely on.
extern "C" uint64_t ClobberAndAdd(uint64_t a, uint64_t b, uint64_t c) {
  uint64_t stack = 0;
  asm volatile(
      "mov %%rsp, %0\n xorps %%xmm0, %%xmm0\n xorps %%xmm1, %%xmm1\n xorps %%xmm2, %%xmm2\n xorps %%xmm3, %%xmm3\n"
      "xorps %%xmm4, %%xmm4\n xorps %%xmm5, %%xmm5\n xorps %%xmm6, %%xmm6\n xorps %%xmm7, %%xmm7\n xorps %%xmm8, %%xmm8\n"
      "xorps %%xmm9, %%xmm9\n xorps %%xmm10, %%xmm10\n xorps %%xmm15, %%xmm15\n fldz\n fstp %%st(0)\n"
      : "=r"(stack)
      :
      : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm15", "memory",
        "r8", "r9", "r10", "r11", "st");
  volatile char deep[16 << 10];
  for (size_t i = 0; i < sizeof deep; i += 512) deep[i] = static_cast<char>(i);
  return a + b * 10 + c * 100 + (stack % 8 == 0 ? 0 : 1000);
}
extern "C" uint64_t Never() {
  for (;;) ::pause();
}
extern "C" uint64_t Crashes() { return *reinterpret_cast<volatile uint64_t*>(8); }

template <typename Function>
uint64_t Address(Function* function) {
  return reinterpret_cast<uint64_t>(function);
}

// A child that runs `work`, and says by its exit code whether it was right.
class Child {
 public:
  explicit Child(const std::function<bool()>& work) {
    pid_ = ::fork();
    if (pid_ == 0) ::_exit(work() ? 0 : 1);
    fd_ = ::open(absl::StrCat("/proc/", pid_, "/mem").c_str(), O_RDWR | O_CLOEXEC);
    mappings_ = ParseMappings(ReadProcFile(absl::StrCat("/proc/", pid_, "/maps")));
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::close(fd_);
  }
  pid_t pid() const { return pid_; }
  bool ended() {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_;
  }
  int status() const {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return status;
  }
  template <typename Function>
  absl::StatusOr<uint64_t> Call(Function* function, absl::Duration patience = absl::Seconds(20)) {
    const ProcessMemory memory(fd_);
    StoppedThread thread(memory, mappings_);
    if (absl::Status stopped = thread.Stop(pid_, absl::Now() + absl::Seconds(20)); !stopped.ok()) return stopped;
    return thread.Call(Address(function), {1, 2, 3}, Address(&rfinject_test_trap), absl::Now() + patience);
  }
  // Whether it waited in one of the functions, and does no more.
  bool EndWait(std::initializer_list<CodeRange> functions) {
    const ProcessMemory memory(fd_);
    StoppedThread thread(memory, mappings_);
    return thread.Stop(pid_, absl::Now() + absl::Seconds(20)).ok() && thread.EndWait(functions);
  }
  // Calls until the child has ended; how often.
  int CallAllTheTime() {
    int calls = 0;
    while (!ended()) {
      const absl::StatusOr<uint64_t> result = Call(&ClobberAndAdd);
      EXPECT_EQ(result.value_or(321), 321u);
      calls += result.ok() ? 1 : 0;
    }
    return calls;
  }

 private:
  pid_t pid_ = 0;
  int fd_ = -1;
  std::vector<Mapping> mappings_;
};

// Waits for a word to change, until something interrupts that.
[[gnu::noinline]] bool WaitForWord() {
  static uint32_t word = 0;
  const int64_t result = ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
  return result == -1 && errno == EINTR;
}
[[gnu::noinline]] bool WaitOtherwise() { return ::pause() == 0; }

TEST(StoppedThread, EndsAWaitForALock) {
  constexpr uint64_t kLonger = 200;  // than the function
  const uint64_t begin = Address(&WaitForWord);
  Child other([] { return WaitOtherwise(); }), child([] { return WaitForWord(); });
  while (ParseSystemCall(ReadProcFile(absl::StrCat("/proc/", child.pid(), "/syscall"))) != SYS_futex) {
  }
  EXPECT_FALSE(child.EndWait({{Address(&Never), Address(&Never) + 1}}));
  EXPECT_FALSE(other.EndWait({{0, UINT64_MAX}}));
  EXPECT_FALSE(child.ended());
  // Where it has just been let go it runs, for a moment.
  while (!child.ended() && !child.EndWait({{}, {begin, begin + kLonger}})) {
  }
  EXPECT_EQ(child.status(), 0);
  EXPECT_FALSE(other.ended());
}

// With values in as many registers as the compiler finds.
bool ComputeRight() {
  double sum = 0, other = 1;
  uint64_t hash = 1;
  for (int i = 1; i <= 3'000'000; ++i) {
    sum += 1.0 / i / i;
    other = other * 0.999999 + sum;
    hash = (hash ^ static_cast<uint64_t>(i)) * 0x100000001b3u;
  }
  double again = 0, other_again = 1;
  uint64_t hash_again = 1;
  for (int i = 1; i <= 3'000'000; ++i) {
    again += 1.0 / i / i;
    other_again = other_again * 0.999999 + again;
    hash_again = (hash_again ^ static_cast<uint64_t>(i)) * 0x100000001b3u;
  }
  return sum == again && other == other_again && hash == hash_again;
}

TEST(StoppedThread, ComputationsGoOnAsTheyWere) {
  Child child(ComputeRight);
  EXPECT_GT(child.CallAllTheTime(), 5);
  EXPECT_EQ(child.status(), 0);
}

TEST(StoppedThread, WaitsGoOnAsTheyWere) {
  Child child([] {
    const absl::Time begin = absl::Now();
    const timespec time{0, 300'000'000};
    if (::nanosleep(&time, nullptr) != 0) return false;
    if (::poll(nullptr, 0, 300) != 0) return false;
    return absl::Now() - begin >= absl::Milliseconds(600);
  });
  EXPECT_GT(child.CallAllTheTime(), 5);
  EXPECT_EQ(child.status(), 0);
}

TEST(StoppedThread, SignalsArriveOnce) {
  static std::atomic<int> seen{0};
  Child child([] {
    struct sigaction action {};
    action.sa_handler = [](int) { ++seen; };
    ::sigaction(SIGUSR1, &action, nullptr);
    for (int i = 0; i < 2000; ++i) ::raise(SIGUSR1);
    return seen == 2000;
  });
  child.CallAllTheTime();
  EXPECT_EQ(child.status(), 0);
}

TEST(StoppedThread, ACallThatDoesNotReturnIsGivenUp) {
  Child child(ComputeRight);
  const absl::StatusOr<uint64_t> result = child.Call(&Never, absl::Milliseconds(50));
  EXPECT_TRUE(absl::IsDeadlineExceeded(result.status())) << result.status();
  EXPECT_EQ(child.status(), 0);
}

TEST(StoppedThread, ACallThatCrashesIsGivenUp) {
  Child child(ComputeRight);
  EXPECT_TRUE(absl::IsUnavailable(child.Call(&Crashes).status()));
  EXPECT_EQ(child.status(), 0);
}

TEST(StoppedThread, AThreadThatHasEndedIsNone) {
  Child child([] { return true; });
  while (!child.ended()) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_FALSE(child.Call(&ClobberAndAdd).ok());
}

#endif

}  // namespace
}  // namespace rfinject::cli
