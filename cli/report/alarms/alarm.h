// File: alarm.h
//
// What the checks of invariants.h say when a number cannot be true, and the kinds of alarms that there are. Each kind
// is declared in findings.h.
#ifndef RFINJECT_CLI_REPORT_ALARMS_ALARM_H_
#define RFINJECT_CLI_REPORT_ALARMS_ALARM_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proto/wire/vocabulary.h"

namespace rfinject::cli {

// What `rfinject explain` and docs/reference/ALARMS.md say of an alarm.
struct AlarmKind {
  std::string_view id;       // an R and three digits; --strict takes it
  std::string_view title;    // what is wrong when it is raised
  std::string_view checks;   // what is compared, and how far it may be off
  std::string_view causes;   // what it has been, most often first
  std::string_view healthy;  // what does not raise it, though one might think so; may be empty
  std::string_view mend;     // what to do
};

// All alarms, by id.
std::span<const AlarmKind> AlarmKinds();

// The first id and the last, with "to" between them.
std::string AlarmRange();

// Reads "R001,R004" as ids, in upper or lower case; an empty text has no ids. Returns false where one is unknown.
bool ParseAlarmIds(std::string_view text, std::vector<std::string>* ids);

// A kernel, and where it runs; no kernel: all of a layer.
struct AlarmPlace {
  std::string model, layer;
  Phase phase{};
  std::string kernel;
};

struct Alarm {
  std::string id;                   // of its kind
  std::string text;                 // what is wrong, with the numbers
  std::string_view causes;          // the likely causes, in one line; empty for none
  std::optional<AlarmPlace> where;  // nothing: the whole run
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_ALARMS_ALARM_H_
