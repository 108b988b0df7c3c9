// File: step_times.h
//
// How long the steps of a rank took by the clock, and what took the time (wire/step_times.h).
#ifndef RFINJECT_CLI_PROFILE_STEP_TIMES_H_
#define RFINJECT_CLI_PROFILE_STEP_TIMES_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "proto/rfinject/v1/trace.schema.h"
#include "proto/wire/spread.h"
#include "proto/wire/step_times.h"

namespace rfinject::cli {

using wire::Spread;

// The times of steps that were not armed. What was not watched has no durations. Older traces, where steps are left
// as sums only, have no own_ns and no launch_gap_ns.
struct StepTimes : trace::RankSteps {
  void Add(const wire::StepTime& step) { wire::AddStepTime(step, this); }
  void Merge(const StepTimes& other) { trace::Merge(other, this); }
  // How many codes all of them have.
  size_t places() const {
    size_t sum = 0;
    trace::ForEachPair(*this, *this, [&sum](const auto& field, const auto&) {
      if constexpr (std::is_same_v<decltype(field), const Spread&>) sum += field.counts().size();
    });
    return sum;
  }
  friend bool operator==(const StepTimes&, const StepTimes&) = default;
};

// So many ranks are kept one by one; all further ones are kept as one, under this number.
inline constexpr uint32_t kMaxRanksKept = 1024;

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PROFILE_STEP_TIMES_H_
