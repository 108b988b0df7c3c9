// File: interpreter.h
//
// Has the Python interpreter of another process run a piece of Python, at a moment that it chooses itself.
//
// A thread of the process is stopped for less than a millisecond, and calls two functions: mmap, for a place to keep
// the text, and the interpreter's Py_AddPendingCall, which takes one lock of its own for a moment and is safe
// wherever the thread was stopped. The interpreter then runs the text on its main thread between two instructions of
// the program's, where signal handlers of Python run, too: no lock of malloc or of the loader is held there, and the
// GIL is.
#ifndef RFINJECT_CLI_ATTACH_INTERPRETER_H_
#define RFINJECT_CLI_ATTACH_INTERPRETER_H_

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/attach/process.h"

namespace rfinject::cli {

// A process in which Python with PyTorch runs, and that we may look into.
class PythonProcess {
 public:
  // A failure says in one line why the process cannot be attached to; nothing was done to it.
  static absl::StatusOr<PythonProcess> Open(pid_t pid);
  PythonProcess(PythonProcess&& other) noexcept;
  PythonProcess& operator=(PythonProcess&&) = delete;
  ~PythonProcess();

  pid_t pid() const { return pid_; }
  // The effective user.
  uid_t user() const { return user_; }
  // The path of rfinject's library in the process; empty where it is not there.
  const std::string& library() const { return library_; }

  // Has the main thread call the function `name` of the library at `path`, with one argument where `argument` is not
  // null: const char* name(const char*). An empty text that it returns is success, another one is the failure's.
  // Where the main thread does not come to that within `patience`, nothing happens at all, and the failure says so.
  absl::Status CallLibrary(const std::string& path, std::string_view name, const std::string* argument,
                           absl::Duration patience) const;

 private:
  PythonProcess() = default;
  absl::Status CallOnce(const std::string& path, std::string_view name, const std::string* argument,
                        absl::Duration patience) const;

  pid_t pid_ = 0;
  int memory_ = -1;  // /proc/PID/mem
  uid_t user_ = 0;
  std::string library_;
  std::vector<Mapping> mappings_;
  uint64_t add_pending_call_ = 0, run_string_ = 0, map_memory_ = 0, trap_ = 0;  // addresses in the process
};

// The Python text that CallLibrary has run: it calls the function, and writes what came of it to the memory at
// `status`. It leaves no name behind in the program.
std::string TextOfCall(const std::string& path, std::string_view name, const std::string* argument, uint64_t status);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_ATTACH_INTERPRETER_H_
