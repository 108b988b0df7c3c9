#include "cli/emit/picture/svg.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "cli/emit/emit.h"
#include "cli/emit/testing/synthetic_report.h"
#include "cli/testing/sample_report.h"

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
  std::ostringstream out;
  EmitSvg({&report, 1}, out);
  const std::string path = RFINJECT_TESTDATA "/small.svg";
  if (std::getenv("RFINJECT_UPDATE_GOLDEN") != nullptr) std::ofstream(path, std::ios::binary) << out.str();
  const std::string golden = ReadFile(path);
  ASSERT_FALSE(golden.empty()) << path;
  std::istringstream have(out.str()), want(golden);
  std::string have_line, want_line;
  for (int line = 1; std::getline(want, want_line); ++line) {
    ASSERT_TRUE(std::getline(have, have_line)) << "ends at line " << line << " of " << path;
    ASSERT_EQ(have_line, want_line) << "line " << line << " of " << path;
  }
  EXPECT_FALSE(std::getline(have, have_line)) << "more than in " << path;
}

TEST(PictureSvg, EscapesTheTooltipsToo) {
  const Report report = testing::LongReport();
  std::ostringstream out;
  EmitSvg({&report, 1}, out);
  EXPECT_NE(out.str().find("&lt;1 ns a step"), std::string::npos);
  EXPECT_EQ(out.str().find("<1 ns"), std::string::npos);
}

TEST(EmitSvg, IsOneDocumentWithTwoPicturesAReport) {
  std::ostringstream out;
  const std::vector<Report> reports = SampleReports();
  EmitSvg(reports, out);
  const std::string svg = out.str();
  const auto count = [&](const std::string& word) {
    size_t n = 0;
    for (size_t at = svg.find(word); at != std::string::npos; at = svg.find(word, at + 1)) ++n;
    return n;
  };
  EXPECT_EQ(count("data-kind=\"roofline\""), 2u);
  EXPECT_EQ(count("data-kind=\"time\""), 2u);
  EXPECT_EQ(count("<script"), 0u);
  EXPECT_EQ(count("<svg"), count("</svg>"));
  std::ostringstream none;
  EmitSvg({}, none);
  EXPECT_NE(none.str().find("</svg>"), std::string::npos);
}

}  // namespace
}  // namespace rfinject::cli
