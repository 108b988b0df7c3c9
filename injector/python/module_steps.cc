#include "injector/python/module_steps.h"

#include <vector>

#include "collector/settings.h"
#include "injector/attach.h"
#include "injector/layer_stack.h"
#include "injector/python/torch_state.h"
#include "injector/python/user_scopes.h"
#include "injector/torch/binding.h"

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

// The end of a step may wait for the GPU, and what it waits for may need the GIL. The caller holds no Python object
// and no place in our tables meanwhile.
void ModuleSteps::EndInferenceStep() {
  void* thread = python_.PyEval_SaveThread();
  if (source_ != nullptr) source_->OnStepEnd(recorder_.CurrentStep());
  recorder_.EndStep(TakeSamples());
  python_.PyEval_RestoreThread(thread);
  const Settings& settings = GetSettings();
  if (settings.kill && settings.steps > 0 && !recorder_.InWindow() &&
      recorder_.CurrentStep() >= settings.skip + settings.steps) {
    RequestPoliteExit();
  }
}

// A training loop with an optimizer may call the root several times a step (gradient accumulation): while gradients
// are recorded and an optimizer exists, its step is waited for.
bool ModuleSteps::OptimizerIsComing() {
  if (optimizer_seen_.load(std::memory_order_relaxed)) return true;
  if (!GradEnabled()) return false;
  if (!optimizer_exists_) optimizer_exists_ = OptimizerExists();
  return optimizer_exists_;
}

void ModuleSteps::OnRootCall(uint32_t layer, bool is_model, const CallArguments& arguments) {
  if (!EnsureActive(true) || InBackward()) return;
  InsistOnPoliteExit();
  RepairUserScopes();
  if (is_model) {
    if (primary_root_ == 0) {
      primary_root_ = layer;
    } else if (primary_root_ == layer && !OptimizerIsComing()) {
      EndInferenceStep();
    }
  }
  UpdatePolicy();
  if (!is_model || Tracing()) return;
  QuietTorch quiet;
  Ref tensor = tensors_.FirstArgument(arguments);
  std::vector<long long> shape;
  if (!tensor || !tensors_.ReadShape(tensor, shape) || shape.empty()) return;
  samples_.fetch_add(static_cast<uint64_t>(shape[0]), std::memory_order_relaxed);
  if (!batch_known_ && layer == primary_root_) {
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
  if (CurrentLayer().depth == 0) recorder_.EndStep(TakeSamples());  // else it is cut short
}

void ModuleSteps::ResetAfterFork() noexcept {
  samples_.store(0, std::memory_order_relaxed);
  optimizer_seen_.store(false, std::memory_order_relaxed);
  active_ = false;
  activity_decided_ = false;
  primary_root_ = 0;
  batch_known_ = false;
  policy_known_ = false;
}

}  // namespace rfinject
