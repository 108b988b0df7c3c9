#include "cli/profile/kept.h"

#include <gtest/gtest.h>

#include <iterator>

namespace rfinject::cli {
namespace {

trace::GraphBreak At(uint32_t line, uint64_t count, uint64_t bytes) {
  return {.file = "net.py", .line = line, .count = count, .bytes = bytes};
}

TEST(KeptList, WhatSaysTheSameIsOneByTheRulesOfTheSchema) {
  KeptList<trace::GraphBreak> list;
  EXPECT_TRUE(list.Add(At(2, 1, 50)));
  EXPECT_TRUE(list.Add(At(1, 1, 0)));
  EXPECT_FALSE(list.Add(At(2, 3, 40)));
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(*list.begin(), At(1, 1, 0));
  EXPECT_EQ(*std::next(list.begin()), At(2, 4, 50)) << "counts add up, of bytes the most stand";
}

TEST(KeptList, TheFirstAreKeptInWhateverOrderTheyCome) {
  constexpr uint32_t kMost = trace::kMostKept<trace::GraphBreak>;
  KeptOfRun up, down, both;
  for (uint32_t line = 1; line <= kMost + 20; ++line) {
    up.graph_break.Add(At(line, 1, 0));
    down.graph_break.Add(At(kMost + 21 - line, 1, 0));
  }
  EXPECT_EQ(up.graph_break.size(), kMost);
  EXPECT_EQ(up, down);
  Merge(up, &both);
  Merge(down, &both);
  Merge(KeptOfRun{}, &both);
  EXPECT_EQ(both.graph_break.size(), kMost);
  for (const trace::GraphBreak& one : both.graph_break) EXPECT_EQ(one.count, 2u) << one.line;
}

}  // namespace
}  // namespace rfinject::cli
