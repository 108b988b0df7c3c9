// File: in_order.h
//
// How well the change of a key's time is known from two recordings that have the same launches of it: the n-th of one
// is held against the n-th of the other. So it does not matter how much the launches of a key differ among
// themselves, as where one kernel computes products of several sizes in turn.
#ifndef RFINJECT_CLI_REPORT_COMPARE_IN_ORDER_H_
#define RFINJECT_CLI_REPORT_COMPARE_IN_ORDER_H_

#include "cli/model/statistics.h"
#include "cli/profile/profile.h"

namespace rfinject::cli {

// Of the sums of both runs, ns. Not known where they have not as many launches, but for a few at the end, or their
// order is not in the trace.
Uncertainty ChangeInOrder(const LaunchStats& before, const LaunchStats& after);

// The same of a row, whose keys are added one by one.
class ChangesInOrder {
 public:
  // Without launches where a run has none of the key.
  void Add(const LaunchStats& before, const LaunchStats& after);
  // Not known where keys that take more than a hundredth of the time have not the same launches. What they take is as
  // uncertain as it is long.
  Uncertainty change() const;

 private:
  Uncertainty change_;
  double all_ns_ = 0, apart_ns_ = 0;  // of keys that have not the same launches
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_COMPARE_IN_ORDER_H_
