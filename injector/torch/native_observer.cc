#include "injector/torch/native_observer.h"

#include <atomic>

#include "injector/layer_stack.h"
#include "injector/native/objects.h"
#include "injector/torch/abi.h"
#include "injector/torch/autograd.h"
#include "injector/training.h"

namespace rfinject {
namespace {

using abi::NoContext;
using abi::RecordFunction;

struct NativeThread {
  uint32_t depth;  // operators that run, one inside the other
  bool optimizer_ran;
  NativePlace place;  // of the outermost
};
__attribute__((tls_model("initial-exec"))) constinit thread_local NativeThread t_native{};

Recorder* g_recorder = nullptr;
void (*g_on_training)() = nullptr;
std::atomic<bool> g_training{false};
std::atomic<bool> g_step_open{false};  // something ran since the last step ended
bool (*g_grad_enabled)() = nullptr;    // c10::GradMode::is_enabled: a value of the thread's own; null: not known

// Counts the batches that train and those that are validated. It assumes that models run on one thread; where they do
// not, the counts may be off.
std::atomic<bool> g_stepped{false};         // an optimizer has
std::atomic<bool> g_program_trains{false};  // modules that no class of the program's own encloses
std::atomic<uint32_t> g_trained_model{0};   // the first model that ran with gradients
std::atomic<bool> g_several_train{false};   // another model trained, too
std::atomic<bool> g_validating{false};      // since the last operator that trained
std::atomic<uint64_t> g_first_call{0};      // of a batch that is validated: NativePlace::call of its first operator

void BeginTraining() noexcept {
  if (g_training.load(std::memory_order_relaxed) || g_training.exchange(true)) return;
  g_on_training();
}

void NoteTrained(const NativePlace& place) noexcept {
  // The time of the validation is not part of the next step.
  if (g_validating.exchange(false, std::memory_order_relaxed) && !g_step_open.load(std::memory_order_relaxed)) {
    g_recorder->RestartStep();
  }
  if (place.model == 0) return g_program_trains.store(true, std::memory_order_relaxed);
  uint32_t first = 0;
  if (!g_trained_model.compare_exchange_strong(first, place.model) && first != place.model) {
    g_several_train.store(true, std::memory_order_relaxed);
  }
}

bool IsValidation(const NativePlace& place) noexcept {
  if (!g_stepped.load(std::memory_order_relaxed) || g_several_train.load(std::memory_order_relaxed)) return false;
  const uint32_t model = g_trained_model.load(std::memory_order_relaxed);
  if (place.model != 0) return place.model == model;
  // A loss outside of the model belongs to the model's batch.
  return model != 0 ? g_validating.load(std::memory_order_relaxed) : g_program_trains.load(std::memory_order_relaxed);
}

// A batch begins where the first batch began: at the same operator and the same place in the program, which a loop
// over batches reaches once a batch.
void NoteValidated(const NativePlace& place) noexcept {
  if (!g_validating.exchange(true, std::memory_order_relaxed)) {
    g_first_call.store(place.call, std::memory_order_relaxed);
  } else if (place.call != g_first_call.load(std::memory_order_relaxed)) {
    return;
  }
  g_recorder->NoteEvaluation(0);  // how many samples it has is not known
}

// Whether the operator at `place`, in a layer, is part of a validation.
bool NoteOperator(const NativePlace& place) noexcept {
  if (g_grad_enabled == nullptr || g_grad_enabled()) {
    NoteTrained(place);
    return false;
  }
  if (!IsValidation(place)) return false;
  NoteValidated(place);
  return true;
}

NoContext OnNativeStart(const RecordFunction&) {
  NativeThread& thread = t_native;
  if (thread.depth++ != 0) return {};
  // In the backward the node that runs tells the layer.
  if (RunningNode() != 0) return {};
  thread.place = PlaceOfThread();
  const NativePlace& place = thread.place;
  if (thread.optimizer_ran && !place.optimizer_step) {
    thread.optimizer_ran = false;
    g_step_open.store(false, std::memory_order_relaxed);
    g_stepped.store(true, std::memory_order_relaxed);
    EndTrainingStep();
    RefreshObjects();
  }
  if (place.optimizer_step) thread.optimizer_ran = true;
  const bool validation = place.layer != 0 && NoteOperator(place);
  if (validation) thread.place.phase = Phase::kEval;
  if ((place.layer != 0 && !validation) || place.optimizer_step) {
    BeginTraining();
    g_step_open.store(true, std::memory_order_relaxed);
  }
  if (LayerOfNextNode() != place.layer) MarkNodeInterval(place.layer);
  return {};
}

void OnNativeEnd(const RecordFunction&, void*) {
  NativeThread& thread = t_native;
  if (thread.depth == 0) return;
  if (--thread.depth == 0) thread.place = {};
}

}  // namespace

void ObserveNativeLayers(const TorchSymbols& symbols, Recorder& recorder, void (*on_training)()) noexcept {
  g_recorder = &recorder;
  g_on_training = on_training;
  g_grad_enabled = symbols.grad_enabled;
  symbols.add_global_callback(abi::MakeCallback(abi::RecordScope::kFunction, OnNativeStart, OnNativeEnd));
}

NativePlace CurrentNativePlace() noexcept { return t_native.place; }

void EndLastNativeStep() noexcept {
  if (g_step_open.exchange(false) && g_recorder->active()) EndTrainingStep();
}

void ResetNativeObserverAfterFork() noexcept {
  g_training.store(false);
  g_step_open.store(false);
  g_validating.store(false);
  ResetNativeLayersAfterFork();
}

}  // namespace rfinject
