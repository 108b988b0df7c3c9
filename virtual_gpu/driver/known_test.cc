#include "virtual_gpu/driver/known.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace rfinject::virtual_gpu {
namespace {

TEST(Known, AgreesWithAByteEach) {
  constexpr size_t kBytes = 200;
  constexpr uintptr_t kBase = 1 << 20;
  std::vector<bool> known(kBytes, false);
  ForgetKnown(kBase, kBytes);
  std::mt19937 random(7);
  const auto below = [&random](size_t limit) { return static_cast<size_t>(random() % limit); };
  for (int i = 0; i < 20000; ++i) {
    const size_t begin = below(kBytes);
    const size_t bytes = below(kBytes - begin + 1);
    const auto first = known.begin() + static_cast<std::ptrdiff_t>(begin);
    switch (below(4)) {
      case 0:
        NoteKnown(kBase + begin, bytes);
        std::fill_n(first, bytes, true);
        break;
      case 1:
        ForgetKnown(kBase + begin, bytes);
        std::fill_n(first, bytes, false);
        break;
      case 2: {
        const size_t from = below(kBytes - bytes + 1);
        const std::vector<bool> before = known;
        CopyKnown(kBase + begin, kBase + from, bytes);
        for (size_t k = 0; k < bytes; ++k) known[begin + k] = before[from + k];
        break;
      }
      default:
        ASSERT_EQ(IsKnown(kBase + begin, bytes),
                  std::all_of(first, first + static_cast<std::ptrdiff_t>(bytes), [](bool value) { return value; }))
            << i;
    }
  }
}

TEST(Known, NearWhatWasKnownMayBeKnown) {
  constexpr uintptr_t kFar = uintptr_t{3} << 30;
  constexpr size_t kStretch = 2 << 20;
  EXPECT_FALSE(MayBeKnown(kFar, 100 * kStretch));
  NoteKnown(kFar + 10 * kStretch - 4, 8);  // over the border of two stretches
  EXPECT_TRUE(MayBeKnown(kFar + 10 * kStretch - 100, 1));
  EXPECT_TRUE(MayBeKnown(kFar + 10 * kStretch + 100, 1));
  EXPECT_TRUE(MayBeKnown(kFar + 9 * kStretch, kStretch));
  // Another small tensor of the same stretch.
  EXPECT_FALSE(MayBeKnown(kFar + 9 * kStretch, 1));
  EXPECT_FALSE(MayBeKnown(kFar + 10 * kStretch + 100'000, 100'000));
  EXPECT_TRUE(MayBeKnown(kFar, 100 * kStretch));
  EXPECT_FALSE(MayBeKnown(kFar, 9 * kStretch));
  EXPECT_FALSE(MayBeKnown(kFar + 11 * kStretch, kStretch));
  EXPECT_FALSE(MayBeKnown(kFar + 10 * kStretch, 0));
  // A range that is as long as all places together looks at each once.
  EXPECT_TRUE(MayBeKnown(kFar + 11 * kStretch, size_t{1} << 40));
  ForgetKnown(kFar, 100 * kStretch);
  EXPECT_FALSE(IsKnown(kFar + 10 * kStretch, 4));
}

}  // namespace
}  // namespace rfinject::virtual_gpu
