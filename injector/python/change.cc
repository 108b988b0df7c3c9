#include "injector/python/change.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "collector/recorder.h"
#include "collector/safe_write.h"
#include "collector/settings.h"
#include "injector/python/ref.h"

namespace rfinject {
namespace {

// Our own files have a few kilobytes each, and a user's change is no program.
constexpr size_t kMostBytes = 1 << 20;

// The file's text; empty with the reason in `*error`.
std::string ReadText(const std::string& path, std::string* error) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    *error = std::strerror(errno);
    return {};
  }
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t count = ::read(file, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) *error = std::strerror(errno);
    if (count <= 0) break;
    text.append(buffer, static_cast<size_t>(count));
    if (text.size() > kMostBytes) {
      *error = "it is larger than 1 MiB";
      break;
    }
  }
  ::close(file);
  if (error->empty() && text.find('\0') != std::string::npos) *error = "it is no text";
  return error->empty() ? text : std::string();
}

}  // namespace

void RunChange(const PythonApi& python) {
  const std::string& path = GetSettings().change;
  if (path.empty()) return;
  std::string why;
  const std::string text = ReadText(path, &why);
  if (why.empty()) {
    // Functions of the file keep the namespace for as long as they need it.
    if (RunPython(python, text.c_str(), &why)) return;
  }
  const std::string line = path + ": the change was not made: " + why;
  WriteLogLine(line.c_str());
  Recorder::Get().ReportDiagnostic(Severity::kWarning, "try", line, "");
}

}  // namespace rfinject
