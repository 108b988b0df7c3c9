// File: unwinder.h
//
// The native call stack of the calling thread. The build chooses the implementation: unwinder_libunwind.cc, or
// unwinder_none.cc where there is no libunwind.
//
// What an unwind may do, since it runs inside of callbacks of torch and of CUPTI: it reads the thread's own stack
// between its stack pointer and the stack's end, and the unwind tables of the objects that have a frame on it. It
// waits for no lock (a second unwind at the same time gives up), makes no system call that blocks, and stops at the
// first frame that it has no exact description of. It never guesses.
#ifndef RFINJECT_INJECTOR_NATIVE_UNWINDER_H_
#define RFINJECT_INJECTOR_NATIVE_UNWINDER_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace rfinject {

struct StackFrame {
  uintptr_t ip = 0;    // return address: the instruction after the call
  uintptr_t slot = 0;  // where on the stack it lies
};

// No stack is followed further than this; torch's C++ stacks have 30 to 90 frames.
inline constexpr size_t kMaxStackFrames = 160;

// Must be called where locks may be taken, before the functions below work. It costs little when repeated. Returns
// false when the library was built without an unwinder.
bool PrepareUnwinder() noexcept;

// Stores the callers of the function that calls this, innermost first: the first frame is where that function returns
// to. Returns how many were stored; 0 when the stack cannot be taken (there is no unwinder, another thread unwinds,
// or the stack is not the thread's own).
size_t Unwind(std::span<StackFrame> frames) noexcept;

// The end of the calling thread's stack; 0 when the caller does not run on it, when there is too little left of it to
// unwind on, or when it is not known. All memory from the caller's own frame to there can be read. A thread's first
// call may make a system call and allocate.
uintptr_t StackEnd() noexcept;
// Part of PrepareUnwinder.
void PrepareStackEnd() noexcept;

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_NATIVE_UNWINDER_H_
