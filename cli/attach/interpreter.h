// File: interpreter.h
//
// Has the Python interpreter of another process call the library, at a moment that it chooses itself.
//
// A thread of the process is stopped for less than a millisecond, and calls two functions: mmap, for a place to keep
// a text, and the interpreter's Py_AddPendingCall, which takes one lock of its own for a moment and is safe
// wherever the thread was stopped. The interpreter then runs the text on its main thread between two instructions of
// the program's, where signal handlers of Python run, too: no lock of malloc or of the loader is held there, and the
// GIL is. A main thread that waits for a lock of Python's is woken as by a signal: it looks for calls then, and waits
// again.
#ifndef RFINJECT_CLI_ATTACH_INTERPRETER_H_
#define RFINJECT_CLI_ATTACH_INTERPRETER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cli/attach/asked.h"
#include "cli/attach/stopped_thread.h"

namespace rfinject::cli {

// Addresses of Python's functions in the process.
struct PythonFunctions {
  uint64_t add_pending_call = 0;  // Py_AddPendingCall
  uint64_t run_string = 0;        // PyRun_SimpleString
  // In which a thread waits for another (thread.join()), those that there are.
  std::vector<CodeRange> waits;
};

// Has the main thread call the library. Where it does not come to that within `patience`, nothing happens at all, and
// the failure says so. Called while signals are held.
absl::Status CallByInterpreter(const Asked& asked, const PythonFunctions& python, const LibraryCall& call,
                               absl::Duration patience);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_ATTACH_INTERPRETER_H_
