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
  const Amount when = rule.when(facts);
  const Amount gain = when.value == 0.0 || !when.value ? when : rule.gain(facts);
  if (!gain.value) {
    advice.state = Advice::State::kUnknown;
    for (size_t i = 0; i < kFactCount; ++i) {
      if (gain.lacks[i]) advice.missing.push_back(static_cast<Fact>(i));
    }
    return advice;
  }
  const std::optional<double>& step = facts[Fact::kStep];
  if (step && *gain.value > 0 && *gain.value >= kLeastGainShare * *step) {
    advice.state = Advice::State::kHolds;
    advice.gain_ns = *gain.value;
    advice.other_action = rule.condition != nullptr && rule.condition(facts).value == 0.0;
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
