#include "cli/words/words.h"

#include <string>
#include <vector>

#include "cli/report/fold.h"
#include "gtest/gtest.h"

namespace rfinject::cli {
namespace {

TEST(GraphBreaks, ASentenceForEachPlaceAndOneForTheRest) {
  Report report;
  EXPECT_TRUE(GraphBreakTexts(report).empty());
  auto& breaks = report.kept.graph_break;
  breaks = {{.file = "b.py", .line = 4, .function = "f", .count = 2, .bytes = 100'000'000},
            {.reason = "print", .count = 1}};
  EXPECT_EQ(GraphBreakTexts(report), (std::vector<std::string>{"b.py:4 in f, compiled 2 times, 100 MB cross it",
                                                               "a line that torch does not say: print"}));
  breaks.resize(20, breaks.front());
  const std::vector<std::string> texts = GraphBreakTexts(report);
  EXPECT_LT(texts.size(), 20u);
  EXPECT_EQ(texts.back().substr(0, 2), std::to_string(20 - (texts.size() - 1)));
}

}  // namespace
}  // namespace rfinject::cli
