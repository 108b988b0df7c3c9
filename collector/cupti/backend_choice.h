// File: backend_choice.h
//
// Decides which of CUPTI's profilers counts: once for a process, since one process may not mix them.
#ifndef RFINJECT_COLLECTOR_CUPTI_BACKEND_CHOICE_H_
#define RFINJECT_COLLECTOR_CUPTI_BACKEND_CHOICE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collector/cupti/counter_backend.h"

namespace rfinject::cupti {

enum class BackendKind : uint8_t { kNone, kRangeProfiler, kLegacyProfiler };

// "range-profiler", "legacy-profiler"; "" for kNone. For the trace.
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

// Makes the profiler that was chosen. `context` is the CUcontext to profile. Returns nullptr on failure, with the
// CUptiResult in `*result`.
std::unique_ptr<CounterBackend> MakeBackend(BackendKind kind, const Api& api, void* context, int device,
                                            const std::vector<std::string>& user_metrics, std::string* chip,
                                            int* result);
std::unique_ptr<CounterBackend> MakeLegacyProfiler(const Api& api, void* context, int device,
                                                   const std::vector<std::string>& user_metrics, std::string* chip,
                                                   int* result);

// Asks what each profiler needs first: the device's chip ("GV100") and the counters that it gives. It initialises
// CUPTI's profiling, and is the first call that shows a lack of permission. It must not be called while a session
// runs. Returns a CUptiResult.
int OpenDevice(const Api& api, void* context, int device, std::string* chip, std::vector<uint8_t>* availability);

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_BACKEND_CHOICE_H_
