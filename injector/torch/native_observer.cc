#include "injector/torch/native_observer.h"

#include <atomic>

#include "injector/layer_stack.h"
#include "injector/native/objects.h"
#include "injector/torch/abi.h"
#include "injector/torch/autograd.h"
#include "injector/torch/scopes.h"

namespace rfinject {
namespace {

using abi::NoContext;
using abi::RecordFunction;

struct Thread {
  uint32_t depth;  // operators that run, one inside the other
  bool optimizer_ran;
  NativePlace place;  // of the outermost
};
__attribute__((tls_model("initial-exec"))) constinit thread_local Thread t_thread{};

Recorder* g_recorder = nullptr;
void (*g_on_training)() = nullptr;
std::atomic<bool> g_training{false};
std::atomic<bool> g_step_open{false};  // something was seen since the last step ended

void BeginTraining() noexcept {
  if (g_training.load(std::memory_order_relaxed) || g_training.exchange(true)) return;
  g_on_training();
}

NoContext OnStart(const RecordFunction&) {
  Thread& thread = t_thread;
  if (thread.depth++ != 0) return {};
  // The backward: the node that runs says the layer.
  if (RunningNode() != 0) return {};
  thread.place = PlaceOfThread();
  const NativePlace& place = thread.place;
  if (thread.optimizer_ran && !place.optimizer_step) {
    thread.optimizer_ran = false;
    g_step_open.store(false, std::memory_order_relaxed);
    EndTrainingStep();
    RefreshObjects();
  }
  if (place.optimizer_step) thread.optimizer_ran = true;
  if (place.layer != 0 || place.optimizer_step) {
    BeginTraining();
    g_step_open.store(true, std::memory_order_relaxed);
  }
  if (LayerOfNextNode() != place.layer) MarkNodeInterval(place.layer);
  return {};
}

void OnEnd(const RecordFunction&, void*) {
  Thread& thread = t_thread;
  if (thread.depth != 0 && --thread.depth == 0) thread.place = {};
}

}  // namespace

void ObserveNativeLayers(const TorchSymbols& symbols, Recorder& recorder, void (*on_training)()) noexcept {
  g_recorder = &recorder;
  g_on_training = on_training;
  symbols.add_global_callback(abi::MakeCallback(abi::RecordScope::kFunction, OnStart, OnEnd));
}

NativePlace CurrentNativePlace() noexcept { return t_thread.place; }

void EndLastNativeStep() noexcept {
  if (g_step_open.exchange(false) && g_recorder->active()) EndTrainingStep();
}

void ResetNativeObserverAfterFork() noexcept {
  g_training.store(false);
  g_step_open.store(false);
  ResetNativeLayersAfterFork();
}

}  // namespace rfinject
