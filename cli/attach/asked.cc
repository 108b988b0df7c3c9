#include "cli/attach/asked.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <utility>

#include "absl/time/clock.h"

namespace rfinject::cli {
namespace {

// How long a thread is waited for that is to stop, or that is in a function that is called on it, which takes
// microseconds.
constexpr absl::Duration kThreadPatience = absl::Seconds(5);
// How long the request may run: the library finds its way around torch in some 20 ms, and closes a trace within
// seconds.
constexpr absl::Duration kRunPatience = absl::Seconds(30);
constexpr absl::Duration kLookForAnswer = absl::Milliseconds(2), kReminder = absl::Milliseconds(50);

// What the child that stops a thread tells us.
struct Outcome {
  uint64_t memory = 0;     // what `act` returned; 0: it failed
  bool forbidden = false;  // by the kernel
  bool none = false;       // no thread could be stopped, and nothing was done: another moment may do
  std::array<char, 240> why{};
};

absl::StatusOr<uint64_t> TryThreads(const Asked& asked, const std::vector<pid_t>& threads, OnThread act, bool* none) {
  absl::Status last = absl::UnavailableError("no thread of it can be stopped");
  for (const pid_t tid : threads) {
    StoppedThread thread(asked.memory, asked.mappings);
    const absl::Time deadline = absl::Now() + kThreadPatience;
    last = thread.Stop(tid, deadline);
    if (absl::IsUnavailable(last)) continue;
    if (!last.ok()) return last;
    *none = false;
    absl::StatusOr<uint64_t> done = act(thread, deadline);
    if (done.ok() || !absl::IsUnavailable(done.status())) return done;
    last = done.status();
  }
  return last;
}

absl::StatusOr<uint64_t> InChild(const Asked& asked, absl::FunctionRef<std::vector<pid_t>()> threads, OnThread act) {
  Outcome outcome;
  std::strcpy(outcome.why.data(), "the process that stops a thread could not be started");
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Refuse(asked.pid, "was left as it was: ", outcome.why.data());
  const pid_t child = ::fork();
  if (child == 0) {
    Outcome told;
    bool none = true;
    const absl::StatusOr<uint64_t> made = TryThreads(asked, threads(), act, &none);
    if (made.ok()) told.memory = *made;
    told.forbidden = absl::IsPermissionDenied(made.status());
    told.none = absl::IsUnavailable(made.status()) && none;
    const std::string why(made.status().message());
    why.copy(told.why.data(), told.why.size() - 1);
    (void)!::write(ends[1], &told, sizeof told);
    ::_exit(0);
  }
  ::close(ends[1]);
  if (child > 0) {
    Outcome told;
    if (::read(ends[0], &told, sizeof told) == sizeof told) outcome = told;
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  ::close(ends[0]);
  if (outcome.forbidden) return absl::PermissionDeniedError(outcome.why.data());
  if (outcome.none)
    return absl::UnavailableError(absl::StrCat("process ", asked.pid, std::string(kBusy), outcome.why.data()));
  if (outcome.memory == 0) return Refuse(asked.pid, "was left as it was: ", outcome.why.data());
  return outcome.memory;
}

// Whether somebody wants this command to end.
bool Interrupted() {
  sigset_t pending;
  ::sigpending(&pending);
  return ::sigismember(&pending, SIGINT) == 1 || ::sigismember(&pending, SIGTERM) == 1 ||
         ::sigismember(&pending, SIGHUP) == 1;
}

}  // namespace

SignalsHeld::SignalsHeld() {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, &before_);
}

SignalsHeld::~SignalsHeld() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

absl::StatusOr<uint64_t> MapMemory(const Asked& asked, StoppedThread& thread, uint64_t size, int protection,
                                   absl::Time deadline) {
  absl::StatusOr<uint64_t> mapped = thread.Call(
      asked.map_memory, {0, size, static_cast<uint64_t>(protection), MAP_PRIVATE | MAP_ANONYMOUS, ~uint64_t{0}, 0},
      asked.trap, deadline);
  if (mapped.ok() && (*mapped == 0 || *mapped % kPage != 0)) return absl::ResourceExhaustedError("it has no memory");
  return mapped;
}

absl::StatusOr<uint64_t> OnStoppedThread(const Asked& asked, OnThread act) {
  return InChild(
      asked, [&] { return ThreadsToStop(asked.pid); }, act);
}

absl::StatusOr<uint64_t> OnStoppedThread(const Asked& asked, pid_t thread, OnThread act) {
  return InChild(
      asked, [=] { return std::vector<pid_t>{thread}; }, act);
}

absl::Status WaitForAnswer(const Asked& asked, uint64_t at, absl::Duration patience,
                           absl::FunctionRef<void()> take_back, absl::FunctionRef<void()> remind,
                           std::string_view why) {
  absl::Time deadline = absl::Now() + patience, reminder = absl::Now();
  for (bool runs = false, taken_back = false;; absl::SleepFor(kLookForAnswer)) {
    int32_t state = kWaits;
    std::array<char, kMostOfMessage + 1> message{};
    if (!asked.memory.Read(at, &state, sizeof state)) return Refuse(asked.pid, "has ended");
    if (state == kSucceeded) return absl::OkStatus();
    if (state == kFailed) {
      (void)asked.memory.Read(at + kMessage, message.data(), message.size() - 1);
      return absl::FailedPreconditionError(absl::StrCat("process ", asked.pid, ": ", message.data()));
    }
    if (state == kWaits && absl::Now() >= reminder) {
      remind();
      reminder = absl::Now() + kReminder;
    }
    if (state == kRuns && !std::exchange(runs, true)) deadline = absl::Now() + kRunPatience;
    if (state == kWaits && std::exchange(runs, false)) deadline = absl::Now();  // it saw that it was taken back
    if (absl::Now() < deadline && (runs || taken_back || !Interrupted())) continue;
    if (runs) return Refuse(asked.pid, "has begun and is not done after ", absl::FormatDuration(kRunPatience));
    if (std::exchange(taken_back, true)) return Refuse(asked.pid, "was left as it was: ", std::string(why));
    take_back();
    // It may begin at this moment: one more look tells.
    deadline = absl::Now() + absl::Milliseconds(50);
  }
}

}  // namespace rfinject::cli
