// File: event.h
//
// One event of a recording, as far as it is read: its keys, and the numbers in it.
#ifndef RFINJECT_CLI_IMPORT_TORCH_EVENT_H_
#define RFINJECT_CLI_IMPORT_TORCH_EVENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cli/import/torch/recording.h"

namespace rfinject::cli {

// One event, as far as it is read.
struct TorchEvent {
  std::string phase, category, name, process, thread;
  std::string dims, types, strides, values, grid, block;  // lists as compact JSON
  std::optional<int64_t> start, duration;                 // ns
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
    start.reset();
    duration.reset();
    external_id = correlation = allocated = 0;
    sequence = TorchSpan::kNone;
    device = stream = shared_bytes = device_type = 0;
  }
};

// A key of an event or of its "args" that is read, and where its value goes; the texts of "args" are lists.
struct TorchField {
  std::string_view key;
  std::variant<std::monostate, std::string TorchEvent::*, std::optional<int64_t> TorchEvent::*,
               uint64_t TorchEvent::*, int64_t TorchEvent::*, uint32_t TorchEvent::*>
      member;
};
// The field of an event, and of its "args"; null for what is not read. Dialects differ in capitals only.
const TorchField* EventField(std::string_view key);
const TorchField* ArgumentField(std::string_view key);
// Reads a value that is neither list nor object.
void SetField(const TorchField& field, std::string_view text, TorchEvent* event);

// The whole number that a text is, also one written as a real; 0 of everything else. The second has at most 32 bits.
uint64_t Unsigned(std::string_view text);
uint32_t Unsigned32(std::string_view text);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_TORCH_EVENT_H_
