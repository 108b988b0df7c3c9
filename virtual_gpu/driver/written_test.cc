#include "virtual_gpu/driver/written.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace rfinject::virtual_gpu {
namespace {

constexpr size_t kPage = WrittenPages::kPage;

TEST(WrittenPages, AgreesWithAFlagEach) {
  constexpr size_t kPages = 300;
  constexpr size_t kBytes = kPages * kPage;
  WrittenPages pages;
  std::vector<bool> written(kPages, false);
  std::mt19937 random(7);
  const auto below = [&random](size_t limit) { return static_cast<size_t>(random() % limit); };
  for (int i = 0; i < 20000; ++i) {
    const size_t begin = below(kBytes);
    const size_t bytes = 1 + below(std::min(kBytes - begin, (1 + below(kPages)) * kPage));
    switch (below(3)) {
      case 0:
        pages.Mark(begin, bytes);
        for (size_t page = begin / kPage; page <= (begin + bytes - 1) / kPage; ++page) written[page] = true;
        break;
      case 1:
        pages.Forget(begin, bytes);
        for (size_t page = 0; page < kPages; ++page) {
          if (page * kPage >= begin && (page + 1) * kPage <= begin + bytes) written[page] = false;
        }
        break;
      default: {
        size_t at = begin;
        bool before = false;
        pages.ForParts(begin, bytes, [&](size_t part, size_t length, bool is) {
          ASSERT_EQ(part, at) << i;
          ASSERT_GT(length, 0u) << i;
          ASSERT_TRUE(part == begin || is != before) << "a part that goes on, " << i;
          for (size_t page = part / kPage; page <= (part + length - 1) / kPage; ++page)
            ASSERT_EQ(written[page], is) << i;
          before = is;
          at += length;
        });
        ASSERT_EQ(at, begin + bytes) << i;
        ASSERT_EQ(pages.Bytes(), static_cast<size_t>(std::count(written.begin(), written.end(), true)) * kPage);
      }
    }
  }
}

TEST(WrittenPages, WhatWasNeverWrittenIsOnePart) {
  WrittenPages pages;
  int parts = 0;
  const auto count = [&parts](size_t, size_t, bool) { ++parts; };
  pages.ForParts(5, size_t{1} << 40, count);
  EXPECT_EQ(parts, 1);
  pages.Mark(10 * kPage, 1);
  pages.ForParts(0, size_t{1} << 40, count);
  EXPECT_EQ(parts, 4);
  pages.Forget(0, size_t{1} << 40);
  EXPECT_EQ(pages.Bytes(), 0u);
}

}  // namespace
}  // namespace rfinject::virtual_gpu
