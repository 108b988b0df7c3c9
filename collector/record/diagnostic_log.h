// File: diagnostic_log.h
//
// DiagnosticLog keeps what went wrong for the trace, and says it on standard error, once.
#ifndef RFINJECT_COLLECTOR_RECORD_DIAGNOSTIC_LOG_H_
#define RFINJECT_COLLECTOR_RECORD_DIAGNOSTIC_LOG_H_

#include <cstddef>
#include <string_view>

#include "collector/record/state.h"

namespace rfinject {

class DiagnosticLog {
 public:
  explicit DiagnosticLog(RecorderState* state) : state_(state) {}

  // Keeps a diagnostic, and prints it unless the recorder is idle: an idle process may turn out to be no training
  // process at all, and those hear nothing from us.
  void Report(Severity severity, std::string_view id, std::string_view text, std::string_view remedy) noexcept;
  // Prints what was reported while the recorder was idle, or while a lock was held.
  void PrintHeld() noexcept;
  // Called when the definitions have forgotten all diagnostics.
  void BeginAgain() noexcept RFINJECT_NO_THREAD_SAFETY_ANALYSIS { printed_ = 0; }
  // Prints a line, unless the user wants none.
  void PrintError(std::string_view text) const noexcept;

 private:
  void Print(const Diagnostic& diagnostic) const noexcept;

  RecorderState* const state_;
  size_t printed_ RFINJECT_GUARDED_BY(state_->lock) = 0;  // all diagnostics before this one were printed
};

// Returns the part of a text that fits into a trace.
inline std::string_view CutText(std::string_view text) { return text.substr(0, 2000); }

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_RECORD_DIAGNOSTIC_LOG_H_
