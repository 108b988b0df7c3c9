// File: decode.h
//
// A chunk as records: one field of a Chunk at a time, parsed by protoc's C++ into one message that is used again and
// again, its texts made valid UTF-8. So memory is that of one record, a record that does not parse is found with its
// offset, and a wrong byte in a text refuses nothing.
#ifndef RFINJECT_CLI_TRACE_DECODE_H_
#define RFINJECT_CLI_TRACE_DECODE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
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

// The records of a chunk in the order in which they are applied, by their field's number: definitions before their
// uses, whatever their order in the file.
inline constexpr int kRecordOrder[] = {
    v1::Chunk::kTraceIdFieldNumber,      v1::Chunk::kRunFieldNumber,         v1::Chunk::kNameFieldNumber,
    v1::Chunk::kModelFieldNumber,        v1::Chunk::kLayerFieldNumber,       v1::Chunk::kMetricFieldNumber,
    v1::Chunk::kNativeModuleFieldNumber, v1::Chunk::kNativeStackFieldNumber, v1::Chunk::kSourceLineFieldNumber,
    v1::Chunk::kKeyFieldNumber,          v1::Chunk::kStatsFieldNumber,       v1::Chunk::kSampledStepFieldNumber,
    v1::Chunk::kStepFieldNumber,         v1::Chunk::kMemoryPeakFieldNumber,  v1::Chunk::kPmWindowFieldNumber,
    v1::Chunk::kDiagnosticFieldNumber,   v1::Chunk::kDropFieldNumber,        v1::Chunk::kStepStatsFieldNumber,
    v1::Chunk::kEndFieldNumber,
};

struct Record {
  int number = 0;                    // of the field of Chunk
  uint64_t offset = 0;               // in the file
  size_t size = 0;                   // in the file, in bytes
  const v1::Chunk* chunk = nullptr;  // with this one record in it
};

class Decoder {
 public:
  // Calls `use` for each record of a chunk that the schema knows, in kRecordOrder; stops at the first that fails.
  // `offset` is where in the file the payload begins. Damage is as DamageAt says it.
  absl::Status Decode(std::span<const uint8_t> payload, uint64_t offset,
                      const std::function<absl::Status(const Record&)>& use);

 private:
  absl::Status Sort(std::span<const uint8_t> payload, uint64_t offset);

  v1::Chunk reused_;
  // Where in the payload the records begin, in the order of kRecordOrder. Four bytes each: a chunk of 16 MiB can hold
  // eight million empty records.
  std::vector<uint32_t> begins_;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TRACE_DECODE_H_
