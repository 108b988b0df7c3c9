#include "cli/report/advice/rules.h"

#include <set>
#include <string>
#include <vector>

#include "cli/report/advice/advice.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rfinject::cli {
namespace {

using ::testing::ElementsAre;

Rule Made(std::string name, Formula gain, std::string group = {}, std::string unproven = {}) {
  Rule rule;
  rule.name = std::move(name);
  rule.group = std::move(group);
  rule.unproven = std::move(unproven);
  rule.when = [](const FactValues&) { return Amount(1); };
  rule.gain = gain;
  return rule;
}

Amount Step(const FactValues& facts) { return {facts, Fact::kStep}; }

TEST(Amount, WhatFollowsFromAnUnknownOneIsNotKnown) {
  FactValues facts;
  facts[Fact::kStep] = 6;
  const Amount step(facts, Fact::kStep), host(facts, Fact::kHost), clock(facts, Fact::kClock);
  EXPECT_EQ((step - 4 / Amount(2)).value, 4);
  EXPECT_EQ((step / 0.0).value, 0) << "a share of nothing is nothing";
  EXPECT_EQ((!(step > 6)).value, 1);
  EXPECT_EQ((step < 6 && host).value, 0) << "whatever the host is";
  EXPECT_TRUE((step < 6 && host).lacks.none());
  const Amount unknown = step > 5 && Least(clock, host) > 1;
  EXPECT_FALSE(unknown.value);
  EXPECT_EQ(unknown.lacks.count(), 2u);
}

// What an advice names exists on the GPU at hand: BF16 came with Ampere.
TEST(Rules, AnActionDependsOnTheRun) {
  std::vector<Rule> rules = {Made("one", Step)};
  rules[0].action = "this";
  rules[0].other_action = "that";
  rules[0].condition = [](const FactValues& facts) { return Amount(facts, Fact::kBf16); };
  FactValues facts;
  facts[Fact::kStep] = 20;
  for (const double has : {0.0, 1.0}) {
    facts[Fact::kBf16] = has;
    EXPECT_EQ(Advise(rules, facts).advice.front().action(), has != 0 ? "this" : "that");
  }
}

TEST(Rules, TextsAreWhole) {
  std::set<std::string> names;
  EXPECT_EQ(ShippedRules().size(), 20u) << "a rule without a formula is left out";
  for (const Rule& rule : ShippedRules()) {
    EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
    EXPECT_FALSE(rule.title.empty() || rule.why.empty() || rule.action.empty()) << rule.name;
    EXPECT_TRUE(rule.link.starts_with("https://")) << rule.name;
    EXPECT_EQ(rule.other_action.empty(), rule.condition == nullptr) << rule.name;
    EXPECT_TRUE(rule.of.empty() || FactNamed(rule.of)) << rule.of;
    for (size_t open = rule.why.find('{'); open != std::string::npos; open = rule.why.find('{', open + 1)) {
      const std::string fact = rule.why.substr(open + 1, rule.why.find('}', open) - open - 1);
      EXPECT_TRUE(FactNamed(fact)) << rule.name << ": " << fact;
    }
  }
}

// Rules of one group win the same time; what nobody has shown to be right takes no other's place.
TEST(Advice, SaysWhatWinsMostFirst) {
  const std::vector<Rule> rules = {
      Made(
          "small", [](const FactValues& facts) { return 0.1 * Step(facts); }, "g"),
      Made(
          "large", [](const FactValues& facts) { return 0.5 * Step(facts); }, "g"),
      Made(
          "guess", [](const FactValues& facts) { return 0.9 * Step(facts); }, "g", "nobody tried"),
      Made(
          "tiny", [](const FactValues& facts) { return 0.001 * Step(facts); }, "h"),
      Made(
          "lost", [](const FactValues& facts) { return 0 - Step(facts); }, "h"),
      Made(
          "unknown", [](const FactValues& facts) { return Amount(facts, Fact::kHost); }, "h")};
  FactValues facts;
  facts[Fact::kStep] = 1e6;
  const AdviceList list = Advise(rules, facts);
  std::vector<std::string> names;
  for (const Advice& advice : list.advice) {
    if (advice.state == Advice::State::kHolds) names.push_back(advice.rule->name);
  }
  EXPECT_THAT(names, ElementsAre("guess", "large", "small"));
  EXPECT_EQ(list.advice[1].gain_ns, 5e5);
  EXPECT_FALSE(list.advice[1].instead);
  EXPECT_TRUE(list.advice[2].instead);
  EXPECT_EQ(list.advice.back().state, Advice::State::kUnknown);
  EXPECT_THAT(list.advice.back().missing, ElementsAre(Fact::kHost));
}

}  // namespace
}  // namespace rfinject::cli
