#include "cli/report/advice/rules.h"

#include <string>
#include <string_view>

#include "cli/report/advice/advice.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rfinject::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kRule =
    "# a comment\n"
    "rule one\n"
    "  title  A title\n"
    "         that goes on\n"
    "  when   step_ns > 10\n"
    "  gain   step_ns / 2\n"
    "  why    it takes {step_ns}\n"
    "  do     this\n"
    "  link   https://example.org\n";

std::string Error(std::string_view text) { return std::string(ParseRules(text).status().message()); }

std::string Changed(std::string_view from, std::string_view to) {
  std::string text(kRule);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// What an advice names exists on the GPU at hand: BF16 came with Ampere.
TEST(Rules, AnActionDependsOnTheRun) {
  const auto rules =
      ParseRules(Changed("  do     this\n", "  do     this\n  if     bf16_tensor_cores\n  else   that\n"));
  ASSERT_TRUE(rules.ok()) << rules.status();
  FactValues facts;
  facts[static_cast<size_t>(Fact::kStep)] = 20;
  for (const double has : {0.0, 1.0}) {
    facts[static_cast<size_t>(Fact::kBf16)] = has;
    EXPECT_EQ(Advise(*rules, facts).advice.front().action(), has != 0 ? "this" : "that");
  }
  EXPECT_THAT(Error(Changed("  do     this\n", "  do     this\n  else   that\n")),
              HasSubstr("one of 'if' and 'else'"));
  EXPECT_THAT(Error(Changed("  do     this\n", "  do     this\n  if     nothing\n  else   that\n")),
              HasSubstr("nothing"));
}

TEST(Rules, AreRead) {
  const auto rules = ParseRules(kRule);
  ASSERT_TRUE(rules.ok()) << rules.status();
  ASSERT_EQ(rules->size(), 1u);
  EXPECT_EQ(rules->front().name, "one");
  EXPECT_EQ(rules->front().title, "A title that goes on");
  EXPECT_EQ(rules->front().unproven, "");
}

TEST(Rules, MistakesAreNamedWithTheirLine) {
  EXPECT_THAT(Error(Changed("step_ns > 10", "stepp > 10")), HasSubstr("line 5: there is no quantity 'stepp'"));
  EXPECT_THAT(Error(Changed("step_ns / 2", "step_ns /")), HasSubstr("line 6: "));
  EXPECT_THAT(Error(Changed("{step_ns}", "{steps}")), HasSubstr("line 7: there is no quantity 'steps'"));
  EXPECT_THAT(Error(Changed("  do     this\n", "")), HasSubstr("line 2: rule one has no 'do'"));
  EXPECT_THAT(Error(Changed("  do ", "  did ")), HasSubstr("line 8: there is no key 'did'"));
  EXPECT_THAT(Error(Changed("https", "http")), HasSubstr("line 9: a link begins with https://"));
  EXPECT_THAT(Error(std::string(kRule) + "  do     that\n"), HasSubstr("line 10: 'do' stands twice"));
  EXPECT_THAT(Error(std::string(kRule) + std::string(kRule)), HasSubstr("line 11: there is a rule one above"));
  EXPECT_THAT(Error("  title early\n"), HasSubstr("line 1: 'rule NAME' comes first"));
  EXPECT_THAT(Error("rules one\n"), HasSubstr("line 1: 'rule NAME' is expected, not 'rules'"));
  EXPECT_THAT(Error("rule\n"), HasSubstr("line 1: a rule has a name"));
}

TEST(Rules, ThoseThatAreShippedAreRead) {
  EXPECT_GE(ShippedRules().size(), 14u);  // would abort if they were not
}

// Rules of one group win the same time; what nobody has shown to be right takes no other's place.
TEST(Advice, SaysWhatWinsMostFirst) {
  std::string text;
  for (const auto& [name, gain, group, unproven] :
       {std::tuple("small", "0.1 * step_ns", "g", ""), std::tuple("large", "0.5 * step_ns", "g", ""),
        std::tuple("guess", "0.9 * step_ns", "g", "  unproven nobody tried\n"),
        std::tuple("tiny", "0.001 * step_ns", "h", ""), std::tuple("lost", "0 - step_ns", "h", ""),
        std::tuple("unknown", "host_ns", "h", "")}) {
    text += "rule " + std::string(name) + "\n  title t\n  group " + group + "\n  when 1\n  gain " + gain +
            "\n  why w\n  do d\n  link https://e\n" + unproven;
  }
  const auto rules = ParseRules(text);
  ASSERT_TRUE(rules.ok()) << rules.status();
  FactValues facts;
  facts[static_cast<size_t>(Fact::kStep)] = 1e6;
  const AdviceList list = Advise(*rules, facts);
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
