// File: screen.h
//
// Screen draws on the whole terminal and reads keys. While it is open the terminal's own contents are kept aside and
// typed keys are not echoed. All of that is put back when it ends, also by Ctrl-C, SIGTERM and SIGHUP, and while the
// process is stopped (Ctrl-Z).
//
//   absl::StatusOr<std::unique_ptr<Screen>> screen = Screen::Open();
//   for (;;) {
//     if (!(*screen)->Draw(lines).ok()) break;
//     const Screen::Input input = (*screen)->Wait(absl::Seconds(1));
//     if (input.what == Screen::What::kEnd) break;
//   }
#ifndef RFINJECT_CLI_CMD_SCREEN_H_
#define RFINJECT_CLI_CMD_SCREEN_H_

#include <signal.h>
#include <termios.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace rfinject::cli {

class Screen {
 public:
  // Whether standard input and output are a terminal that understands sequences.
  static bool IsPossible();
  // Only one may be open, in a process of one thread: signals are blocked for this thread and for those that it
  // starts.
  static absl::StatusOr<std::unique_ptr<Screen>> Open();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  struct Size {
    int columns = 80, lines = 24;
  };
  Size size() const;

  // Shows `lines` from the top on. Only colours have an effect in them (PrintableLines), and what is wider or longer
  // than the screen is cut off. Fails when the terminal has gone.
  absl::Status Draw(const std::vector<std::string>& lines);

  enum class What : uint8_t {
    kNothing,  // the time is over
    kKey,
    kResized,  // or begun anew after a stop
    kEnd,      // a signal asks for it, or the terminal has gone
  };
  struct Input {
    What what = What::kNothing;
    char key = 0;
    int signal = 0;  // with kEnd; 0: the terminal has gone
  };
  Input Wait(absl::Duration at_most);
  // Whether there is something for Wait to return, now or within `at_most_ms` milliseconds.
  bool HasInput(int at_most_ms = 0) const;

 private:
  Screen() = default;
  absl::Status Begin();
  void End();
  bool Write(std::string_view text);
  Input Take();
  void SkipSequence();
  Input TakeSignal();
  void StopAsAsked();

  int signals_ = -1;  // signalfd(2)
  sigset_t before_{};
  termios terminal_{};
  bool begun_ = false;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_SCREEN_H_
