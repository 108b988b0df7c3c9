#include "cli/cmd/progress.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"

namespace rfinject::cli {

Progress::Progress(std::string what)
    : what_(std::move(what)), terminal_(::isatty(STDERR_FILENO) == 1), start_(absl::Now()), shown_(start_) {}

Progress::~Progress() {
  if (visible_) std::fputs("\r\033[K", stderr);
}

void Progress::Show(size_t done, size_t all) {
  if (!terminal_) return;
  const absl::Time now = absl::Now();
  if (now - start_ < absl::Seconds(1) || now - shown_ < absl::Milliseconds(100)) return;
  shown_ = now;
  visible_ = true;
  absl::FPrintF(stderr, "\r%s %d of %d\033[K", what_, done, all);
}

}  // namespace rfinject::cli
