// File: rules.h
//
// The rules of advice, as data: rules.txt, which is compiled in. A rule says when it holds, what it would gain, and
// what to do. rules.txt begins with its format.
#ifndef RFINJECT_CLI_REPORT_ADVICE_RULES_H_
#define RFINJECT_CLI_REPORT_ADVICE_RULES_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/report/advice/expression.h"

namespace rfinject::cli {

struct Rule {
  std::string name;
  std::string title;  // what is not as it could be
  std::string group;  // of rules that win the same time, so that a reader follows one; empty: alone
  std::string of;     // the quantity that the gain is shown as a part of; empty: a step's GPU time
  std::string when_text, gain_text;
  Expression when;
  Expression condition;      // of `action`
  Expression gain;           // ns a step
  std::string why;           // with {names} of quantities in it
  std::string action;        // what to change
  std::string if_text;       // empty: always
  std::string other_action;  // what to change instead where the condition is false
  std::string tries;  // the change of `rfinject try` that does it, or several with spaces between; empty: none does
  std::string link;
  std::string unproven;  // why no pair of programs shows that the gain is right; empty: one does
};

// The rules that `text` holds, in its order. The error names the line.
absl::StatusOr<std::vector<Rule>> ParseRules(std::string_view text);

// Those that are compiled in.
std::span<const Rule> ShippedRules();

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_ADVICE_RULES_H_
