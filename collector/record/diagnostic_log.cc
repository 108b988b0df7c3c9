#include "collector/record/diagnostic_log.h"

#include <deque>
#include <string>

#include "collector/safe_write.h"

namespace rfinject {

void DiagnosticLog::PrintError(std::string_view text) const noexcept try {
  if (state_->settings.verbosity >= 0) WriteLogLine("error: " + std::string(text));
} catch (...) {
}

void DiagnosticLog::Print(const Diagnostic& diagnostic) const noexcept try {
  if (state_->settings.verbosity < 0) return;
  std::string line;
  if (diagnostic.severity == Severity::kWarning) line = "warning: ";
  if (diagnostic.severity == Severity::kError) line = "error: ";
  line += diagnostic.text;
  if (!diagnostic.remedy.empty()) line += " (" + diagnostic.remedy + ")";
  WriteLogLine(line);
} catch (...) {
}

void DiagnosticLog::PrintHeld() noexcept try {
  std::deque<Diagnostic> held;
  {
    StateGuard guard(state_);
    if (!guard) return;
    for (; printed_ < state_->definitions->diagnostics.size(); ++printed_) {
      Diagnostic& diagnostic = state_->definitions->diagnostics[printed_];
      if (!diagnostic.printed) held.push_back(diagnostic);
      diagnostic.printed = true;
    }
  }
  for (const Diagnostic& diagnostic : held) Print(diagnostic);
} catch (...) {
}

void DiagnosticLog::Report(Severity severity, std::string_view id, std::string_view text,
                           std::string_view remedy) noexcept try {
  Diagnostic to_print;
  {
    StateGuard guard(state_);
    if (!guard) return;
    Diagnostic* added =
        state_->definitions->AddDiagnostic(severity, CutText(id), CutText(text), CutText(remedy), UnixNs());
    if (added == nullptr || state_->Is(RecorderState::Mode::kIdle)) return;
    added->printed = true;
    to_print = *added;
  }
  Print(to_print);
} catch (...) {
}

}  // namespace rfinject
