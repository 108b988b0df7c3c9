#include "injector/torch/scopes.h"

#include <array>
#include <atomic>

#include "collector/settings.h"
#include "collector/step_waits.h"
#include "injector/torch/abi.h"
#include "injector/torch/autograd.h"
#include "injector/torch/name_cache.h"
#include "injector/torch/op_observer.h"
#include "injector/training.h"

namespace rfinject {
namespace {

using abi::NoContext;
using abi::RecordFunction;
using abi::RecordScope;

struct RecordReading {
  const char* (*name)(const RecordFunction*) = nullptr;
  RecordLayout layout;
};
RecordReading g_reading;
Recorder* g_scope_recorder = nullptr;
Source* g_source = nullptr;
std::atomic<bool> g_exit_requested{false};
// A hash of the name of the scope that the last optimizer's step ran in, and the optimizer's number.
std::atomic<uint32_t> g_optimizer_class{0};
std::atomic<uint32_t> g_optimizer{0};
NameCache<uint32_t> g_node_names;
// What torch calls the callbacks that it has of us; 0: none.
std::array<uint64_t, 2> g_callbacks{};
decltype(TorchSymbols::remove_callback) g_remove_callback = nullptr;

NoContext OnUserStart(const RecordFunction& record) {
  BeginUserScope(&record, g_reading.name(&record));
  return {};
}

void OnUserEnd(const RecordFunction& record, void*) {
  if (EndUserScope(&record)) EndTrainingStep();
}

// Shortens "torch::autograd::AccumulateGrad" to AccumulateGrad, as the class name in the virtual table reads.
bool InternNodeName(const char* name, uint32_t* id) {
  std::string_view text = name;
  if (const size_t colon = text.rfind("::"); colon != std::string_view::npos) text.remove_prefix(colon + 2);
  *id = g_scope_recorder->Intern(text);
  return true;
}

NoContext OnNodeStart(const RecordFunction& record) {
  const char* name = g_reading.name(&record);
  const uint32_t id = g_node_names.FindByText(name, InternNodeName);
  if (g_reading.layout.sequence_valid && g_reading.layout.forward_thread_valid) {
    BeginNode(&record, FieldOf<uint64_t>(record, g_reading.layout.sequence),
              FieldOf<uint64_t>(record, g_reading.layout.forward_thread), id);
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

void InitScopes(Recorder& recorder, Source* source) noexcept {
  g_scope_recorder = &recorder;
  g_source = source;
  g_exit_requested.store(false);
}

void BeginUserScope(const void* record, std::string_view name, uint32_t optimizer) noexcept {
  const UserScope scope = ClassifyScope(name);
  if (scope == UserScope::kOther) return;
  RequestSlotRepair();
  // In a hook of an autograd node ("optimizer in backward") there is a call for each parameter, which is no step.
  if (scope == UserScope::kOptimizerStep && RunningNode() == 0) {
    NoteOptimizerStep();
    uint32_t hash = 0;
    for (const char c : name) hash = hash * 31 + static_cast<unsigned char>(c);
    g_optimizer_class.store(hash, std::memory_order_relaxed);
    g_optimizer.store(optimizer, std::memory_order_relaxed);
  }
  if (BeginScope(record, scope) && scope == UserScope::kLoader) BeginWait(kDataWaits);
}

bool EndUserScope(const void* record) noexcept {
  const UserScope ended = EndScope(record);
  if (ended == UserScope::kLoader) EndWait(kDataWaits);
  return ended == UserScope::kOptimizerStep && RunningNode() == 0;
}

void EndTrainingStep() {
  Recorder& recorder = *g_scope_recorder;
  if (g_source != nullptr && !g_source->HasStepped()) return;
  if (g_source != nullptr) g_source->OnStepEnd(recorder.CurrentStep());
  const uint32_t optimizer_class = g_optimizer_class.load(std::memory_order_relaxed);
  NoteCallsOfStep({reinterpret_cast<const char*>(&optimizer_class), sizeof optimizer_class},
                  g_optimizer.load(std::memory_order_relaxed));
  recorder.EndStep(TakeSamplesOfStep());
  ObserveWantedOps();
  if (const uint64_t forgotten = TakeForgottenNodes(); forgotten != 0) {
    recorder.CountDrop("autograd nodes whose layer was forgotten", forgotten);
  }
  if (GetSettings().kill && recorder.WindowIsOver() && !g_exit_requested.exchange(true)) RequestPoliteExit();
  EndAttachmentIfOver();
}

void AddScopeCallbacks(const TorchSymbols& symbols, const RecordLayout& layout, ScopeCallbacks which) noexcept {
  g_reading = {.name = symbols.record_name, .layout = layout};
  g_remove_callback = symbols.remove_callback;
  const auto add = [&symbols](bool wanted, RecordScope scope, auto start, auto end) -> uint64_t {
    return wanted ? symbols.add_global_callback(abi::MakeCallback(scope, start, end)) : 0;
  };
  g_callbacks = {add(which.user, RecordScope::kUser, OnUserStart, OnUserEnd),
                 add(which.backward, RecordScope::kBackward, OnNodeStart, OnNodeEnd)};
}

void RemoveScopeCallbacks() noexcept {
  for (uint64_t& number : g_callbacks) {
    if (number != 0) g_remove_callback(number);
    number = 0;
  }
}

}  // namespace rfinject
