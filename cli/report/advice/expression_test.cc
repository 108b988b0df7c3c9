#include "cli/report/advice/expression.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rfinject::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// a is 6, b is 4, c is not known.
std::optional<size_t> IndexOf(std::string_view name) {
  if (name.size() != 1 || name < "a" || name > "c") return std::nullopt;
  return static_cast<size_t>(name.front() - 'a');
}
const std::vector<std::optional<double>> kValues = {6, 4, std::nullopt};

std::optional<double> Evaluate(std::string_view text, std::vector<size_t>* missing) {
  const absl::StatusOr<Expression> expression = Expression::Parse(text, IndexOf);
  EXPECT_TRUE(expression.ok()) << text << ": " << expression.status();
  return expression.ok() ? expression->Evaluate(kValues, missing) : std::nullopt;
}

double Value(std::string_view text) {
  std::vector<size_t> missing;
  const std::optional<double> value = Evaluate(text, &missing);
  EXPECT_TRUE(value) << text;
  EXPECT_THAT(missing, IsEmpty()) << text;
  return value.value_or(-1);
}

TEST(Expression, BindsAsArithmeticDoes) {
  EXPECT_EQ(Value("a - b - 1"), 1);
  EXPECT_EQ(Value("a + b * 2"), 14);
  EXPECT_EQ(Value("(a + b) * 2"), 20);
  EXPECT_EQ(Value("a / b / 3"), 0.5);
  EXPECT_EQ(Value("-a + 7"), 1);
  EXPECT_EQ(Value("a - -b"), 10);
  EXPECT_EQ(Value(".5 * a"), 3);
  EXPECT_EQ(Value("max(a, b) - min(a, b + 1)"), 1);
}

TEST(Expression, Compares) {
  EXPECT_EQ(Value("a > b"), 1);
  EXPECT_EQ(Value("a <= b"), 0);
  EXPECT_EQ(Value("a - 2 == b"), 1);
  EXPECT_EQ(Value("a != 6"), 0);
  EXPECT_EQ(Value("a > b and b > a or a == 6"), 1);
  EXPECT_EQ(Value("a == 6 or b > a and b == 0"), 1) << "and binds tighter";
  EXPECT_EQ(Value("not a > b"), 0) << "not a is 0, which is not above b";
  EXPECT_EQ(Value("not (a < b)"), 1);
}

TEST(Expression, AShareOfNothingIsNothing) { EXPECT_EQ(Value("a / (b - 4)"), 0); }

TEST(Expression, WhatIsNotKnownIsNamed) {
  for (const std::string_view text : {"c", "a + c", "c > 1", "not c", "min(a, c)", "a > b and c", "c or b > a"}) {
    std::vector<size_t> missing;
    EXPECT_FALSE(Evaluate(text, &missing)) << text;
    EXPECT_THAT(missing, ElementsAre(2)) << text;
  }
}

TEST(Expression, WhatDoesNotMatterNeedNotBeKnown) {
  EXPECT_EQ(Value("a < b and c"), 0);
  EXPECT_EQ(Value("c and a < b"), 0);
  EXPECT_EQ(Value("c or a > b"), 1);
}

TEST(Expression, MistakesAreNamed) {
  const auto error = [](std::string_view text) {
    return std::string(Expression::Parse(text, IndexOf).status().message());
  };
  EXPECT_THAT(error("a +"), HasSubstr("expected at the end"));
  EXPECT_THAT(error("a b"), HasSubstr("an operator is expected before 'b'"));
  EXPECT_THAT(error("(a"), HasSubstr(") is expected"));
  EXPECT_THAT(error("time > 1"), HasSubstr("there is no quantity 'time'"));
  EXPECT_THAT(error("1.2.3"), HasSubstr("a number is expected"));
  EXPECT_THAT(error("min(a)"), HasSubstr(", is expected"));
  EXPECT_THAT(error(""), HasSubstr("a number or a name"));
  EXPECT_THAT(error(std::string(1000, '(')), HasSubstr("nested too deeply"));
  EXPECT_THAT(error(std::string(1000, '-')), HasSubstr("nested too deeply"));
}

}  // namespace
}  // namespace rfinject::cli
