// File: schema.h
//
// The names of the trace's fields, for showing records as text without protobuf's descriptors, which would be half of
// the command's size.
#ifndef RFINJECT_CLI_READER_SCHEMA_H_
#define RFINJECT_CLI_READER_SCHEMA_H_

#include <cstdint>
#include <span>
#include <string_view>

namespace rfinject::cli {

enum class FieldKind : uint8_t { kUnsigned, kSigned, kBool, kDouble, kText, kEnum, kMessage };

struct SchemaField {
  uint32_t number;
  std::string_view name;
  FieldKind kind;
  std::span<const SchemaField> message;          // of kMessage
  std::span<const std::string_view> enum_names;  // of kEnum, by value
};

// The fields of Chunk.
std::span<const SchemaField> ChunkSchema();

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_READER_SCHEMA_H_
