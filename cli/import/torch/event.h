// File: event.h
//
// One event of a recording, as far as it is read: its keys, and the numbers in it.
#ifndef RFINJECT_CLI_IMPORT_TORCH_EVENT_H_
#define RFINJECT_CLI_IMPORT_TORCH_EVENT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/import/torch/recording.h"

namespace rfinject::cli {

// The keys of an event and of its arguments that are read. Dialects differ in capitals only.
enum class Field : uint8_t {
  kOther,
  kPhase,
  kCategory,
  kName,
  kProcess,
  kThread,
  kTime,
  kDuration,
  kArguments,
  kExternalId,
  kCorrelation,
  kSequence,
  kDims,
  kTypes,
  kStrides,
  kValues,
  kDevice,
  kStream,
  kGrid,
  kBlock,
  kShared,
  kAllocated,
  kDeviceType,
};

// The field of an event, and of its "args"; kOther for what is not read.
Field EventField(std::string_view key);
Field ArgumentField(std::string_view key);

// "1414456661803.68" microseconds as nanoseconds, exactly; further digits are cut. False for what is no number, or
// for one that 64 bits cannot hold.
bool ParseMicroseconds(std::string_view text, int64_t* ns);
// The whole number that a text is, also one written as a real; 0 of everything else. The second has at most 32 bits.
uint64_t Unsigned(std::string_view text);
uint32_t Unsigned32(std::string_view text);

// One event, as far as it is read.
struct TorchEvent {
  std::string phase, category, name, process, thread;
  std::string dims, types, strides, values, grid, block;  // lists as compact JSON
  int64_t start = 0, duration = 0;
  bool has_time = false, has_duration = false;
  uint64_t external_id = 0, correlation = 0, allocated = 0;
  int64_t sequence = TorchSpan::kNone;
  uint32_t device = 0, stream = 0, shared_bytes = 0, device_type = 0;
  std::vector<std::pair<uint32_t, double>> metrics;

  void Clear() {
    for (std::string* text :
         {&phase, &category, &name, &process, &thread, &dims, &types, &strides, &values, &grid, &block}) {
      text->clear();
    }
    metrics.clear();
    start = duration = 0;
    has_time = has_duration = false;
    external_id = correlation = allocated = 0;
    sequence = TorchSpan::kNone;
    device = stream = shared_bytes = device_type = 0;
  }
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_TORCH_EVENT_H_
