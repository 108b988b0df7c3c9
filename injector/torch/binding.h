// File: binding.h
//
// Binds to the libtorch of this process, with nothing of torch's headers compiled in: symbols by name, memory layouts
// by calibration (run something known, find it in memory, check it on a second known thing), each only trusted after
// its own self-test. What could not be verified is not used, and the capabilities below say so.
#ifndef RFINJECT_INJECTOR_TORCH_BINDING_H_
#define RFINJECT_INJECTOR_TORCH_BINDING_H_

#include <string>

#include "collector/recorder.h"
#include "collector/source.h"
#include "injector/torch/calibration.h"

namespace rfinject {

struct TorchCapabilities {
  bool record_function = false;  // RecordFunction callbacks can be added: scopes of user code, steps, phases
  bool sequence = false;         // sequence numbers and thread ids: forward nodes get owners
  bool current_node = false;     // the running node can be asked for, layout of Node verified
  bool backward_scope = false;   // sequence number and forward thread of RecordFunction verified
  bool operands = false;         // operators' operands can be read (needed by the estimator)
  bool native_layers = false;    // C++ programs: layers come from the native stack
  std::string missing;           // one line: what is missing and why; empty when nothing is
};

// Must be called once, and again only after UnbindTorch, when libtorch is loaded and initialised: in a Python program
// with the GIL held and with the function that calibrates by Python, in a C++ program on libtorch with null. Runs the
// calibration, installs the callbacks that the capabilities allow, and sets g_site_function. `source` may be null.
// `user_scopes_told` says that type slots of Python already call BeginUserScope and EndUserScope, so that no callback
// is needed for them. Nothing that it runs may be visible to the program: default generators, grad mode, autocast,
// warnings and the autograd sequence are left as they were, as far as torch allows. It is not noexcept: a daemon
// thread whose interpreter ends is unwound out of the Python code that this runs, and memory may run out.
TorchCapabilities BindTorch(CalibrateFunction by_python, Recorder& recorder, Source* source, bool user_scopes_told);

// Takes all callbacks from torch and lets nothing ask for the site any more. What runs goes on and ends as it would
// have.
void UnbindTorch() noexcept;

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_TORCH_BINDING_H_
