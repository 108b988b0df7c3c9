#include "injector/safe_read.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string_view>

namespace rfinject {
namespace {

// Whether a seccomp filter is in force. It may answer an unknown call by ending the process, and cannot be asked
// about that. The kernel says so in /proc/self/status (proc(5), "Seccomp: 2"); where that cannot be read, there may
// be a filter.
bool UnderSeccompFilter() noexcept {
  const int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (file < 0) return true;
  // The line is among the first 60 of a file of some 1,500 bytes.
  char text[8192];
  size_t size = 0;
  for (ssize_t got = 1; got > 0 && size < sizeof text; size += static_cast<size_t>(std::max<ssize_t>(got, 0))) {
    got = read(file, text + size, sizeof text - size);
  }
  close(file);
  constexpr std::string_view kField = "\nSeccomp:";
  const std::string_view status(text, size);
  size_t at = status.find(kField);
  if (at == std::string_view::npos) return false;  // a kernel without seccomp
  at = status.find_first_not_of(" \t", at + kField.size());
  return at == std::string_view::npos || status[at] != '0';
}

// This is asked once: the first read comes with torch's import, and sandboxes set their filter before they start the
// program.
bool MayCallProcessVmReadv() noexcept {
  enum : int { kUnknown, kYes, kNo };
  static std::atomic<int> answer{kUnknown};
  int now = answer.load(std::memory_order_relaxed);
  if (now == kUnknown) {
    now = UnderSeccompFilter() ? kNo : kYes;
    answer.store(now, std::memory_order_relaxed);
  }
  return now == kYes;
}

// Reads where process_vm_readv may not be called, or is refused: write() into a pipe also checks an address.
size_t ReadThroughPipe(uintptr_t address, void* to, size_t size) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return 0;
  size_t done = 0;
  while (done < size) {
    const size_t page_left = 4096 - (address + done) % 4096;
    const size_t part = std::min({size - done, page_left, size_t{4096}});
    const ssize_t written = write(ends[1], reinterpret_cast<const void*>(address + done), part);
    if (written <= 0) break;
    const ssize_t got = read(ends[0], static_cast<char*>(to) + done, static_cast<size_t>(written));
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  close(ends[0]);
  close(ends[1]);
  return done;
}

}  // namespace

size_t SafeRead(uintptr_t address, void* to, size_t size) noexcept {
  const int saved_errno = errno;
  size_t done = 0;
  if (address >= 4096 && size != 0 && !MayCallProcessVmReadv()) {
    done = ReadThroughPipe(address, to, size);
  } else if (address >= 4096 && size != 0) {
    iovec local{.iov_base = to, .iov_len = size};
    // One remote part per page: the kernel then returns what lies before an unmapped page.
    iovec remote[4];
    size_t parts = 0;
    size_t covered = 0;
    while (covered < size && parts < 4) {
      const size_t part = std::min(size - covered, 4096 - (address + covered) % 4096);
      remote[parts++] = {.iov_base = reinterpret_cast<void*>(address + covered), .iov_len = part};
      covered += part;
    }
    const ssize_t got = process_vm_readv(getpid(), &local, 1, remote, parts, 0);
    if (got > 0) {
      done = static_cast<size_t>(got);
    } else if (got < 0 && errno != EFAULT) {
      done = ReadThroughPipe(address, to, size);
    }
  }
  errno = saved_errno;
  return done;
}

Snapshot TakeSnapshot(uintptr_t address, size_t size) noexcept {
  Snapshot snapshot;
  snapshot.size = SafeRead(address, snapshot.bytes.data(), std::min(size, snapshot.bytes.size()));
  return snapshot;
}

bool UnqualifiedName(const char* mangled, char* name, size_t size) noexcept {
  const char* at = mangled;
  if (*at == '*') ++at;  // local to its library
  const bool nested = *at == 'N';
  if (nested) ++at;
  const char* last = nullptr;
  size_t last_length = 0;
  while (*at >= '1' && *at <= '9') {
    size_t length = 0;
    while (*at >= '0' && *at <= '9' && length < 4096) length = length * 10 + static_cast<size_t>(*at++ - '0');
    if (strnlen(at, length) < length) return false;
    last = at;
    last_length = length;
    at += length;
    if (!nested) break;
  }
  if (last == nullptr || last_length + 1 > size) return false;
  std::memcpy(name, last, last_length);
  name[last_length] = 0;
  return true;
}

bool SafeClassName(uintptr_t address, char* name, size_t size) noexcept {
  uintptr_t table = 0;
  uintptr_t type = 0;
  uintptr_t text = 0;
  if (!SafeReadValue(address, &table) || table % 8 != 0) return false;
  if (!SafeReadValue(table - 8, &type) || type % 8 != 0) return false;
  if (!SafeReadValue(type + 8, &text)) return false;
  char mangled[256];
  const size_t got = SafeRead(text, mangled, sizeof(mangled) - 1);
  if (got == 0) return false;
  mangled[got] = 0;
  return UnqualifiedName(mangled, name, size);
}

}  // namespace rfinject
