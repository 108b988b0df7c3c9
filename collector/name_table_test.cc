#include "collector/name_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace rfinject {
namespace {

// Tables are never destroyed; kept, so that the leak checker sees that it is meant.
NameTable& NewTable() {
  static auto* tables = new std::vector<NameTable*>;
  return *tables->emplace_back(new NameTable);
}

TEST(NameTable, GivesIdsInOrderAndKeepsThem) {
  NameTable& table = NewTable();
  EXPECT_EQ(table.Find("0"), 0u);
  constexpr uint32_t kCount = 20'000;  // several times over every growth
  for (uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(table.Add(std::to_string(i)), i + 1);
  for (uint32_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(table.Add(std::to_string(i)), i + 1);
    ASSERT_EQ(table.Find(std::to_string(i)), i + 1);
    ASSERT_EQ(table.text(i + 1), std::to_string(i));
  }
  EXPECT_EQ(table.size(), kCount);
  EXPECT_EQ(table.Find("not there"), 0u);
}

TEST(NameTable, AnyBytesAreAText) {
  NameTable& table = NewTable();
  const uint32_t empty = table.Add("");
  EXPECT_NE(empty, 0u);
  EXPECT_EQ(table.Find(""), empty);
  const uint32_t with_nul = table.Add(std::string_view("a\0b", 3));
  EXPECT_NE(with_nul, table.Add("a"));
  EXPECT_EQ(table.text(with_nul).size(), 3u);
}

TEST(NameTable, LongTextsAreCutBetweenCharacters) {
  NameTable& table = NewTable();
  const std::string text = std::string(NameTable::kMaxLength - 1, 'x') + "\xE2\x86\x92 and more";
  const uint32_t id = table.Add(text);
  EXPECT_EQ(table.text(id), std::string(NameTable::kMaxLength - 1, 'x'));
  EXPECT_EQ(table.Find(text), id);
  EXPECT_EQ(table.Add(std::string(NameTable::kMaxLength - 1, 'x')), id);
}

TEST(NameTable, IsBounded) {
  NameTable& table = NewTable();
  const std::string text(NameTable::kMaxLength - 10, 'x');
  uint32_t last = 1;
  int added = 0;
  for (; last != 0 && added < 10'000; ++added) last = table.Add(text + std::to_string(added));
  EXPECT_EQ(last, 0u);
  EXPECT_LE(added * text.size(), NameTable::kMaxBytes + text.size());
  EXPECT_EQ(table.Find(text + "0"), 1u) << "what is there stays";
}

TEST(NameTable, FindsWhileAnotherThreadAdds) {
  NameTable& table = NewTable();
  std::atomic<uint32_t> added{0};
  std::thread reader([&] {
    for (uint32_t known = 0; known < 20'000; known = added.load(std::memory_order_acquire)) {
      for (uint32_t i = known > 50 ? known - 50 : 0; i < known; ++i) ASSERT_EQ(table.Find(std::to_string(i)), i + 1);
      ASSERT_EQ(table.Find("never"), 0u);
    }
  });
  for (uint32_t i = 0; i < 20'000; ++i) {
    table.Add(std::to_string(i));
    added.store(i + 1, std::memory_order_release);
  }
  reader.join();
}

}  // namespace
}  // namespace rfinject
