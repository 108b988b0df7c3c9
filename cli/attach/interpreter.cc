#include "cli/attach/interpreter.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace rfinject::cli {
namespace {

// The Python text that is run: it calls the function, and writes what came of it to the memory at `status`. It leaves
// no name behind in the program.
std::string TextOfCall(const LibraryCall& call, pid_t process, uint64_t status) {
  // Everything is local to a function in a namespace of its own. ctypes is there: torch imports it. PyDLL keeps the
  // GIL. Ctrl-C that arrives meanwhile is raised again. While the interpreter ends nothing is done any more.
  const std::string body = absl::StrCat(
      "def call():\n"
      " import os, sys\n"
      " if os.getpid() != ",
      process,
      " or sys.is_finalizing(): return\n"
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
      absl::BytesToHexString(call.path), "').decode()), '", std::string(call.name),
      "')\n"
      "  function.restype = ctypes.c_char_p\n"
      "  why = function(",
      call.argument != nullptr ? absl::StrCat("bytes.fromhex('", absl::BytesToHexString(*call.argument), "')") : "",
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

// Has a main thread look for calls that waits for a lock of Python's.
void WakeMainThread(const Asked& asked, const PythonFunctions& python) {
  const std::string folder = absl::StrCat("/proc/", asked.pid, "/task/", asked.pid);
  if (python.waits.empty() || ParseSystemCall(ReadProcFile(folder + "/syscall")) != SYS_futex) return;
  const auto wake = [&](StoppedThread& thread, absl::Time) -> absl::StatusOr<uint64_t> {
    (void)thread.EndWait(python.waits);
    return 1;
  };
  OnStoppedThread(asked, asked.pid, wake).IgnoreError();  // another command may stop it; it is not woken then
}

}  // namespace

absl::Status CallByInterpreter(const Asked& asked, const PythonFunctions& python, const LibraryCall& call,
                               absl::Duration patience) {
  // The answer's page; the text is in those behind it.
  uint64_t at = 0;
  const absl::StatusOr<uint64_t> memory =
      OnStoppedThread(asked, [&](StoppedThread& thread, absl::Time deadline) -> absl::StatusOr<uint64_t> {
        if (at == 0) {
          absl::StatusOr<uint64_t> mapped =
              MapMemory(asked, thread, kPage + TextOfCall(call, asked.own_number, 0).size() + kPage,
                        PROT_READ | PROT_WRITE, deadline);
          if (!mapped.ok()) return mapped;
          const std::string text = TextOfCall(call, asked.own_number, *mapped);
          if (!asked.memory.Write(*mapped + kPage, text.c_str(), text.size() + 1))
            return absl::UnavailableError("it has ended");
          at = *mapped;
        }
        absl::StatusOr<uint64_t> added =
            thread.Call(python.add_pending_call, {python.run_string, at + kPage}, asked.trap, deadline);
        if (!added.ok()) return added;
        if (static_cast<int32_t>(*added) == 0) return at;
        return absl::UnavailableError("its interpreter has no room for a call; it is busy");
      });
  if (!memory.ok()) return memory.status();
  const auto make_empty = [&] {
    constexpr char kNothing = '\0';
    (void)asked.memory.Write(*memory + kPage, &kNothing, 1);
  };
  const auto wake = [&] { WakeMainThread(asked, python); };
  return WaitForAnswer(
      asked, *memory, patience, make_empty, wake,
      absl::StrCat("its main thread did not come back to Python within ", absl::FormatDuration(patience),
                   " (it sleeps, waits or computes in C; --wait SECONDS waits longer)"));
}

}  // namespace rfinject::cli
