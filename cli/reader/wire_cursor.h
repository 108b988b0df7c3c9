// File: wire_cursor.h
//
// Reads the protobuf wire format (protobuf.dev/programming-guides/encoding) in place: no copy, no allocation, every
// length checked. The generated parser is not used for traces because it builds a whole message in memory, which a
// hostile file can make forty times as large as itself, and refuses a chunk for one byte that is not UTF-8, which a
// program's arguments may hold.
//
//   WireCursor cursor(bytes, offset_in_file);
//   for (WireField field; cursor.Next(&field);) { switch (field.number) … }
//   if (!cursor.ok()) Complain(cursor.error_offset(), cursor.error());
#ifndef RFINJECT_CLI_READER_WIRE_CURSOR_H_
#define RFINJECT_CLI_READER_WIRE_CURSOR_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace rfinject::cli {

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct WireField {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  uint64_t value = 0;              // kVarint, kFixed64, kFixed32
  std::span<const uint8_t> bytes;  // kBytes
  uint64_t offset = 0;             // in the file: of the tag
  uint64_t bytes_offset = 0;       // in the file: of bytes

  std::string_view text() const { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
  double real() const {
    double result;
    std::memcpy(&result, &value, sizeof result);
    return type == WireType::kFixed64 ? result : 0;
  }
};

class WireCursor {
 public:
  // `offset` is where in the file `bytes` begin; it is only added to the offsets that are reported.
  WireCursor(std::span<const uint8_t> bytes, uint64_t offset) : bytes_(bytes), offset_(offset) {}
  explicit WireCursor(const WireField& field) : WireCursor(field.bytes, field.bytes_offset) {}

  // The next field; false at the end and at damage.
  bool Next(WireField* field) {
    if (position_ == bytes_.size() || !ok()) return false;
    field->offset = offset_ + position_;
    uint64_t tag;
    if (!Varint(&tag)) return Fail(field->offset, "a field's tag is cut off or too long");
    if (tag >> 3 == 0 || tag >> 3 > kMaxFieldNumber) return Fail(field->offset, "a field has an impossible number");
    field->number = static_cast<uint32_t>(tag >> 3);
    field->value = 0;
    field->bytes = {};
    switch (tag & 7) {
      case 0:
        field->type = WireType::kVarint;
        if (!Varint(&field->value)) return Fail(field->offset, "a number is cut off or too long");
        return true;
      case 1:
        field->type = WireType::kFixed64;
        if (!Fixed(8, &field->value)) return Fail(field->offset, "a number is cut off");
        return true;
      case 2: {
        field->type = WireType::kBytes;
        uint64_t size;
        if (!Varint(&size)) return Fail(field->offset, "a length is cut off or too long");
        if (size > bytes_.size() - position_)
          return Fail(field->offset, "a length goes beyond the end of its record");
        field->bytes_offset = offset_ + position_;
        field->bytes = bytes_.subspan(position_, size);
        position_ += size;
        return true;
      }
      case 5:
        field->type = WireType::kFixed32;
        if (!Fixed(4, &field->value)) return Fail(field->offset, "a number is cut off");
        return true;
      default:
        return Fail(field->offset, "a field has an impossible type");
    }
  }

  // One number of a packed repeated field: what is left of the bytes are varints without tags.
  bool NextPacked(uint64_t* value) {
    if (position_ == bytes_.size() || !ok()) return false;
    const uint64_t offset = offset_ + position_;
    return Varint(value) || Fail(offset, "a number is cut off or too long");
  }

  bool ok() const { return error_ == nullptr; }
  const char* error() const { return error_; }
  uint64_t error_offset() const { return error_offset_; }

 private:
  static constexpr uint64_t kMaxFieldNumber = (1u << 29) - 1;

  bool Varint(uint64_t* value) {
    uint64_t result = 0;
    for (unsigned shift = 0; shift < 70 && position_ < bytes_.size(); shift += 7) {
      const uint8_t byte = bytes_[position_++];
      if (shift == 63 && byte > 1) return false;  // would not fit in 64 bits
      result |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) {
        *value = result;
        return true;
      }
    }
    return false;
  }
  bool Fixed(size_t size, uint64_t* value) {
    if (bytes_.size() - position_ < size) return false;
    uint64_t result = 0;
    for (size_t i = 0; i < size; ++i) result |= static_cast<uint64_t>(bytes_[position_++]) << (8 * i);
    *value = result;
    return true;
  }
  bool Fail(uint64_t offset, const char* error) {
    error_ = error;
    error_offset_ = offset;
    return false;
  }

  std::span<const uint8_t> bytes_;
  uint64_t offset_;
  size_t position_ = 0;
  const char* error_ = nullptr;
  uint64_t error_offset_ = 0;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_READER_WIRE_CURSOR_H_
