// File: rules.h
//
// The rules of advice. rules.txt has their texts, rules.cc when each holds and what it wins.
#ifndef RFINJECT_CLI_REPORT_ADVICE_RULES_H_
#define RFINJECT_CLI_REPORT_ADVICE_RULES_H_

#include <span>
#include <string>

#include "cli/report/advice/amount.h"

namespace rfinject::cli {

// Texts that a rule need not have are empty; rules.txt says what they are.
struct RuleTexts {
  std::string name;
  std::string title;         // what is not as it could be
  std::string group;         // of rules that win the same time, so that a reader follows one
  std::string of;            // the quantity that the gain is shown as a part of; empty: a step's GPU time
  std::string why;           // with {names} of quantities in it
  std::string action;        // what to change
  std::string other_action;  // what to change instead where the condition of `action` is false
  std::string tries;  // the change of `rfinject try` that does it, or several with spaces between; empty: none does
  std::string link;
  std::string unproven;  // why no pair of programs shows that the gain is right; empty: one does
};

using Formula = Amount (*)(const FactValues& facts);

struct Rule : RuleTexts {
  Formula when = nullptr;
  Formula gain = nullptr;       // ns a step
  Formula condition = nullptr;  // of `action`; null: always
};

// Those that are compiled in, in the order of rules.txt.
std::span<const Rule> ShippedRules();

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_ADVICE_RULES_H_
