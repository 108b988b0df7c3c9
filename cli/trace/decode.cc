#include "cli/trace/decode.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/message.h>

#include <array>
#include <iterator>
#include <optional>
#include <string>

#include "cli/trace/damage.h"
#include "proto/rfinject/v1/trace.schema.h"

namespace rfinject::cli {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using trace::kRecordOrder;

// Up to this size a record cannot take more than some hundred kilobytes when parsed, whatever it holds.
constexpr size_t kSmallRecord = 4096;

constexpr int kMaxNumber = 64;
// The place of a field's number in kRecordOrder from 1 on; 0: not known.
constexpr std::array<uint8_t, kMaxNumber> MakePlaces() {
  std::array<uint8_t, kMaxNumber> places{};
  for (size_t i = 0; i < std::size(kRecordOrder); ++i) {
    places[static_cast<size_t>(kRecordOrder[i])] = static_cast<uint8_t>(i + 1);
  }
  return places;
}
constexpr std::array<uint8_t, kMaxNumber> kPlaces = MakePlaces();

uint8_t PlaceOf(uint32_t number) { return number < kMaxNumber ? kPlaces[number] : 0; }

// What protobuf takes for one message of `type`, without what is in it.
uint64_t EmptySize(const Descriptor& type) {
  return google::protobuf::MessageFactory::generated_factory()->GetPrototype(&type)->SpaceUsedLong();
}

// Roughly the memory that parsing `bytes` as a message of `type` takes, from above; stops counting above `limit`.
// What does not parse costs what comes before it.
uint64_t ParsedSize(const Field& message, const Descriptor* type, uint64_t limit) {
  // What stands in a repeated field beside its value, and in the set of unknown fields.
  constexpr uint64_t kOverhead = 2 * sizeof(void*) + 2 * sizeof(std::string);
  uint64_t total = 0;
  FieldCursor cursor(message);
  for (Field field; total <= limit && cursor.Next(&field);) {
    const FieldDescriptor* known = type->FindFieldByNumber(static_cast<int>(field.number));
    if (field.type != WireType::kBytes) {
      if (known == nullptr || known->is_repeated()) total += kOverhead;
    } else if (known != nullptr && known->message_type() != nullptr) {
      total += kOverhead + EmptySize(*known->message_type());
      if (total <= limit) total += ParsedSize(field, known->message_type(), limit - total);
    } else if (known != nullptr && known->is_packable()) {
      // Each byte can be a number, and the array doubles as it grows.
      total += 2 * sizeof(uint64_t) * field.bytes.size();
    } else {
      total += kOverhead + field.bytes.size();
    }
  }
  return total;
}

// Why a record does not parse, as exactly as it can be said.
absl::Status WhyNot(const Field& record, const Descriptor* type) {
  FieldCursor cursor(record);
  for (Field field; cursor.Next(&field);) {
    const FieldDescriptor* known = type->FindFieldByNumber(static_cast<int>(field.number));
    if (known == nullptr || field.type != WireType::kBytes) continue;
    if (known->message_type() != nullptr) {
      absl::Status inner = WhyNot(field, known->message_type());
      if (!inner.ok()) return inner;
    } else if (known->is_packable()) {
      FieldCursor numbers(field);
      for (uint64_t value = 0; numbers.NextPacked(&value);) {
      }
      if (!numbers.ok()) return DamageAt(numbers.error_offset(), numbers.error());
    }
  }
  return cursor.ok() ? absl::OkStatus() : DamageAt(cursor.error_offset(), cursor.error());
}

// The type of a record; null for one that is no message but bytes, as a trace's id is.
const Descriptor* TypeOf(const Field& record) {
  return v1::Chunk::descriptor()->FindFieldByNumber(static_cast<int>(record.number))->message_type();
}

uint64_t ParsedRecordSize(const Field& record) {
  const Descriptor* const type = TypeOf(record);
  return type == nullptr ? record.bytes.size() : ParsedSize(record, type, kMaxParsedBytes);
}

absl::Status WhyNotARecord(const Field& record) {
  const Descriptor* const type = TypeOf(record);
  const absl::Status why = type == nullptr ? absl::OkStatus() : WhyNot(record, type);
  return why.ok() ? DamageAt(record.offset, "a record does not parse") : why;
}

}  // namespace

// One walk counts, and finds what is not statistics; another puts the records in their places.
absl::Status Decoder::Sort(std::span<const uint8_t> payload, uint64_t offset) {
  std::array<size_t, std::size(kRecordOrder) + 1> place{};  // first the number of records, then where they go
  const bool whole = payload.size() <= kMaxWholeChunk;
  pieces_.clear();
  uint64_t begin = 0;  // of the piece
  const auto end_piece = [&](uint64_t end) {
    if (whole && begin < end) pieces_.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
  };
  FieldCursor cursor(payload, offset);
  for (Field field; cursor.Next(&field);) {
    if (field.number == v1::Chunk::kStatsFieldNumber) {
      end_piece(field.offset - offset);
      begin = field.bytes_offset - offset + field.bytes.size();
    }
    const uint8_t at = PlaceOf(field.number);
    if (at == 0) continue;  // from a newer minor version
    if (field.type != WireType::kBytes) {
      return DamageAt(field.offset, "a record is not of the type that it should be");
    }
    if (field.bytes.size() > kMaxRecordSize) return DamageAt(field.offset, "a record is longer than any should be");
    ++place[at];
  }
  if (!cursor.ok()) return DamageAt(cursor.error_offset(), cursor.error());
  end_piece(payload.size());
  size_t count = 0;
  for (size_t& one : place) {
    const size_t records = one;
    one = count;
    count += records;
  }
  begins_.clear();
  begins_.resize(count);
  FieldCursor again(payload, 0);
  for (Field field; again.Next(&field);) {
    const uint8_t at = PlaceOf(field.number);
    if (at != 0) begins_[place[at]++] = static_cast<uint32_t>(field.offset);
  }
  return absl::OkStatus();
}

const v1::Chunk* Decoder::ParseWhole(std::span<const uint8_t> payload) {
  if (payload.size() > kMaxWholeChunk) return nullptr;
  if (arena_ == nullptr) {
    first_block_.reset(new char[kFirstBlock]);
    google::protobuf::ArenaOptions options;
    options.initial_block = first_block_.get();
    options.initial_block_size = kFirstBlock;
    options.start_block_size = kFirstBlock;
    options.max_block_size = 4 * kFirstBlock;
    arena_ = std::make_unique<google::protobuf::Arena>(options);
  }
  arena_->Reset();
  auto* chunk = google::protobuf::Arena::CreateMessage<v1::Chunk>(arena_.get());
  for (const Piece& piece : pieces_) {
    google::protobuf::io::CodedInputStream in(payload.data() + piece.begin,
                                              static_cast<int>(piece.end - piece.begin));
    if (!chunk->MergeFromCodedStream(&in) || !in.ConsumedEntireMessage()) return nullptr;
  }
  trace::CleanChunk(chunk);
  return chunk;
}

absl::Status Decoder::Decode(std::span<const uint8_t> payload, uint64_t offset, const Use& use) {
  if (absl::Status status = Sort(payload, offset); !status.ok()) return status;
  const v1::Chunk* const whole = ParseWhole(payload);
  if (whole == nullptr) return DecodeEach(payload, offset, use);
  int number = 0, index = 0;
  for (const uint32_t begin : begins_) {
    Field field;
    FieldCursor cursor(payload.subspan(begin), offset + begin);
    cursor.Next(&field);
    index = static_cast<int>(field.number) == number ? index + 1 : 0;
    number = static_cast<int>(field.number);
    // For a field that is not a repeated one protobuf merges all records into one message.
    if (index > 0 && (number == v1::Chunk::kStepStatsFieldNumber || number == v1::Chunk::kEndFieldNumber)) continue;
    const size_t size = static_cast<size_t>(field.bytes_offset - field.offset) + field.bytes.size();
    if (absl::Status status = use({number, field.offset, size, whole, index, field}); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Decoder::DecodeOnly(int number, std::span<const uint8_t> payload, uint64_t offset, const Use& use) {
  begins_.clear();
  FieldCursor cursor(payload, 0);
  for (Field field; cursor.Next(&field);) {
    if (static_cast<int>(field.number) != number) continue;
    if (field.type != WireType::kBytes || field.bytes.size() > kMaxRecordSize) {
      return DamageAt(offset + field.offset, "a record is not of the type that it should be");
    }
    begins_.push_back(static_cast<uint32_t>(field.offset));
  }
  if (!cursor.ok()) return DamageAt(offset + cursor.error_offset(), cursor.error());
  return DecodeEach(payload, offset, use);
}

absl::Status Decoder::DecodeEach(std::span<const uint8_t> payload, uint64_t offset, const Use& use) {
  for (const uint32_t begin : begins_) {
    Field field;
    FieldCursor cursor(payload.subspan(begin), offset + begin);
    cursor.Next(&field);
    const size_t size = static_cast<size_t>(field.bytes_offset - field.offset) + field.bytes.size();
    if (field.number == v1::Chunk::kStatsFieldNumber) {
      absl::Status status = use({v1::Chunk::kStatsFieldNumber, field.offset, size, nullptr, 0, field});
      if (!status.ok()) return status;
      continue;
    }
    // A large record gets a message of its own: one that is used again would keep its memory.
    std::optional<v1::Chunk> own;
    v1::Chunk* chunk = &reused_;
    if (size > kSmallRecord) {
      chunk = &own.emplace();
      if (ParsedRecordSize(field) > kMaxParsedBytes) {
        return DamageAt(field.offset, "a record would take more memory than any should");
      }
    }
    if (!chunk->ParseFromArray(payload.data() + begin, static_cast<int>(size))) return WhyNotARecord(field);
    trace::CleanChunk(chunk);
    absl::Status status = use({static_cast<int>(field.number), field.offset, size, chunk, 0, field});
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace rfinject::cli
