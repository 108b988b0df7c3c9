// File: within_steps.h
//
// Compares each row's change of time with those of the other rows: two runs have the GPU's clock neither in their
// steps nor in their means in common, and a layer's small change is lost in that. docs/method/INTERVALS.md has the
// formulas.
#ifndef RFINJECT_CLI_REPORT_COMPARE_WITHIN_STEPS_H_
#define RFINJECT_CLI_REPORT_COMPARE_WITHIN_STEPS_H_

#include <span>
#include <vector>

#include "cli/report/compare/diff.h"

namespace rfinject::cli {

struct RowInSteps {
  DiffRow* row = nullptr;
  std::span<const double> before, after;  // its times in the sampled steps of both runs
};

// Sets what is known of the rows' changes of time by it. Rows that do not run in all sampled steps are left as they
// are, and so are all where there are too few; rows that are equal are among the others, and stay so. Returns whether
// any row was compared.
bool CompareWithinSteps(std::span<const double> before_total, std::span<const double> after_total,
                        std::span<const RowInSteps> rows);

// The same of recordings whose launches were compared in order (in_order.h).
struct RowInOrder {
  DiffRow* row = nullptr;
  Uncertainty change;  // of its time's, ns
};
bool CompareInOrder(std::span<const RowInOrder> rows);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_COMPARE_WITHIN_STEPS_H_
