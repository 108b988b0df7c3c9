// File: root_roles.h
//
// RootRoles says of each call of a root module whether it is part of the training or a validation, and where a batch
// of validation begins. It is pure: it knows roots by numbers, and is told what there is to know of a call.
//
//   RootRoles roles;
//   roles.Begin({.layer = 1, .training = true, .gradients = true}, steps);   // false: it trains
//   roles.Begin({.layer = 1, .training = false, .gradients = false}, steps)  // true, once an optimizer has stepped
//
// A module trains if it was called with gradients, in training mode or with an optimizer that has its parameters. (An
// optimizer may also have those of a teacher that is a part of the same module.) What it runs without gradients is
// validation. A module that nothing trains may be a teacher, a target network or a frozen backbone, which are part of
// every step; or an average of the weights, which is validated now and then. Its calls tell: those are part of the
// steps that are made in half of the steps or more, and not more often than what trains (kOftenerThanTraining).
#ifndef RFINJECT_INJECTOR_PYTHON_ROOT_ROLES_H_
#define RFINJECT_INJECTOR_PYTHON_ROOT_ROLES_H_

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace rfinject {

struct RootCall {
  uint32_t layer = 0;
  bool training = false;         // the module's mode
  bool gradients = false;        // they are recorded on this thread
  bool owned = false;            // an optimizer has a parameter of it
  bool trained_in_eval = false;  // what trained last is in eval mode now
};

class RootRoles {
 public:
  // Tells of a call that begins. `steps` is how many optimizer steps have ended, which tells steps apart. Returns
  // whether the call is part of a validation; none is before the first of these steps.
  bool Begin(const RootCall& call, uint64_t steps);

  // After a call for which Begin has returned true: whether a batch begins with it. Several modules of one batch
  // (a frozen backbone and its head, an encoder and its decoder) are called in turns.
  bool BeginsBatch(const RootCall& call);

  // Whether the module was called to train, so that it does not matter whose its parameters are.
  bool IsKnownToTrain(uint32_t layer) const;
  // The module that was called last to train in training mode; 0: none was, or it trains in eval mode.
  uint32_t last_trained() const { return last_trained_; }

  void Clear() { *this = RootRoles(); }

 private:
  // A model without an optimizer is part of a step as long as it is not called more often than this for each call of
  // one that trains. A teacher, for example, sees two views of a picture of which its student sees one.
  static constexpr uint32_t kOftenerThanTraining = 2;

  // Calls of one kind (layer, mode, gradients) of a module that nothing trains.
  struct Quiet {
    uint32_t calls = 0;    // in the step that runs, before anything was called to train
    uint32_t later = 0;    // in it, after that
    uint64_t with = 0;     // steps that it seems to be part of
    uint64_t without = 0;  // other steps since its first one, and one for all before
    bool IsPartOfSteps() const { return with >= without; }
  };
  static constexpr uint64_t kGradients = 1, kTraining = 2;
  static uint64_t KindOf(const RootCall& call) {
    return 4 * uint64_t{call.layer} + (call.training ? kTraining : 0) + (call.gradients ? kGradients : 0);
  }
  void EndStep();
  bool IsQuiet(const RootCall& call) const;

  std::vector<uint32_t> trained_;          // layers that were called to train, in training mode
  std::vector<uint32_t> trained_in_eval_;  // those that were called with gradients in eval mode and have an optimizer
  uint32_t last_trained_ = 0;
  uint64_t steps_ = 0;
  uint32_t training_calls_ = 0;  // in the step that runs
  std::unordered_map<uint64_t, Quiet> quiet_;
  std::vector<uint32_t> batch_, last_batch_;  // layers of the batch of validation that runs, and of the one before
};

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_ROOT_ROLES_H_
