// File: asked.h
//
// A request to another process, and its answer. The request is put into the process's memory by one of its threads,
// stopped for that; a thread of the process carries it out later, at a moment when it may take locks, and writes the
// answer into the same memory.
#ifndef RFINJECT_CLI_ATTACH_ASKED_H_
#define RFINJECT_CLI_ATTACH_ASKED_H_

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cli/attach/process.h"
#include "cli/attach/stopped_thread.h"

namespace rfinject::cli {

// How the answer's memory begins: a RequestState, and at kMessage a text with a zero at its end.
enum RequestState : int32_t { kWaits = 0, kSucceeded = 1, kFailed = 2, kRuns = 3 };
inline constexpr uint64_t kMessage = 8, kMostOfMessage = 1000, kPage = 4096;

// In a status: the process was met in the middle of something, and another moment may do. The library says so, too.
inline constexpr std::string_view kBusy = ": busy: ";

// A process that may be looked into. What it refers to outlives it.
struct Asked {
  pid_t pid;
  pid_t own_number;  // what getpid() is in it: a child that it forks has the request in its memory, too, and is not
                     // meant
  ProcessMemory memory;
  const std::vector<Mapping>& mappings;
  uint64_t map_memory, trap;  // addresses of mmap, and of an instruction by which a call ends
};

// A function of the library: const char* name(const char*). An empty text that it returns is success, another one is
// the failure's.
struct LibraryCall {
  const std::string& path;  // of the library, for the process
  std::string_view name;
  const std::string* argument;  // or null
};

template <typename... Parts>
absl::Status Refuse(pid_t pid, const Parts&... parts) {
  return absl::FailedPreconditionError(absl::StrCat("process ", pid, " ", parts...));
}

// Has a thread of the process make a mapping, as mmap() does with MAP_PRIVATE and MAP_ANONYMOUS.
absl::StatusOr<uint64_t> MapMemory(const Asked& asked, StoppedThread& thread, uint64_t size, int protection,
                                   absl::Time deadline);

// Stops a thread of the process, calls `act` with it, which returns an address of the process, and lets the thread go
// on. Where `act` says Unavailable it is called with another thread. Runs in a child of ours: whatever that still
// holds when it ends, the kernel lets go. What `act` changes in our own memory is therefore lost.
//
// Fails with PermissionDenied where the kernel forbids it, and with kBusy where no thread could be stopped; nothing
// was done then.
using OnThread = absl::FunctionRef<absl::StatusOr<uint64_t>(StoppedThread& thread, absl::Time deadline)>;
absl::StatusOr<uint64_t> OnStoppedThread(const Asked& asked, OnThread act);
// The same with this thread only.
absl::StatusOr<uint64_t> OnStoppedThread(const Asked& asked, pid_t thread, OnThread act);

// Waits for the answer at `at`. As long as nothing has begun, `remind` is called every now and then. If nothing has
// begun by `patience`, or somebody wants this command to end, the request is taken back by `take_back`; a failure
// then says that the process was left as it was, and why.
absl::Status WaitForAnswer(const Asked& asked, uint64_t at, absl::Duration patience,
                           absl::FunctionRef<void()> take_back, absl::FunctionRef<void()> remind,
                           std::string_view why);

// While it lives, signals to this command wait: they would end it in the middle of what must be put back.
class SignalsHeld {
 public:
  SignalsHeld();
  ~SignalsHeld();
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_ATTACH_ASKED_H_
