// File: native_layers.h
//
// Finds the layers of a C++ program on libtorch, which has no Module.__call__ to watch: an operator is in the layer
// whose X::forward functions are on the native stack above it (frame_role.h). The path is their chain,
// "Sequential#2.BasicBlock.Conv2d". Several modules of one class differ by the place in the enclosing forward that
// calls them; the second such place is #2. The outermost class that the program defines is the model. If the compiler
// has left no such class on the stack (forward inlined into main), the program itself is the model.
//
// An unwind costs about a hundred microseconds, so each thread remembers two things: where the return address that
// follows a given one lies on the stack (which stays true while frames have a fixed size), and which layer a chain of
// return addresses stands for. A known chain is then read without unwinding. A chain is unwound only when it is new
// or lies at new places.
#ifndef RFINJECT_INJECTOR_NATIVE_NATIVE_LAYERS_H_
#define RFINJECT_INJECTOR_NATIVE_NATIVE_LAYERS_H_

#include <cstdint>

#include "collector/recorder.h"

namespace rfinject {

struct NativePlace {
  uint32_t layer = 0;  // id from Recorder::DefineLayer
  uint32_t model = 0;  // id from Recorder::DefineModel; 0: of the program itself, which no class of its own encloses
  uint64_t call = 0;   // tells calls from different places in the program apart
  Phase phase = Phase::kOther;
  bool optimizer_step = false;  // inside torch::optim::X::step
};

// Must be called once, where locks may be taken. Returns false when the library was built without an unwinder.
bool InitNativeLayers(Recorder& recorder) noexcept;

// Returns where on the native stack the caller is. A stack that the thread knows costs tens of nanoseconds, a new one
// an unwind. A new function costs looking up its name, and the first one of an object the reading of the object's
// symbols from its file. So this is not for callbacks of CUPTI.
NativePlace PlaceOfThread() noexcept;

// Has layers named in the order in which they are called from now on: those that were seen so far were not seen from
// the beginning of a step. Their definitions stay in the recorder.
void NameLayersAnew() noexcept;

// Called in a forked child, before any thread exists.
void ResetNativeLayersAfterFork() noexcept;

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_NATIVE_NATIVE_LAYERS_H_
