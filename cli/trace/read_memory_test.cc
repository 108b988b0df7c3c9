// What a hostile trace may cost in memory, beyond the file and at the most: 64 MB for a frame of 16 MiB, the largest
// that there is, when the reader may keep 32 MB; of smaller ones, which take less of a test's time, in proportion.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cli/testing/peak_memory.h"
#include "cli/testing/sanitized.h"
#include "cli/testing/trace_bytes.h"
#include "cli/trace/decode.h"
#include "cli/trace/read.h"
#include "proto/rfinject/v1/trace.pb.h"
#include "proto/wire/framing.h"

namespace rfinject::cli {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// PeakMemory says nothing under a sanitizer.
constexpr size_t kFrame = wire::kMaxPayloadSize / OneIn(32);
constexpr size_t kSmallFrame = kFrame / 16;

// Reads a trace with this payload in one frame of `frame` bytes. The frame's buffer is the file, which is not
// counted.
void ExpectBounded(const std::string& payload, size_t frame, const std::string& what) {
  const uint64_t kept = 2 * frame, most = 4 * frame;
  std::vector<uint8_t> trace = testing::EmptyTrace();
  testing::AppendFrame(trace, 0, payload);
  MemorySource source(trace);
  const testing::PeakMemory peak;
  const TraceContents contents = ReadTrace(source, kept);
  EXPECT_LE(peak.Bytes(), most + frame) << what << ": " << contents.status;
}

// Of the records of the schema, each in turn.
template <typename Use>
void ForEachRecord(const Use& use) {
  const Descriptor* chunk = v1::Chunk::descriptor();
  for (int i = 0; i < chunk->field_count(); ++i) use(chunk->field(i));
}

std::string Repeated(const std::string& record, size_t frame) {
  std::string payload;
  payload.reserve(frame);
  while (payload.size() + record.size() <= frame) payload += record;
  return payload;
}

std::string RecordOf(const FieldDescriptor* field, const std::string& content) {
  v1::Chunk chunk;
  const auto* reflection = chunk.GetReflection();
  if (field->message_type() == nullptr) {
    reflection->AddString(&chunk, field, content);
  } else {
    Message* message =
        field->is_repeated() ? reflection->AddMessage(&chunk, field) : reflection->MutableMessage(&chunk, field);
    EXPECT_TRUE(message->ParseFromString(content));
  }
  return chunk.SerializeAsString();
}

TEST(ReadMemoryTest, EmptyRecords) {
  ForEachRecord([](const FieldDescriptor* field) {
    ExpectBounded(Repeated(RecordOf(field, ""), kSmallFrame), kSmallFrame, field->name());
  });
}

// What has an id is kept by it.
TEST(ReadMemoryTest, RecordsWithIdsOfTheirOwn) {
  ForEachRecord([](const FieldDescriptor* field) {
    std::string payload;
    for (uint32_t id = 1;; ++id) {
      std::string content;
      if (field->message_type() == nullptr) {
        content = std::to_string(id);
      } else {
        const FieldDescriptor* first = field->message_type()->FindFieldByNumber(1);
        if (first == nullptr || first->is_repeated() || first->cpp_type() != FieldDescriptor::CPPTYPE_UINT32) return;
        std::unique_ptr<Message> message(
            google::protobuf::MessageFactory::generated_factory()->GetPrototype(field->message_type())->New());
        message->GetReflection()->SetUInt32(message.get(), first, id);
        content = message->SerializeAsString();
      }
      const std::string record = RecordOf(field, content);
      if (payload.size() + record.size() > kSmallFrame) break;
      payload += record;
    }
    ExpectBounded(payload, kSmallFrame, field->name());
  });
}

// Records of the greatest length, full of the smallest messages that can stand in them.
TEST(ReadMemoryTest, EmptyMessagesInRecords) {
  ForEachRecord([](const FieldDescriptor* field) {
    const Descriptor* type = field->message_type();
    for (int i = 0; type != nullptr && i < type->field_count(); ++i) {
      const FieldDescriptor* inner = type->field(i);
      if (!inner->is_repeated()) continue;
      const bool bytes = inner->message_type() != nullptr || inner->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
      // An empty message or text; or a packed list of zeros, one byte each.
      std::string one = {static_cast<char>(inner->number() << 3 | 2), 0};
      std::string content;
      const size_t most = std::min(kMaxRecordSize, kFrame / 4) - 64;
      if (bytes) {
        while (content.size() + one.size() <= most) content += one;
      } else {
        content.push_back(static_cast<char>(inner->number() << 3 | 2));
        for (size_t length = most;; length >>= 7) {
          content.push_back(static_cast<char>((length & 0x7F) | (length > 0x7F ? 0x80 : 0)));
          if (length <= 0x7F) break;
        }
        content.append(most, '\0');
      }
      ExpectBounded(Repeated(RecordOf(field, content), kFrame), kFrame, field->name() + "." + inner->name());
    }
  });
}

}  // namespace
}  // namespace rfinject::cli
