// File: process.h
//
// What /proc tells of a process that somebody wants to attach to. The parsers are pure.
#ifndef RFINJECT_CLI_ATTACH_PROCESS_H_
#define RFINJECT_CLI_ATTACH_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace rfinject::cli {

// The whole of a file below /proc; empty where it cannot be read: the process may have ended.
std::string ReadProcFile(const std::string& path);

// A piece of a process's memory: a line of /proc/PID/maps.
struct Mapping {
  uint64_t begin = 0, end = 0, offset = 0;  // addresses, and where in the file it begins
  bool readable = false, writable = false, executable = false;
  std::string path;  // of the file, as the process knows it; "[stack]" and the like; empty: none
};
// Lines that are none are left out.
std::vector<Mapping> ParseMappings(std::string_view text);
// The part of a path behind its last slash.
std::string_view FileName(std::string_view path);
// The first mapping of the first file whose name begins with one of `names`; null where there is none.
const Mapping* FindFile(const std::vector<Mapping>& mappings, std::initializer_list<std::string_view> names);
// The mapping that `address` lies in, or null.
const Mapping* MappingAt(const std::vector<Mapping>& mappings, uint64_t address);

// Of /proc/PID/status and /proc/PID/task/TID/status.
struct ProcessStatus {
  char state = '?';  // R running, S sleeping, D waits for a device, T stopped, Z ended
  pid_t parent = 0;
  pid_t tracer = 0;              // 0: none
  pid_t own_number = 0;          // the process's number in its own namespace; 0: not known
  uid_t user = 0;                // the effective one
  uint64_t ignored_signals = 0;  // bit N - 1: signal N
  uint64_t capabilities = 0;     // the effective ones; bit N: capability N
  bool filtered = false;         // seccomp forbids it some system calls
  bool shadow_stack = false;     // returns are checked by the processor
};
ProcessStatus ParseProcessStatus(std::string_view text);

// The number of the system call that a thread is in, by /proc/PID/task/TID/syscall; -1: it runs code of its own, or
// that is not known.
int64_t ParseSystemCall(std::string_view text);

// Threads of the process, those first that can be stopped and go on without noticing: those that run code of their
// own, or wait in a system call that the kernel begins again by itself. Threads that wait for a device are left out.
std::vector<pid_t> ThreadsToStop(pid_t pid);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_ATTACH_PROCESS_H_
