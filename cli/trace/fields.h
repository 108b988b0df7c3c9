// File: fields.h
//
// The fields of one message as they lie in the file, over protobuf's CodedInputStream: for walking over the records
// of a chunk without parsing them, for saying what is wrong with a record that does not parse, and for showing what
// the schema does not know.
//
//   FieldCursor cursor(bytes, offset_in_file);
//   for (Field field; cursor.Next(&field);) { switch (field.number) … }
//   if (!cursor.ok()) Complain(cursor.error_offset(), cursor.error());
#ifndef RFINJECT_CLI_TRACE_FIELDS_H_
#define RFINJECT_CLI_TRACE_FIELDS_H_

#include <google/protobuf/io/coded_stream.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace rfinject::cli {

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct Field {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  uint64_t value = 0;              // kVarint, kFixed64, kFixed32
  std::span<const uint8_t> bytes;  // kBytes
  uint64_t offset = 0;             // in the file: of the tag
  uint64_t bytes_offset = 0;       // in the file: of bytes

  std::string_view text() const { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
};

class FieldCursor {
 public:
  // `offset` is where in the file `bytes` begin; it is only added to the offsets that are reported. At most 2 GiB.
  FieldCursor(std::span<const uint8_t> bytes, uint64_t offset)
      : bytes_(bytes), offset_(offset), in_(bytes.data(), static_cast<int>(bytes.size())) {}
  explicit FieldCursor(const Field& field) : FieldCursor(field.bytes, field.bytes_offset) {}

  // The next field; false at the end and at damage.
  bool Next(Field* field) {
    if (AtEnd() || !ok()) return false;
    field->offset = offset_ + Position();
    uint64_t tag = 0;
    if (!in_.ReadVarint64(&tag)) return Fail(field->offset, "a field's tag is cut off or too long");
    if (tag >> 3 == 0 || tag >> 3 > kMaxFieldNumber) return Fail(field->offset, "a field has an impossible number");
    field->number = static_cast<uint32_t>(tag >> 3);
    field->type = static_cast<WireType>(tag & 7);
    field->value = 0;
    field->bytes = {};
    switch (field->type) {
      case WireType::kVarint:
        return in_.ReadVarint64(&field->value) || Fail(field->offset, "a number is cut off or too long");
      case WireType::kFixed64:
        return in_.ReadLittleEndian64(&field->value) || Fail(field->offset, "a number is cut off");
      case WireType::kFixed32: {
        uint32_t value = 0;
        if (!in_.ReadLittleEndian32(&value)) return Fail(field->offset, "a number is cut off");
        field->value = value;
        return true;
      }
      case WireType::kBytes: {
        uint64_t size = 0;
        if (!in_.ReadVarint64(&size)) return Fail(field->offset, "a length is cut off or too long");
        const size_t at = Position();
        if (size > bytes_.size() - at) return Fail(field->offset, "a length goes beyond the end of its record");
        field->bytes_offset = offset_ + at;
        field->bytes = bytes_.subspan(at, size);
        in_.Skip(static_cast<int>(size));
        return true;
      }
    }
    return Fail(field->offset, "a field has an impossible type");
  }

  // One number of a packed repeated field: what is left of the bytes are varints without tags.
  bool NextPacked(uint64_t* value) {
    if (AtEnd() || !ok()) return false;
    const uint64_t offset = offset_ + Position();
    return in_.ReadVarint64(value) || Fail(offset, "a number is cut off or too long");
  }

  bool ok() const { return error_ == nullptr; }
  const char* error() const { return error_; }
  uint64_t error_offset() const { return error_offset_; }

 private:
  static constexpr uint64_t kMaxFieldNumber = (1u << 29) - 1;

  size_t Position() const { return static_cast<size_t>(in_.CurrentPosition()); }
  bool AtEnd() const { return Position() == bytes_.size(); }
  bool Fail(uint64_t offset, const char* error) {
    error_ = error;
    error_offset_ = offset;
    return false;
  }

  std::span<const uint8_t> bytes_;
  uint64_t offset_;
  google::protobuf::io::CodedInputStream in_;
  const char* error_ = nullptr;
  uint64_t error_offset_ = 0;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TRACE_FIELDS_H_
