#include "cli/trace/decode.h"

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "cli/trace/damage.h"

namespace rfinject::cli {
namespace {

std::span<const uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

const auto kIgnore = [](const Record&) { return absl::OkStatus(); };

TEST(Decoder, KnowsEveryRecordOfTheSchema) {
  const auto* chunk = v1::Chunk::descriptor();
  for (int i = 0; i < chunk->field_count(); ++i) {
    EXPECT_EQ(std::count(std::begin(kRecordOrder), std::end(kRecordOrder), chunk->field(i)->number()), 1)
        << chunk->field(i)->name() << " is not in kRecordOrder";
  }
}

TEST(Decoder, GivesDefinitionsBeforeTheirUses) {
  v1::Chunk key, name;
  key.add_key()->set_id(7);
  name.add_name()->set_id(1);
  name.add_name()->set_id(2);
  const std::string payload = key.SerializeAsString() + name.SerializeAsString();
  std::vector<std::string> seen;
  Decoder decoder;
  const absl::Status status = decoder.Decode(Bytes(payload), 100, [&](const Record& record) {
    seen.push_back(std::to_string(record.offset) + " " + record.chunk->ShortDebugString());
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(seen, (std::vector<std::string>{"104 name { id: 1 }", "108 name { id: 2 }", "100 key { id: 7 }"}));
}

TEST(Decoder, WrongBytesInTextsRefuseNothing) {
  const std::string payload("\x12\x08\x08\x01\x12\x04\x61\xFF\xC3\x62", 10);
  std::string text;
  const absl::Status status = Decoder().Decode(Bytes(payload), 0, [&](const Record& record) {
    text = record.chunk->name(0).text();
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(text,
            "a\xEF\xBF\xBD\xEF\xBF\xBD"
            "b");
}

TEST(Decoder, DamageHasItsOffset) {
  v1::Chunk good;
  good.add_name()->set_text("good");
  const std::string before = good.SerializeAsString();
  // A name whose text goes beyond the record; the tag of the text lies four bytes behind the record's.
  const std::string payload = before + std::string("\x12\x04\x08\x01\x12\x09", 6);
  const absl::Status status = Decoder().Decode(Bytes(payload), 1000, kIgnore);
  EXPECT_EQ(DamageOffset(status), 1000 + before.size() + 4) << status;
  EXPECT_EQ(DamageReason(status), "a length goes beyond the end of its record");
}

// Two bytes are an empty message, which takes a hundred.
TEST(Decoder, WhatGrowsInMemoryIsRefusedBeforeItDoes) {
  std::string stats;
  for (int i = 0; i < 2'000'000; ++i) stats += std::string("\x1A\x00", 2);
  v1::Chunk empty;
  const std::string head("\x3A\x80\x92\xF4\x01", 5);  // Chunk.stats, 4,000,000 bytes
  const size_t before = ::mallinfo2().uordblks + ::mallinfo2().hblkhd;
  Decoder decoder;
  const absl::Status status = decoder.Decode(Bytes(head + stats), 0, kIgnore);
  EXPECT_EQ(DamageReason(status), "a record would take more memory than any should");
  EXPECT_EQ(DamageOffset(status), 0u);
  EXPECT_LT(::mallinfo2().uordblks + ::mallinfo2().hblkhd, before + (8u << 20));
  // The same of what the schema does not know, and of packed numbers.
  for (const char* piece : {"\x20\x01", "\x22\x00"}) {
    std::string unknown;
    for (int i = 0; i < 2'000'000; ++i) unknown += std::string(piece, 2);
    EXPECT_FALSE(decoder.Decode(Bytes(head + unknown), 0, kIgnore).ok());
  }
  const std::string bins = std::string("\x6A\x84\x92\xF4\x01\x5A\x80\x92\xF4\x01", 10) + std::string(4'000'000, '\1');
  EXPECT_FALSE(decoder.Decode(Bytes(bins), 0, kIgnore).ok());
}

TEST(Decoder, ALongTextIsNoReasonToRefuse) {
  v1::Chunk chunk;
  chunk.add_name()->set_text(std::string(3 << 20, 'x'));
  const absl::Status status = Decoder().Decode(Bytes(chunk.SerializeAsString()), 0, kIgnore);
  EXPECT_TRUE(status.ok()) << status;
}

TEST(Decoder, RecordsOfANewerVersionAreSkipped) {
  v1::Chunk chunk;
  chunk.add_name()->set_id(1);
  const std::string payload = chunk.SerializeAsString() + std::string("\xF2\x07\x03new\xF8\x07\x05", 9);
  int records = 0;
  const absl::Status status = Decoder().Decode(Bytes(payload), 0, [&](const Record&) {
    ++records;
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(records, 1);
}

}  // namespace
}  // namespace rfinject::cli
