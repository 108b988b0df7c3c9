#include "cli/attach/attachable.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/attach/asked.h"
#include "cli/attach/image.h"
#include "cli/attach/interpreter.h"
#include "cli/attach/job.h"
#include "cli/attach/stopped_thread.h"
#include "cli/attach/torch_calls.h"

namespace rfinject::cli {
namespace {

constexpr const char* kLibraryFile = "librfinject.so";
constexpr const char* kOtherWay =
    "start it with rfinject instead: 'rfinject --start-stopped PROGRAM', later 'rfinject control PID start'";

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
uint64_t FindInPython(const ReadMemory& read, const std::vector<Mapping>& mappings, std::string_view name,
                      uint64_t* size = nullptr) {
  // Of a process the first object is the program; libpython may be anywhere.
  const Mapping* const library = FindFile(mappings, {"libpython"});
  for (const Mapping* object : {library, mappings.empty() ? nullptr : &mappings.front()}) {
    if (object == nullptr || object->path.empty()) continue;
    if (const uint64_t address = FindFunction(read, object->begin, name, size)) return address;
  }
  return 0;
}

}  // namespace

Attachable::Attachable(Attachable&& other) noexcept
    : pid_(other.pid_),
      own_number_(other.own_number_),
      memory_(std::exchange(other.memory_, -1)),
      user_(other.user_),
      library_(std::move(other.library_)),
      mappings_(std::move(other.mappings_)),
      map_memory_(other.map_memory_),
      trap_(other.trap_),
      python_(std::move(other.python_)),
      torch_calls_(std::move(other.torch_calls_)) {}

Attachable::~Attachable() {
  if (memory_ >= 0) ::close(memory_);
}

absl::StatusOr<Attachable> Attachable::Open(pid_t pid) {
  const std::string folder = absl::StrCat("/proc/", pid);
  const std::string text = ReadProcFile(folder + "/status");
  if (text.empty()) return absl::NotFoundError(absl::StrCat("there is no process ", pid));
  const ProcessStatus status = ParseProcessStatus(text);
  if (absl::Status state = CheckState(pid, status); !state.ok()) return state;
  Attachable process;
  process.pid_ = pid;
  process.own_number_ = status.own_number != 0 ? status.own_number : pid;
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
  if (absl::Status found = process.FindFunctions(); !found.ok()) return found;
  return process;
}

absl::Status Attachable::FindFunctions() {
  const ProcessMemory memory(memory_);
  const ReadMemory read = [&memory](uint64_t address, void* to, uint64_t size) {
    return memory.Read(address, to, size);
  };
  if (FindFile(mappings_, {"libtorch_cpu.so"}) == nullptr) return Refuse(pid_, "has not loaded PyTorch");
  const Mapping* const c_library = FindFile(mappings_, {"libc.so", "libc-2", "ld-musl"});
  map_memory_ = FindFunction(read, c_library->begin, "mmap");
  trap_ = FindTrap(memory, mappings_, c_library->path);
  if (map_memory_ == 0 || trap_ == 0) return Refuse(pid_, "has a C library that is not understood");
  python_ = {.add_pending_call = FindInPython(read, mappings_, "Py_AddPendingCall"),
             .run_string = FindInPython(read, mappings_, "PyRun_SimpleString")};
  // The second since Python 3.13.
  for (const char* const wait : {"PyThread_acquire_lock_timed", "_PySemaphore_Wait"}) {
    uint64_t size = 0;
    const uint64_t begin = FindInPython(read, mappings_, wait, &size);
    if (begin != 0) python_.waits.push_back({begin, begin + size});
  }
  if (python_.add_pending_call != 0 && python_.run_string != 0) {
    // Where the interpreter is ending, Python 3.8's Py_AddPendingCall prints an error, for which it runs Python on
    // the thread that was stopped, wherever that stands.
    const bool is_new_enough = FindInPython(read, mappings_, "PyFrame_GetCode") != 0;
    return is_new_enough ? absl::OkStatus() : Refuse(pid_, "runs a Python before 3.9: ", kOtherWay);
  }
  python_ = {};
  torch_calls_ = FindTorchCalls(read, mappings_);
  if (!torch_calls_.slots.empty()) return absl::OkStatus();
  return Refuse(pid_,
                "runs no Python, and has no table through which it calls libtorch (it has not called it yet, is ",
                "being attached to, or was compiled with -fno-plt): ", kOtherWay);
}

absl::Status Attachable::CallLibrary(const std::string& path, std::string_view name, const std::string* argument,
                                     absl::Duration patience) const {
  constexpr absl::Duration kPause = absl::Milliseconds(50);
  const absl::Time deadline = absl::Now() + patience;
  for (;; absl::SleepFor(kPause)) {
    absl::Status status = CallOnce({path, name, argument}, patience);
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

absl::Status Attachable::CallOnce(const LibraryCall& call, absl::Duration patience) const {
  // Interrupted, the command takes its request back before it ends.
  const SignalsHeld held;
  const Asked asked{pid_, own_number_, ProcessMemory(memory_), mappings_, map_memory_, trap_};
  absl::Status status = python_.run_string != 0 ? CallByInterpreter(asked, python_, call, patience)
                                                : CallByTorchCalls(asked, torch_calls_, call, patience);
  return absl::IsPermissionDenied(status) ? WhyNoAccess(pid_) : status;
}

}  // namespace rfinject::cli
