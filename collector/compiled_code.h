// File: compiled_code.h
//
// Where a thread is in code that a compiler made of the program's modules (torch.compile). The injector knows; the
// estimator asks.
#ifndef RFINJECT_COLLECTOR_COMPILED_CODE_H_
#define RFINJECT_COLLECTOR_COMPILED_CODE_H_

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

namespace rfinject {

struct OpCall;      // op_call.h
struct MaskBlocks;  // generated_code.h

// What one call of a compiled kernel does.
struct CompiledWork {
  std::string_view kernel;  // its name
  // The operators that it computes, each once in the whole graph; what else it computes again is left out.
  std::span<const OpCall> nodes;
  bool bytes_known = false;
  uint64_t bytes = 0;             // what it reads, once, and what it writes, once
  uint64_t written = UINT64_MAX;  // a bit for each of its first arguments, which are pointers: it may write there
  std::string_view why_no_flop;   // what of its operators is not known; empty: nothing
  const MaskBlocks* mask = nullptr;
};

struct CompiledPlace {
  uint32_t work = 0;   // Source::DefineCompiledWork; 0: not known, or the call of an operator
  uint32_t layer = 0;  // of what the call computes
};

// Returns where the calling thread is, which runs in `layer`. The layer comes back where nothing more is known. Takes
// no GIL; the first call at a place in a layer allocates.
using CompiledPlaceFunction = CompiledPlace (*)(uint32_t layer) noexcept;

// Null until the program has loaded such code.
inline std::atomic<CompiledPlaceFunction> g_compiled_place{nullptr};

inline CompiledPlace CurrentCompiledPlace(uint32_t layer) noexcept {
  const CompiledPlaceFunction function = g_compiled_place.load(std::memory_order_acquire);
  return function != nullptr ? function(layer) : CompiledPlace{.work = 0, .layer = layer};
}

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_COMPILED_CODE_H_
