#include "injector/python/module_steps.h"

#include <algorithm>
#include <vector>

#include "collector/settings.h"
#include "injector/attach.h"
#include "injector/layer_stack.h"
#include "injector/python/torch_state.h"
#include "injector/python/user_scopes.h"
#include "injector/training.h"

namespace rfinject {

void ModuleSteps::UpdatePolicy() {
  PolicyFacts policy = ReadPolicy();
  if (policy_known_ && policy == policy_) return;
  policy_ = policy;
  policy_known_ = true;
  RunFacts facts;
  facts.policy = policy;
  recorder_.UpdateFacts(facts);
  if (source_ != nullptr) source_->OnPolicy(policy);
}

bool ModuleSteps::EnsureActive(bool first_call) {
  if (activity_decided_) return active_;
  activity_decided_ = true;
  active_ = !InDataLoaderWorker();
  if (!active_) return false;
  if (first_call) recorder_.BeginFirstStep();
  recorder_.UpdateFacts(ReadVersions());
  recorder_.Activate();
  if (activation_ != nullptr) activation_();
  return true;
}

// The end of a step may wait for the GPU, and the work there may need the GIL, so it is released. The caller must
// hold no Python object and no place in our tables meanwhile.
void ModuleSteps::EndInferenceStep() {
  void* thread = python_.PyEval_SaveThread();
  if (source_ != nullptr) source_->OnStepEnd(recorder_.CurrentStep());
  NoteCallsOfStep({}, 0);
  recorder_.EndStep(TakeSamples());
  python_.PyEval_RestoreThread(thread);
  const Settings& settings = GetSettings();
  if (settings.kill && settings.steps > 0 && !recorder_.InWindow() &&
      recorder_.CurrentStep() >= settings.skip + settings.steps) {
    RequestPoliteExit();
  }
}

// A training loop with an optimizer may call the root several times in a step (gradient accumulation). So while
// gradients are recorded and an optimizer exists, the optimizer's step is waited for.
bool ModuleSteps::OptimizerIsComing() {
  if (optimizer_seen_.load(std::memory_order_relaxed)) return true;
  if (!GradEnabled()) return false;
  if (!optimizer_exists_) optimizer_exists_ = OptimizerExists();
  return optimizer_exists_;
}

// Only a model that has trained before is validated; otherwise its forward is what the program is for (a program that
// only evaluates, the teacher of a distillation, an average of weights). A call without gradients in training mode is
// a validation in a program that forgot to say eval(); but it may also be a generator that makes samples for its
// discriminator. So where several models train, the mode decides.
bool ModuleSteps::IsValidation(uint32_t layer, bool training) {
  const bool trains = std::find(trained_roots_.begin(), trained_roots_.end(), layer) != trained_roots_.end();
  const bool gradients = GradEnabled();
  if (training && gradients) {
    if (!trains) trained_roots_.push_back(layer);
    return false;
  }
  return trains && optimizer_seen_.load(std::memory_order_relaxed) &&
         (training ? trained_roots_.size() == 1 : !gradients || trained_roots_.size() == 1);
}

// Whether a batch begins with this call: every call of the model's root is one. Where the root is never called (a
// LightningModule's training_step calls its parts) the first part that was called stands for it.
bool ModuleSteps::EntersModel(uint32_t layer, uint32_t root, bool validation) {
  Entrance& entrance = entrances_[root];
  if (layer == root) return entrance.by_root = true;
  if (entrance.by_root) return false;
  uint32_t& first = validation ? entrance.validation : entrance.training;
  if (first == 0) first = layer;
  return first == layer;
}

void ModuleSteps::NoteCallsOfStep(std::string_view optimizer, uint32_t number) noexcept {
  // FNV-1a. The optimizer's number is not part of the hash: a program may make a new optimizer for each iteration.
  uint32_t hash = calls_hash_.exchange(0, std::memory_order_relaxed) ^ 2166136261u;
  for (const char c : optimizer) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  recorder_.NoteCalls(calls_.exchange(0, std::memory_order_relaxed), hash != 0 ? hash : 1, number);
}

void ModuleSteps::OnRootCall(uint32_t layer, uint32_t root, bool training, const CallArguments& arguments) {
  if (!EnsureActive(true) || InBackward()) return;
  InsistOnPoliteExit();
  RepairUserScopes();
  const bool validation = IsValidation(layer, training);
  SetEvaluating(validation);
  const bool enters = EntersModel(layer, root, validation);
  if (validation) {
    validated_in_step_ = true;
  } else {
    // The time that validating took is not part of the next step.
    if (validated_in_step_ && calls_hash_.load(std::memory_order_relaxed) == 0) recorder_.RestartStep();
    validated_in_step_ = false;
    if (enters) calls_.fetch_add(1, std::memory_order_relaxed);
    // The hash tells which root was called and whether gradients were wanted: a discriminator's step makes its
    // samples without.
    const uint32_t call = 2 * layer + (GradEnabled() ? 1 : 0);
    calls_hash_.store((calls_hash_.load(std::memory_order_relaxed) ^ call) * 16777619u, std::memory_order_relaxed);
  }
  if (enters) {
    if (primary_root_ == 0) {
      primary_root_ = root;
    } else if (primary_root_ == root && !OptimizerIsComing()) {
      EndInferenceStep();
    }
  }
  UpdatePolicy();
  if (!enters || Tracing()) return;
  QuietTorch quiet;
  Ref tensor = tensors_.FirstArgument(arguments);
  std::vector<long long> shape;
  const bool known = tensor && tensors_.ReadShape(tensor, shape) && !shape.empty();
  if (validation) return recorder_.NoteEvaluation(known ? static_cast<uint64_t>(shape[0]) : 0);
  if (!known) return;
  samples_.fetch_add(static_cast<uint64_t>(shape[0]), std::memory_order_relaxed);
  if (!batch_known_ && root == primary_root_) {
    batch_known_ = true;
    RunFacts facts;
    facts.batch_size = static_cast<uint64_t>(shape[0]);
    recorder_.UpdateFacts(facts);
  }
}

bool ModuleSteps::EndsByModules() const noexcept {
  return primary_root_.load(std::memory_order_relaxed) != 0 && !optimizer_seen_.load(std::memory_order_relaxed);
}

void ModuleSteps::EndLastInferenceStep() noexcept {
  if (!EndsByModules()) return;
  if (CurrentLayer().depth != 0) return;  // the inference step is cut short
  NoteCallsOfStep({}, 0);
  recorder_.EndStep(TakeSamples());
}

void ModuleSteps::ResetAfterFork() noexcept {
  samples_.store(0, std::memory_order_relaxed);
  calls_.store(0, std::memory_order_relaxed);
  calls_hash_.store(0, std::memory_order_relaxed);
  trained_roots_.clear();
  entrances_.clear();
  validated_in_step_ = false;
  SetEvaluating(false);
  optimizer_seen_.store(false, std::memory_order_relaxed);
  active_ = false;
  activity_decided_ = false;
  primary_root_ = 0;
  batch_known_ = false;
  policy_known_ = false;
}

}  // namespace rfinject
