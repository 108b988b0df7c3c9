#include "cli/trace/dump.h"

#include <gtest/gtest.h>

#include <string>

#include "proto/rfinject/v1/trace.pb.h"

namespace rfinject::cli {
namespace {

std::string TextOf(const std::string& bytes) {
  FieldCursor cursor({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, 32);
  Field record;
  EXPECT_TRUE(cursor.Next(&record));
  return RecordText(record);
}

TEST(RecordText, NamesComeFromTheSchema) {
  v1::Chunk chunk;
  v1::Run& run = *chunk.add_run();
  run.set_id(1);
  run.set_source(v1::SOURCE_MEASURED);
  run.mutable_process()->add_argv("a\"b\\\n\xFF");
  run.mutable_process()->set_start_unix_ns(-5);
  run.add_rank(3);
  run.add_rank(400);
  run.add_device()->set_mig(true);
  EXPECT_EQ(TextOf(chunk.SerializeAsString()),
            "run { id: 1 source: SOURCE_MEASURED process { argv: \"a\\\"b\\\\\\x0a\\xff\" start_unix_ns: -5 } "
            "device { mig: true } rank: [3, 400] }");
  v1::Chunk metric;
  metric.add_metric()->set_scale(0.5);
  EXPECT_EQ(TextOf(metric.SerializeAsString()), "metric { scale: 0.5 }");
}

TEST(RecordText, TheUnknownIsShownByNumberAndDamageWithItsOffset) {
  EXPECT_EQ(TextOf(std::string("\x12\x05\x08\x01\xF8\x07\x05", 7)), "name { id: 1 127: 5 }");
  EXPECT_EQ(TextOf(std::string("\xF2\x07\x03new", 6)), "126: \"new\"");
  EXPECT_EQ(TextOf(std::string("\x12\x04\x08\x01\x12\x09", 6)),
            "name { id: 1 # byte 36: a length goes beyond the end of its record }");
  // An enumerator of a newer version.
  EXPECT_EQ(TextOf(std::string("\x32\x02\x28\x63", 4)), "key { phase: 99 }");
}

}  // namespace
}  // namespace rfinject::cli
