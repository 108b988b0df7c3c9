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

constexpr uint32_t kOperatorsPerLook = 64;

struct NativeThread {
  bool outside;            // the last outermost operator was in no layer
  uint32_t operators;      // outermost ones, while no optimizer has stepped
  uint32_t depth;          // operators that run, one inside the other
  uint32_t optimizer_ran;  // 0, or g_observation when an optimizer's step has run here
  NativePlace place;       // of the outermost
};
__attribute__((tls_model("initial-exec"))) constinit thread_local NativeThread t_native{};

Recorder* g_recorder = nullptr;
void (*g_on_training)() = nullptr;
std::atomic<bool> g_training{false};
std::atomic<bool> g_step_open{false};        // something ran since the last step ended
std::atomic<bool> g_step_is_half{false};     // it ran already when we came
std::atomic<bool> g_names_are_whole{false};  // layers have been named from the beginning of a step on
// No optimizer is known that would end the step, which began with a call of the model.
std::atomic<bool> g_infers{false};
// Counts the calls of ObserveNativeLayers; what threads have kept from before does not count.
std::atomic<uint32_t> g_observation{0};
std::atomic<uint64_t> g_callback{0};  // what torch calls it; 0: none
decltype(TorchSymbols::remove_callback) g_remove_callback = nullptr;
bool (*g_grad_enabled)() = nullptr;  // c10::GradMode::is_enabled: a value of the thread's own; null: not known

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

void NameWhole(NativeThread* thread) noexcept {
  if (g_names_are_whole.exchange(true, std::memory_order_relaxed)) return;
  NameLayersAnew();
  thread->place = PlaceOfThread();
}

// Whether the program that was joined in the middle seems to run a model alone: where it computes without gradients,
// and no optimizer has stepped. Says so once.
bool Infers() noexcept {
  if (g_stepped.load(std::memory_order_relaxed) || g_grad_enabled == nullptr || g_grad_enabled()) return false;
  return !g_infers.exchange(true, std::memory_order_relaxed);
}

NoContext OnNativeStart(const RecordFunction&) {
  NativeThread& thread = t_native;
  if (thread.depth++ != 0) return {};
  // In the backward the node that runs tells the layer.
  if (RunningNode() != 0) return {};
  thread.place = PlaceOfThread();
  const NativePlace& place = thread.place;
  const uint32_t observation = g_observation.load(std::memory_order_relaxed);
  if (thread.optimizer_ran == observation && !place.optimizer_step) {
    thread.optimizer_ran = 0;
    g_step_open.store(false, std::memory_order_relaxed);
    g_stepped.store(true, std::memory_order_relaxed);
    if (g_step_is_half.exchange(false, std::memory_order_relaxed)) {
      if (g_infers.exchange(false, std::memory_order_relaxed)) g_recorder->LeaveStepOut();  // it did not
      NameWhole(&thread);
    }
    EndTrainingStep();
    if (g_callback.load() == 0) return {};  // that was the last one to be measured
    RefreshObjects();
  }
  if (place.layer != 0 && thread.outside && g_step_is_half.load(std::memory_order_relaxed) && Infers()) {
    EndTrainingStep();
    NameWhole(&thread);
  }
  thread.outside = place.layer == 0;
  // Where no step ends, the time that the program is attached to for does.
  if (!g_stepped.load(std::memory_order_relaxed) && ++thread.operators % kOperatorsPerLook == 0) {
    EndAttachmentIfOver();
    if (g_callback.load() == 0) return {};
  }
  if (place.optimizer_step) thread.optimizer_ran = observation;
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
  g_observation.fetch_add(1, std::memory_order_relaxed);
  g_remove_callback = symbols.remove_callback;
  g_callback.store(
      symbols.add_global_callback(abi::MakeCallback(abi::RecordScope::kFunction, OnNativeStart, OnNativeEnd)));
}

void StopObservingNativeLayers() noexcept {
  const uint64_t callback = g_callback.exchange(0);
  if (callback == 0) return;
  g_remove_callback(callback);
  for (std::atomic<bool>* fact : {&g_training, &g_step_open, &g_step_is_half, &g_infers, &g_stepped,
                                  &g_program_trains, &g_several_train, &g_validating}) {
    fact->store(false);
  }
  g_trained_model.store(0);
}

void LeaveNativeStepOut() noexcept { g_step_is_half.store(true); }

void DropOpenNativeStep() noexcept {
  if (g_stepped.load()) g_step_open.store(false);
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
