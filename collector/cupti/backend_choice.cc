#include "collector/cupti/backend_choice.h"

#include "collector/cupti/api.h"

namespace rfinject::cupti {

std::string_view BackendName(BackendKind kind) {
  return kind == BackendKind::kRangeProfiler ? "range-profiler" : "legacy-profiler";
}

BackendChoice ChooseBackend(uint32_t features, int cc_major, int cc_minor, std::string_view mode) {
  auto has = [&](uint32_t wanted) { return (features & wanted) == wanted; };
  const bool range = has(kRangeProfiler | kProfilerHost);
  const bool legacy = has(kLegacyProfiler | kPerfworksHost);
  if (mode == "legacy") {
    if (legacy) return {BackendKind::kLegacyProfiler, "RFINJECT_MODE=legacy asks for it"};
    return {BackendKind::kNone, "RFINJECT_MODE=legacy, but this CUPTI has no legacy profiler"};
  }
  const bool volta = cc_major == 7 && cc_minor < 5;
  if (range && volta && legacy && mode != "range") {
    return {BackendKind::kLegacyProfiler, "CUPTI documents its range profiler for Turing and later"};
  }
  if (range) return {BackendKind::kRangeProfiler, ""};
  if (legacy) return {BackendKind::kLegacyProfiler, "this CUPTI has no range profiler (it came with 12.6 update 2)"};
  return {BackendKind::kNone, has(kLegacyProfiler) ? "no libnvperf_host.so with what the legacy profiler needs"
                                                   : "this CUPTI has neither a range profiler nor a legacy one"};
}

}  // namespace rfinject::cupti
