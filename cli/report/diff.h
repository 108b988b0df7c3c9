// File: diff.h
//
// Two runs side by side, layer for layer: what changed, by how much, and whether the change is more than chance.
// Pure; made from Profiles, because whether a change is real needs the sums of squares.
//
//   Diff diff = MakeDiff(before, after, MachineFor, {.by = By::kLayer});
#ifndef RFINJECT_CLI_REPORT_DIFF_H_
#define RFINJECT_CLI_REPORT_DIFF_H_

#include <array>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/profile/profile.h"
#include "cli/report/report.h"
#include "cli/report/row_set.h"

namespace rfinject::cli {

enum class Verdict : uint8_t {
  kSame,     // equal, but for rounding
  kReal,     // outside the 95 % confidence interval; estimates are exact, so any change of one is real
  kNoise,    // inside it
  kUnknown,  // no interval: something was sampled once only
  kOneSide,  // there is no such thing on the other side
};
// "same", "real", "noise", "unknown", "one side only".
std::string_view VerdictName(Verdict verdict);

struct Change {
  double before = 0, after = 0;
  double half_width = 0;  // of the 95 % confidence interval of after - before, by Welch; infinite: unknown
  Verdict verdict = Verdict::kSame;
  double ratio = 0;  // after over before; 0 where one of them is
  double difference() const { return after - before; }
};

// What is compared, in the order of DiffRow::changes.
enum class Compared : uint8_t { kTime, kFlop, kBytes, kOi, kShare };
inline constexpr size_t kComparedCount = 5;

struct DiffRow {
  std::string model, layer, phase, op;  // those that By keeps; By::kLayer keeps the phase as well
  uint64_t order = 0;
  bool in_before = false, in_after = false;
  // A step's where both runs know their steps, all of the runs' otherwise.
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
  bool exact = false;                // both sides are estimates
  std::vector<std::string> caveats;  // what else differs between the runs and explains changes
};

struct Diff {
  By by = By::kLayer;
  std::vector<RunDiff> pairs;
  std::vector<std::string> only_before, only_after;  // titles of runs without a counterpart
};

struct DiffOptions {
  By by = By::kLayer;  // kKernel is compared by layer, phase and operator: kernels' names differ between GPUs
};

// The rows that changed, as many as a table has room for, and the sum of the others' times.
struct DiffExcerpt {
  std::vector<const DiffRow*> rows;
  size_t same = 0;  // rows that did not change
  size_t left_out = 0;
  Change rest_time;
};
// The first `most` of the rows that changed, which have the largest change of time; 0: all.
DiffExcerpt ExcerptOf(const RunDiff& diff, size_t most);

// `rows` with the columns of CSV and JSON.
RowSet RowsOf(std::span<const DiffRow> rows);

// Runs are paired by network and mode, then by what else they have in common: batch, GPU, source, policy. One run on
// either side is one pair whatever they are.
Diff MakeDiff(const Profile& before, const Profile& after, const std::function<Machine(const Run&)>& machine_for,
              const DiffOptions& options);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_DIFF_H_
