#include "collector/cupti/condition_report.h"

#include <cupti.h>

#include <string>
#include <utility>

namespace rfinject::cupti {

ConditionId ConditionOfCuptiResult(int result) {
  constexpr std::pair<CUptiResult, ConditionId> kConditionOf[] = {
      {CUPTI_ERROR_OUT_OF_MEMORY, ConditionId::kMemory},
      {CUPTI_ERROR_NOT_INITIALIZED, ConditionId::kNoPerfworks},
      {CUPTI_ERROR_HARDWARE_BUSY, ConditionId::kBusy},
      {CUPTI_ERROR_INVALID_DEVICE, ConditionId::kUnsupported},
      {CUPTI_ERROR_NOT_COMPATIBLE, ConditionId::kUnsupported},
      {CUPTI_ERROR_NOT_SUPPORTED, ConditionId::kUnsupported},
      {CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED, ConditionId::kUnsupported},
      {CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED, ConditionId::kUnsupported},
      {CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED, ConditionId::kVgpu},
      {CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES, ConditionId::kVgpu},
      {CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, ConditionId::kPermission},
      {CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED, ConditionId::kLegacyInUse},
      {CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED, ConditionId::kLegacyInUse},
      {CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, ConditionId::kSubscriber},
      {CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED, ConditionId::kConfidential},
      {CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED, ConditionId::kMig},
      {CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED, ConditionId::kWsl},
      {CUPTI_ERROR_INVALID_CHIP_NAME, ConditionId::kUnknownChip},
  };
  for (const auto& [known, condition] : kConditionOf) {
    if (known == result) return condition;
  }
  return ConditionId::kFailure;
}

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
