// File: native_stack.h
//
// The native call stack of a launch whose layer is not known, taken once for each launch key. Only the injector can
// walk a stack; the collector asks through one function pointer, as for the site (site.h).
#ifndef RFINJECT_COLLECTOR_NATIVE_STACK_H_
#define RFINJECT_COLLECTOR_NATIVE_STACK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rfinject {

struct NativeFrame {
  uint32_t module = 0;  // the injector's number of the ELF object, from 1
  uint64_t offset = 0;  // of the return address, as the object's file has addresses

  friend bool operator==(const NativeFrame&, const NativeFrame&) = default;
};

// Frames that are kept of a stack, innermost first.
inline constexpr size_t kMaxNativeFrames = 64;

// Fills `frames` with the callers of the calling thread that are not this library's own; returns how many, 0 when the
// stack cannot be taken now. It waits for no other thread, never faults and calls nothing of CUDA, because it runs
// inside the launch callback.
using NativeStackFunction = size_t (*)(std::span<NativeFrame> frames) noexcept;

// Null where stacks cannot be walked.
inline std::atomic<NativeStackFunction> g_native_stack{nullptr};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_NATIVE_STACK_H_
