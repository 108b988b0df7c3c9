// File: recording_builder.h
//
// Puts events into a TorchRecording's tables, whatever file they come from.
#ifndef RFINJECT_CLI_IMPORT_TORCH_RECORDING_BUILDER_H_
#define RFINJECT_CLI_IMPORT_TORCH_RECORDING_BUILDER_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "cli/import/torch/dialect.h"
#include "cli/import/torch/recording.h"

namespace rfinject::cli {

class RecordingBuilder {
 public:
  RecordingBuilder(TorchRecording* recording, uint64_t most_events)
      : recording_(*recording), most_events_(most_events) {}

  // Whether no more may be kept. A packed file of some megabytes can hold a billion events.
  bool full() const;

  // Adds an event that has its beginning and its duration.
  void Add(const TorchEvent& event);

  // The same in two parts, for events whose ends come later. What is made has no end: of a span and of a call, which
  // is a span whose external id is its correlation, and of what the GPU did.
  TorchSpan SpanOf(const TorchEvent& event, TorchKind kind);
  TorchActivity ActivityOf(const TorchEvent& event, TorchKind kind);
  void AddSpan(const TorchSpan& span) { recording_.all_spans.Add(span); }
  void AddCall(const TorchSpan& call);
  void AddActivity(const TorchActivity& activity);

 private:
  void AddSample(const TorchEvent& event);

  TorchRecording& recording_;
  const uint64_t most_events_;
  absl::flat_hash_map<TorchLaunch, uint32_t> launches_;
  // By device and stream: when the last began, and the latest end so far.
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, std::pair<int64_t, int64_t>> streams_;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_TORCH_RECORDING_BUILDER_H_
