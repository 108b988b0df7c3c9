// File: report.h
//
// A Report is one Run of a Profile folded for reading: what is known of the whole run, in parts (facts/), rows by
// model, phase, layer, operator or kernel (rows/), the roofs, the alarms. It holds numbers and codes; every output is
// made of it, adds words, units and rounding, and computes nothing itself, so a number is the same wherever it
// appears.
#ifndef RFINJECT_CLI_REPORT_REPORT_H_
#define RFINJECT_CLI_REPORT_REPORT_H_

#include <vector>

#include "cli/model/roofline.h"
#include "cli/profile/profile.h"
#include "cli/report/advice/advice.h"
#include "cli/report/alarms/alarm.h"
#include "cli/report/facts/attribution.h"
#include "cli/report/facts/clock.h"
#include "cli/report/facts/device.h"
#include "cli/report/facts/headline.h"
#include "cli/report/facts/memory.h"
#include "cli/report/facts/process.h"
#include "cli/report/facts/queue.h"
#include "cli/report/facts/sampling.h"
#include "cli/report/facts/slow.h"
#include "cli/report/facts/steps.h"
#include "cli/report/facts/theory.h"
#include "cli/report/facts/waits.h"
#include "cli/report/rows/roofs.h"
#include "cli/report/rows/row.h"

namespace rfinject::cli {

template <typename Record>
using KeptVector = std::vector<Record>;

struct Report {
  RunKey run;
  trace::KeptRecords<KeptVector> kept;  // what Run::kept has; graph breaks that most bytes cross first
  Processes process;
  Device device;
  Machine machine;  // empty name: no roofs known for this GPU
  Steps steps;
  Clock clock;
  Queue queue;      // of launches
  StepWaits waits;  // what an optimizer's step waits for, by the clock
  Slow slow;
  DeviceMemory memory;
  Attribution attribution;
  PmSampling sampling;  // a cross-check of total.sums.dram_bytes()
  Row total;            // the sum of all launches, and how well it is known

  By by = By::kLayer;
  std::vector<Row> rows;  // of the chosen By
  // The rows are whole runs (sweep.h): their times are not parts of one whole, so marks do not show them by area.
  bool rows_are_runs = false;
  std::vector<Row> phases;  // always there: the By::kPhase rows
  // By::kLayer only: `rows` split by phase, in the same order. The pictures show these.
  std::vector<Row> layer_phases;
  // By::kClass only: the groups of layers that are alike, split by phase.
  std::vector<Row> group_phases;
  std::vector<RoofLine> roofs;
  TheoryUse theory;
  Headline headline;
  AdviceList advice;  // what to change, of the rules that are compiled in
  std::vector<Alarm> alarms;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_REPORT_H_
