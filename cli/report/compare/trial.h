// File: trial.h
//
// What `rfinject try` found out of a program with a change: made or not, what a step then takes, and whether the
// training still learns the same.
#ifndef RFINJECT_CLI_REPORT_COMPARE_TRIAL_H_
#define RFINJECT_CLI_REPORT_COMPARE_TRIAL_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/report/compare/diff.h"
#include "cli/text/row_set.h"

namespace rfinject::cli {

enum class TrialState : uint8_t {
  kBaseline,     // the program as it is
  kMade,         // the change was made
  kAlready,      // the program does that by itself
  kNothing,      // there was nothing that the change could change
  kFailed,       // the program with the change raised, or ended otherwise than with 0
  kOutOfMemory,  // it needs more memory than there is, which is a result
};
// "baseline", "made", "already made", "nothing to change", "failed", "out of memory".
std::string_view TrialStateName(TrialState state);

enum class LossState : uint8_t {
  kNotChecked,
  kSame,     // equal at every step
  kClose,    // no further from the baseline's than rounding alone takes it
  kOutside,  // further: the change is never recommended
};
// "not checked", "same", "within rounding", "OUTSIDE".
std::string_view LossStateName(LossState state);

// How far one sequence of losses is from another: the root of the mean square of the differences; infinite where one
// of them is not finite, or where they have not as many steps.
double LossDistance(std::span<const double> a, std::span<const double> b);
// What the losses of a change mean. `rounded`: those of the same program, whose weights were rounded once, which says
// what rounding does to them. Three times its distance still counts as rounding, because a change may round in every
// step and not once.
LossState JudgeLoss(std::span<const double> baseline, std::span<const double> rounded,
                    std::span<const double> change);

struct Trial {
  std::string name;  // "tf32", "tf32 autocast"; "baseline"
  TrialState state = TrialState::kNothing;
  std::string text;                // where it was made, or why not
  std::string write;               // what a person would write into the program
  std::vector<std::string> diffs;  // unified diffs that do the same, of what a diff could be made of
  std::vector<std::pair<std::string, std::string>> without_diff;  // what is in none of them: the change, where
  size_t changes = 0;                                             // how many at once
  size_t runs = 0;
  double step_ns = 0;                  // GPU time; 0: unknown
  double clock_ns = 0;                 // by the clock, as advice has it; 0: unknown
  uint64_t peak_bytes = 0;             // 0: unknown
  std::optional<double> predicted_ns;  // that advice says it wins
  Change time;                         // from the baseline's step to this one's; baseline: nothing
  bool exact = false;                  // both are estimates
  LossState loss = LossState::kNotChecked;
  std::string loss_text;  // why it was not checked

  double won_ns() const { return time.before - time.after; }
  double won_share() const { return time.before > 0 ? won_ns() / time.before : 0; }
  bool compared() const { return state == TrialState::kMade && step_ns > 0 && time.before > 0; }
  // Worth doing: it wins time by more than chance, and the training still learns the same as far as that is known.
  bool recommended() const {
    return compared() && time.verdict == Verdict::kReal && won_ns() > 0 && loss != LossState::kOutside;
  }
};

// Half the width of the 95 % interval of the mean of paired differences (after - before, in ns), one a round;
// infinite below two rounds.
double RoundsHalfWidth(std::span<const double> differences);

// Rows with the columns of CSV and JSON.
RowSet RowsOf(std::span<const Trial> trials);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_COMPARE_TRIAL_H_
