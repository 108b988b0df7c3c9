#include "collector/safe_write.h"

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>

namespace rfinject {
namespace {

bool IsPending(int signal) noexcept {
  sigset_t pending;
  sigemptyset(&pending);
  sigpending(&pending);
  return sigismember(&pending, signal) == 1;
}

void TakePending(int signal) noexcept {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  const timespec now{};
  while (sigtimedwait(&set, nullptr, &now) < 0 && errno == EINTR) {
  }
}

}  // namespace

SignalShield::SignalShield() noexcept {
  sigset_t all;
  sigfillset(&all);
  sigemptyset(&before_);
  // sigprocmask sets the calling thread's mask on Linux, as pthread_sigmask does, whose symbol moved in glibc 2.32.
  sigprocmask(SIG_SETMASK, &all, &before_);
  xfsz_pending_ = IsPending(SIGXFSZ);
  pipe_pending_ = IsPending(SIGPIPE);
}

SignalShield::~SignalShield() {
  const int saved = errno;
  if (!xfsz_pending_ && IsPending(SIGXFSZ)) TakePending(SIGXFSZ);
  if (!pipe_pending_ && IsPending(SIGPIPE)) TakePending(SIGPIPE);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
  errno = saved;
}

int WriteAll(int fd, const void* data, size_t size, size_t* written) noexcept {
  const auto* bytes = static_cast<const char*>(data);
  *written = 0;
  while (*written < size) {
    const ssize_t n = write(fd, bytes + *written, size - *written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) return EIO;  // a file that takes nothing would make this loop endless
    *written += static_cast<size_t>(n);
  }
  return 0;
}

void WriteLogLine(std::string_view line) noexcept {
  const int saved = errno;
  char text[1024] = "rfinject: ";
  size_t size = std::strlen(text);
  for (char c : line) {
    if (size == sizeof text - 1) break;
    text[size++] = static_cast<uint8_t>(c) < 0x20 || c == 0x7F ? ' ' : c;
  }
  text[size++] = '\n';
  SignalShield shield;
  size_t written;
  WriteAll(STDERR_FILENO, text, size, &written);
  errno = saved;
}

}  // namespace rfinject
