#include "cli/attach/stopped_thread.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace rfinject::cli {
namespace {

constexpr absl::Duration kStopLook = absl::Microseconds(200);

void* Data(uint64_t value) { return reinterpret_cast<void*>(value); }

}  // namespace

bool ProcessMemory::Read(uint64_t address, void* to, uint64_t size) const {
  return ::pread(fd_, to, size, static_cast<off_t>(address)) == static_cast<ssize_t>(size);
}

bool ProcessMemory::Write(uint64_t address, const void* from, uint64_t size) const {
  return ::pwrite(fd_, from, size, static_cast<off_t>(address)) == static_cast<ssize_t>(size);
}

#ifdef __x86_64__

namespace {

// What the System V ABI keeps for a function below its stack pointer.
constexpr uint64_t kRedZone = 128;
// What a call must find below the stack pointer.
constexpr uint64_t kStackNeeded = 64 << 10;
constexpr uint64_t kCode64 = 0x33;  // cs of 64-bit code
constexpr uint64_t kTrapFlag = 1 << 8, kDirectionFlag = 1 << 10;

// Signals that the processor raises itself: blocked, they would end the program, and one that is ours.
uint64_t AllButSynchronous() {
  uint64_t mask = ~uint64_t{0};
  for (const int signal : {SIGTRAP, SIGSEGV, SIGBUS, SIGILL, SIGFPE}) mask &= ~(uint64_t{1} << (signal - 1));
  return mask;
}

}  // namespace

struct StoppedThread::Registers {
  user_regs_struct general;
  std::vector<char> vectors;  // as the processor's XSAVE writes them
  uint64_t mask = 0;          // of blocked signals
};

StoppedThread::StoppedThread(const ProcessMemory& memory, const std::vector<Mapping>& mappings)
    : memory_(memory), mappings_(mappings), saved_(std::make_unique<Registers>()) {}

StoppedThread::~StoppedThread() {
  if (thread_ != 0 && stopped_) ::ptrace(PTRACE_DETACH, thread_, nullptr, Data(static_cast<uint64_t>(pending_)));
}

StoppedThread::Stopped StoppedThread::WaitForStop(absl::Time deadline, int* signal) {
  for (;;) {
    siginfo_t event{};
    const int looked =
        ::waitid(P_PID, static_cast<id_t>(thread_), &event, WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL);
    if (looked != 0 && errno != EINTR) return Stopped::kEnded;
    if (looked == 0 && event.si_pid == thread_) {
      // How it has ended is its parent's to take, which may be this process.
      if (event.si_code != CLD_TRAPPED && event.si_code != CLD_STOPPED) return Stopped::kEnded;
      int status = 0;
      if (::waitpid(thread_, &status, __WALL | WNOHANG) != thread_) continue;
      if (!WIFSTOPPED(status)) return Stopped::kEnded;
      stopped_ = true;
      *signal = WSTOPSIG(status);
      return status >> 16 == PTRACE_EVENT_STOP ? Stopped::kByUs : Stopped::kBySignal;
    }
    if (absl::Now() >= deadline) return Stopped::kNotYet;
    absl::SleepFor(kStopLook);
  }
}

absl::Status StoppedThread::Stop(pid_t thread, absl::Time deadline) {
  if (::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) {
    if (errno != EPERM) return absl::UnavailableError("the thread has ended");
    // So the kernel refuses a second tracer, too: that of another command is gone in a moment.
    const pid_t tracer = ParseProcessStatus(ReadProcFile(absl::StrCat("/proc/", thread, "/status"))).tracer;
    if (tracer != 0) return absl::UnavailableError(absl::StrCat("it is traced by process ", tracer));
    if (::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) {
      return errno == EPERM ? absl::PermissionDeniedError("ptrace is not allowed")
                            : absl::UnavailableError("the thread has ended");
    }
  }
  thread_ = thread;
  if (::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0)
    return absl::UnavailableError("the thread has ended");
  for (;;) {
    int signal = 0;
    switch (WaitForStop(deadline, &signal)) {
      case Stopped::kNotYet:
        return absl::DeadlineExceededError("a thread of it does not stop");
      case Stopped::kEnded:
        thread_ = 0;
        return absl::UnavailableError("the thread has ended");
      case Stopped::kBySignal:  // its own, which it gets
        stopped_ = false;
        ::ptrace(PTRACE_CONT, thread_, nullptr, Data(static_cast<uint64_t>(signal)));
        continue;
      case Stopped::kByUs:
        break;
    }
    if (signal != SIGTRAP) return absl::UnavailableError("the process is stopped");
    return Save();
  }
}

absl::Status StoppedThread::Save() {
  iovec general{&saved_->general, sizeof saved_->general};
  // AMX has 11 KiB.
  saved_->vectors.resize(64 << 10);
  iovec vectors{saved_->vectors.data(), saved_->vectors.size()};
  if (::ptrace(PTRACE_GETREGSET, thread_, Data(NT_PRSTATUS), &general) != 0 ||
      general.iov_len != sizeof saved_->general ||
      ::ptrace(PTRACE_GETREGSET, thread_, Data(NT_X86_XSTATE), &vectors) != 0 ||
      vectors.iov_len == saved_->vectors.size() ||
      ::ptrace(PTRACE_GETSIGMASK, thread_, Data(sizeof saved_->mask), &saved_->mask) != 0) {
    return absl::UnavailableError("the thread's registers cannot be read");
  }
  saved_->vectors.resize(vectors.iov_len);
  if (!StandsWell()) return absl::UnavailableError("the thread stands where nothing may be called");
  return absl::OkStatus();
}

bool StoppedThread::Restore() {
  iovec general{&saved_->general, sizeof saved_->general};
  iovec vectors{saved_->vectors.data(), saved_->vectors.size()};
  const bool floating = ::ptrace(PTRACE_SETREGSET, thread_, Data(NT_X86_XSTATE), &vectors) == 0;
  const bool mask = ::ptrace(PTRACE_SETSIGMASK, thread_, Data(sizeof saved_->mask), &saved_->mask) == 0;
  return ::ptrace(PTRACE_SETREGSET, thread_, Data(NT_PRSTATUS), &general) == 0 && floating && mask;
}

// A sequence that the kernel begins again when the thread was interrupted in it (rseq(2)): if other code ran
// meanwhile, it would not.
bool StoppedThread::InRestartableSequence() const {
#ifndef PTRACE_GET_RSEQ_CONFIGURATION
  constexpr auto PTRACE_GET_RSEQ_CONFIGURATION = static_cast<__ptrace_request>(0x420f);
#endif
  struct {
    uint64_t area;
    uint32_t size, signature, flags, pad;
  } configuration{};
  struct {
    uint32_t version, flags;
    uint64_t begin, size, abort;
  } sequence{};
  constexpr uint64_t kSequence = 8;  // of rseq_cs in the area
  uint64_t at = 0;
  if (::ptrace(PTRACE_GET_RSEQ_CONFIGURATION, thread_, Data(sizeof configuration), &configuration) <= 0) return false;
  if (configuration.area == 0 || !memory_.Read(configuration.area + kSequence, &at, sizeof at) || at == 0)
    return false;
  return !memory_.Read(at, &sequence, sizeof sequence) || saved_->general.rip - sequence.begin < sequence.size;
}

// Whether it runs 64-bit code on a stack that has room, outside of a restartable sequence.
bool StoppedThread::StandsWell() const {
  const uint64_t stack = saved_->general.rsp;
  const Mapping* mapping = MappingAt(mappings_, stack);
  if (saved_->general.cs != kCode64 || mapping == nullptr || !mapping->writable) return false;
  // The kernel makes the first thread's stack longer when it is needed.
  if (mapping->path != "[stack]" && stack - mapping->begin < kStackNeeded) return false;
  return !InRestartableSequence();
}

// Where the stack pointer is when a function begins: below what the interrupted function may still use, with the
// return address in 16 bytes' step less 8.
uint64_t StoppedThread::FrameForCall() const {
  constexpr uint64_t kAlignment = 64;
  return (saved_->general.rsp - kRedZone) / kAlignment * kAlignment - kAlignment - sizeof(uint64_t);
}

absl::StatusOr<uint64_t> StoppedThread::Call(uint64_t function, std::initializer_list<uint64_t> arguments,
                                             uint64_t return_to, absl::Time deadline) {
  user_regs_struct registers = saved_->general;
  decltype(registers.rdi)* const places[] = {&registers.rdi, &registers.rsi, &registers.rdx,
                                             &registers.rcx, &registers.r8,  &registers.r9};
  size_t count = 0;
  for (const uint64_t argument : arguments) *places[count++] = argument;
  registers.rip = function;
  registers.rsp = FrameForCall();
  registers.rax = registers.rbp = 0;
  registers.orig_rax = ~uint64_t{0};  // no system call is to be begun again now
  registers.eflags &= ~(kTrapFlag | kDirectionFlag);
  const uint64_t mask = AllButSynchronous();
  iovec general{&registers, sizeof registers};
  if (!memory_.Write(registers.rsp, &return_to, sizeof return_to) ||
      ::ptrace(PTRACE_SETSIGMASK, thread_, Data(sizeof mask), &mask) != 0 ||
      ::ptrace(PTRACE_SETREGSET, thread_, Data(NT_PRSTATUS), &general) != 0 ||
      ::ptrace(PTRACE_CONT, thread_, nullptr, nullptr) != 0) {
    (void)Restore();
    return absl::UnavailableError("the thread cannot be made to call a function");
  }
  stopped_ = false;
  bool asked = false;
  for (;;) {
    int signal = 0;
    const Stopped stopped = WaitForStop(deadline, &signal);
    if (stopped == Stopped::kEnded) {
      thread_ = 0;
      return absl::UnavailableError("the process has ended");
    }
    if (stopped == Stopped::kNotYet) {
      ::ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr);
      asked = true;
      // However long that takes (the process may be frozen): let go now, it would run into `return_to` alone, and
      // end.
      deadline = absl::InfiniteFuture();
      continue;
    }
    iovec now{&registers, sizeof registers};
    const bool known = ::ptrace(PTRACE_GETREGSET, thread_, Data(NT_PRSTATUS), &now) == 0;
    const bool back = known && stopped == Stopped::kBySignal && signal == SIGTRAP && registers.rip == return_to + 1;
    const bool other = stopped == Stopped::kBySignal && (AllButSynchronous() >> (signal - 1) & 1) != 0;
    const bool group_stop = stopped == Stopped::kByUs && !asked;
    if (!back && (other || group_stop)) {
      if (other) pending_ = signal;  // SIGSTOP, which nobody can block
      stopped_ = false;
      ::ptrace(PTRACE_CONT, thread_, nullptr, nullptr);
      continue;
    }
    const bool restored = Restore();
    if (!restored) return absl::InternalError("the thread's registers cannot be put back");
    if (back) return registers.rax;
    return asked ? absl::DeadlineExceededError("a function that was called took too long")
                 : absl::UnavailableError("a function that was called failed");
  }
}

bool StoppedThread::EndWait(std::span<const CodeRange> functions) {
  // What a system call that the kernel would begin again has as its result (linux/errno.h, which is not for
  // programs).
  constexpr int64_t kRestart = -512, kRestartWithTheTimeLeft = -516;
  const auto result = static_cast<int64_t>(saved_->general.rax);
  if (saved_->general.orig_rax != SYS_futex || (result != kRestart && result != kRestartWithTheTimeLeft))
    return false;
  // Two or three functions of the C library stand between, which need some hundred bytes.
  std::array<uint64_t, 96> stack;
  if (!memory_.Read(saved_->general.rsp, stack.data(), sizeof stack)) return false;
  const auto is_return = [=](uint64_t word) {
    return std::ranges::any_of(functions, [=](const CodeRange& one) { return word > one.begin && word <= one.end; });
  };
  if (std::none_of(stack.begin(), stack.end(), is_return)) return false;
  user_regs_struct registers = saved_->general;
  registers.rax = static_cast<uint64_t>(-EINTR);
  registers.orig_rax = ~uint64_t{0};
  iovec general{&registers, sizeof registers};
  return ::ptrace(PTRACE_SETREGSET, thread_, Data(NT_PRSTATUS), &general) == 0;
}

#else

struct StoppedThread::Registers {};
StoppedThread::StoppedThread(const ProcessMemory& memory, const std::vector<Mapping>& mappings)
    : memory_(memory), mappings_(mappings) {}
StoppedThread::~StoppedThread() = default;
absl::Status StoppedThread::Stop(pid_t, absl::Time) {
  return absl::UnimplementedError("attaching works on x86-64 only; start the program with rfinject");
}
absl::StatusOr<uint64_t> StoppedThread::Call(uint64_t, std::initializer_list<uint64_t>, uint64_t, absl::Time) {
  return absl::UnimplementedError("attaching works on x86-64 only");
}
bool StoppedThread::EndWait(std::span<const CodeRange>) { return false; }

#endif

}  // namespace rfinject::cli
