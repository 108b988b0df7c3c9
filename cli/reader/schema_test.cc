#include "cli/reader/schema.h"

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "proto/rfinject/v1/trace.pb.h"

namespace rfinject::cli {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

FieldKind KindOf(const FieldDescriptor& field) {
  switch (field.type()) {
    case FieldDescriptor::TYPE_MESSAGE:
      return FieldKind::kMessage;
    case FieldDescriptor::TYPE_ENUM:
      return FieldKind::kEnum;
    case FieldDescriptor::TYPE_STRING:
      return FieldKind::kText;
    case FieldDescriptor::TYPE_DOUBLE:
      return FieldKind::kDouble;
    case FieldDescriptor::TYPE_BOOL:
      return FieldKind::kBool;
    case FieldDescriptor::TYPE_INT64:
      return FieldKind::kSigned;
    case FieldDescriptor::TYPE_UINT32:
    case FieldDescriptor::TYPE_UINT64:
      return FieldKind::kUnsigned;
    default:
      ADD_FAILURE() << "the reader has no kind for " << field.full_name();
      return FieldKind::kUnsigned;
  }
}

void Compare(const Descriptor& descriptor, std::span<const SchemaField> fields) {
  ASSERT_EQ(static_cast<size_t>(descriptor.field_count()), fields.size()) << descriptor.full_name();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor& wanted = *descriptor.field(i);
    const auto field = std::find_if(fields.begin(), fields.end(), [&](const SchemaField& f) {
      return f.number == static_cast<uint32_t>(wanted.number());
    });
    ASSERT_NE(field, fields.end()) << wanted.full_name();
    EXPECT_EQ(field->name, wanted.name()) << wanted.full_name();
    ASSERT_EQ(field->kind, KindOf(wanted)) << wanted.full_name();
    if (wanted.message_type() != nullptr) Compare(*wanted.message_type(), field->message);
    if (wanted.enum_type() != nullptr) {
      ASSERT_EQ(static_cast<size_t>(wanted.enum_type()->value_count()), field->enum_names.size());
      for (int v = 0; v < wanted.enum_type()->value_count(); ++v) {
        const auto& value = *wanted.enum_type()->value(v);
        ASSERT_LT(static_cast<size_t>(value.number()), field->enum_names.size());
        EXPECT_EQ(field->enum_names[static_cast<size_t>(value.number())], value.name());
      }
    }
  }
}

TEST(Schema, IsTheProtoFiles) { Compare(*v1::Chunk::descriptor(), ChunkSchema()); }

}  // namespace
}  // namespace rfinject::cli
