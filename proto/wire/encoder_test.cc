#include "proto/wire/encoder.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "proto/rfinject/v1/trace.pb.h"

namespace rfinject::wire {
namespace {

using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;
using ::google::protobuf::Reflection;
using ::google::protobuf::util::MessageDifferencer;

std::string_view Content(const Encoder& encoder) {
  return {reinterpret_cast<const char*>(encoder.data()), encoder.size()};
}

template <typename Proto>
Proto Parse(const Encoder& encoder) {
  Proto message;
  EXPECT_TRUE(encoder.ok());
  EXPECT_TRUE(message.ParseFromArray(encoder.data(), static_cast<int>(encoder.size())));
  return message;
}

TEST(Encoder, WritesWhatTheHeaderPromises) {
  Encoder out(1 << 20);
  const size_t name = out.Begin(2);
  out.Uint(1, 7);
  out.Text(2, "aten::relu");
  out.End(name);
  const auto chunk = Parse<v1::Chunk>(out);
  ASSERT_EQ(chunk.name_size(), 1);
  EXPECT_EQ(chunk.name(0).id(), 7u);
  EXPECT_EQ(chunk.name(0).text(), "aten::relu");
}

TEST(Encoder, LeavesDefaultsOut) {
  Encoder out(1 << 10);
  out.Uint(1, 0);
  out.Int(2, 0);
  out.Bool(3, false);
  out.Text(4, "");
  out.Double(5, 0);
  out.PackedUint(8, std::span<const uint32_t>());
  EXPECT_EQ(out.size(), 0u);
}

TEST(Encoder, KeepsLargeAndNegativeNumbers) {
  for (int64_t value : {int64_t{1}, int64_t{-1}, std::numeric_limits<int64_t>::min(),
                        std::numeric_limits<int64_t>::max(), int64_t{127}, int64_t{128}}) {
    Encoder out(64);
    out.Int(2, value);                              // Step.start_unix_ns
    out.Uint(3, static_cast<uint64_t>(value) | 1);  // Step.duration_ns
    const auto step = Parse<v1::Step>(out);
    EXPECT_EQ(step.start_unix_ns(), value);
    EXPECT_EQ(step.duration_ns(), static_cast<uint64_t>(value) | 1);
  }
}

TEST(Encoder, WritesDoublesInLittleEndian) {
  Encoder out(64);
  out.Double(3, std::bit_cast<double>(uint64_t{0x0102030405060708}));
  EXPECT_EQ(Content(out), std::string_view("\x19\x08\x07\x06\x05\x04\x03\x02\x01"));
}

// The length takes one more byte at 128, 16 384, …; that is where End moves the content.
TEST(Encoder, NestsMessagesOfEveryLength) {
  for (size_t length : {0, 1, 100, 123, 124, 125, 126, 127, 128, 129, 16379, 16380, 16381, 16384, 3'000'000}) {
    Encoder out(8 << 20);
    const std::string text(length, 'x');
    const size_t name = out.Begin(2);
    out.Text(2, text);
    out.End(name);
    const size_t end = out.Begin(12);
    out.Text(1, "after");
    out.End(end);
    const auto chunk = Parse<v1::Chunk>(out);
    ASSERT_EQ(chunk.name_size(), 1) << length;
    EXPECT_TRUE(chunk.name(0).text() == text) << length;
    EXPECT_EQ(chunk.end().reason(), "after") << length;
    EXPECT_EQ(out.size(), chunk.ByteSizeLong()) << "lengths are as short as can be: " << length;
  }
}

TEST(Encoder, ClearLeavesRoomInFront) {
  Encoder out(1 << 10);
  out.Text(1, "old");
  out.Clear(16);
  EXPECT_EQ(out.size(), 16u);
  out.Text(1, "new");
  v1::End end;
  ASSERT_TRUE(end.ParseFromArray(out.data() + 16, static_cast<int>(out.size() - 16)));
  EXPECT_EQ(end.reason(), "new");
}

TEST(Encoder, StopsAtItsLimitAndSaysSo) {
  Encoder out(100);
  EXPECT_TRUE(out.ok());
  for (int i = 0; i < 50; ++i) out.Text(1, "ten bytes.");
  EXPECT_FALSE(out.ok());
  EXPECT_LE(out.size(), 100u);
  const size_t mark = out.Begin(1);
  out.End(mark);
  EXPECT_FALSE(out.ok());
  out.Clear();
  EXPECT_TRUE(out.ok());
  out.Text(1, "fits");
  EXPECT_EQ(Parse<v1::End>(out).reason(), "fits");
}

TEST(Encoder, RepairsWhatIsNotUtf8) {
  const std::string kReplacement = "\xEF\xBF\xBD";
  const std::pair<std::string, std::string> cases[] = {
      {"plain", "plain"},
      {"caf\xC3\xA9 \xE2\x86\x92 \xF0\x9F\x98\x80", "caf\xC3\xA9 \xE2\x86\x92 \xF0\x9F\x98\x80"},
      {"caf\xE9", "caf" + kReplacement},                                                // Latin-1
      {"\xC3", kReplacement},                                                           // cut short
      {"\xE2\x86", kReplacement + kReplacement},                                        //
      {"\xC0\x80", kReplacement + kReplacement},                                        // overlong
      {"\xED\xA0\x80", kReplacement + kReplacement + kReplacement},                     // a surrogate
      {"\xF4\x90\x80\x80", kReplacement + kReplacement + kReplacement + kReplacement},  // above U+10FFFF
  };
  for (const auto& [raw, repaired] : cases) {
    Encoder out(1 << 10);
    out.Text(1, raw);
    EXPECT_EQ(Parse<v1::End>(out).reason(), repaired);
  }
}

// --- Property: what this encoder writes for a random message, libprotobuf reads as that message.

class RandomMessage {
 public:
  explicit RandomMessage(uint64_t seed) : random_(seed) {}

  void Fill(Message* message, int depth) {
    const Reflection* reflection = message->GetReflection();
    for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor* field = message->GetDescriptor()->field(i);
      if (field->is_repeated()) {
        for (uint64_t n = Below(4); n > 0; --n) Set(message, reflection, field, depth, true);
      } else if (Below(3) != 0) {
        Set(message, reflection, field, depth, false);
      }
    }
  }

 private:
  uint64_t Below(uint64_t n) { return random_() % n; }
  uint64_t Number() { return random_() >> Below(64); }
  std::string Text() {
    std::string text;
    const char* pieces[] = {"a", "layer1.0.conv2", "\xC3\xA9", "\xE2\x86\x92", "\xF0\x9F\x98\x80", "%", "\n", " "};
    for (uint64_t n = Below(Below(10) == 0 ? 100 : 6); n > 0; --n) text += pieces[Below(8)];
    return text;
  }
  void Set(Message* message, const Reflection* reflection, const FieldDescriptor* field, int depth, bool add) {
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_UINT32: {
        const auto value = static_cast<uint32_t>(Number());
        return add ? reflection->AddUInt32(message, field, value) : reflection->SetUInt32(message, field, value);
      }
      case FieldDescriptor::CPPTYPE_UINT64:
        return add ? reflection->AddUInt64(message, field, Number())
                   : reflection->SetUInt64(message, field, Number());
      case FieldDescriptor::CPPTYPE_INT64:
        return reflection->SetInt64(message, field, static_cast<int64_t>(Number()));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return reflection->SetDouble(message, field, static_cast<double>(Number()) / 3);
      case FieldDescriptor::CPPTYPE_BOOL:
        return reflection->SetBool(message, field, Below(2) == 1);
      case FieldDescriptor::CPPTYPE_ENUM:
        return reflection->SetEnumValue(message, field, static_cast<int>(Below(7)));
      case FieldDescriptor::CPPTYPE_STRING:
        return add ? reflection->AddString(message, field, Text()) : reflection->SetString(message, field, Text());
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (depth == 0) return;
        return Fill(add ? reflection->AddMessage(message, field) : reflection->MutableMessage(message, field),
                    depth - 1);
      default:
        FAIL() << "a new kind of field: teach it to this test: " << field->full_name();
    }
  }

  std::mt19937_64 random_;
};

void Encode(const Message& message, Encoder* out) {
  const Reflection* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const auto number = static_cast<uint32_t>(field->number());
    const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    if (field->is_repeated() && field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32) {
      std::vector<uint32_t> values;
      for (int i = 0; i < count; ++i) values.push_back(reflection->GetRepeatedUInt32(message, field, i));
      out->PackedUint(number, values);
      continue;
    }
    if (field->is_repeated() && field->cpp_type() == FieldDescriptor::CPPTYPE_UINT64) {
      std::vector<uint64_t> values;
      for (int i = 0; i < count; ++i) values.push_back(reflection->GetRepeatedUInt64(message, field, i));
      out->PackedUint(number, values);
      continue;
    }
    for (int i = 0; i < count; ++i) {
      switch (field->cpp_type()) {
        case FieldDescriptor::CPPTYPE_UINT32:
          out->Uint(number, reflection->GetUInt32(message, field));
          break;
        case FieldDescriptor::CPPTYPE_UINT64:
          out->Uint(number, reflection->GetUInt64(message, field));
          break;
        case FieldDescriptor::CPPTYPE_INT64:
          out->Int(number, reflection->GetInt64(message, field));
          break;
        case FieldDescriptor::CPPTYPE_DOUBLE:
          out->Double(number, reflection->GetDouble(message, field));
          break;
        case FieldDescriptor::CPPTYPE_BOOL:
          out->Bool(number, reflection->GetBool(message, field));
          break;
        case FieldDescriptor::CPPTYPE_ENUM:
          out->Uint(number, static_cast<uint64_t>(reflection->GetEnumValue(message, field)));
          break;
        case FieldDescriptor::CPPTYPE_STRING:
          if (field->is_repeated()) {
            out->ForceText(number, reflection->GetRepeatedString(message, field, i));
          } else {
            out->Text(number, reflection->GetString(message, field));
          }
          break;
        default: {
          const size_t mark = out->Begin(number);
          Encode(field->is_repeated() ? reflection->GetRepeatedMessage(message, field, i)
                                      : reflection->GetMessage(message, field),
                 out);
          out->End(mark);
        }
      }
    }
  }
}

TEST(Encoder, RandomChunksAreReadAsTheyWere) {
  Encoder out(16 << 20);
  size_t bytes = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    v1::Chunk chunk;
    RandomMessage(seed).Fill(&chunk, 4);
    out.Clear();
    Encode(chunk, &out);
    const auto parsed = Parse<v1::Chunk>(out);
    ASSERT_TRUE(MessageDifferencer::Equals(parsed, chunk)) << "seed " << seed;
    // Canonical, too: as long as libprotobuf's own.
    ASSERT_EQ(out.size(), chunk.ByteSizeLong()) << "seed " << seed;
    bytes += out.size();
  }
  EXPECT_GT(bytes, 100'000u) << "the messages are not empty";
}

// Wherever memory ends, the encoder stays whole: the flag is set, and nothing is written outside the buffer (ASan).
TEST(Encoder, EveryLimitIsHarmless) {
  v1::Chunk chunk;
  RandomMessage(3).Fill(&chunk, 4);
  const size_t size = chunk.ByteSizeLong();
  for (size_t limit = 0; limit < size + 64; limit += 1 + size / 500) {
    Encoder out(limit);
    Encode(chunk, &out);
    EXPECT_LE(out.size(), limit);
    if (out.ok()) {
      EXPECT_EQ(out.size(), size);
    } else {
      EXPECT_LT(limit, size + 32);
    }
  }
}

}  // namespace
}  // namespace rfinject::wire
