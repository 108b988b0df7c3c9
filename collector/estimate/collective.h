// File: collective.h
//
// What a collective of several GPUs moves. Pure.
//
//   BusBytes("all_reduce", 1 << 20, 4)  // 1.5 MiB: what each GPU sends, and gets
#ifndef RFINJECT_COLLECTOR_ESTIMATE_COLLECTIVE_H_
#define RFINJECT_COLLECTOR_ESTIMATE_COLLECTIVE_H_

#include <cstdint>
#include <string_view>

namespace rfinject::estimate {

// Bytes that the busiest of `ranks` GPUs at least sends to the others, or gets from them, when they do `kind` on
// arrays of `bytes` bytes: what nccl-tests call the size (of the whole result of an all_gather, of the whole operand
// of a reduce_scatter). Divided by the rate of a GPU's links it is the least time. The formulas are those of the bus
// bandwidth in nccl-tests, doc/PERFORMANCE.md: 2 (n-1)/n of the size for all_reduce, (n-1)/n for all_gather,
// reduce_scatter and all_to_all, and for gather and scatter, whose root has all but its own; the size itself for
// broadcast, reduce, send, recv and what is not known. Nothing where one rank is alone. Rounded down.
uint64_t BusBytes(std::string_view kind, uint64_t bytes, uint64_t ranks) noexcept;

}  // namespace rfinject::estimate

#endif  // RFINJECT_COLLECTOR_ESTIMATE_COLLECTIVE_H_
