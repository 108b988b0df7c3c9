// File: encoder.h
//
// Writes the protobuf wire format (protobuf.dev/programming-guides/encoding) into one growing buffer. It is what the
// injected library uses in place of libprotobuf: no descriptors, no allocation but the buffer, nothing throws.
// Memory running out or a message above the limit sets a flag, and everything written after that is ignored.
//
//   Encoder out(1 << 20);
//   size_t chunk_name = out.Begin(2);  // Chunk.name
//   out.Uint(1, 7);                    //   Name.id
//   out.Text(2, "aten::relu");         //   Name.text
//   out.End(chunk_name);
//   if (out.ok()) Write(out.data(), out.size());
#ifndef RFINJECT_PROTO_WIRE_ENCODER_H_
#define RFINJECT_PROTO_WIRE_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>

#include "proto/wire/text.h"

namespace rfinject::wire {

class Encoder {
 public:
  // `limit` bounds size(), in bytes.
  explicit Encoder(size_t limit) noexcept : limit_(limit) {}
  ~Encoder() { std::free(data_); }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  // Forgets the content and any failure, keeps the memory. The first `front` bytes are left for the caller to fill
  // through data(): a frame's header goes there, so that header and payload are one write.
  void Clear(size_t front = 0) noexcept {
    size_ = 0;
    ok_ = true;
    if (Reserve(front)) size_ = front;
  }

  // Forgets the content and gives the memory back.
  void Free() noexcept {
    std::free(data_);
    data_ = nullptr;
    size_ = capacity_ = 0;
  }

  // False once something did not fit; the content is then only part of a message and must not be used.
  bool ok() const noexcept { return ok_; }
  // Sets the flag, for a caller that could not write everything that belongs together.
  void Fail() noexcept { ok_ = false; }
  uint8_t* data() noexcept { return data_; }
  const uint8_t* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }

  // proto3 leaves default values out, and so do these: a zero, an empty text, false.
  void Uint(uint32_t field, uint64_t value) noexcept {
    if (value == 0 || !Reserve(2 * kMaxVarint)) return;
    PutVarint(Tag(field, kWireVarint));
    PutVarint(value);
  }
  // int32 and int64 fields: negative numbers take ten bytes.
  void Int(uint32_t field, int64_t value) noexcept { Uint(field, static_cast<uint64_t>(value)); }
  void Bool(uint32_t field, bool value) noexcept { Uint(field, value ? 1 : 0); }
  void Double(uint32_t field, double value) noexcept {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    if (bits == 0 || !Reserve(kMaxVarint + sizeof bits)) return;
    PutVarint(Tag(field, kWireFixed64));
    for (int i = 0; i < 8; ++i) data_[size_++] = static_cast<uint8_t>(bits >> (8 * i));
  }
  // A proto3 string must be UTF-8, or parsers refuse the whole message; what is not (a file name in argv can be
  // anything) becomes U+FFFD, one for each wrong byte.
  void Text(uint32_t field, std::string_view value) noexcept {
    if (!value.empty()) ForceText(field, value);
  }
  // Does the same where an empty text must be written: for an element of a repeated field.
  void ForceText(uint32_t field, std::string_view value) noexcept {
    if (IsUtf8(value)) return PutBytes(field, value);
    const size_t mark = Begin(field);
    while (!value.empty()) {
      const size_t length = Utf8SequenceLength(value);
      std::string_view piece = length == 0 ? kReplacementCharacter : value.substr(0, length);
      if (!Reserve(piece.size())) return;
      PutRaw(piece);
      value.remove_prefix(length == 0 ? 1 : length);
    }
    End(mark);
  }
  // Write a repeated uint32 or uint64, packed as in proto3.
  void PackedUint(uint32_t field, std::span<const uint32_t> values) noexcept { Packed(field, values); }
  void PackedUint(uint32_t field, std::span<const uint64_t> values) noexcept { Packed(field, values); }

  // A nested message: what is written between Begin and End is its content. End wants what Begin returned. An empty
  // message is written, since it can be an element of a repeated field.
  size_t Begin(uint32_t field) noexcept {
    if (!Reserve(kMaxVarint + 1)) return size_;
    PutVarint(Tag(field, kWireLengthDelimited));
    // One byte is enough for the length of most messages here; End makes room for more where it is not.
    data_[size_++] = 0;
    return size_;
  }
  void End(size_t mark) noexcept {
    if (!ok_) return;
    const size_t length = size_ - mark;
    const size_t extra = VarintSize(length) - 1;
    if (!Reserve(extra)) return;
    if (extra > 0) std::memmove(data_ + mark + extra, data_ + mark, length);
    size_ = mark - 1;
    PutVarint(length);
    size_ += length;
  }

 private:
  enum WireType : uint32_t { kWireVarint = 0, kWireFixed64 = 1, kWireLengthDelimited = 2 };
  static constexpr size_t kMaxVarint = 10;  // bytes

  template <typename Integer>
  void Packed(uint32_t field, std::span<const Integer> values) noexcept {
    if (values.empty()) return;
    const size_t mark = Begin(field);
    for (Integer value : values) {
      if (!Reserve(kMaxVarint)) return;
      PutVarint(value);
    }
    End(mark);
  }
  static uint64_t Tag(uint32_t field, WireType type) noexcept { return uint64_t{field} << 3 | type; }
  static size_t VarintSize(uint64_t value) noexcept {
    size_t size = 1;
    while (value >= 0x80) value >>= 7, ++size;
    return size;
  }

  // Makes room for `more` bytes; the callers above reserve before they put, so that no Put can fail half-way.
  bool Reserve(size_t more) noexcept {
    if (!ok_) return false;
    if (more > limit_ - size_) return ok_ = false;
    if (more <= capacity_ - size_) return true;
    size_t capacity = capacity_ < 512 ? 1024 : 2 * capacity_;
    while (capacity - size_ < more) capacity *= 2;
    void* data = std::realloc(data_, capacity);
    if (data == nullptr) return ok_ = false;
    data_ = static_cast<uint8_t*>(data);
    capacity_ = capacity;
    return true;
  }
  void PutVarint(uint64_t value) noexcept {
    for (; value >= 0x80; value >>= 7) data_[size_++] = static_cast<uint8_t>(value | 0x80);
    data_[size_++] = static_cast<uint8_t>(value);
  }
  void PutBytes(uint32_t field, std::string_view value) noexcept {
    if (value.size() > limit_ || !Reserve(2 * kMaxVarint + value.size())) {
      ok_ = false;
      return;
    }
    PutVarint(Tag(field, kWireLengthDelimited));
    PutVarint(value.size());
    PutRaw(value);
  }
  void PutRaw(std::string_view value) noexcept {
    if (value.empty()) return;  // memcpy wants real pointers even then
    std::memcpy(data_ + size_, value.data(), value.size());
    size_ += value.size();
  }

  const size_t limit_;
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
  bool ok_ = true;
};

}  // namespace rfinject::wire

#endif  // RFINJECT_PROTO_WIRE_ENCODER_H_
