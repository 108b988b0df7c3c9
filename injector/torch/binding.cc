#include "injector/torch/binding.h"

#include <dlfcn.h>

#include <atomic>

#include "collector/operator_slices.h"
#include "collector/program_profiler.h"
#include "collector/settings.h"
#include "collector/site.h"
#include "collector/step_end.h"
#include "collector/step_waits.h"
#include "collector/virtual_gpu.h"
#include "injector/layer_stack.h"
#include "injector/torch/autograd.h"
#include "injector/torch/calibration.h"
#include "injector/torch/native_observer.h"
#include "injector/torch/op_observer.h"
#include "injector/torch/operator_calls.h"
#include "injector/torch/scopes.h"
#include "injector/torch/symbols.h"
#include "injector/training.h"
#include "virtual_gpu/values/values.h"

namespace rfinject {
namespace {

void Lack(std::string* missing, std::string_view what) {
  if (what.empty()) return;
  if (!missing->empty()) *missing += "; ";
  *missing += what;
}

// The best tier that the user allows: 'A' unless a lower one is forced.
char BestTier() {
  const std::string& tier = GetSettings().tier;
  return tier.size() == 1 && tier[0] >= 'A' && tier[0] <= 'F' ? tier[0] : 'A';
}

std::atomic<bool> g_bound{false};
bool (*g_profiler_enabled)() = nullptr;  // set before g_program_profiles is released
bool ProfilerEnabled() noexcept try { return g_profiler_enabled(); } catch (...) {
  return false;
}

// Has as much computed on the virtual GPU as the user wants.
void ComputeWantedValues(const TorchSymbols& symbols, const TorchLayouts& layouts, Recorder& recorder) {
  const std::string& values = GetSettings().values;
  if (values == "none") return;
  const bool every = values == "all";
  void* const library =
      dlopen((VirtualGpuFolder() + "/librfinject_values.so").c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  const auto compute = reinterpret_cast<decltype(&rfinject_virtual_gpu_compute_values)>(
      library != nullptr ? dlsym(library, "rfinject_virtual_gpu_compute_values") : nullptr);
  const char* const why = compute != nullptr ? compute(symbols, layouts, every, ListenToOperators)
                                             : "librfinject_values.so cannot be opened";
  if (why == nullptr) return;
  const std::string line =
      std::string("no ") + (every ? "" : "small ") + "tensors are computed on the virtual GPU: " + why;
  recorder.ReportDiagnostic(Severity::kInfo, "no-values", line);
  if (every) SayOfVirtualGpu(line.c_str());
}

void EndStep() noexcept try { EndTrainingStep(); } catch (...) {
}

}  // namespace

TorchCapabilities BindTorch(CalibrateFunction by_python, Recorder& recorder, Source* source, bool user_scopes_told) {
  TorchCapabilities capabilities;
  if (g_bound.exchange(true)) {
    capabilities.missing = "torch is bound already";
    return capabilities;
  }
  const char tier = BestTier();
  if (tier == 'F') {
    capabilities.missing = "RFINJECT_TIER=F";
    return capabilities;
  }
  TorchSymbols symbols;
  if (!FindTorchSymbols(&symbols)) {
    capabilities.missing = "no libtorch_cpu.so in the process";
    return capabilities;
  }
  if (!symbols.has_record_function()) {
    capabilities.missing = "not in " + symbols.path + ": " + symbols.missing;
    return capabilities;
  }
  capabilities.record_function = true;
  Lack(&capabilities.missing, symbols.missing.empty() ? "" : "not in libtorch: " + symbols.missing);

  const bool wants_ops = source != nullptr && source->wants_ops();
  CalibrationResult calibration;
  if (by_python == nullptr) {
    calibration = CalibrateNative(symbols, wants_ops);
    Lack(&capabilities.missing, calibration.missing);
  } else if (tier < 'D') {
    calibration = by_python(symbols, wants_ops);
    Lack(&capabilities.missing, calibration.missing);
  } else {
    Lack(&capabilities.missing, "RFINJECT_TIER=" + GetSettings().tier);
  }
  const TorchLayouts& layouts = calibration.layouts;
  // Layers rest on the sequence number, which was seen to be the one that a node and a RecordFunction hold.
  capabilities.sequence = layouts.node.valid || layouts.record.sequence_valid;
  // Tier C differs from A in the modules alone.
  capabilities.current_node =
      layouts.node.valid && layouts.node.reference != NodeLayout::Reference::kNone && tier != 'B';
  capabilities.backward_scope = layouts.record.sequence_valid && layouts.record.forward_thread_valid;
  capabilities.operands = layouts.record.operands_valid;

  // Where the running node cannot be asked for, a callback at every node tells at least its name.
  const NodeMeans means = capabilities.current_node ? NodeMeans::kCurrent : NodeMeans::kScope;
  InitScopes(recorder, source);
  InitAutograd(symbols, layouts.node, means, calibration.node_names, recorder);
  if (capabilities.sequence) {
    SetSequenceFunctions({.peek = symbols.peek, .thread_id = symbols.thread_id, .running_node = RunningNode});
  } else {
    SetSequenceFunctions({.running_node = RunningNode});
  }
  AddScopeCallbacks(symbols, layouts.record, {.user = !user_scopes_told, .backward = means == NodeMeans::kScope});
  if (by_python != nullptr && !user_scopes_told) WatchWaits(kDataWaits);
  // This comes before the operators themselves are observed, so that an operator's layer is known when it is
  // observed.
  if (by_python == nullptr && capabilities.sequence) {
    capabilities.native_layers = InitNativeLayers(recorder);
    if (capabilities.native_layers) {
      ObserveNativeLayers(symbols, recorder, ActivateWithoutPython);
    } else {
      Lack(&capabilities.missing, "built without libunwind");
    }
  }
  if (wants_ops && capabilities.operands) AddOpCallback(symbols, layouts, recorder, *source);
  if (HasVirtualGpu()) ComputeWantedValues(symbols, layouts, recorder);
  g_site_function.store(ReadSiteOfThread, std::memory_order_release);
  g_end_step.store(EndStep, std::memory_order_release);
  if (symbols.profiler_enabled != nullptr) {
    g_profiler_enabled = symbols.profiler_enabled;
    g_program_profiles.store(ProfilerEnabled, std::memory_order_release);
  }
  return capabilities;
}

void UnbindTorch() noexcept {
  g_site_function.store(nullptr, std::memory_order_release);
  g_end_step.store(nullptr, std::memory_order_release);
  g_program_profiles.store(nullptr, std::memory_order_release);
  g_launch_of_slices.store(nullptr, std::memory_order_release);
  StopHearingOperators();
  RemoveScopeCallbacks();
  StopObservingNativeLayers();
  SetSequenceFunctions({});
  g_bound.store(false);
}

}  // namespace rfinject
