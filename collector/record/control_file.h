// File: control_file.h
//
// How `rfinject control` reaches a running process: a file beside the trace, TRACE.control, that holds one word. The
// command makes it, the process takes it away when it has read it. There is no port and no signal, and nothing in the
// file is a path.
//
// Only a plain file counts, and only if it belongs to this process's user and nobody else may write to it. Another
// plain file of this user's is taken away, too, because a request that stays lying looks like one that still waits.
// What is no plain file, or another user's, is left alone. The thread that writes the trace looks for it, between two
// steps.
#ifndef RFINJECT_COLLECTOR_RECORD_CONTROL_FILE_H_
#define RFINJECT_COLLECTOR_RECORD_CONTROL_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace rfinject {

class ControlFile {
 public:
  // kRefused: there was a file, and it is no request. It is not there any more, if that was possible.
  enum class Request : uint8_t { kNone, kStart, kStop, kRefused };

  // Watches for the file of the trace at this path. Must come before the first Take. May throw std::bad_alloc.
  void Watch(const std::string& trace);
  // Returns what was asked for since the last call, and removes the file. Costs one open(2) where nothing was.
  Request Take() noexcept;

 private:
  std::string path_;  // empty: there is none
};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_RECORD_CONTROL_FILE_H_
