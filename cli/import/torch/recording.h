// File: recording.h
//
// What torch.profiler recorded: spans of the host's threads (operators, annotations, calls of modules), calls of
// CUDA, and what the GPU did. Texts are kept once, and events packed: one of 300 bytes takes about 10. A
// window, a part of the time (windows.h), is unpacked at once.
#ifndef RFINJECT_CLI_IMPORT_TORCH_RECORDING_H_
#define RFINJECT_CLI_IMPORT_TORCH_RECORDING_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "cli/import/stream_overlaps.h"
#include "cli/import/torch/byte_stream.h"
#include "cli/import/torch/packed_list.h"
#include "cli/import/torch/span.h"

namespace rfinject::cli {

// Texts by number; 0 is the empty one.
class TextTable {
 public:
  uint32_t NumberOf(std::string_view text);
  const std::string& operator[](uint32_t number) const { return texts_[number]; }
  size_t size() const { return texts_.size(); }
  uint64_t bytes() const { return bytes_; }  // of all texts

 private:
  uint64_t bytes_ = 0;
  std::deque<std::string> texts_{std::string()};
  absl::flat_hash_map<std::string_view, uint32_t> numbers_{{{}, 0}};  // the views are of texts_
};

struct TorchDevice {
  std::string name;
  uint64_t memory_bytes = 0;
  uint32_t sm_count = 0;
  uint32_t cc_major = 0, cc_minor = 0;
};

// Counters of one kernel, where the profiler was asked for them (cuda_profiler_range).
struct TorchCounters {
  uint32_t name = 0;                                // the kernel's
  int64_t start = 0;                                // only their order says something
  std::vector<std::pair<uint32_t, double>> values;  // metric's name, and its value
};

// Samples of a counter of the whole GPU over time (hardware_counters).
struct TorchSamples {
  uint64_t count = 0;
  double sum = 0;
};

// What of the file is not as it should be, beside what a kind of events lacks.
struct TorchDamage {
  uint64_t events = 0;       // that could not be read
  uint64_t first_at = 0;     // the byte at which the first of them begins
  LostOverlaps overlapping;  // kernels that would have run on while others of their stream did
  uint64_t launches = 0;     // of kernels, by calls
  uint64_t launches_without_kernel = 0;
  uint64_t clock_went_back = 0;  // how often, as a thread's calls show
  uint64_t clock_back_ns = 0;    // the most
};

struct TorchRecording {
  TextTable texts;
  // Compact JSON of dims, types, strides and values, in this order, a line each; where an execution trace gave them,
  // then of the results' dims and types.
  TextTable operands;
  TextTable threads;                // "PID/TID"
  PackedList<TorchSpan> all_spans;  // in the order of the file, as calls and activities
  PackedList<TorchCall> all_calls;
  PackedList<TorchActivity> all_activities;
  std::vector<TorchLaunch> launches;
  std::vector<TorchCounters> counters;
  std::map<uint32_t, TorchDevice> devices;  // by their number
  uint32_t rank = 0, world_size = 0;        // 0 of world_size: not said
  int64_t base_unix_ns = 0;                 // what the file's clock counts from
  uint64_t memory_peak_bytes = 0;           // that was allocated on one GPU
  uint64_t events = 0;
  uint64_t without_time = 0;                    // events of the GPU without a time that can be used
  uint64_t without_time_at = 0;                 // the byte at which the first of them ends
  std::map<std::string, uint64_t> other_gpus;   // events of an accelerator that is not understood, by category
  std::map<std::string, TorchSamples> samples;  // by the counter's name; at most kMostCountersOverTime
  bool may_overlap = false;                     // within a stream; CutOverlaps() looks
  TorchDamage damage;
  std::string cut;  // where and why no more was read; empty: all of it was
};

// Whether a file that begins like this (1 KiB is enough) may be a recording of torch.profiler: JSON that is an object
// with its keys, or a list of its events.
bool LooksLikeTorchRecording(std::string_view beginning);

// Reads a recording of torch.profiler, of any dialect since 2021. Fails with one line that has the offset (in bytes
// that are not packed) where it is no recording. An event that is not JSON is left out and counted, and what follows
// it is read (TorchDamage). Of a file that is cut, what came before is there; so is of one with more than
// `most_events`, which take some 2 GB where one window has all of them. Nothing is unpacked yet.
inline constexpr uint64_t kMostTorchEvents = 1 << 24;
inline constexpr size_t kMostCountersOverTime = 256;
absl::StatusOr<TorchRecording> ReadTorchRecording(ByteStream& bytes, uint64_t most_events = kMostTorchEvents);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_TORCH_RECORDING_H_
