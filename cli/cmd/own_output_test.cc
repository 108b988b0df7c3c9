#include "cli/cmd/own_output.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/format/testing/written.h"
#include "cli/testing/sample_profile.h"
#include "cli/testing/sample_report.h"
#include "cli/view/compare_views.h"
#include "cli/view/page.h"
#include "cli/view/report_view.h"
#include "cli/view/views.h"

namespace rfinject::cli {
namespace {

using testing::Written;

constexpr By kAll[] = {By::kModel, By::kPhase, By::kLayer, By::kOp, By::kKernel, By::kSource, By::kClass};

TEST(OwnOutput, EveryFormatKnowsItsOwn) {
  for (const By by : kAll) {
    for (const size_t count : {size_t{2}, size_t{1}}) {
      std::vector<Report> reports = testing::SampleReports(by);
      reports.resize(std::min(count, reports.size()));
      const Document document = ReportDocument(reports), page = PageDocument(reports, {}, {});
      const Document sweep = SweepDocument(reports);
      const auto expect_own = [](const Document& written, const Format& format) {
        const std::string text = Written(written, format.name);
        EXPECT_TRUE(IsOwnOutput(text.substr(0, kOwnOutputBytes))) << format.name << text;
      };
      for (const Format& format : AllFormats()) {
        expect_own(document, format);
        expect_own(sweep, format);
        if (format.whole_run) expect_own(page, format);
      }
    }
  }
  const Profile profile = testing::SampleResNet18(testing::SampleA100(), 2);
  const ViewInput input{.profiles = {&profile}, .machine_for = [](const cli::Run&) { return testing::SampleA100(); }};
  for (const View& view : AllViews()) {
    const Document document = view.make(input);
    for (const Format& format : AllFormats()) {
      const std::string text = Written(document, format.name);
      if (text.starts_with("refused: ")) continue;
      EXPECT_TRUE(IsOwnOutput(text.substr(0, kOwnOutputBytes))) << view.name << " " << format.name << text;
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
