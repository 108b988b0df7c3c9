// File: cost.h
//
// The cost model says what a GPU would do for one operator, from its operands. It is pure: no state, no I/O.
//
//   const Cost cost = EstimateCost(call, *FindGpu("V100-SXM2-16GB"), PrecisionPolicy{});
//   if (cost.kernel) …
#ifndef RFINJECT_OPERATORS_COST_H_
#define RFINJECT_OPERATORS_COST_H_

#include <array>
#include <cstdint>
#include <string_view>

#include "gpus/gpus.h"
#include "operators/op_call.h"
#include "operators/precision.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::estimate {

// The least time that an estimated kernel takes: nanoseconds from the start of one kernel to the start of the next
// when the kernels do nothing. About 3 us is what NVIDIA's forum arrived at as the limit on current hardware
// (forums.developer.nvidia.com/t/too-much-time-for-kernel-launch-latency/233645/3); clpeak, which launches an empty
// kernel, prints 2.3 us for an RTX 5060 (github.com/krrishnarraj/clpeak, README, "Kernel launch latency"). A kernel's
// own duration, as a profiler shows it, can be shorter, 1 to 2 us. An eager training loop pays the interval, because
// PyTorch launches each operator by itself. It is the launch-overhead bound of the time-based roofline (Wang et al.,
// arXiv 2009.04598).
inline constexpr uint64_t kLaunchFloorNs = 3000;

// A kernel that an operator launches several times beside its first one, alike each time.
struct RepeatedCost {
  std::string_view kernel;  // what is added to the operator's name
  uint64_t launches = 0;
  uint64_t flop = 0;  // of one launch, model and executed
  bool product = false;
  Precision precision{};
  uint64_t bytes = 0, time_ns = 0;
};

struct Cost {
  bool kernel = false;      // false: a view, bookkeeping, or seen already as the operators inside it
  bool known = true;        // false: no row in the table; FLOP are 0 for want of a rule
  uint64_t model_flop = 0;  // 2 per multiply-add
  uint64_t product_flop = 0, hidden_flop = 0;             // of these, as FlopCount has them
  std::array<uint64_t, kPrecisionCount> executed_flop{};  // at most two are not 0
  uint64_t compulsory_bytes = 0;                          // each operand read once, each result written once
  uint64_t dram_bytes = 0;  // equal to compulsory_bytes: there is no model of the caches
  uint64_t pcie_bytes = 0;  // of a copy between the host and the GPU
  uint64_t time_ns = 0;     // never less than the roofs allow, nor than the launch floor
  // The time steps of a recurrent layer, which are not part of the sums above.
  std::array<RepeatedCost, 2> repeated;
};

// The cost of `call` on `gpu`.
Cost EstimateCost(const OpCall& call, const Gpu& gpu, PrecisionPolicy policy) noexcept;

// The least whole number of nanoseconds in which `gpu` can do this: the slowest of its units (they overlap) or its
// DRAM, whichever takes longer, rounded up; at least kLaunchFloorNs. UINT64_MAX when a unit that the work needs is
// missing.
uint64_t EstimateTimeNs(const std::array<uint64_t, kPrecisionCount>& executed_flop, uint64_t dram_bytes,
                        const Gpu& gpu) noexcept;

// The same for `bytes` that go over a link of `bytes_per_s`.
uint64_t EstimateTransferNs(uint64_t bytes, double bytes_per_s) noexcept;

}  // namespace rfinject::estimate

#endif  // RFINJECT_OPERATORS_COST_H_
