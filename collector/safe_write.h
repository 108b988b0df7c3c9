// File: safe_write.h
//
// write(2) that the program cannot notice: no signal reaches it because of us.
#ifndef RFINJECT_COLLECTOR_SAFE_WRITE_H_
#define RFINJECT_COLLECTOR_SAFE_WRITE_H_

#include <signal.h>

#include <cstddef>
#include <string_view>

namespace rfinject {

// Blocks all signals of the calling thread while it lives. A SIGXFSZ or SIGPIPE that our own writing raised meanwhile
// is taken away before signals are unblocked: either would kill a program that never wrote to that file.
class SignalShield {
 public:
  SignalShield() noexcept;
  ~SignalShield();
  SignalShield(const SignalShield&) = delete;
  SignalShield& operator=(const SignalShield&) = delete;

 private:
  sigset_t before_;
  bool xfsz_pending_ = false;
  bool pipe_pending_ = false;
};

// Writes all of `data`, going on after EINTR and short writes. Returns 0 or errno; `*written` is how many bytes went
// out in either case. Call it under a SignalShield.
int WriteAll(int fd, const void* data, size_t size, size_t* written) noexcept;

// Writes "rfinject: <line>\n" to stderr in one write; control characters become spaces. It is shielded, and ignores
// errors.
void WriteLogLine(std::string_view line) noexcept;

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_SAFE_WRITE_H_
