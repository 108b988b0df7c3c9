// File: training.h
//
// The one interface between the parts of the library that see a program train. injector/python watches the modules
// and Python's scopes, injector/torch watches libtorch, and attach.cc, which wires them, acts on the process. None of
// them includes another's headers for these calls: each function is declared here and defined by the part that its
// section names. A test or a benchmark of one part defines what it leaves out.
#ifndef RFINJECT_INJECTOR_TRAINING_H_
#define RFINJECT_INJECTOR_TRAINING_H_

#include <cstdint>
#include <string_view>

namespace rfinject {

// --- injector/torch defines these.

// Scopes that torch's own Python code opens around its work.
enum class UserScope : uint8_t { kOther, kOptimizerStep, kZeroGrad, kLoader };

// Returns which scope torch's own name stands for ("Optimizer.step#SGD.step" and the like).
UserScope ClassifyScope(std::string_view name) noexcept;

// Tells that a scope called `name` has begun on this thread; most scopes do not matter here. `record` identifies it
// until it ends. `optimizer` is the number of the optimizer whose step it is (injector/python/optimizers.h), or 0
// when that is not known.
void BeginUserScope(const void* record, std::string_view name, uint32_t optimizer = 0) noexcept;
// Tells that a scope has ended, if it ever began. Returns true when a training step ends with it; the caller then
// calls EndTrainingStep().
bool EndUserScope(const void* record) noexcept;
// Ends the training step. It may wait for the GPU, so it must be called without the GIL, which the work on the GPU
// may need.
void EndTrainingStep();

// Tells whether the root module that is about to be called is being validated: its forward is then Phase::kEval.
void SetEvaluating(bool evaluating) noexcept;

// --- injector/python defines these. Any thread may call them, without the GIL.

// Returns the samples (leading dimension of the first tensor input, summed over the calls of root modules with
// parameters) since the previous call of this function, for Recorder::EndStep.
uint64_t TakeSamplesOfStep() noexcept;

// Tells the recorder what the step that ends now was made of (Recorder::NoteCalls), right before Recorder::EndStep.
// `optimizer` is torch's name for the scope, `number` the optimizer's own, or 0.
void NoteCallsOfStep(std::string_view optimizer, uint32_t number) noexcept;

// Tells that an optimizer's step runs or ran: from now on the optimizer ends the steps, and not the root module's
// next call; and the process is a training process, even if it has no modules. It costs little after the first time.
void NoteOptimizerStep() noexcept;

// Returns the layer of the gradient of `parameter` (a TensorImpl), which is kept or added up after a node that was
// born in `owner`: the module that has the parameter, where the node is compiled code of a module around it, and else
// `owner`. It allocates nothing and takes no lock.
uint32_t LayerOfGradient(uint32_t owner, uintptr_t parameter) noexcept;

// --- attach.cc defines these. Any thread may call them, without the GIL.

// Arranges for type slots that were reset to be repaired, and for new classes to be found. It is called at the start
// of a backward and at each user scope.
void RequestSlotRepair() noexcept;

// Activates the recorder in a C++ program that turns out to train or to run modules. It is called once.
void ActivateWithoutPython() noexcept;

// Tells that a step has ended. Where the process was attached to for so many steps or so long, its hooks are given
// back soon.
void EndAttachmentIfOver() noexcept;

// Asks the program to end, after the last step of the window, when Settings::kill is set: SystemExit in Python,
// SIGTERM elsewhere.
void RequestPoliteExit() noexcept;

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_TRAINING_H_
