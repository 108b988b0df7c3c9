// File: condition_report.h
//
// Writes a row of the table of conditions (proto/wire/conditions.h) into the trace, as a diagnostic with what is lost
// and with the remedy. Called by the thread that ends the steps, and by the watchdog's. Both functions throw
// std::bad_alloc only.
#ifndef RFINJECT_COLLECTOR_CUPTI_CONDITION_REPORT_H_
#define RFINJECT_COLLECTOR_CUPTI_CONDITION_REPORT_H_

#include <string_view>

#include "collector/recorder.h"
#include "proto/wire/conditions.h"

namespace rfinject::cupti {

// `detail` follows the condition's message, unless it is empty.
void ReportCondition(Recorder& recorder, ConditionId id, std::string_view detail = {});

// The condition that a CUptiResult stands for.
ConditionId ConditionOfCuptiResult(int result);
// Reports it, for what `call` has returned.
void ReportResult(Recorder& recorder, std::string_view call, int result);

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_CONDITION_REPORT_H_
