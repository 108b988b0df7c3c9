// File: tell.h
//
// Tell: how the virtual GPU's libraries tell those who observe it (rfinject_virtual_observer).
//
//   Tell<&rfinject_virtual_observer::memory>(&memory);
#ifndef RFINJECT_VIRTUAL_GPU_TELL_H_
#define RFINJECT_VIRTUAL_GPU_TELL_H_

#include "virtual_gpu/virtual_gpu.h"

namespace rfinject::virtual_gpu {

// Whether any observer has that member, for events whose description takes work.
template <auto member>
bool Wanted() {
  for (int i = 0; const rfinject_virtual_observer* observer = rfinject_virtual_gpu_observer(i); ++i) {
    if (observer->*member != nullptr) return true;
  }
  return false;
}

// Calls that member of every observer that has one, in the order in which they came.
template <auto member, typename... Event>
void Tell(Event... event) {
  for (int i = 0; const rfinject_virtual_observer* observer = rfinject_virtual_gpu_observer(i); ++i) {
    if (const auto told = observer->*member; told != nullptr) told(event...);
  }
}

}  // namespace rfinject::virtual_gpu

#endif  // RFINJECT_VIRTUAL_GPU_TELL_H_
