#include "cli/report/advice/advice.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace rfinject::cli {
namespace {

Advice Judge(const Rule& rule, const FactValues& facts) {
  Advice advice{.rule = &rule};
  std::vector<size_t> missing;
  const std::optional<double> when = rule.when.Evaluate(facts, &missing);
  std::optional<double> gain;
  if (when && *when != 0) gain = rule.gain.Evaluate(facts, &missing);
  if (!missing.empty()) {
    advice.state = Advice::State::kUnknown;
    std::sort(missing.begin(), missing.end());
    missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
    for (const size_t index : missing) advice.missing.push_back(static_cast<Fact>(index));
    return advice;
  }
  const std::optional<double>& step = facts[Fact::kStep];
  if (gain && step && *gain > 0 && *gain >= kLeastGainShare * *step) {
    advice.state = Advice::State::kHolds;
    advice.gain_ns = *gain;
    if (!rule.if_text.empty()) advice.other_action = rule.condition.Evaluate(facts, &missing) == 0.0;
  }
  return advice;
}

}  // namespace

AdviceList Advise(std::span<const Rule> rules, const FactValues& facts) {
  AdviceList list{.advice = {}, .facts = facts};
  for (const Rule& rule : rules) list.advice.push_back(Judge(rule, facts));
  const auto holds = [](const Advice& advice) { return advice.state == Advice::State::kHolds; };
  std::stable_sort(list.advice.begin(), list.advice.end(), [&](const Advice& a, const Advice& b) {
    if (holds(a) != holds(b)) return holds(a);
    return a.gain_ns > b.gain_ns;
  });
  std::set<std::string_view> groups;
  for (Advice& advice : list.advice) {
    // An unproven rule takes no other rule's place.
    if (!holds(advice) || advice.rule->group.empty() || !advice.rule->unproven.empty()) continue;
    advice.instead = !groups.insert(advice.rule->group).second;
  }
  return list;
}

}  // namespace rfinject::cli
