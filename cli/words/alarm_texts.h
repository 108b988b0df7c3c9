// File: alarm_texts.h
//
// What each alarm checks, when it is right and what to do: `rfinject explain`, and
// docs/reference/ALARMS.md, which is what `rfinject explain --format markdown` prints.
#ifndef RFINJECT_CLI_WORDS_ALARM_TEXTS_H_
#define RFINJECT_CLI_WORDS_ALARM_TEXTS_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rfinject::cli {

struct AlarmExplanation {
  std::string_view id;       // "R001"
  std::string_view title;    // what is wrong when it is raised
  std::string_view checks;   // what is compared, and how far it may be off
  std::string_view causes;   // what it has been, most often first
  std::string_view healthy;  // what does not raise it, though one might think so; may be empty
  std::string_view mend;     // what to do
};

// All alarms, by id.
std::span<const AlarmExplanation> AlarmExplanations();

// "R001 to R012".
std::string AlarmRange();

// Reads "R001,R004" as ids, in upper or lower case; an empty text has no ids. Returns false where one is unknown.
bool ParseAlarmIds(std::string_view text, std::vector<std::string>* ids);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_WORDS_ALARM_TEXTS_H_
