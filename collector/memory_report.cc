#include "collector/memory_report.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace rfinject {
namespace {

// Reports what torch's own message does not know: which layers have the memory.
void ReportRefusal(MemoryPeak peak, Recorder& recorder) noexcept try {
  const auto place = [&](uint32_t layer, Phase phase) {
    LayerDefinition found;
    (void)recorder.FindLayer(layer, &found);
    const std::string& name = found.path.empty() ? found.class_name : found.path;  // the root has no path
    const std::string_view phase_name = kPhaseNames[static_cast<size_t>(phase)];
    return (name.empty() ? "no layer" : name) + ", " + std::string(phase_name);
  };
  const auto megabytes = [](uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; };
  constexpr size_t kNamed = 3;
  std::ranges::stable_sort(peak.parts, std::ranges::greater{}, &MemoryPart::bytes);
  std::string most;
  for (size_t i = 0; i < std::min(kNamed, peak.parts.size()); ++i) {
    most += (i == 0 ? ", most in " : "; ") + place(peak.parts[i].layer, peak.parts[i].phase) + " (" +
            megabytes(peak.parts[i].bytes) + ")";
  }
  recorder.ReportDiagnostic(Severity::kWarning, "out-of-memory",
                            "the GPU's memory is full: " + megabytes(peak.refused_bytes) +
                                " more were asked for in " + place(peak.refused_layer, peak.refused_phase) +
                                ". At the peak " + megabytes(peak.allocated_bytes) + " were allocated" + most,
                            "'rfinject report --by memory' has all of it");
} catch (const std::exception&) {
  recorder.CountDrop("where the memory was when it was full");
}

}  // namespace

void ReportMemory(MemoryWatch* memory, Recorder& recorder) noexcept {
  MemoryPeak peak;
  if (!memory->TakePeak(&peak)) return;
  recorder.NoteMemoryPeak(peak);
  if (peak.refused_bytes != 0) ReportRefusal(std::move(peak), recorder);
}

}  // namespace rfinject
