// File: condition_report.cc
#include "collector/cupti/condition_report.h"

#include <string>

namespace rfinject::cupti {

void ReportCondition(Recorder& recorder, ConditionId id, std::string_view detail) {
  const Condition& condition = GetCondition(id);
  std::string text(condition.message);
  if (!detail.empty()) {
    text += ": ";
    text += detail;
  }
  text += LossText(condition.loss);
  recorder.ReportDiagnostic(Severity::kWarning, condition.id, text, condition.remedy);
}

void ReportResult(Recorder& recorder, std::string_view call, int result) {
  ReportCondition(recorder, ConditionOfCuptiResult(result),
                  std::string(call) + " returned " + std::to_string(result));
}

}  // namespace rfinject::cupti
