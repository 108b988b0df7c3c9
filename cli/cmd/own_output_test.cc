#include "cli/cmd/own_output.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/format/testing/written.h"
#include "cli/testing/sample_report.h"
#include "cli/view/compare_views.h"
#include "cli/view/page.h"
#include "cli/view/report_view.h"

namespace rfinject::cli {
namespace {

using testing::Written;

constexpr By kAll[] = {By::kModel, By::kPhase, By::kLayer, By::kOp, By::kKernel, By::kSource, By::kClass};

TEST(OwnOutput, EveryFormatKnowsItsOwn) {
  for (const By by : kAll) {
    for (const size_t count : {size_t{2}, size_t{1}}) {
      std::vector<Report> reports = testing::SampleReports(by);
      reports.resize(std::min(count, reports.size()));
      for (const Format& format : AllFormats()) {
        const std::string text = Written(ReportDocument(reports), format.name);
        const std::string page = Written(PageDocument(reports, {}, {}), format.name);
        const std::string sweep = Written(SweepDocument(reports), format.name);
        EXPECT_TRUE(IsOwnOutput(text.substr(0, kOwnOutputBytes))) << format.name << text;
        EXPECT_TRUE(IsOwnOutput(sweep.substr(0, kOwnOutputBytes))) << format.name << sweep;
        if (format.whole_run) {
          EXPECT_TRUE(IsOwnOutput(page.substr(0, kOwnOutputBytes))) << format.name;
        }
      }
    }
  }
  EXPECT_TRUE(IsOwnOutput("# Made by rfinject calibrate; rfinject calibrate writes it anew"));
  for (const char* text :
       {"", "On Monday", "A  plan", "{}", "<!DOCTYPE html>\n<title>mine</title>", "Measured on the scales"}) {
    EXPECT_FALSE(IsOwnOutput(text)) << text;
  }
}

}  // namespace
}  // namespace rfinject::cli
