// File: backward_flop.h
//
// R005 of an estimate, where the model FLOP of each launch are known: whether the products that the backward runs are
// those that the forward asked for, layer by layer.
#ifndef RFINJECT_CLI_REPORT_ALARMS_BACKWARD_FLOP_H_
#define RFINJECT_CLI_REPORT_ALARMS_BACKWARD_FLOP_H_

#include <vector>

#include "cli/profile/profile.h"
#include "cli/report/alarms/alarm.h"

namespace rfinject::cli {

struct BackwardFlop {
  struct Finding {
    double flop = 0;  // of the backward it is about; 0: of the whole run
    Alarm alarm;
  };
  bool known = false;  // the run's launches have model FLOP of their own
  std::vector<Finding> findings;
};

BackwardFlop CheckBackwardFlop(const Run& run);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_ALARMS_BACKWARD_FLOP_H_
