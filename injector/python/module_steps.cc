#include "injector/python/module_steps.h"

#include <vector>

#include "collector/hash.h"
#include "collector/settings.h"
#include "collector/step_end.h"
#include "injector/attach.h"
#include "injector/layer_stack.h"
#include "injector/python/batch_size.h"
#include "injector/python/loaded_code.h"
#include "injector/python/loaders.h"
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
  if (first_call && source_ != nullptr) source_->OnFirstCall();
  if (activation_ != nullptr) activation_();
  return true;
}

// The end of a step may wait for the GPU, and the work there may need the GIL, so it is released. The caller must
// hold no Python object and no place in our tables meanwhile.
void ModuleSteps::EndInferenceStep() {
  void* thread = python_.PyEval_SaveThread();
  if (source_ != nullptr) source_->OnStepEnd(recorder_.CurrentStep());
  last_hash_ = calls_hash_.load(std::memory_order_relaxed);
  NoteCallsOfStep({}, 0);
  recorder_.EndStep(TakeSamples());
  python_.PyEval_RestoreThread(thread);
  roles_.Clear();
  // A trainer may try its validation before it trains, and the steps that the user asked for are still to come.
  constexpr uint64_t kMostBatchesTried = 16;
  const bool may_train = OptimizerExists() && recorder_.CurrentStep() <= kMostBatchesTried;
  if (GetSettings().kill && recorder_.WindowIsOver() && !may_train) RequestPoliteExit();
  EndAttachmentIfOver();
}

bool ModuleSteps::ScalerSkippedStep() noexcept {
  const uint64_t updates = ScaleUpdates(), steps = optimizer_steps_.load(std::memory_order_relaxed);
  const bool updated = scale_updates_.exchange(updates, std::memory_order_relaxed) != updates;
  return steps_at_call_.exchange(steps, std::memory_order_relaxed) == steps && updated;
}

// Such a step counts as one of the optimizer's, of the class that stepped last: what follows must not take it for
// another kind of step, or for something that was run before the training.
void ModuleSteps::EndSkippedStep() noexcept {
  NoteOptimizerStep();
  EndStepOfProgram();
  steps_at_call_.store(optimizer_steps_.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

ModuleSteps::Calls& ModuleSteps::CallsOfStep() {
  const uint64_t step = ended_.load(std::memory_order_relaxed);
  if (running_.step != step) {
    running_ = Calls();
    running_.step = step;
  }
  return running_;
}

// Ends what was run before the first training call, which is of `layer`, if that was no training. What this step has
// called so far may also be a part of it: a teacher, or a generator that makes samples.
void ModuleSteps::BeginTraining(uint32_t layer) {
  const Calls& calls = CallsOfStep();
  if (began_training_ == calls.step || optimizer_seen_.load(std::memory_order_relaxed)) return;
  const uint32_t hash = calls_hash_.load(std::memory_order_relaxed);
  const bool of_its_own =
      calls.without_gradients(layer) || calls.before_optimizer || (hash != 0 && hash == last_hash_);
  if (of_its_own) EndInferenceStep();
  began_training_ = CallsOfStep().step;
  recorder_.BeginTraining();
}

// A training loop with an optimizer may call the root several times in a step (gradient accumulation). So while
// gradients are recorded and an optimizer exists, the optimizer's step is waited for; and after such a call also
// while the model is in training mode.
bool ModuleSteps::OptimizerIsComing(const RootCall& call) {
  if (optimizer_seen_.load(std::memory_order_relaxed)) return true;
  if (!call.gradients) return call.training && CallsOfStep().training;
  if (!optimizer_exists_) optimizer_exists_ = OptimizerExists();
  return optimizer_exists_;
}

// Whether the model is entered with this call: every call of its root does that. Where the root is never called (a
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
  ended_.fetch_add(1, std::memory_order_relaxed);
  if (!optimizer.empty()) optimizer_steps_.fetch_add(1, std::memory_order_relaxed);
  for (const char c : optimizer) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  recorder_.NoteCalls(calls_.exchange(0, std::memory_order_relaxed), hash != 0 ? hash : 1, number);
}

void ModuleSteps::CountSamples(uint32_t root, uint64_t samples) {
  const uint64_t all = CallsOfStep().samples[root] += samples;
  if (all > samples_.load(std::memory_order_relaxed)) samples_.store(all, std::memory_order_relaxed);
}

// The hash tells which roots were called and whether gradients were recorded: a discriminator's step makes its
// samples without. It does not tell how often: the last accumulation of an epoch may have fewer calls.
void ModuleSteps::NoteCall(const RootCall& call, bool optimizer_is_coming) {
  Calls& calls = CallsOfStep();
  calls.before_optimizer = calls.before_optimizer || (call.gradients && !optimizer_is_coming);
  calls.training = calls.training || (call.gradients && optimizer_is_coming);
  const uint32_t mark = 2 * call.layer + (call.gradients ? 1 : 0);
  if (!calls.marks.insert(mark).second) return;
  const auto hash = static_cast<uint32_t>(HashMix(0x243F6A8885A308D3u, mark));
  calls_hash_.store(calls_hash_.load(std::memory_order_relaxed) + hash, std::memory_order_relaxed);
}

// Counts the samples of a call by which a model is entered.
uint64_t ModuleSteps::SamplesOf(const RootModule& module, const CallArguments& arguments) {
  QuietTorch quiet;
  FirstInput input;
  const Ref tensor = tensors_.FirstArgument(arguments, &input.direct);
  std::vector<long long> shape;
  if (!tensor || !tensors_.ReadShape(tensor, shape)) return 0;
  input.shape = shape;
  input.floating = tensors_.IsFloating(tensor);
  return SamplesOfCall(input, LoaderBatch(), module.sequence_first);
}

void ModuleSteps::OnRootCall(const RootModule& module, bool trained_in_eval, const CallArguments& arguments) {
  if (!EnsureActive(true) || InBackward()) return;
  LookForLoadedCode();
  InsistOnPoliteExit();
  RepairUserScopes();
  if (ScalerSkippedStep()) {
    void* thread = python_.PyEval_SaveThread();
    EndSkippedStep();
    python_.PyEval_RestoreThread(thread);
  }
  const RootCall call{.layer = module.layer,
                      .training = module.training,
                      .gradients = GradEnabled(),
                      .owned = module.owned,
                      .trained_in_eval = trained_in_eval};
  const bool coming = OptimizerIsComing(call);
  if (coming) {
    BeginTraining(module.layer);
  } else if (primary_root_ != module.root && last_hash_ != 0 &&
             calls_hash_.load(std::memory_order_relaxed) == last_hash_) {
    // The step that runs is as long as the one before, and this is another model than theirs.
    EndInferenceStep();
    primary_root_ = module.root;
  } else if (primary_root_ == module.root && EntersModel(module.layer, module.root, false) &&
             calls_.load(std::memory_order_relaxed) != 0) {
    EndInferenceStep();
  }
  const bool validation = roles_.Begin(call, optimizer_steps_.load(std::memory_order_relaxed));
  SetEvaluating(validation);
  const bool enters = EntersModel(module.layer, module.root, validation);
  if (enters && primary_root_ == 0) primary_root_ = module.root;
  if (validation) {
    validated_in_step_ = true;
  } else {
    // The time that validating took is not part of the next step.
    if (validated_in_step_ && calls_hash_.load(std::memory_order_relaxed) == 0) recorder_.RestartStep();
    validated_in_step_ = false;
    if (enters) calls_.fetch_add(1, std::memory_order_relaxed);
    NoteCall(call, coming);
  }
  UpdatePolicy();
  if (!enters || Tracing()) return;
  const uint64_t samples = SamplesOf(module, arguments);
  if (!validation) return CountSamples(module.root, samples);
  if (roles_.BeginsBatch(call)) recorder_.NoteEvaluation(samples);
}

bool ModuleSteps::EndsByModules() const noexcept {
  return primary_root_.load(std::memory_order_relaxed) != 0 && !optimizer_seen_.load(std::memory_order_relaxed);
}

void ModuleSteps::EndLastInferenceStep() noexcept {
  if (ScalerSkippedStep()) return EndSkippedStep();
  if (!EndsByModules()) return;
  if (CurrentLayer().depth != 0) return;  // the inference step is cut short
  NoteCallsOfStep({}, 0);
  recorder_.EndStep(TakeSamples());
}

void ModuleSteps::ResetAfterFork() noexcept {
  samples_.store(0, std::memory_order_relaxed);
  calls_.store(0, std::memory_order_relaxed);
  calls_hash_.store(0, std::memory_order_relaxed);
  roles_.Clear();
  ended_.store(0, std::memory_order_relaxed);
  optimizer_steps_.store(0, std::memory_order_relaxed);
  steps_at_call_.store(0, std::memory_order_relaxed);
  entrances_.clear();
  validated_in_step_ = false;
  SetEvaluating(false);
  optimizer_seen_.store(false, std::memory_order_relaxed);
  active_ = false;
  activity_decided_ = false;
  primary_root_ = 0;
  running_ = Calls();
  began_training_ = UINT64_MAX;
  last_hash_ = 0;
  policy_known_ = false;
}

}  // namespace rfinject
