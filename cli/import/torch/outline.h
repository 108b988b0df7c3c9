// File: outline.h
//
// What must be known of a whole recording before a part of it is looked at: its steps, which threads run autograd,
// and whether it trains.
#ifndef RFINJECT_CLI_IMPORT_TORCH_OUTLINE_H_
#define RFINJECT_CLI_IMPORT_TORCH_OUTLINE_H_

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/import/torch/recording.h"

namespace rfinject::cli {

struct StepRange {
  int64_t start = 0, end = 0;
  uint32_t name = 0;  // in TorchRecording::texts
};

// A set of numbers, most of which follow one another.
class NumberSet {
 public:
  NumberSet() = default;
  explicit NumberSet(std::vector<uint64_t> numbers);
  bool contains(uint64_t number) const;

 private:
  std::vector<std::pair<uint64_t, uint64_t>> ranges_;  // first and last; ascending
};

struct RecordingOutline {
  std::vector<StepRange> steps;  // in time, none overlapping
  uint32_t step_thread = 0;
  bool steps_marked = false;  // by ProfilerStep#N; else by the optimizer's steps, or there are none
  bool trains = false;        // something runs backward
  bool has_modules = false;
  int64_t first_time = 0;  // of spans
  // Threads that do nothing but run autograd's nodes: what stands between two of them adds gradients up.
  std::vector<bool> engine_threads;
  NumberSet operator_ids;  // the profiler's numbers of operators (TorchSpan::external_id)

  // The step in which something was launched; steps.size() where it was in none.
  size_t StepAt(int64_t time) const;
};

// Of all events that are packed.
RecordingOutline OutlineOf(const TorchRecording& recording);
// The same where they are unpacked, all in one window.
RecordingOutline OutlineOf(const TorchRecording& recording, const TorchWindow& window);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_TORCH_OUTLINE_H_
