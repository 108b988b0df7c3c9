// File: stopped_thread.h
//
// Stops one thread of another process, has it call functions, and lets it go on as if nothing had been.
//
// The thread may be stopped at any instruction, inside malloc or the loader or with any lock held. So only functions
// may be called that are safe in a signal handler. All registers, those of floating point and vectors too, and the
// mask of signals are put back. A system call that the stop has interrupted is begun again by the kernel where the
// program would not notice it (ThreadsToStop prefers such threads).
//
//   StoppedThread thread(pid, memory);
//   if (absl::Status status = thread.Stop(tid, deadline); !status.ok()) ...
//   thread.Call(function, {1, 2}, return_to, deadline);
#ifndef RFINJECT_CLI_ATTACH_STOPPED_THREAD_H_
#define RFINJECT_CLI_ATTACH_STOPPED_THREAD_H_

#include <sys/types.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/attach/process.h"

namespace rfinject::cli {

// The memory of a process that may be looked into.
class ProcessMemory {
 public:
  // `fd` is /proc/PID/mem, opened to read and write; owned by the caller.
  explicit ProcessMemory(int fd) : fd_(fd) {}
  bool Read(uint64_t address, void* to, uint64_t size) const;
  bool Write(uint64_t address, const void* from, uint64_t size) const;

 private:
  int fd_;
};

// A function's instructions: the addresses from `begin` up to `end`.
struct CodeRange {
  uint64_t begin = 0, end = 0;
};

class StoppedThread {
 public:
  StoppedThread(const ProcessMemory& memory, const std::vector<Mapping>& mappings);
  // Lets the thread go on. A thread that was asked to stop and has not is only let go where this process ends.
  ~StoppedThread();
  StoppedThread(const StoppedThread&) = delete;
  StoppedThread& operator=(const StoppedThread&) = delete;

  // Stops a thread. Fails with Unavailable where it has ended, or stands where nothing may be called: another thread,
  // or another moment, may do. Fails with DeadlineExceeded where it does not stop by `deadline`: this process must
  // then end, since the thread may stop later. Fails with PermissionDenied where the kernel forbids it.
  absl::Status Stop(pid_t thread, absl::Time deadline);

  // Has the thread call a function with at most six arguments; what it returns. `return_to` is the address of an
  // instruction that stops the thread (int3 on x86-64). Where this fails the thread is as it was before the call. A
  // call that has not returned by `deadline` is given up.
  absl::StatusOr<uint64_t> Call(uint64_t function, std::initializer_list<uint64_t> arguments, uint64_t return_to,
                                absl::Time deadline);

  // Ends the system call in which a stopped thread waits for a lock (futex), as a signal would, where it was made by
  // one of these functions, which know of signals and wait again. Returns false, and does nothing, where the thread
  // does something else.
  bool EndWait(std::span<const CodeRange> functions);

 private:
  struct Registers;
  enum class Stopped : uint8_t { kNotYet, kByUs, kBySignal, kEnded };
  // Waits for the next stop, and tells its signal.
  Stopped WaitForStop(absl::Time deadline, int* signal);
  absl::Status Save();
  bool Restore();
  bool StandsWell() const;
  bool InRestartableSequence() const;
  uint64_t FrameForCall() const;

  const ProcessMemory& memory_;
  const std::vector<Mapping>& mappings_;
  std::unique_ptr<Registers> saved_;
  pid_t thread_ = 0;  // 0: none is held
  bool stopped_ = false;
  int pending_ = 0;  // a signal that arrived meanwhile, which the thread gets when it goes on
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_ATTACH_STOPPED_THREAD_H_
