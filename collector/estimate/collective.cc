#include "collector/estimate/collective.h"

#include "operators/operands.h"

namespace rfinject::estimate {

uint64_t BusBytes(std::string_view kind, uint64_t bytes, uint64_t ranks) noexcept {
  if (ranks <= 1) return 0;
  // bytes * (ranks - 1) / ranks, which does not overflow.
  const uint64_t others = bytes / ranks * (ranks - 1) + bytes % ranks * (ranks - 1) / ranks;
  if (kind == "all_reduce") return SaturatingMultiply(2, others);
  const bool parts = kind == "all_gather" || kind == "reduce_scatter" || kind == "all_to_all" || kind == "gather" ||
                     kind == "scatter";
  return parts ? others : bytes;
}

}  // namespace rfinject::estimate
