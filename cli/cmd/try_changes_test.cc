#include "cli/cmd/try_changes.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

namespace rfinject::cli {
namespace {

TEST(TryChanges, EachShippedChangeSaysWhatItDoesAndWhatToWrite) {
  std::set<std::string> titles;
  for (const ShippedChange& change : ShippedChanges()) {
    EXPECT_FALSE(change.title.empty()) << change.name;
    EXPECT_FALSE(change.write.empty()) << change.name;
    EXPECT_TRUE(titles.insert(change.title).second) << change.name;
  }
  EXPECT_GE(titles.size(), 12u);
}

TEST(TryChanges, AWordIsAChangeByItsNameWithoutItsValue) {
  EXPECT_TRUE(NamesAChange("tf32"));
  EXPECT_TRUE(NamesAChange("compile=reduce-overhead"));
  EXPECT_TRUE(NamesAChange("@mine.py"));
  EXPECT_FALSE(NamesAChange("@"));
  EXPECT_FALSE(NamesAChange("frame"));
  EXPECT_FALSE(NamesAChange("edits"));
  EXPECT_FALSE(NamesAChange("python"));
  EXPECT_EQ(FindChange("compile=reduce-overhead")->value, "reduce-overhead");
  EXPECT_FALSE(FindChange("nothing").ok());
}

TEST(TryChanges, TextsAreLiteralsOfPython) {
  const WantedChange change{.name = "a'b", .value = "\\", .source = "x = '\t'\n"};
  const std::string text = ChangeFile({.report = "/r", .losses = 3}, {&change, 1});
  EXPECT_NE(text.find("use('a\\'b', '\\\\', 'x = \\'\\x09\\'\\n')\n"), std::string::npos) << text;
  EXPECT_NE(text.find("'losses': 3"), std::string::npos);
}

TEST(TryChanges, UnitsAreThoseOfTheBoard) {
  EXPECT_NE(ChangeFile({.gpu = FindGpu("V100-SXM2-16GB")}, {}).find("'units': ['fp16']"), std::string::npos);
  EXPECT_NE(ChangeFile({.gpu = FindGpu("A100-SXM4-40GB")}, {}).find("'units': ['tf32', 'fp16', 'bf16']"),
            std::string::npos);
}

TEST(TryChanges, AReportIsReadAndHalfALineIsNone) {
  const ChangeReport report = ReadChangeReport(
      "7\tchange\ttf32\tmade\tat a\\tb\tedited\n7\tpatch\thalf\n7\tpatch\t--- a\\n+++ b\\\\n\\n\n"
      "8\tchange\ttf32\tnothing\tx\t\n"
      "7\tloss\t1.5\n9\tloss\t8\n7\tloss\t-2e-3\n7\texception\tValueError: x\n7\toutside\t/a\n7\tchange\ttf32\tma");
  ASSERT_EQ(report.lines.size(), 2u);
  EXPECT_EQ(report.lines[0].text, "at a\tb");
  EXPECT_TRUE(report.lines[0].edited);
  EXPECT_FALSE(report.lines[1].edited);
  EXPECT_EQ(report.patches, (std::map<std::string, std::string>{{"7", "--- a\n+++ b\\n\n"}}));
  EXPECT_EQ(report.losses, (std::vector<double>{1.5, -2e-3}));
  EXPECT_EQ(report.exception, "ValueError: x");
  EXPECT_EQ(report.outside, "/a");
}

}  // namespace
}  // namespace rfinject::cli
