#include "cli/profile/time_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <vector>

namespace rfinject::cli {
namespace {

// Launch i takes i ns, so that a sum tells which launches are in it.
TEST(TimeOrder, PiecesAreEqualAndInOrder) {
  std::vector<StepSum> pieces;
  for (uint64_t n = 0; n < 5000; ++n) {
    AddInOrder(n, n, &pieces);
    const uint64_t launches = n + 1, length = std::bit_ceil((launches + kMostPieces - 1) / kMostPieces);
    ASSERT_EQ(pieces.size(), (launches + length - 1) / length) << launches;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const uint64_t begin = i * length, end = std::min(begin + length, launches);
      ASSERT_EQ(pieces[i].step, i);
      ASSERT_EQ(pieces[i].sum, (end * (end - 1) - begin * (begin > 0 ? begin - 1 : 0)) / 2) << launches << " " << i;
    }
  }
}

}  // namespace
}  // namespace rfinject::cli
