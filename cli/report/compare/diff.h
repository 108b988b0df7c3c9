// File: diff.h
//
// Two runs side by side, layer for layer: what changed, by how much, and whether the change is more than chance. It
// is made from Profiles, because only these have the sums of squares that tell.
//
//   Diff diff = MakeDiff(before, after, MachineFor, {.by = By::kLayer});
#ifndef RFINJECT_CLI_REPORT_COMPARE_DIFF_H_
#define RFINJECT_CLI_REPORT_COMPARE_DIFF_H_

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/model/calibration.h"
#include "cli/model/statistics.h"
#include "cli/model/step_interval.h"
#include "cli/profile/profile.h"
#include "cli/report/compare/caveats.h"
#include "cli/report/report.h"
#include "cli/text/row_set.h"

namespace rfinject::cli {

enum class Verdict : uint8_t {
  kSame,     // equal, but for rounding
  kReal,     // more than chance, after the correction for many comparisons; of exact numbers, any change
  kNoise,    // no more than chance
  kUnknown,  // no interval: Change::trust says why
  kOneSide,  // there is no such thing on the other side
};
// "same", "real", "noise", "unknown", "one side only".
std::string_view VerdictName(Verdict verdict);

struct Change {
  double before = 0, after = 0;
  // Half the width of the 95 % confidence interval of after - before, for this change alone; infinite: unknown. It is
  // Welch's, or from the differences of the steps that both runs sampled.
  double half_width = 0;
  Verdict verdict = Verdict::kSame;
  double p = 1;         // that chance alone would show as large a difference; 1 where there is no interval
  double standard = 0;  // deviation of the difference, and its degrees of freedom
  double degrees = 0;
  double visible = 0;          // the smallest difference that would have been called real in four of five such pairs
  Trust trust = Trust::kNone;  // of the side that is known less well
  double ratio = 0;            // after over before; 0 where one of them is
  double difference() const { return after - before; }
};

// What is compared, in the order of DiffRow::changes.
enum class Compared : uint8_t { kTime, kFlop, kBytes, kOi, kShare };
inline constexpr size_t kComparedCount = 5;

struct DiffRow {
  std::string model, layer, op;  // those that By keeps; By::kLayer keeps the phase as well
  std::optional<Phase> phase;
  uint64_t order = 0;
  bool in_before = false, in_after = false;
  // The sums of one step where both runs know their steps, else those of the whole runs.
  Sums before, after;
  std::array<Change, kComparedCount> changes;  // ns, FLOP, bytes, FLOP per byte, share of attainable
  const Change& operator[](Compared quantity) const { return changes[static_cast<size_t>(quantity)]; }
  bool Changed() const;  // some verdict is not kSame
};

struct RunDiff {
  std::string before_title, after_title;  // "resnet18 on V100-SXM2-16GB, batch 8, estimated"
  Report before, after;                   // by layer, for the pictures
  std::vector<DiffRow> rows;              // the largest change of time first
  DiffRow total;
  bool per_step = false;
  bool exact = false;  // both sides are estimates
  // The times of estimates are expected ones, as in their reports (expect.h). Where the GPU of one side is in no
  // table, both are ideal, for the two must not be mixed.
  bool expected = false;
  bool paired = false;        // times are compared step by step: both runs sampled the same ones
  bool within_steps = false;  // rows' times are compared with those of their steps, too
  bool in_order = false;      // or, of two recordings with the same launches, launch by launch
  Correction correction = Correction::kFalseDiscovery;
  size_t comparisons = 0;  // that the correction is for: rows and the total, each quantity that has an interval
  std::vector<Caveat> caveats;
};

// A condition of --fail-if, held against the total of each pair.
struct Gate {
  std::string text;  // as it was given: "step_time>+5%"
  Compared quantity{};
  bool above = true;  // fails above `limit`, else below
  double limit = 0;   // relative change: 0.05
  enum class Outcome : uint8_t { kHolds, kFails, kUnknown } outcome = Outcome::kHolds;
  double change = 0;   // relative, of the pair that fails, or of the last one
  double visible = 0;  // as Change::visible, relative
};

struct Diff {
  std::vector<Gate> gates;
  By by = By::kLayer;
  std::vector<RunDiff> pairs;
  std::vector<std::string> only_before, only_after;  // titles of runs without a counterpart
};

struct DiffOptions {
  By by = By::kLayer;  // kKernel is compared by layer, phase and operator: kernels' names differ between GPUs
  Correction correction = Correction::kFalseDiscovery;
  std::vector<Gate> gates = {};
  const Calibration* calibration = nullptr;  // as FoldOptions::calibration
};

// "step_time>+5%": step_time, step_flop, step_bytes or oi; > or <; a signed percentage. False: `text` is none.
bool ParseGate(std::string_view text, Gate* gate);
// "step_time, step_flop, step_bytes and oi": what a condition can be of.
std::string GateNames();
// Sets what the gate says of `pairs`. It fails for a change that is real and beyond its limit. What cannot be judged
// is said, and fails nothing: a job must not be stopped by a measurement that came to nothing.
void Judge(std::span<const RunDiff> pairs, Gate* gate);

// `rows` with the columns of CSV and JSON.
RowSet RowsOf(std::span<const DiffRow> rows);

// Runs are paired by network and mode, then by what else they have in common: batch, GPU, source, policy. If there is
// one run on either side, they are a pair whatever they are.
Diff MakeDiff(const Profile& before, const Profile& after, const std::function<Machine(const Run&)>& machine_for,
              const DiffOptions& options);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_COMPARE_DIFF_H_
