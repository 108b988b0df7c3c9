#include "injector/torch/scopes.h"

#include <atomic>
#include <cstring>

#include "collector/settings.h"
#include "injector/python/modules.h"
#include "injector/torch/abi.h"
#include "injector/torch/autograd.h"
#include "injector/torch/binding.h"
#include "injector/torch/name_cache.h"

namespace rfinject {
namespace {

using abi::NoContext;
using abi::RecordFunction;
using abi::RecordScope;

struct Globals {
  const char* (*name)(const RecordFunction*) = nullptr;
  RecordLayout layout;
  Recorder* recorder = nullptr;
  Source* source = nullptr;
};
Globals g;
std::atomic<bool> g_exit_requested{false};
NameCache<uint32_t> g_node_names;

Phase PhaseOf(UserScope scope) { return scope == UserScope::kLoader ? Phase::kData : Phase::kOptimizer; }

void EndOfStep() {
  Recorder& recorder = *g.recorder;
  if (g.source != nullptr) g.source->OnStepEnd(recorder.CurrentStep());
  recorder.EndStep(TakeSamplesOfStep());
  if (const uint64_t forgotten = TakeForgottenNodes(); forgotten != 0) {
    recorder.CountDrop("autograd nodes whose layer was forgotten", forgotten);
  }
  const Settings& settings = GetSettings();
  const bool closed = settings.steps != 0 && recorder.CurrentStep() >= settings.skip + settings.steps;
  if (closed && settings.kill && !g_exit_requested.exchange(true)) RequestPoliteExit();
}

NoContext OnUserStart(const RecordFunction& record) {
  const UserScope scope = ClassifyScope(g.name(&record));
  if (scope == UserScope::kOther) return {};
  RequestSlotRepair();
  // In a hook of an autograd node ("optimizer in backward"), there is a call for each parameter: not a step.
  if (scope == UserScope::kOptimizerStep && RunningNode() == 0) NoteOptimizerStep();
  BeginScope(&record, PhaseOf(scope));
  return {};
}

void OnUserEnd(const RecordFunction& record, void*) {
  const UserScope scope = ClassifyScope(g.name(&record));
  if (scope == UserScope::kOther) return;
  const bool outermost = EndScope(&record);
  if (scope == UserScope::kOptimizerStep && outermost && RunningNode() == 0) EndOfStep();
}

uint64_t FieldOf(const RecordFunction& record, size_t offset) {
  uint64_t value;
  std::memcpy(&value, reinterpret_cast<const char*>(&record) + offset, sizeof(value));
  return value;
}

// "torch::autograd::AccumulateGrad" is AccumulateGrad, as the virtual table says it.
bool InternNodeName(const char* name, uint32_t* id) {
  std::string_view text = name;
  if (const size_t colon = text.rfind("::"); colon != std::string_view::npos) text.remove_prefix(colon + 2);
  *id = g.recorder->Intern(text);
  return true;
}

NoContext OnNodeStart(const RecordFunction& record) {
  const char* name = g.name(&record);
  const uint32_t id = g_node_names.FindByText(name, InternNodeName);
  if (g.layout.sequence_valid && g.layout.forward_thread_valid) {
    BeginNode(&record, FieldOf(record, g.layout.sequence), FieldOf(record, g.layout.forward_thread), id);
  } else {
    BeginNode(&record, kUnknownSequence, 0, id);
  }
  return {};
}

void OnNodeEnd(const RecordFunction& record, void*) { EndNode(&record); }

}  // namespace

UserScope ClassifyScope(std::string_view name) noexcept {
  if (name.starts_with("Optimizer.step#")) return UserScope::kOptimizerStep;
  if (name.starts_with("Optimizer.zero_grad#")) return UserScope::kZeroGrad;
  if (name.starts_with("enumerate(DataLoader)#")) return UserScope::kLoader;
  return UserScope::kOther;
}

void AddScopeCallbacks(const TorchSymbols& symbols, const RecordLayout& layout, bool backward, Recorder& recorder,
                       Source* source) noexcept {
  g = {.name = symbols.record_name, .layout = layout, .recorder = &recorder, .source = source};
  symbols.add_global_callback(abi::MakeCallback(RecordScope::kUser, OnUserStart, OnUserEnd));
  if (backward) symbols.add_global_callback(abi::MakeCallback(RecordScope::kBackward, OnNodeStart, OnNodeEnd));
}

}  // namespace rfinject
