#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/format/testing/written.h"
#include "cli/testing/sample_report.h"
#include "cli/view/report_view.h"

namespace rfinject::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Latex, ATableHasRulesAndAlignedColumns) {
  const std::string text = testing::Written(ReportDocument({testing::SampleReports()[1]}), "latex", {.most_rows = 3});
  EXPECT_THAT(text, HasSubstr("\\begin{tabular}{ll"));
  EXPECT_THAT(text, HasSubstr("\\toprule\nlayer & "));
  EXPECT_THAT(text, HasSubstr("\\midrule\n(60 more) & "));
  EXPECT_THAT(text, HasSubstr("\\emph{Estimated, not measured.}"));
}

TEST(Latex, ANameIsNoCommand) {
  Report report = testing::SampleMeasuredReport();
  report.rows[0].layer = "\\input{/etc/passwd}_%$#&^~\033[2J";
  const std::string text = testing::Written(ReportDocument({report}), "latex", {.most_rows = 0});
  EXPECT_THAT(text, HasSubstr("\\textbackslash{}input\\{/etc/passwd\\}\\_\\%\\$\\#\\&\\textasciicircum{}"
                              "\\textasciitilde{}?[2J"));
  EXPECT_THAT(text, Not(HasSubstr("\\input")));
}

}  // namespace
}  // namespace rfinject::cli
