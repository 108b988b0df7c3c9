#include "injector/python/root_roles.h"

#include <algorithm>
#include <utility>

namespace rfinject {
namespace {

bool Has(const std::vector<uint32_t>& layers, uint32_t layer) {
  return std::find(layers.begin(), layers.end(), layer) != layers.end();
}

}  // namespace

// An optimizer has stepped since the last call; or several have, one right after the other, which count as one step
// here.
void RootRoles::EndStep() {
  for (auto& [kind, quiet] : quiet_) {
    // No model that is known to train was called with gradients. Then this one trains: its optimizer holds copies of
    // its parameters in another precision, so that the two could not be matched.
    const bool trains = training_calls_ == 0 && (kind & kGradients) != 0 && quiet.calls > 0;
    const bool seldom = quiet.calls > 0 && quiet.calls <= kOftenerThanTraining * training_calls_;
    const bool part = trains || seldom || quiet.later > 0;
    ++(part ? quiet.with : quiet.without);
    quiet.calls = quiet.later = 0;
  }
  training_calls_ = 0;
}

bool RootRoles::IsKnownToTrain(uint32_t layer) const { return Has(trained_, layer); }

// In eval mode also with gradients: it may be a network whose weights are fixed and through which gradients flow, as
// that of a perceptual loss, or an average of the weights in a program that forgot no_grad().
bool RootRoles::IsQuiet(const RootCall& call) const {
  return !(call.training && call.gradients) && !Has(trained_, call.layer) && !Has(trained_in_eval_, call.layer);
}

bool RootRoles::Begin(const RootCall& call, uint64_t steps) {
  if (steps != steps_) {
    steps_ = steps;
    EndStep();
  }
  if (call.training && call.gradients) {
    if (!Has(trained_, call.layer)) trained_.push_back(call.layer);
    last_trained_ = call.layer;
    ++training_calls_;
    batch_.clear();
    return false;
  }
  if (call.gradients && call.owned && !Has(trained_in_eval_, call.layer)) trained_in_eval_.push_back(call.layer);
  if (IsQuiet(call)) {
    const auto [known, is_new] = quiet_.try_emplace(KindOf(call));
    Quiet& quiet = known->second;
    // What was not there in the first step is not part of steps until it shows that it is.
    if (is_new && steps != 0) quiet.without = 1;
    ++(training_calls_ == 0 ? quiet.calls : quiet.later);
    return steps != 0 && (call.trained_in_eval || !quiet.IsPartOfSteps());
  }
  const bool only_one_trains = trained_.size() <= 1;
  bool validation = false;
  if (call.gradients) {
    // Eval mode: a validation that records gradients, or training with statistics that stay as they are.
    validation = Has(trained_, call.layer) && only_one_trains;
  } else if (call.training) {
    // A validation in a program that forgot to say eval(). But it may also be a generator that makes samples for its
    // discriminator: where several models train, the mode decides. And where something was called to train already
    // since the last step, it is a part of this one (the choice of actions in a double DQN, labels that the model
    // makes itself).
    validation = only_one_trains && training_calls_ == 0;
  } else {
    validation = true;
  }
  if (steps == 0) validation = false;
  if (!validation && call.gradients) {
    last_trained_ = 0;
    ++training_calls_;
  }
  return validation;
}

bool RootRoles::BeginsBatch(const RootCall& call) {
  // What is called in turns belongs to one batch. An average of the weights that is validated after the model itself
  // begins a batch of its own.
  const auto known = quiet_.find(KindOf(call));
  const bool stranger = IsQuiet(call) && (known == quiet_.end() || !known->second.IsPartOfSteps());
  const bool joins = !batch_.empty() && !Has(batch_, call.layer) && batch_ != last_batch_ && !stranger;
  if (!joins) last_batch_ = std::exchange(batch_, {});
  batch_.push_back(call.layer);
  return !joins;
}

}  // namespace rfinject
