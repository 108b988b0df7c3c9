// File: fields.h
//
// The fields of one message as they lie in the file: for walking over the records of a chunk without parsing them
// (each byte of a trace is passed three times, so this is a loop over bytes and no stream of protobuf's), for saying
// what is wrong with a record that does not parse, and for showing what the schema does not know.
//
//   FieldCursor cursor(bytes, offset_in_file);
//   for (Field field; cursor.Next(&field);) { switch (field.number) … }
//   if (!cursor.ok()) Complain(cursor.error_offset(), cursor.error());
#ifndef RFINJECT_CLI_TRACE_FIELDS_H_
#define RFINJECT_CLI_TRACE_FIELDS_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
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

// protobuf's number of up to ten bytes, seven bits each, low ones first. What comes behind it, or null where it is
// cut off or too long.
inline const uint8_t* ParseLongVarint(const uint8_t* at, const uint8_t* end, uint64_t* value) {
  constexpr std::ptrdiff_t kAtOnce = 8;
  if (end - at >= kAtOnce) {
    uint64_t bytes;
    std::memcpy(&bytes, at, kAtOnce);                    // little-endian, as every machine that we build for is
    const uint64_t last = ~bytes & 0x8080808080808080u;  // its lowest bit ends the number
    if (last != 0) {
      bytes &= (last ^ (last - 1)) & 0x7F7F7F7F7F7F7F7Fu;
      bytes = (bytes & 0x007F007F007F007Fu) | (bytes & 0x7F007F007F007F00u) >> 1;
      bytes = (bytes & 0x00003FFF00003FFFu) | (bytes & 0x3FFF00003FFF0000u) >> 2;
      *value = (bytes & 0x000000000FFFFFFFu) | (bytes & 0x0FFFFFFF00000000u) >> 4;
      return at + std::countr_zero(last) / 8 + 1;
    }
  }
  uint64_t sum = 0;
  for (unsigned shift = 0; shift < 70 && at != end; shift += 7) {
    const uint8_t byte = *at++;
    sum |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) {
      *value = sum;
      return at;
    }
  }
  return nullptr;
}
// Reads a number at `at` and returns the place behind it; null where the bytes before `end` hold none.
inline const uint8_t* ParseVarint(const uint8_t* at, const uint8_t* end, uint64_t* value) {
  if (at == end || *at >= 0x80) return ParseLongVarint(at, end, value);
  *value = *at;
  return at + 1;
}

class FieldCursor {
 public:
  // `offset` is where in the file `bytes` begin; it is only added to the offsets that are reported.
  FieldCursor(std::span<const uint8_t> bytes, uint64_t offset)
      : begin_(bytes.data()), at_(begin_), end_(begin_ + bytes.size()), offset_(offset) {}
  explicit FieldCursor(const Field& field) : FieldCursor(field.bytes, field.bytes_offset) {}

  // The next field; false at the end and at damage.
  bool Next(Field* field) {
    if (at_ == end_ || !ok()) return false;
    // Of records nearly all are this: bytes, with a tag of one byte.
    if ((*at_ & 0x87) == static_cast<uint8_t>(WireType::kBytes) && *at_ >= 8) {
      uint64_t size = 0;
      const uint8_t* const bytes = ParseVarint(at_ + 1, end_, &size);
      if (bytes != nullptr && size <= static_cast<uint64_t>(end_ - bytes)) {
        field->number = *at_ >> 3;
        field->type = WireType::kBytes;
        field->value = 0;
        field->offset = Offset();
        field->bytes_offset = field->offset + static_cast<uint64_t>(bytes - at_);
        field->bytes = {bytes, static_cast<size_t>(size)};
        at_ = bytes + size;
        return true;
      }
    }
    return NextOfAnyForm(field);
  }

  // One number of a packed repeated field: what is left of the bytes are varints without tags.
  bool NextPacked(uint64_t* value) {
    if (at_ == end_ || !ok()) return false;
    const uint64_t offset = Offset();
    return ReadVarint(value) || Fail(offset, "a number is cut off or too long");
  }

  const uint8_t* at() const { return at_; }  // what comes behind the field that Next gave
  bool ok() const { return error_ == nullptr; }
  const char* error() const { return error_; }
  uint64_t error_offset() const { return error_offset_; }

 private:
  static constexpr uint64_t kMaxFieldNumber = (1u << 29) - 1;

  bool NextOfAnyForm(Field* field) {
    field->offset = Offset();
    uint64_t tag = 0;
    if (!ReadVarint(&tag)) return Fail(field->offset, "a field's tag is cut off or too long");
    if (tag >> 3 == 0 || tag >> 3 > kMaxFieldNumber) return Fail(field->offset, "a field has an impossible number");
    field->number = static_cast<uint32_t>(tag >> 3);
    field->type = static_cast<WireType>(tag & 7);
    field->value = 0;
    field->bytes = {};
    switch (field->type) {
      case WireType::kVarint:
        return ReadVarint(&field->value) || Fail(field->offset, "a number is cut off or too long");
      case WireType::kFixed64:
        return ReadFixed(8, &field->value) || Fail(field->offset, "a number is cut off");
      case WireType::kFixed32:
        return ReadFixed(4, &field->value) || Fail(field->offset, "a number is cut off");
      case WireType::kBytes: {
        uint64_t size = 0;
        if (!ReadVarint(&size)) return Fail(field->offset, "a length is cut off or too long");
        if (size > Left()) return Fail(field->offset, "a length goes beyond the end of its record");
        field->bytes_offset = Offset();
        field->bytes = {at_, static_cast<size_t>(size)};
        at_ += size;
        return true;
      }
    }
    return Fail(field->offset, "a field has an impossible type");
  }

  uint64_t Offset() const { return offset_ + static_cast<uint64_t>(at_ - begin_); }
  uint64_t Left() const { return static_cast<uint64_t>(end_ - at_); }
  bool Fail(uint64_t offset, const char* error) {
    error_ = error;
    error_offset_ = offset;
    return false;
  }
  bool ReadVarint(uint64_t* value) {
    const uint8_t* const next = ParseVarint(at_, end_, value);
    if (next == nullptr) return false;
    at_ = next;
    return true;
  }
  bool ReadFixed(size_t size, uint64_t* value) {
    if (Left() < size) return false;
    *value = 0;
    std::memcpy(value, at_, size);
    at_ += size;
    return true;
  }

  const uint8_t* begin_;
  const uint8_t* at_;
  const uint8_t* end_;
  uint64_t offset_;
  const char* error_ = nullptr;
  uint64_t error_offset_ = 0;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TRACE_FIELDS_H_
