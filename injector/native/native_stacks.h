// File: native_stacks.h
//
// Native stacks for the trace: the answer to collector/native_stack.h, and what its frames are called.
#ifndef RFINJECT_INJECTOR_NATIVE_NATIVE_STACKS_H_
#define RFINJECT_INJECTOR_NATIVE_NATIVE_STACKS_H_

#include "collector/recorder.h"

namespace rfinject {

// Publishes the function that takes stacks, if the library was built with an unwinder. Called where locks may be
// taken.
void OfferNativeStacks() noexcept;

// Tells the recorder which files the objects on the stacks are, and the functions' names from their symbol tables.
// Called at the end of the process, before the recorder finishes. It reads files, and takes milliseconds for an
// object of libtorch's size.
void NameNativeStacks(Recorder& recorder) noexcept;

// Called in a forked child, before any thread exists.
void ResetNativeStacksAfterFork() noexcept;

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_NATIVE_NATIVE_STACKS_H_
