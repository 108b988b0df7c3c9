#include "cli/cmd/screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/cmd/options.h"
#include "cli/text/code_points.h"

namespace rfinject::cli {
namespace {

// xterm's sequences, which every terminal of today has: another screen, no cursor, no wrapping of long lines.
constexpr std::string_view kBeginScreen = "\033[?1049h\033[?25l\033[?7l";
constexpr std::string_view kEndScreen = "\033[?7h\033[?25h\033[?1049l";
constexpr std::string_view kHome = "\033[H", kClearLine = "\033[K", kClearBelow = "\033[J";
constexpr char kEscape = '\033';

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};

absl::Status Failed(std::string_view what) {
  return absl::Status(absl::ErrnoToStatusCode(errno),
                      absl::StrCat("the terminal: ", std::string(what), ": ", std::strerror(errno)));
}

}  // namespace

bool Screen::IsPossible() {
  const std::string term = Variable("TERM");
  return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1 && !term.empty() && term != "dumb";
}

absl::StatusOr<std::unique_ptr<Screen>> Screen::Open() {
  std::unique_ptr<Screen> screen(new Screen);
  if (::tcgetattr(STDIN_FILENO, &screen->terminal_) != 0) return Failed("tcgetattr");
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : kSignals) sigaddset(&signals, signal);
  if (::sigprocmask(SIG_BLOCK, &signals, &screen->before_) != 0) return Failed("sigprocmask");
  screen->signals_ = ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  if (screen->signals_ < 0) {
    absl::Status status = Failed("signalfd");
    ::sigprocmask(SIG_SETMASK, &screen->before_, nullptr);
    return status;
  }
  if (absl::Status status = screen->Begin(); !status.ok()) return status;
  return screen;
}

Screen::~Screen() {
  End();
  if (signals_ < 0) return;
  ::close(signals_);
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

absl::Status Screen::Begin() {
  termios keys = terminal_;
  keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  keys.c_cc[VMIN] = 1;
  keys.c_cc[VTIME] = 0;
  begun_ = true;
  if (::tcsetattr(STDIN_FILENO, TCSAFLUSH, &keys) != 0) return Failed("tcsetattr");
  return Write(kBeginScreen) ? absl::OkStatus() : Failed("write");
}

void Screen::End() {
  if (!begun_) return;
  begun_ = false;
  (void)Write(kEndScreen);
  (void)::tcsetattr(STDIN_FILENO, TCSAFLUSH, &terminal_);
}

Screen::Size Screen::size() const {
  struct winsize size {};
  Size known;
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return known;
  if (size.ws_col > 0) known.columns = size.ws_col;
  if (size.ws_row > 0) known.lines = size.ws_row;
  return known;
}

bool Screen::Write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDOUT_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {  // another process has made the terminal non-blocking
      pollfd writable = {.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
      (void)::poll(&writable, 1, -1);
      continue;
    }
    if (count < 0) return false;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

absl::Status Screen::Draw(const std::vector<std::string>& lines) {
  // One write. A line is cleared before it is drawn: behind a line that fills the screen the cursor is still on its
  // last character, which clearing would take away.
  std::string text(kHome);
  const size_t count = std::min(lines.size(), static_cast<size_t>(size().lines));
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) text += "\r\n";
    absl::StrAppend(&text, std::string(kClearLine), PrintableLines(lines[i], /*colors=*/true));
  }
  // There is no last line to clear below where the screen is full.
  if (count < static_cast<size_t>(size().lines)) absl::StrAppend(&text, "\r\n", std::string(kClearBelow));
  return Write(text) ? absl::OkStatus() : Failed("write");
}

bool Screen::HasInput(int at_most_ms) const {
  std::array<pollfd, 2> waited = {
      {{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0}, {.fd = signals_, .events = POLLIN, .revents = 0}}};
  return ::poll(waited.data(), waited.size(), at_most_ms) > 0;
}

Screen::Input Screen::Wait(absl::Duration at_most) {
  const absl::Time until = absl::Now() + at_most;
  for (;;) {
    if (const Input input = Take(); input.what != What::kNothing) return input;
    const absl::Duration left = std::max(until - absl::Now(), absl::ZeroDuration());
    if (left == absl::ZeroDuration()) return {};
    (void)HasInput(static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
  }
}

// Returns the input that is there, without waiting.
Screen::Input Screen::Take() {
  if (const Input input = TakeSignal(); input.what != What::kNothing) return input;
  pollfd keys = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  if (::poll(&keys, 1, 0) <= 0) return {};
  char typed = 0;
  const ssize_t count = ::read(STDIN_FILENO, &typed, 1);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return {};
  if (count <= 0) return {.what = What::kEnd};
  if (typed != kEscape) return {.what = What::kKey, .key = typed};
  SkipSequence();
  return {};
}

// An arrow, or whatever else comes as a sequence, is no key of ours (ECMA-48: ESC [ and bytes up to a final one; ESC
// O and one more). What has not come yet is not waited for: a lone ESC is the key of that name.
void Screen::SkipSequence() {
  pollfd keys = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  char first = 0;
  for (char byte = 0; ::poll(&keys, 1, 0) > 0 && ::read(STDIN_FILENO, &byte, 1) == 1;) {
    if (first == 0 && (byte == '[' || byte == 'O')) {
      first = byte;
    } else if (first != '[' || (byte >= '@' && byte <= '~')) {
      return;
    }
  }
}

Screen::Input Screen::TakeSignal() {
  signalfd_siginfo info;
  while (::read(signals_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    switch (info.ssi_signo) {
      case SIGWINCH:
        return {.what = What::kResized};
      case SIGTSTP:
        StopAsAsked();
        return {.what = What::kResized};
      default:
        return {.what = What::kEnd, .signal = static_cast<int>(info.ssi_signo)};
    }
  }
  return {};
}

void Screen::StopAsAsked() {
  End();
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  ::raise(SIGTSTP);  // which comes when it is let through
  ::sigprocmask(SIG_UNBLOCK, &stop, nullptr);
  ::sigprocmask(SIG_BLOCK, &stop, nullptr);
  // The shell may have let the user change the terminal meanwhile. What fails here fails again when it is drawn on.
  (void)::tcgetattr(STDIN_FILENO, &terminal_);
  (void)Begin();
}

}  // namespace rfinject::cli
