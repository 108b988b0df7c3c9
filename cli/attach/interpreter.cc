#include "cli/attach/interpreter.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/attach/image.h"
#include "cli/attach/job.h"
#include "cli/attach/stopped_thread.h"

namespace rfinject::cli {
namespace {

// What the text writes at the beginning of its memory: a word, and 8 bytes behind it a text with a zero at its end.
// The Python text lies one page behind.
enum State : int32_t { kWaits = 0, kSucceeded = 1, kFailed = 2, kRuns = 3 };
constexpr uint64_t kMessage = 8, kMostOfMessage = 1000, kPage = 4096;

// How long a thread is waited for that is to stop, or that is in one of the two functions, which take microseconds.
constexpr absl::Duration kThreadPatience = absl::Seconds(5);
// How long the text may run: the library finds its way around torch in some 20 ms, and closes a trace within seconds.
constexpr absl::Duration kTextPatience = absl::Seconds(30);
constexpr absl::Duration kLookForAnswer = absl::Milliseconds(2);

// In a status: the process was met in the middle of something, and another moment may do. The library says so, too.
constexpr std::string_view kBusy = ": busy: ";

constexpr const char* kLibraryFile = "librfinject.so";
constexpr const char* kOtherWay =
    "start it with rfinject instead: 'rfinject --start-stopped PROGRAM', later 'rfinject control PID start'";

template <typename... Parts>
absl::Status Refuse(pid_t pid, const Parts&... parts) {
  return absl::FailedPreconditionError(absl::StrCat("process ", pid, " ", parts...));
}

bool IsAnothers(uid_t user) { return ::geteuid() != 0 && user != ::geteuid(); }

absl::Status RefuseAnothers(pid_t pid) { return Refuse(pid, "is another user's: its user may attach, or root"); }

// Why the kernel lets us neither look into the process nor stop its threads (ptrace(2), "Ptrace access mode
// checking").
absl::Status WhyNoAccess(pid_t pid) {
  const char now = ParseProcessStatus(ReadProcFile(absl::StrCat("/proc/", pid, "/status"))).state;
  if (now == 'Z' || now == 'X' || now == '?') return Refuse(pid, "has ended");
  constexpr uint64_t kSysPtrace = uint64_t{1} << 19;
  const ProcessStatus own = ParseProcessStatus(ReadProcFile("/proc/self/status"));
  const bool may_all = (own.capabilities & kSysPtrace) != 0;
  const std::string scope = ReadProcFile("/proc/sys/kernel/yama/ptrace_scope");
  const char level = scope.empty() ? '0' : scope[0];
  if (level == '3') {
    return Refuse(pid,
                  "may not be looked into, since kernel.yama.ptrace_scope is 3, which stays until the machine is ",
                  "started anew: ", kOtherWay);
  }
  if (level != '0' && !may_all) {
    return Refuse(
        pid, "may not be looked into, since kernel.yama.ptrace_scope is ", std::string(1, level),
        ": root may attach ('sudo rfinject attach'), or 'sudo sysctl kernel.yama.ptrace_scope=0' allows it; ", "or ",
        kOtherWay);
  }
  if (own.filtered && may_all) {
    return Refuse(pid, "may not be stopped, since a seccomp filter forbids ptrace here (docker run --security-opt ",
                  "seccomp=unconfined); or ", kOtherWay);
  }
  if (may_all) {
    return Refuse(pid, "may not be looked into: it is in another user namespace, or a security module (AppArmor, ",
                  "SELinux) forbids it; ", kOtherWay);
  }
  if (own.user == 0) {
    return Refuse(pid, "may not be looked into, since this container or shell lacks the capability SYS_PTRACE ",
                  "(docker run --cap-add=SYS_PTRACE, in Kubernetes securityContext.capabilities.add); or ",
                  kOtherWay);
  }
  return Refuse(pid, "may not be looked into: it has rights that you have not (a capability, another group, memory ",
                "that it keeps to itself)", own.filtered ? ", or a seccomp filter forbids ptrace" : "",
                "; root may attach; or ", kOtherWay);
}

// What the program's file is like.
absl::Status CheckProgram(pid_t pid) {
  std::array<char, sizeof(Elf64_Ehdr)> start{};
  const int fd = ::open(absl::StrCat("/proc/", pid, "/exe").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::OkStatus();  // the next look says more
  const ssize_t size = ::read(fd, start.data(), start.size());
  ::close(fd);
  if (size != static_cast<ssize_t>(start.size()) || std::memcmp(start.data(), ELFMAG, SELFMAG) != 0) {
    return Refuse(pid, "runs no ELF program");
  }
  if (start[EI_CLASS] != ELFCLASS64) return Refuse(pid, "is a 32-bit one");
  Elf64_Ehdr header;
  std::memcpy(&header, start.data(), sizeof header);
#ifdef __x86_64__
  return header.e_machine == EM_X86_64 ? absl::OkStatus() : Refuse(pid, "runs a program of another processor's");
#else
  return absl::UnimplementedError("attaching works on x86-64 only; start the program with rfinject");
#endif
}

absl::Status CheckState(pid_t pid, const ProcessStatus& status) {
  switch (status.state) {
    case 'Z':
    case 'X':
      return Refuse(pid, "has ended");
    case 'T':
      return Refuse(pid, "is stopped: 'kill -CONT ", pid, "' lets it go on");
    default:
      break;
  }
  if (status.tracer != 0)
    return Refuse(pid, "is traced by process ", status.tracer, " (a debugger, strace), and can be by one only");
  if (status.shadow_stack) return Refuse(pid, "has a shadow stack, on which nothing can be called from outside");
  if ((status.ignored_signals >> (SIGTRAP - 1) & 1) != 0) return Refuse(pid, "ignores SIGTRAP, by which calls end");
  return absl::OkStatus();
}

// The address of an int3 in the file's code: a byte of it that may be part of any instruction.
uint64_t FindTrap(const ProcessMemory& memory, const std::vector<Mapping>& mappings, const std::string& path) {
  constexpr char kInt3 = '\xcc';
  constexpr uint64_t kPiece = 64 << 10;
  for (const Mapping& mapping : mappings) {
    if (!mapping.executable || mapping.path != path) continue;
    for (uint64_t at = mapping.begin; at < mapping.end; at += kPiece) {
      std::string code(std::min(kPiece, mapping.end - at), '\0');
      if (!memory.Read(at, code.data(), code.size())) break;
      if (const size_t found = code.find(kInt3); found != code.npos) return at + found;
    }
  }
  return 0;
}

// The address of the interpreter's function; 0 where no object exports it.
uint64_t FindInPython(const ReadMemory& read, const std::vector<Mapping>& mappings, std::string_view name) {
  // Of a process the first object is the program; libpython may be anywhere.
  const Mapping* const library = FindFile(mappings, {"libpython"});
  for (const Mapping* object : {library, mappings.empty() ? nullptr : &mappings.front()}) {
    if (object == nullptr || object->path.empty()) continue;
    if (const uint64_t address = FindFunction(read, object->begin, name)) return address;
  }
  return 0;
}

// Signals would end us in the middle of what must be put back. They arrive when this ends.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsHeld() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;
  // Whether somebody wants this command to end.
  static bool Interrupted() {
    sigset_t pending;
    ::sigpending(&pending);
    return ::sigismember(&pending, SIGINT) == 1 || ::sigismember(&pending, SIGTERM) == 1 ||
           ::sigismember(&pending, SIGHUP) == 1;
  }

 private:
  sigset_t before_;
};

}  // namespace

std::string TextOfCall(const std::string& path, std::string_view name, const std::string* argument, uint64_t status) {
  // Everything is local to a function in a namespace of its own. ctypes is there: torch imports it. PyDLL keeps the
  // GIL. Ctrl-C that arrives meanwhile is raised again. While the interpreter ends nothing is done any more.
  const std::string body = absl::StrCat(
      "def call():\n"
      " import sys\n"
      " if sys.is_finalizing(): return\n"
      " import ctypes\n"
      " def tell(state, text=b''):\n"
      "  ctypes.memmove(",
      status + kMessage, ", text[:", kMostOfMessage, "] + b'\\0', min(len(text), ", kMostOfMessage,
      ") + 1)\n"
      "  ctypes.c_int32.from_address(",
      status,
      ").value = state\n"
      " tell(",
      static_cast<int>(kRuns),
      ")\n"
      " try:\n"
      "  function = getattr(ctypes.PyDLL(bytes.fromhex('",
      absl::BytesToHexString(path), "').decode()), '", std::string(name),
      "')\n"
      "  function.restype = ctypes.c_char_p\n"
      "  why = function(",
      argument != nullptr ? absl::StrCat("bytes.fromhex('", absl::BytesToHexString(*argument), "')") : "",
      ")\n"
      "  tell(",
      static_cast<int>(kFailed), " if why else ", static_cast<int>(kSucceeded),
      ", why)\n"
      " except BaseException as error:\n"
      "  tell(",
      static_cast<int>(kFailed),
      ", (type(error).__name__ + ': ' + str(error)).encode('utf-8', 'replace'))\n"
      "  if isinstance(error, KeyboardInterrupt):\n"
      "   import _thread\n"
      "   _thread.interrupt_main()\n"
      "call()\n");
  // An exception that came out of it would be printed, and raised in the program as a SystemError.
  return absl::StrCat("try: exec(bytes.fromhex('", absl::BytesToHexString(body), "').decode(), {})\nexcept: pass\n");
}

PythonProcess::PythonProcess(PythonProcess&& other) noexcept
    : pid_(other.pid_),
      memory_(std::exchange(other.memory_, -1)),
      user_(other.user_),
      library_(std::move(other.library_)),
      mappings_(std::move(other.mappings_)),
      add_pending_call_(other.add_pending_call_),
      run_string_(other.run_string_),
      map_memory_(other.map_memory_),
      trap_(other.trap_) {}

PythonProcess::~PythonProcess() {
  if (memory_ >= 0) ::close(memory_);
}

absl::StatusOr<PythonProcess> PythonProcess::Open(pid_t pid) {
  const std::string folder = absl::StrCat("/proc/", pid);
  const std::string text = ReadProcFile(folder + "/status");
  if (text.empty()) return absl::NotFoundError(absl::StrCat("there is no process ", pid));
  const ProcessStatus status = ParseProcessStatus(text);
  if (absl::Status state = CheckState(pid, status); !state.ok()) return state;
  PythonProcess process;
  process.pid_ = pid;
  process.user_ = status.user;
  // Also where the kernel would let us: a right that the command was given is not its user's.
  if (IsAnothers(status.user)) return RefuseAnothers(pid);
  process.memory_ = ::open((folder + "/mem").c_str(), O_RDWR | O_CLOEXEC);
  if (process.memory_ < 0) return WhyNoAccess(pid);
  if (absl::Status program = CheckProgram(pid); !program.ok()) return program;
  process.mappings_ = ParseMappings(ReadProcFile(folder + "/maps"));
  const std::vector<Mapping>& mappings = process.mappings_;
  if (mappings.empty()) return Refuse(pid, "has ended, or is one of the kernel's");
  const Mapping* const c_library = FindFile(mappings, {"libc.so", "libc-2", "ld-musl"});
  if (c_library == nullptr) return Refuse(pid, "is a static binary, into which no library can be loaded");
  if (const Mapping* ours = FindFile(mappings, {kLibraryFile})) process.library_ = ours->path;
  const FindVariable find_variable = InEnvironment(ReadProcFile(folder + "/environ"));
  for (const char* variable : {"LD_PRELOAD", "CUDA_INJECTION64_PATH"}) {
    if (find_variable(variable).find(kLibraryFile) == std::string::npos || process.library_.empty()) continue;
    return Refuse(pid, "was started with rfinject; 'rfinject control ", pid,
                  " start|stop' starts and stops the measuring");
  }
  const ProcessMemory memory(process.memory_);
  const ReadMemory read = [&memory](uint64_t address, void* to, uint64_t size) {
    return memory.Read(address, to, size);
  };
  process.add_pending_call_ = FindInPython(read, mappings, "Py_AddPendingCall");
  process.run_string_ = FindInPython(read, mappings, "PyRun_SimpleString");
  if (process.add_pending_call_ == 0 || process.run_string_ == 0) {
    return Refuse(pid, "runs no Python, and rfinject attaches to Python programs only: ", kOtherWay);
  }
  if (FindFile(mappings, {"libtorch_cpu.so"}) == nullptr) return Refuse(pid, "has not loaded PyTorch");
  process.map_memory_ = FindFunction(read, c_library->begin, "mmap");
  process.trap_ = FindTrap(memory, mappings, c_library->path);
  if (process.map_memory_ == 0 || process.trap_ == 0) return Refuse(pid, "has a C library that is not understood");
  return process;
}

namespace {

// What the child that stops a thread tells us.
struct Outcome {
  uint64_t memory = 0;     // where the text was put; 0: it was not
  bool forbidden = false;  // by the kernel
  bool none = false;       // no thread could be stopped, and nothing was done: another moment may do
  std::array<char, 240> why{};
};

// Puts the text into the process and asks for it to be run. Runs in a child of ours: whatever it still holds when it
// ends, the kernel lets go.
class Request {
 public:
  Request(pid_t pid, const ProcessMemory& memory, const std::vector<Mapping>& mappings, uint64_t trap)
      : pid_(pid), memory_(memory), mappings_(mappings), trap_(trap) {}

  // Calls map_memory, writes what `text` makes of the address, and calls add(run, text).
  template <typename Text>
  absl::StatusOr<uint64_t> Make(uint64_t map_memory, uint64_t add, uint64_t run, const Text& text) {
    absl::Status last = absl::UnavailableError("no thread of it can be stopped");
    for (const pid_t tid : ThreadsToStop(pid_)) {
      StoppedThread thread(memory_, mappings_);
      const absl::Time deadline = absl::Now() + kThreadPatience;
      last = thread.Stop(tid, deadline);
      if (absl::IsUnavailable(last)) continue;
      if (!last.ok()) return last;
      none_ = false;
      if (at_ == 0) {
        const uint64_t size = kPage + text(0).size() + kPage;
        absl::StatusOr<uint64_t> mapped =
            thread.Call(map_memory, {0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, ~uint64_t{0}, 0},
                        trap_, deadline);
        if (!mapped.ok()) return mapped;
        if (*mapped == 0 || *mapped % kPage != 0) return absl::ResourceExhaustedError("it has no memory");
        at_ = *mapped;
        const std::string source = text(at_);
        if (!memory_.Write(at_ + kPage, source.c_str(), source.size() + 1))
          return absl::UnavailableError("it has ended");
      }
      absl::StatusOr<uint64_t> added = thread.Call(add, {run, at_ + kPage}, trap_, deadline);
      if (!added.ok()) return added.status();
      if (static_cast<int32_t>(*added) == 0) return at_;
      last = absl::UnavailableError("its interpreter has no room for a call; it is busy");
    }
    return last;
  }
  bool none() const { return none_; }

 private:
  const pid_t pid_;
  const ProcessMemory& memory_;
  const std::vector<Mapping>& mappings_;
  const uint64_t trap_;
  uint64_t at_ = 0;
  bool none_ = true;  // no thread was stopped
};

// Makes the request in a child, with signals held, and returns what that tells.
template <typename Make>
Outcome InChild(Request request, const Make& make) {
  Outcome outcome;
  std::strcpy(outcome.why.data(), "the process that stops a thread could not be started");
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return outcome;
  const pid_t child = ::fork();
  if (child == 0) {
    Outcome told;
    const absl::StatusOr<uint64_t> made = make(request);
    if (made.ok()) told.memory = *made;
    told.forbidden = absl::IsPermissionDenied(made.status());
    told.none = absl::IsUnavailable(made.status()) && request.none();
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
  return outcome;
}

// Waits for the text's answer at `at`. A text that the interpreter has not begun by `patience` is made an empty one.
absl::Status WaitForAnswer(pid_t pid, const ProcessMemory& memory, uint64_t at, absl::Duration patience) {
  absl::Time deadline = absl::Now() + patience;
  for (bool runs = false, taken_back = false;; absl::SleepFor(kLookForAnswer)) {
    int32_t state = kWaits;
    std::array<char, kMostOfMessage + 1> message{};
    if (!memory.Read(at, &state, sizeof state)) return Refuse(pid, "has ended");
    if (state == kSucceeded) return absl::OkStatus();
    if (state == kFailed) {
      (void)memory.Read(at + kMessage, message.data(), message.size() - 1);
      return absl::FailedPreconditionError(absl::StrCat("process ", pid, ": ", message.data()));
    }
    if (state == kRuns && !std::exchange(runs, true)) deadline = absl::Now() + kTextPatience;
    if (absl::Now() < deadline && (runs || taken_back || !SignalsHeld::Interrupted())) continue;
    if (runs) return Refuse(pid, "has begun and is not done after ", absl::FormatDuration(kTextPatience));
    if (std::exchange(taken_back, true)) {
      return Refuse(pid, "was left as it was: its main thread did not come back to Python within ",
                    absl::FormatDuration(patience),
                    " (it sleeps, waits or computes in C; --wait SECONDS waits longer)");
    }
    // The interpreter may be reading it at this moment: one more look tells.
    constexpr char kNothing = '\0';
    (void)memory.Write(at + kPage, &kNothing, 1);
    deadline = absl::Now() + absl::Milliseconds(50);
  }
}

}  // namespace

absl::Status PythonProcess::CallLibrary(const std::string& path, std::string_view name, const std::string* argument,
                                        absl::Duration patience) const {
  constexpr absl::Duration kPause = absl::Milliseconds(50);
  const absl::Time deadline = absl::Now() + patience;
  for (;; absl::SleepFor(kPause)) {
    absl::Status status = CallOnce(path, name, argument, patience);
    const std::string message(status.message());
    const size_t busy = message.find(kBusy);
    if (busy == message.npos) return status;
    if (absl::Now() + kPause >= deadline) {
      return absl::FailedPreconditionError(absl::StrCat(
          "process ", pid_, ": ", message.substr(busy + kBusy.size()), ", whenever it was looked at for ",
          absl::FormatDuration(patience), " (--wait SECONDS waits longer)"));
    }
  }
}

absl::Status PythonProcess::CallOnce(const std::string& path, std::string_view name, const std::string* argument,
                                     absl::Duration patience) const {
  const ProcessMemory memory(memory_);
  // Interrupted, the command takes its request back before it ends.
  const SignalsHeld held;
  const Outcome outcome = InChild(Request(pid_, memory, mappings_, trap_), [&](Request& request) {
    return request.Make(map_memory_, add_pending_call_, run_string_,
                        [&](uint64_t at) { return TextOfCall(path, name, argument, at); });
  });
  if (outcome.forbidden) return WhyNoAccess(pid_);
  if (outcome.none)
    return absl::UnavailableError(absl::StrCat("process ", pid_, std::string(kBusy), outcome.why.data()));
  if (outcome.memory == 0) return Refuse(pid_, "was left as it was: ", outcome.why.data());
  return WaitForAnswer(pid_, memory, outcome.memory, patience);
}

}  // namespace rfinject::cli
