// File: apply.h
//
// Makes a Profile of records: they are added up under the file's ids, which are resolved at the end. A record that
// contradicts itself or what came before (an id that was never defined, an id defined twice) is damage.
//
//   Applier applier(max_bytes);
//   for (each record) applier.Apply(record);
//   applier.Resolve();
//   std::move(applier).AddTo(&sum);
#ifndef RFINJECT_CLI_TRACE_APPLY_APPLY_H_
#define RFINJECT_CLI_TRACE_APPLY_APPLY_H_

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "cli/profile/accumulator.h"
#include "cli/profile/profile.h"
#include "cli/trace/apply/state.h"
#include "cli/trace/decode.h"

namespace rfinject::cli {

class Applier {
 public:
  // `max_bytes` bounds what is kept, roughly.
  explicit Applier(uint64_t max_bytes) { state_.budget = max_bytes; }

  // After a failure (DamageAt), which may have come in the middle of a record, the object must not be used any more.
  absl::Status Apply(const Record& record);
  bool finished() const { return state_.finished; }  // there was an End record

  // Resolves the ids. Must be called after the last record, and before the functions below.
  void Resolve();
  std::set<std::string>& trace_ids() { return state_.trace_ids; }
  const std::vector<MetricInfo>& metrics() const { return state_.metrics; }
  bool anything() const { return !state_.runs.empty(); }
  // The names of the operators of each run whose process ended, ascending. The texts live as long as this.
  std::vector<std::pair<RunKey, std::vector<std::string_view>>> Operators() const;

  // Metrics must agree with those that are in `sum` (Profile::Merge).
  void AddTo(Accumulator* sum) &&;
  // Returns the Profile of this one trace.
  Profile Finish() &&;

 private:
  State state_;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TRACE_APPLY_APPLY_H_
