// File: run.h
//
// Facts that several parts of a report say together: what was run, and what a mean step of it does.
#ifndef RFINJECT_CLI_REPORT_FACTS_RUN_H_
#define RFINJECT_CLI_REPORT_FACTS_RUN_H_

#include <set>
#include <span>
#include <string_view>

#include "cli/report/facts/fact.h"

namespace rfinject::cli {

std::span<const FactOf<Report>> RunFacts();   // run.cc
std::span<const FactOf<Report>> WorkFacts();  // work.cc

// "training", "validation" or "inference".
std::string_view ModeOf(const Report& report);

// The ids of the alarms that were raised, each once, sorted.
std::set<std::string_view> AlarmIds(const Report& report);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_FACTS_RUN_H_
