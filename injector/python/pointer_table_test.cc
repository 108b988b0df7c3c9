#include "injector/python/pointer_table.h"

#include <cstdint>
#include <random>
#include <unordered_map>

#include "gtest/gtest.h"

namespace rfinject {
namespace {

const void* Key(uintptr_t n) { return reinterpret_cast<const void*>(n * 16); }

TEST(PointerTable, EmptyFindsAndErasesNothing) {
  PointerTable<int> table;
  EXPECT_EQ(table.Find(Key(1)), nullptr);
  EXPECT_FALSE(table.Erase(Key(1)));
}

TEST(PointerTable, InsertReplaces) {
  PointerTable<int> table;
  table.Insert(Key(1), 5);
  table.Insert(Key(1), 6);
  ASSERT_NE(table.Find(Key(1)), nullptr);
  EXPECT_EQ(*table.Find(Key(1)), 6);
  EXPECT_EQ(table.size(), 1u);
}

// Addresses come back, as objects' do: a small key space makes runs of neighbours collide and close gaps.
TEST(PointerTable, AgreesWithAMapUnderChurn) {
  PointerTable<uint32_t> table;
  std::unordered_map<const void*, uint32_t> expected;
  std::mt19937 random(1);
  for (uint32_t i = 0; i < 200000; ++i) {
    const void* key = Key(1 + random() % 600);
    if (random() % 2 == 0) {
      table.Insert(key, i);
      expected[key] = i;
    } else {
      ASSERT_EQ(table.Erase(key), expected.erase(key) == 1);
    }
    ASSERT_EQ(table.size(), expected.size());
    const void* probe = Key(1 + random() % 600);
    auto found = expected.find(probe);
    uint32_t* value = table.Find(probe);
    ASSERT_EQ(value != nullptr, found != expected.end());
    if (value != nullptr) {
      ASSERT_EQ(*value, found->second);
    }
  }
}

}  // namespace
}  // namespace rfinject
