// File: frame_builder.h
//
// FrameBuilder makes the payload of the trace's next frame of the definitions and of what is pending, and knows what
// the file has already. The recorder's lock (state.h) guards it.
#ifndef RFINJECT_COLLECTOR_RECORD_FRAME_BUILDER_H_
#define RFINJECT_COLLECTOR_RECORD_FRAME_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collector/definitions.h"
#include "collector/record/pending.h"
#include "collector/run_facts.h"
#include "collector/trace_encoder.h"
#include "proto/wire/encoder.h"

namespace rfinject {

class FrameBuilder {
 public:
  // The most bytes that a frame may have. It is more than what a frame is filled to, because one definition may be
  // large.
  static constexpr size_t kFrameLimit = 12 << 20;

  FrameBuilder(const Definitions* definitions, Pending* pending, int64_t created_unix_ns)
      : definitions_(definitions), pending_(pending), created_unix_ns_(created_unix_ns) {}

  // Fills `out` up to a soft limit, and returns true if more is waiting. The file has `file_bytes` so far, and may
  // have `max_bytes`. `last`: nothing more is recorded. If memory runs out, `out` has failed.
  bool Build(uint64_t file_bytes, uint64_t max_bytes, bool last, wire::Encoder* out) noexcept;

 private:
  void EncodeDefinitions(wire::Encoder* out);
  bool EncodeKeys(wire::Encoder* out);
  bool EncodeStatistics(wire::Encoder* out);
  void EncodeStepLaunches(wire::Encoder* out);
  void EncodeSteps(uint64_t file_bytes, uint64_t max_bytes, wire::Encoder* out);
  void EncodeWorks(wire::Encoder* out);
  void EncodeTimelines(wire::Encoder* out);
  bool FindNumbers(const std::vector<LaunchIdentity>& launched, std::vector<uint32_t>* numbers);
  void EncodeRest(wire::Encoder* out);

  const Definitions* const definitions_;
  Pending* const pending_;
  const int64_t created_unix_ns_;
  // How much of the definitions is in the file.
  bool process_written_ = false;
  RunFacts facts_written_;
  uint32_t names_written_ = 0;
  size_t models_written_ = 0, metrics_written_ = 0, lines_written_ = 0, diagnostics_written_ = 0;
  std::vector<uint32_t> layer_versions_, module_versions_, stack_versions_;
  RepeatedKeys repeated_keys_;
};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_RECORD_FRAME_BUILDER_H_
