// File: module_steps.h
//
// ModuleSteps says what the calls of root modules mean for the training: they make the process a training process,
// count its samples, and end its steps as long as no optimizer does.
//
// Most of it is called with the GIL held, when a root module is entered. What the end of a step needs, on whichever
// thread that is, needs no GIL, and says so.
#ifndef RFINJECT_INJECTOR_PYTHON_MODULE_STEPS_H_
#define RFINJECT_INJECTOR_PYTHON_MODULE_STEPS_H_

#include <atomic>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "collector/recorder.h"
#include "collector/run_facts.h"
#include "collector/source.h"
#include "injector/python/call_frame.h"
#include "injector/python/python_api.h"
#include "injector/python/root_roles.h"
#include "injector/python/tensor_reader.h"

namespace rfinject {

// Called once, when the process turns out to be a training process.
using ActivationFunction = void (*)();

// A module with parameters that is about to be called, by no other one.
struct RootModule {
  uint32_t layer = 0;
  uint32_t root = 0;            // the layer of its model's root, which `layer` itself may be
  bool training = false;        // its mode
  bool owned = false;           // RootCall::owned
  bool sequence_first = false;  // of its model: SamplesOfCall
};

class ModuleSteps {
 public:
  // All but `source` and `activation`, which may be null, must outlive the object.
  ModuleSteps(const PythonApi& python, Recorder& recorder, Source* source, const TensorReader& tensors,
              ActivationFunction activation) noexcept
      : python_(python), recorder_(recorder), source_(source), tensors_(tensors), activation_(activation) {}

  // Called when a module with parameters is about to be called, by no other one. `trained_in_eval` is
  // RootCall::trained_in_eval. It may wait for the GPU and releases the GIL meanwhile, so the caller must hold no
  // Python object and no entry of a table.
  void OnRootCall(const RootModule& module, bool trained_in_eval, const CallArguments& arguments);
  const RootRoles& roles() const { return roles_; }

  // Makes this a training process, unless it is a worker of a DataLoader. `first_call` says that a root is about to
  // be called. Otherwise an optimizer's step is the first thing that is seen of the training, and what led to it is
  // part of that step.
  bool EnsureActive(bool first_call);
  // Tells the trace and the source how torch computes now (precision policy), if that has changed.
  void UpdatePolicy();

  // --- For any thread, without the GIL.

  // Samples since the last call: those of the model that had most. A student, its teacher and its target network see
  // the same ones.
  uint64_t TakeSamples() noexcept { return samples_.exchange(0, std::memory_order_relaxed); }
  // Tells the recorder what the step that ends now was made of. `optimizer` is the scope's name, or empty where a
  // root's call ends the step; `number` is the optimizer's own (optimizers.h), or 0.
  void NoteCallsOfStep(std::string_view optimizer, uint32_t number) noexcept;
  // Tells that an optimizer's step was seen. Returns true when it is the first.
  bool NoteOptimizerStep() noexcept { return !optimizer_seen_.exchange(true, std::memory_order_relaxed); }
  // Called when the process ends. Without an optimizer the model's last call was the last step.
  void EndLastInferenceStep() noexcept;
  // Called in a forked child, before it has other threads.
  void ResetAfterFork() noexcept;
  // Called when another recording begins, whose source may be another one.
  void BeginAgain(Source* source) noexcept {
    source_ = source;
    ResetAfterFork();
  }

 private:
  // What the step that runs has called so far, validation excepted.
  struct Calls {
    uint64_t step = 0;                               // by `ended_`
    std::unordered_set<uint32_t> marks;              // which layers, with and without gradients
    std::unordered_map<uint32_t, uint64_t> samples;  // by the root's layer
    bool without_gradients(uint32_t layer) const { return marks.count(2 * layer) != 0; }
    bool before_optimizer = false;  // one with gradients, when there was no optimizer yet
    bool training = false;          // one with gradients, when there was one
  };
  Calls& CallsOfStep();
  void NoteCall(const RootCall& call, bool optimizer_is_coming);
  void BeginTraining(uint32_t layer);
  void EndInferenceStep();
  // Whether a loss scaler has updated its scale since the last call of this function, and no optimizer has stepped.
  bool ScalerSkippedStep() noexcept;
  void EndSkippedStep() noexcept;
  bool OptimizerIsComing(const RootCall& call);
  bool EndsByModules() const noexcept;
  bool EntersModel(uint32_t layer, uint32_t root, bool validation);
  uint64_t SamplesOf(const RootModule& module, const CallArguments& arguments);
  void CountSamples(uint32_t root, uint64_t samples);

  const PythonApi& python_;
  Recorder& recorder_;
  Source* source_;
  const TensorReader& tensors_;
  const ActivationFunction activation_;

  std::atomic<uint64_t> samples_{0};
  std::atomic<uint64_t> ended_{0};            // steps that have ended
  std::atomic<uint64_t> optimizer_steps_{0};  // those of an optimizer
  std::atomic<uint64_t> scale_updates_{0};    // those of a loss scaler (step_end.h), when they were last looked at
  std::atomic<uint64_t> steps_at_call_{0};    // `optimizer_steps_` at that time
  std::atomic<uint32_t> calls_{0};            // how many roots the running step called, validation excepted
  std::atomic<uint32_t> calls_hash_{0};       // a hash of these roots and of whether gradients were recorded
  std::atomic<bool> optimizer_seen_{false};
  std::atomic<uint32_t> primary_root_{0};  // the model whose calls end the steps while no optimizer does

  // The layers that stand for a model whose root is never called: the first that was called to train, and the first
  // to validate.
  struct Entrance {
    bool by_root = false;
    uint32_t training = 0, validation = 0;
  };

  // Used with the GIL held.
  bool active_ = false;            // the recorder was activated by this process
  bool activity_decided_ = false;  // false again after a fork
  RootRoles roles_;
  Calls running_;
  // `ended_` when the first call with gradients came, while there was an optimizer; again, if steps that no optimizer
  // ends followed it.
  uint64_t began_training_ = UINT64_MAX;
  uint32_t last_hash_ = 0;                            // calls_hash_ of the last step that a root's call has ended
  std::unordered_map<uint32_t, Entrance> entrances_;  // by the root's layer
  bool validated_in_step_ = false;                    // since the last call that was no validation
  bool optimizer_exists_ = false;
  bool policy_known_ = false;
  PolicyFacts policy_;  // as last read
};

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_MODULE_STEPS_H_
