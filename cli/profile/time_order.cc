#include "cli/profile/time_order.h"

#include <bit>

#include "proto/wire/stat.h"

namespace rfinject::cli {

uint64_t LengthOfPieces(uint64_t launches) { return std::bit_ceil((launches + kMostPieces - 1) / kMostPieces); }

void AddInOrder(uint64_t before, uint64_t ns, std::vector<StepSum>* pieces) {
  const uint64_t length = LengthOfPieces(before + 1);
  if (pieces->size() == kMostPieces && before % length == 0) {
    // All pieces are full: two of them become one.
    for (size_t i = 0; i < kMostPieces / 2; ++i) {
      (*pieces)[i] = {i, (*pieces)[2 * i].sum};
      wire::SaturatingAdd(&(*pieces)[i].sum, (*pieces)[2 * i + 1].sum);
    }
    pieces->resize(kMostPieces / 2);
  }
  if (before % length == 0) pieces->push_back({pieces->size(), 0});
  wire::SaturatingAdd(&pieces->back().sum, ns);
}

}  // namespace rfinject::cli
