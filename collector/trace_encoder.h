// File: trace_encoder.h
//
// There is one function for each message of proto/rfinject/v1/trace.proto that the library writes. It takes what the
// recorder keeps and appends a record to the Chunk that is being encoded. Fields' numbers and types come from the
// schema through the writers of trace.schema.h.
#ifndef RFINJECT_COLLECTOR_TRACE_ENCODER_H_
#define RFINJECT_COLLECTOR_TRACE_ENCODER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "collector/definitions.h"
#include "collector/memory_peak.h"
#include "collector/pm_window.h"
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

void EncodeTraceId(std::string_view id, wire::Encoder* out) noexcept;
void EncodeName(uint32_t id, std::string_view text, wire::Encoder* out) noexcept;
void EncodeModel(uint32_t id, const ModelDefinition& model, wire::Encoder* out) noexcept;
void EncodeLayer(uint32_t id, const Layer& layer, wire::Encoder* out) noexcept;
void EncodeMetric(uint32_t id, const MetricDefinition& metric, wire::Encoder* out) noexcept;
void EncodeModule(uint32_t id, const NativeModule& module, wire::Encoder* out) noexcept;
void EncodeStack(uint32_t id, const NativeStack& stack, wire::Encoder* out) noexcept;
void EncodeSourceLine(uint32_t id, const SourceLine& line, wire::Encoder* out) noexcept;
// `stack` and `line` are 0 for a key without one.
void EncodeLaunchKey(uint32_t id, const LaunchIdentity& identity, uint32_t stack, uint32_t line,
                     wire::Encoder* out) noexcept;
// `metrics` is what LaunchTable::TakeOne hands over.
template <typename Metrics>
void EncodeKeyStats(uint32_t id, uint64_t launches, Metrics metrics, wire::Encoder* out) noexcept;
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
  // Makes ranges of what was added, and returns how many.
  size_t MakeRanges() noexcept;

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

void EncodeSampledStep(const SampledStep& sampled, wire::Encoder* out) noexcept;
void EncodeStep(const StepRecord& step, wire::Encoder* out) noexcept;
// May throw std::bad_alloc.
void EncodeSummedSteps(const SummedSteps& steps, wire::Encoder* out);
// Writes how many batches were validated, and their samples, since the last time.
void EncodeEvaluation(uint64_t batches, uint64_t samples, uint64_t most, wire::Encoder* out) noexcept;
// Parts of layers beyond the first `layers` count for no layer.
void EncodeMemoryPeak(const MemoryPeak& peak, size_t layers, wire::Encoder* out) noexcept;
void EncodePmWindow(const PmWindow& window, wire::Encoder* out) noexcept;
void EncodeGraphBreak(const GraphBreak& graph_break, wire::Encoder* out) noexcept;
void EncodeDiagnostic(const Diagnostic& diagnostic, wire::Encoder* out) noexcept;
void EncodeDrop(std::string_view what, uint64_t count, wire::Encoder* out) noexcept;
void EncodeEnd(std::string_view reason, int64_t unix_ns, wire::Encoder* out) noexcept;

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

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_TRACE_ENCODER_H_
