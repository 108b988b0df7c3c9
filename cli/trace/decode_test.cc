#include "cli/trace/decode.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "cli/trace/damage.h"
#include "cli/trace/key_stats.h"

namespace rfinject::cli {
namespace {

std::span<const uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

Field RecordOf(const std::string& bytes) {
  Field record;
  record.bytes = Bytes(bytes);
  return record;
}

const auto kIgnore = [](const Record&) { return absl::OkStatus(); };

TEST(Decoder, KnowsEveryRecordOfTheSchema) {
  const auto* chunk = v1::Chunk::descriptor();
  for (int i = 0; i < chunk->field_count(); ++i) {
    EXPECT_EQ(std::count(std::begin(trace::kRecordOrder), std::end(trace::kRecordOrder), chunk->field(i)->number()),
              1)
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
    seen.push_back(std::to_string(record.offset) + " " +
                   (record.number == v1::Chunk::kKeyFieldNumber
                        ? record.chunk->key(record.index).ShortDebugString()
                        : record.chunk->name(record.index).ShortDebugString()));
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(seen, (std::vector<std::string>{"104 id: 1", "108 id: 2", "100 id: 7"}));
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
  std::string parts;
  for (int i = 0; i < 2'000'000; ++i) parts += std::string("\x32\x00", 2);
  const std::string head("\x9A\x01\x80\x92\xF4\x01", 6);  // Chunk.memory_peak, 4,000,000 bytes
  const size_t before = ::mallinfo2().uordblks + ::mallinfo2().hblkhd;
  Decoder decoder;
  const absl::Status status = decoder.Decode(Bytes(head + parts), 0, kIgnore);
  EXPECT_EQ(DamageReason(status), "a record would take more memory than any should");
  EXPECT_EQ(DamageOffset(status), 0u);
  EXPECT_LT(::mallinfo2().uordblks + ::mallinfo2().hblkhd, before + (8u << 20));
  // The same of what the schema does not know, field 15, and of packed numbers.
  for (const char* piece : {"\x78\x01", "\x7A\x00"}) {
    std::string unknown;
    for (int i = 0; i < 2'000'000; ++i) unknown += std::string(piece, 2);
    EXPECT_FALSE(decoder.Decode(Bytes(head + unknown), 0, kIgnore).ok());
  }
  const std::string bins = std::string("\x6A\x84\x92\xF4\x01\x5A\x80\x92\xF4\x01", 10) + std::string(4'000'000, '\1');
  EXPECT_FALSE(decoder.Decode(Bytes(bins), 0, kIgnore).ok());
}

// A chunk that is too long for one message gives the same records as one that is not, with their offsets.
TEST(Decoder, ALongChunkIsDecodedAsAShortOne) {
  v1::Chunk chunk;
  for (uint32_t i = 1; i <= 100; ++i) {
    chunk.add_name()->set_id(i);
    chunk.add_stats()->set_key(i);
    chunk.add_step()->set_index(i);
  }
  chunk.mutable_end()->set_reason("exit");
  const std::string shorter = chunk.SerializeAsString();
  const std::string filler(kMaxWholeChunk, 'x');  // of a field that the schema does not know
  v1::Chunk unknown;
  unknown.GetReflection()->MutableUnknownFields(&unknown)->AddLengthDelimited(1000, filler);
  const auto decode = [](const std::string& payload, uint64_t offset) {
    std::vector<std::string> seen;
    const absl::Status status = Decoder().Decode(Bytes(payload), offset, [&](const Record& record) {
      std::string text = std::to_string(record.offset) + "+" + std::to_string(record.size) + " ";
      if (record.number == v1::Chunk::kNameFieldNumber) text += record.chunk->name(record.index).DebugString();
      if (record.number == v1::Chunk::kStepFieldNumber) text += record.chunk->step(record.index).DebugString();
      if (record.number == v1::Chunk::kStatsFieldNumber) text += record.bytes.text();
      if (record.number == v1::Chunk::kEndFieldNumber) text += record.chunk->end().DebugString();
      seen.push_back(std::move(text));
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
    return seen;
  };
  const std::vector<std::string> seen = decode(shorter, 0);
  EXPECT_EQ(seen.size(), 301u);
  EXPECT_EQ(decode(shorter + unknown.SerializeAsString(), 0), seen);
}

// Statistics are read without protobuf, and must be what protobuf reads.
TEST(KeyStatsReader, ReadsWhatProtobufReads) {
  const google::protobuf::Descriptor* type = v1::MetricStats::descriptor();
  v1::KeyStats stats;
  uint64_t value = 1;
  for (int metric = 0; metric < 64; ++metric) {
    v1::MetricStats* one = stats.add_metric();
    for (int i = 0; i < type->field_count(); ++i) {
      value = value * 6364136223846793005u + 1442695040888963407u;
      const uint64_t of_any_length = value >> (value % 64);
      const auto* reflection = one->GetReflection();
      if (type->field(i)->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_UINT32) {
        reflection->SetUInt32(one, type->field(i), static_cast<uint32_t>(of_any_length));
      } else {
        reflection->SetUInt64(one, type->field(i), of_any_length);
      }
    }
    // Of a newer version: a number and a text behind it.
    one->GetReflection()->MutableUnknownFields(one)->AddVarint(77, value);
    one->GetReflection()->MutableUnknownFields(one)->AddLengthDelimited(78, "text");
  }
  stats.set_key(7);
  stats.set_launches(UINT64_MAX);
  const std::string bytes = stats.SerializeAsString();
  KeyStatsReader reader(RecordOf(bytes));
  MetricRecord metric;
  for (const v1::MetricStats& one : stats.metric()) {
    ASSERT_TRUE(reader.Next(&metric));
    for (int i = 0; i < type->field_count(); ++i) {
      const auto* field = type->field(i);
      const bool narrow = field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_UINT32;
      const uint64_t expected =
          narrow ? one.GetReflection()->GetUInt32(one, field) : one.GetReflection()->GetUInt64(one, field);
      EXPECT_EQ(metric.value.at(static_cast<size_t>(field->number())), expected) << field->name();
    }
  }
  EXPECT_FALSE(reader.Next(&metric));
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(reader.key(), 7u);
  EXPECT_EQ(reader.launches(), UINT64_MAX);
  // Cut anywhere, it says so or is shorter; it reads nothing beyond its end (the address sanitizer looks).
  for (size_t length = 0; length < bytes.size(); length += 7) {
    const std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
    Field part;
    part.bytes = cut;
    KeyStatsReader cut_reader(part);
    int metrics = 0;
    while (cut_reader.Next(&metric)) ++metrics;
    EXPECT_LE(metrics, stats.metric_size());
  }
}

// What writers write, ascending numbers and nothing else, is read by a shorter way.
TEST(KeyStatsReader, ReadsOrdinaryMetrics) {
  v1::KeyStats stats;
  stats.set_key(300);
  for (unsigned bits = 0; bits < 64; ++bits) {
    v1::MetricStats* one = stats.add_metric();
    one->set_metric(bits + 1);
    one->set_n(3);
    one->set_sum(uint64_t{1} << bits);
    one->set_sum_squares(UINT64_MAX >> bits);
    if (bits % 3 == 0) one->set_sum_squares_high(bits);
    one->set_min(bits);
    one->set_max(uint64_t{1} << bits);
  }
  const std::string bytes = stats.SerializeAsString();
  KeyStatsReader reader(RecordOf(bytes));
  MetricRecord metric;
  for (const v1::MetricStats& one : stats.metric()) {
    ASSERT_TRUE(reader.Next(&metric));
    EXPECT_EQ(metric.metric(), one.metric());
    EXPECT_EQ(metric.n(), 3u);
    EXPECT_EQ(metric.sum(), one.sum());
    EXPECT_EQ(metric.sum_high(), 0u);
    EXPECT_EQ(metric.sum_squares(), one.sum_squares());
    EXPECT_EQ(metric.sum_squares_high(), one.sum_squares_high());
    EXPECT_EQ(metric.min(), one.min());
    EXPECT_EQ(metric.max(), one.max());
    EXPECT_EQ(metric.shared_sums(), 0u);
  }
  EXPECT_FALSE(reader.Next(&metric));
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(reader.key(), 300u);
}

TEST(KeyStatsReader, ANumberEndsWithItsMetric) {
  // A metric of three bytes, whose last number goes on, and another one behind it that would end the number.
  const std::string bytes("\x08\x07\x1A\x03\x08\x01\x90\x1A\x02\x08\x01", 11);
  Field record;
  record.bytes = Bytes(bytes);
  record.bytes_offset = 100;
  KeyStatsReader reader(record);
  MetricRecord metric;
  EXPECT_FALSE(reader.Next(&metric));
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.error_offset(), 106u);
  const std::string number("\x08\x07\x1A\x03\x08\x01\x10\x1A\x02\x08\x01", 11);  // its last number is missing
  record.bytes = Bytes(number);
  KeyStatsReader without(record);
  EXPECT_FALSE(without.Next(&metric));
  EXPECT_EQ(without.error_offset(), 106u);
}

// What does not parse as a whole is decoded record by record, and a trace's id is a record that is no message.
TEST(Decoder, ALongIdBesideDamageIsNoCrash) {
  v1::Chunk chunk;
  chunk.add_trace_id(std::string(5000, 'x'));
  const std::string payload = chunk.SerializeAsString() + std::string("\x7A\x02\x0B\x0B", 4);  // a stack that is none
  Decoder decoder;
  size_t ids = 0;
  const absl::Status status = decoder.Decode(Bytes(payload), 0, [&](const Record& record) {
    if (record.number == v1::Chunk::kTraceIdFieldNumber) ++ids;
    return absl::OkStatus();
  });
  EXPECT_EQ(ids, 1);
  EXPECT_FALSE(status.ok());
  EXPECT_GT(DamageOffset(status), 5000u);
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
