// File: in_order.h
//
// How well the change of a row's time is known from two recordings that have the same launches of its keys: the n-th
// of one is held against the n-th of the other. So it does not matter how much the launches of a key differ among
// themselves, as where one kernel computes products of several sizes in turn.
#ifndef RFINJECT_CLI_REPORT_COMPARE_IN_ORDER_H_
#define RFINJECT_CLI_REPORT_COMPARE_IN_ORDER_H_

#include <utility>
#include <vector>

#include "cli/model/statistics.h"
#include "cli/profile/profile.h"

namespace rfinject::cli {

// What is known of the change of a row's time, of the sums of both runs, ns. Keys are added one by one.
class ChangesInOrder {
 public:
  // Without launches where a run has none of the key.
  void Add(const LaunchStats& before, const LaunchStats& after);
  // Not known where keys that take more than a hundredth of the time have not the same launches, but for a few at the
  // end, or where their order is not in the trace. What these take is as uncertain as it is long.
  Uncertainty change() const;

 private:
  Uncertainty change_;
  std::vector<std::pair<double, double>> few_;  // of keys with few launches, which scatter together
  double all_ns_ = 0, apart_ns_ = 0;            // of keys that have not the same launches
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_COMPARE_IN_ORDER_H_
