// File: decode.h
//
// Decodes a chunk into records: a record is a field of a Chunk. protoc's C++ parses them, and their texts are
// made valid UTF-8, so that a wrong byte in a text does not refuse the chunk. A chunk of ordinary length is parsed at
// once, on an arena. A longer chunk, and one that does not parse, is parsed one record at a time: so memory is
// bounded, and damage has its offset.
#ifndef RFINJECT_CLI_TRACE_DECODE_H_
#define RFINJECT_CLI_TRACE_DECODE_H_

#include <google/protobuf/arena.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "cli/trace/fields.h"
#include "proto/rfinject/v1/trace.pb.h"

namespace rfinject::cli {

// A record that is longer is damage.
inline constexpr size_t kMaxRecordSize = 4u << 20;
// A record that would take more when it is parsed is damage, too: two bytes can be a message of 300.
inline constexpr uint64_t kMaxParsedBytes = 24u << 20;
// A payload of this length stays below that, whatever is in it.
inline constexpr size_t kMaxWholeChunk = 128u << 10;

struct Record {
  int number = 0;                    // of the field of Chunk
  uint64_t offset = 0;               // in the file
  size_t size = 0;                   // in the file, in bytes
  const v1::Chunk* chunk = nullptr;  // that it lies in,
  int index = 0;                     // and its place among those of this field, if that is a repeated one
  // For statistics, which are most of a trace, the record as it lies in the file (key_stats.h), in place of the
  // above.
  Field bytes;
};

// A Decoder can be used for many files, one after the other.
class Decoder {
 public:
  using Use = std::function<absl::Status(const Record&)>;
  // Calls `use` for each record of a chunk that the schema knows, in the order of the schema (trace::kRecordOrder);
  // stops at the first that fails. `offset` is where in the file the payload begins. Damage is as DamageAt says it.
  absl::Status Decode(std::span<const uint8_t> payload, uint64_t offset, const Use& use);
  // The same of one field's records; what the others hold is not looked at.
  absl::Status DecodeOnly(int number, std::span<const uint8_t> payload, uint64_t offset, const Use& use);

 private:
  absl::Status Sort(std::span<const uint8_t> payload, uint64_t offset);
  absl::Status DecodeEach(std::span<const uint8_t> payload, uint64_t offset, const Use& use);
  // All records but statistics, in one message. Null where they must be read record by record.
  const v1::Chunk* ParseWhole(std::span<const uint8_t> payload);

  // Parsed, an ordinary chunk takes a few times its length: most fit into the first block, which is used again.
  static constexpr size_t kFirstBlock = 256u << 10;
  std::unique_ptr<char[]> first_block_;
  std::unique_ptr<google::protobuf::Arena> arena_;  // made when it is needed
  v1::Chunk reused_;
  // Where in the payload the records begin, in the order in which they are used. Four bytes each: a chunk of 16 MiB
  // can hold eight million empty records.
  std::vector<uint32_t> begins_;
  // Of a chunk of ordinary length: what lies before, between and behind its statistics.
  struct Piece {
    uint32_t begin = 0, end = 0;
  };
  std::vector<Piece> pieces_;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TRACE_DECODE_H_
