// File: attachable.h
//
// A process that runs already, and in which functions of rfinject's library can be called: by its Python interpreter
// (interpreter.h), or, in a C++ program on libtorch, where it calls libtorch (torch_calls.h).
#ifndef RFINJECT_CLI_ATTACH_ATTACHABLE_H_
#define RFINJECT_CLI_ATTACH_ATTACHABLE_H_

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/attach/interpreter.h"
#include "cli/attach/process.h"
#include "cli/attach/torch_calls.h"

namespace rfinject::cli {

// A process in which PyTorch runs, and that we may look into.
class Attachable {
 public:
  // A failure says in one line why the process cannot be attached to; nothing was done to it.
  static absl::StatusOr<Attachable> Open(pid_t pid);
  Attachable(Attachable&& other) noexcept;
  Attachable& operator=(Attachable&&) = delete;
  ~Attachable();

  pid_t pid() const { return pid_; }
  // The effective user.
  uid_t user() const { return user_; }
  // The path of rfinject's library in the process; empty where it is not there.
  const std::string& library() const { return library_; }

  // Has a thread of the process call the function `name` of the library at `path`, with one argument where `argument`
  // is not null: const char* name(const char*). An empty text that it returns is success, another one is the
  // failure's. Where no thread comes to that within `patience`, nothing happens at all, and the failure says so.
  absl::Status CallLibrary(const std::string& path, std::string_view name, const std::string* argument,
                           absl::Duration patience) const;

 private:
  Attachable() = default;
  absl::Status FindFunctions();
  absl::Status CallOnce(const LibraryCall& call, absl::Duration patience) const;

  pid_t pid_ = 0, own_number_ = 0;
  int memory_ = -1;  // /proc/PID/mem
  uid_t user_ = 0;
  std::string library_;
  std::vector<Mapping> mappings_;
  uint64_t map_memory_ = 0, trap_ = 0;  // Asked
  PythonFunctions python_;              // of zeros: the program has none
  TorchCalls torch_calls_;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_ATTACH_ATTACHABLE_H_
