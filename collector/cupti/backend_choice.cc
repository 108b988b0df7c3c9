// File: backend_choice.cc
#include "collector/cupti/backend_choice.h"

#include "collector/cupti/api.h"

namespace rfinject::cupti {

std::string_view BackendName(BackendKind kind) {
  switch (kind) {
    case BackendKind::kRangeProfiler:
      return "range-profiler";
    case BackendKind::kLegacyProfiler:
      return "legacy-profiler";
    case BackendKind::kNone:
      break;
  }
  return {};
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

std::unique_ptr<CounterBackend> MakeBackend(BackendKind kind, const Api& api, void* context, int device,
                                            const std::vector<std::string>& user_metrics, std::string* chip,
                                            int* result) {
  switch (kind) {
    case BackendKind::kRangeProfiler:
      return MakeRangeProfiler(api, context, device, user_metrics, chip, result);
    case BackendKind::kLegacyProfiler:
      return MakeLegacyProfiler(api, context, device, user_metrics, chip, result);
    case BackendKind::kNone:
      break;
  }
  *result = CUPTI_ERROR_NOT_SUPPORTED;
  return nullptr;
}

int OpenDevice(const Api& api, void* context, int device, std::string* chip, std::vector<uint8_t>* availability) {
  CUpti_Profiler_Initialize_Params initialize = {CUpti_Profiler_Initialize_Params_STRUCT_SIZE};
  CUptiResult result = api.cuptiProfilerInitialize(&initialize);
  if (result != CUPTI_SUCCESS) return result;
  CUpti_Device_GetChipName_Params name = {CUpti_Device_GetChipName_Params_STRUCT_SIZE};
  name.deviceIndex = static_cast<size_t>(device);
  result = api.cuptiDeviceGetChipName(&name);
  if (result != CUPTI_SUCCESS) return result;
  *chip = name.pChipName;

  CUpti_Profiler_GetCounterAvailability_Params image = {CUpti_Profiler_GetCounterAvailability_Params_STRUCT_SIZE};
  image.ctx = static_cast<CUcontext>(context);
  result = api.cuptiProfilerGetCounterAvailability(&image);
  if (result != CUPTI_SUCCESS) return result;
  availability->resize(image.counterAvailabilityImageSize);
  image.pCounterAvailabilityImage = availability->data();
  return api.cuptiProfilerGetCounterAvailability(&image);
}

}  // namespace rfinject::cupti
