#include "cli/cmd/streams.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "cli/text/code_points.h"

namespace rfinject::cli {
namespace {

// The error of the first write to standard output that failed; 0: none did.
int g_output_error = 0;

void RememberError(bool written) {
  if (!written && g_output_error == 0) g_output_error = errno != 0 ? errno : EIO;
}

}  // namespace

bool Print(std::string_view text, Colors colors) {
  static const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  errno = 0;
  if (terminal) {
    const std::string clean = PrintableLines(text, colors == Colors::kOurs);
    RememberError(std::fwrite(clean.data(), 1, clean.size(), stdout) == clean.size());
  } else {
    RememberError(std::fwrite(text.data(), 1, text.size(), stdout) == text.size());
  }
  return g_output_error == 0;
}

void PrintError(std::string_view text, Colors colors) {
  const std::string clean = PrintableLines(text, colors == Colors::kOurs);
  std::fwrite(clean.data(), 1, clean.size(), stderr);
}

void Complain(std::string_view text) { PrintError("rfinject: " + PrintableText(text) + "\n"); }

bool Succeeded(const absl::Status& status) {
  if (!status.ok()) Complain(std::string(status.message()));
  return status.ok();
}

int FinishOutput(int code) {
  errno = 0;
  if (std::ferror(stdout) == 0) RememberError(std::fflush(stdout) == 0);
  if (g_output_error != 0) {
    static bool said = false;
    if (!said) Complain(std::string("standard output: ") + std::strerror(g_output_error));
    said = true;
    return code == 0 ? 1 : code;
  }
  return code;
}

}  // namespace rfinject::cli
