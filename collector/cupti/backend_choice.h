// File: backend_choice.h
//
// Decides which of CUPTI's profilers counts: once for a process, since one process may not mix them.
#ifndef RFINJECT_COLLECTOR_CUPTI_BACKEND_CHOICE_H_
#define RFINJECT_COLLECTOR_CUPTI_BACKEND_CHOICE_H_

#include <cstdint>
#include <string_view>

namespace rfinject::cupti {

enum class BackendKind : uint8_t { kNone, kRangeProfiler, kLegacyProfiler };

// "range-profiler" or "legacy-profiler", for the trace.
std::string_view BackendName(BackendKind kind);

struct BackendChoice {
  BackendKind kind = BackendKind::kNone;
  const char* reason = "";  // why not the Range Profiler; empty when it is that
};

// `features` are Api::features, the compute capability that of the device (0.0: not known), `mode` is RFINJECT_MODE.
//
//   "legacy"   the legacy profiler, or none
//   "range"    the Range Profiler where CUPTI has it, on every chip; else as any other
//   any other  the Range Profiler where CUPTI has it, except on Volta (7.0, 7.2): CUPTI documents it for Turing and
//              later, and the legacy profiler for Volta; the legacy profiler for the rest
BackendChoice ChooseBackend(uint32_t features, int cc_major, int cc_minor, std::string_view mode);

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_BACKEND_CHOICE_H_
