// File: torch_calls.h
//
// Has a C++ program on libtorch call the library, when it calls libtorch the next time.
//
// An object calls functions of another through a table of addresses, which the loader fills (DT_JMPREL). A thread of
// the process is stopped for less than a millisecond and calls mmap twice, for a piece of code and what it reads;
// then each such address of a function of libtorch is exchanged for one of that code's entries (call_stub.h).
// Whichever thread of the program then calls libtorch comes through it, opens the library, as the program itself
// could do at that place, and goes on in the function that it has called: no lock of malloc or of the loader is held
// where a program calls libtorch. Then the addresses are put back. The code stays in the process's memory, since a
// thread may be in it.
#ifndef RFINJECT_CLI_ATTACH_TORCH_CALLS_H_
#define RFINJECT_CLI_ATTACH_TORCH_CALLS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cli/attach/asked.h"
#include "cli/attach/image.h"

namespace rfinject::cli {

struct TorchCalls {
  std::vector<CallSlot> slots;             // through which the program calls libtorch
  uint64_t open = 0, find = 0, error = 0;  // addresses of dlopen, dlsym and dlerror in the process
};

// Finds them in a process; empty slots where there are none that are bound, or no dlopen.
TorchCalls FindTorchCalls(const ReadMemory& read, const std::vector<Mapping>& mappings);

// Has a thread of the process make `call`. Where none calls libtorch within `patience`, nothing happens at all, and
// the failure says so. Called while signals are held.
absl::Status CallByTorchCalls(const Asked& asked, const TorchCalls& calls, const LibraryCall& call,
                              absl::Duration patience);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_ATTACH_TORCH_CALLS_H_
