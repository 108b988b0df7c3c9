#include "collector/source.h"

#include "collector/cupti/hardware_source.h"
#include "collector/recorder.h"
#include "collector/run_facts.h"

namespace rfinject {

Source* MakeSource(const Settings& settings, Recorder& recorder) noexcept {
  if (!settings.estimate.empty()) return MakeEstimator(settings, recorder);
  if (Source* hardware = MakeHardwareSource(settings, recorder); hardware != nullptr) return hardware;
  recorder.ReportDiagnostic(Severity::kInfo, "no-source",
                            "no NVIDIA driver in this process and no --estimate: recording layers and steps only",
                            "rfinject --estimate A100-SXM4-40GB PROGRAM");
  RunFacts facts;
  facts.source = SourceKind::kNone;
  recorder.UpdateFacts(facts);
  return nullptr;
}

}  // namespace rfinject
