// File: advice.h
//
// Decides what to change in a program, and what each change would win: the rules (rules.h) that hold for a run by its
// own numbers (facts.h). It makes numbers and codes; the sentences are made where they are printed
// (cli/view/advice_view.h).
#ifndef RFINJECT_CLI_REPORT_ADVICE_ADVICE_H_
#define RFINJECT_CLI_REPORT_ADVICE_ADVICE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/report/advice/facts.h"
#include "cli/report/advice/rules.h"

namespace rfinject::cli {

struct Advice {
  enum class State : uint8_t {
    kHolds,
    kSilent,   // its condition is false, or what it would win is not worth mentioning
    kUnknown,  // cannot be decided: `missing` has the facts that the run lacks
  };
  const Rule* rule = nullptr;
  State state = State::kSilent;
  double gain_ns = 0;  // a step; kHolds only
  // Another rule wins the same time, and more, so that only one of the two is done.
  bool instead = false;
  bool other_action = false;  // the rule's other action is the one for this run
  std::vector<Fact> missing;

  const std::string& action() const { return other_action ? rule->other_action : rule->action; }
};

struct AdviceList {
  std::vector<Advice> advice;  // one a rule: those that hold first, the largest gain first; then in the rules' order
  FactValues facts;
};

// A gain below this share of the step's time is not worth mentioning.
inline constexpr double kLeastGainShare = 0.01;

// What each rule says of a run that has these facts.
AdviceList Advise(std::span<const Rule> rules, const FactValues& facts);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_ADVICE_ADVICE_H_
