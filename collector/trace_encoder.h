// File: trace_encoder.h
//
// Where the recorder keeps a message of proto/rfinject/v1/trace.proto in another form than the schema's struct, there
// is a function for that message. One function writes all others. Each appends a record to the Chunk that is being
// encoded. Fields' numbers and types come from the schema through the writers of trace.schema.h.
#ifndef RFINJECT_COLLECTOR_TRACE_ENCODER_H_
#define RFINJECT_COLLECTOR_TRACE_ENCODER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "collector/definitions.h"
#include "collector/memory_peak.h"
#include "collector/record/launch_ring.h"
#include "collector/record/launch_table.h"
#include "collector/record/step_sums.h"
#include "collector/run_facts.h"
#include "proto/rfinject/v1/trace.schema.h"
#include "proto/wire/encoder.h"

namespace rfinject {

// Steps of a long run that are in the trace as sums only.
struct SummedSteps : trace::RunSteps {
  trace::RankSteps rank;  // of those that were not armed
  // Adds a measured step. May throw std::bad_alloc.
  void Add(const StepRecord& step);
  // Adds what was waited for behind a step that is in the file already.
  void Lengthen(const StepRecord& waits);
  bool empty() const { return steps == 0 && rank.wall_ns.sum() == 0; }
};

// A process's trace has one Run, with this id.
inline constexpr uint32_t kRunId = 1;

// Writes the facts in which `now` differs from `before`; returns false, and writes nothing, if there are none. Where
// one device differs, all devices are written.
bool EncodeFactChanges(const RunFacts& before, const RunFacts& now, wire::Encoder* out) noexcept;

// Writes a record that the recorder keeps as the schema's struct, under `id`; a record without an id belongs to the
// run `id`.
template <typename Record>
void EncodeRecord(uint32_t id, const Record& record, wire::Encoder* out) noexcept {
  trace::ChunkWriter chunk(out);
  trace::WriteRecord(record, id, &chunk);
}

void EncodeTraceId(std::string_view id, wire::Encoder* out) noexcept;
void EncodeName(uint32_t id, std::string_view text, wire::Encoder* out) noexcept;
void EncodeStack(uint32_t id, const NativeStack& stack, wire::Encoder* out) noexcept;
// `stack` and `line` are 0 for a key without one.
void EncodeLaunchKey(uint32_t id, const LaunchIdentity& identity, uint32_t stack, uint32_t line,
                     wire::Encoder* out) noexcept;
// `metrics` is what LaunchTable::TakeOne hands over.
template <typename Metrics>
void EncodeKeyStats(uint32_t id, uint64_t launches, Metrics metrics, wire::Encoder* out) noexcept {
  trace::KeyStatsWriter stats = trace::ChunkWriter(out).begin_stats();
  stats.set_key(id);
  stats.set_launches(launches);
  metrics([&stats](const MetricSum& sum) {
    trace::MetricStatsWriter metric = stats.begin_metric();
    metric.set_metric(sum.metric);
    sum.Write(&metric);
  });
}
// Keys whose launches repeat what was written before (LaunchTable::Key::repeats), until Encode writes all of them as
// one message.
class RepeatedKeys {
 public:
  // False where there is no room: it wants Encode first.
  bool Add(uint32_t id, uint64_t launches) noexcept;
  bool empty() const noexcept { return size_ == 0; }
  bool full() const noexcept { return size_ == kMost; }
  // Leaves it empty. Keys with ids that follow one another and the same number of launches are one range.
  void Encode(wire::Encoder* out) noexcept;
  // Does the same, as launches of one step.
  void EncodeOfStep(uint64_t step, wire::Encoder* out) noexcept;

 private:
  // Makes ranges of what was added, and writes them.
  template <typename Writer>
  void WriteRanges(Writer* out) noexcept;

  static constexpr size_t kMost = 2048;  // 64 KB
  struct Key {
    uint32_t id;
    uint64_t launches;
  };
  size_t size_ = 0;
  std::array<Key, kMost> added_;  // NOLINT(cppcoreguidelines-pro-type-member-init): what is used is set
  std::array<uint32_t, kMost> gap_, keys_;
  std::array<uint64_t, kMost> launches_;
};

void EncodeStep(const StepRecord& step, wire::Encoder* out) noexcept;
// May throw std::bad_alloc.
void EncodeSummedSteps(const SummedSteps& steps, wire::Encoder* out);
// Writes how many batches were validated, and their samples, since the last time.
void EncodeEvaluation(uint64_t batches, uint64_t samples, uint64_t most, wire::Encoder* out) noexcept;
// Parts of layers beyond the first `layers` count for no layer.
void EncodeMemoryPeak(MemoryPeak* peak, size_t layers, wire::Encoder* out) noexcept;
void EncodeEnd(std::string_view reason, int64_t unix_ns, wire::Encoder* out) noexcept;

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_TRACE_ENCODER_H_
