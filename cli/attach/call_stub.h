// File: call_stub.h
//
// A piece of code for another process: what torch_calls.h puts in front of functions of libtorch. It claims the call,
// opens a library, calls a function of it, writes the answer, and goes on to the function that the program called,
// with all registers as they were. Where the call was made or taken back already it only goes on.
#ifndef RFINJECT_CLI_ATTACH_CALL_STUB_H_
#define RFINJECT_CLI_ATTACH_CALL_STUB_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "cli/attach/asked.h"

namespace rfinject::cli {

// What the code reads and writes, in memory of the other process; call_stub.cc has the offsets.
struct StubData {
  int32_t state;  // RequestState
  // Not 0: the call is taken back. A thread that has claimed it looks at this once more, so that who has written it,
  // and then reads kWaits, knows that nothing will happen.
  int32_t taken_back;
  char message[kMostOfMessage + 8];
  uint64_t open, find, error;     // addresses of dlopen, dlsym and dlerror
  uint64_t path, name, argument;  // of texts
  uint64_t vectors_size;          // bytes that XSAVE writes
  uint64_t vectors;               // which parts of the processor's state it saves: those that hold arguments
  int64_t process;                // the number of the process that is meant: what it forks has a copy of all this
  uint64_t entries;               // where the entries begin; for who makes the call
};
static_assert(offsetof(StubData, message) == kMessage && offsetof(StubData, open) == 1016);

// The code for `data`, an address of the other process, followed by an entry of kStubEntry bytes for each function:
// entry i lies StubSize() + i * kStubEntry bytes behind the beginning. An entry stands for its function: it takes the
// function's arguments, and ends in the function. Empty where there is no such code for this processor.
inline constexpr size_t kStubEntry = 32;
size_t StubSize();
std::string MakeStub(uint64_t data, const std::vector<uint64_t>& functions);

// The fields by which the processor's state is saved.
void SetVectors(StubData* data);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_ATTACH_CALL_STUB_H_
