#include "cli/picture/svg.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "cli/format/testing/synthetic_report.h"
#include "cli/format/testing/written.h"
#include "cli/testing/sample_report.h"
#include "cli/view/report_view.h"

namespace rfinject::cli {
namespace {

using testing::SampleReports;
using testing::SmallReport;

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// RFINJECT_UPDATE_GOLDEN=1 writes the file anew; look at the picture before committing it.
TEST(EmitSvg, EqualsTheGoldenPicture) {
  const Report report = SmallReport();
  const std::string svg = testing::Written(ReportDocument({report}), "svg");
  const std::string path = RFINJECT_TESTDATA "/small.svg";
  if (std::getenv("RFINJECT_UPDATE_GOLDEN") != nullptr) std::ofstream(path, std::ios::binary) << svg;
  const std::string golden = ReadFile(path);
  ASSERT_FALSE(golden.empty()) << path;
  std::istringstream have(svg), want(golden);
  std::string have_line, want_line;
  for (int line = 1; std::getline(want, want_line); ++line) {
    ASSERT_TRUE(std::getline(have, have_line)) << "ends at line " << line << " of " << path;
    ASSERT_EQ(have_line, want_line) << "line " << line << " of " << path;
  }
  EXPECT_FALSE(std::getline(have, have_line)) << "more than in " << path;
}

TEST(PictureSvg, EscapesTheTooltipsToo) {
  const Report report = testing::LongReport();
  const std::string svg = testing::Written(ReportDocument({report}), "svg");
  EXPECT_NE(svg.find("&lt;1 ns a step"), std::string::npos);
  EXPECT_EQ(svg.find("<1 ns"), std::string::npos);
}

TEST(EmitSvg, IsOneDocumentWithTwoPicturesAReport) {
  const std::string svg = testing::Written(ReportDocument(SampleReports()), "svg");
  const auto count = [&](const std::string& word) {
    size_t n = 0;
    for (size_t at = svg.find(word); at != std::string::npos; at = svg.find(word, at + 1)) ++n;
    return n;
  };
  EXPECT_EQ(count("data-kind=\"roofline\""), 2u);
  EXPECT_EQ(count("data-kind=\"time\""), 2u);
  EXPECT_EQ(count("<script"), 0u);
  EXPECT_EQ(count("<svg"), count("</svg>"));
  EXPECT_EQ(testing::Written(ReportDocument({}), "svg"), "refused: has no picture");
}

}  // namespace
}  // namespace rfinject::cli
