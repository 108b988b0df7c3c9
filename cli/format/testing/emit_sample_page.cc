// Writes the HTML or SVG of a report made for tests, and its rows as JSON straight from the Report, for the tests in
// a real browser to compare with.
//
//   emit_sample_page html|svg|rows small|resnet|kernels|both|measured|alarms|large:N|deep:N|hostile|long|empty|none >
//   FILE emit_sample_page diff faster|same|noisy > FILE
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/format/testing/synthetic_report.h"
#include "cli/format/testing/written.h"
#include "cli/report/compare/diff.h"
#include "cli/report/machine.h"
#include "cli/report/rows/picture_data.h"
#include "cli/testing/sample_profile.h"
#include "cli/testing/sample_report.h"
#include "cli/text/markup.h"
#include "cli/view/compare_views.h"
#include "cli/view/page.h"
#include "cli/view/report_view.h"

using rfinject::cli::By;
using rfinject::cli::JsonText;
using rfinject::cli::Report;
using rfinject::cli::Row;

namespace {

std::string Number(double value) { return rfinject::cli::JsonNumber(value).text(); }

std::vector<Report> Make(std::string_view what) {
  using namespace rfinject::cli::testing;
  if (what == "both") return SampleReports();
  if (what == "measured") return {SampleMeasuredReport()};
  if (what == "alarms") return {SampleMeasuredReport(), SampleMeasuredReport()};
  if (what == "kernels") return {SampleMeasuredReport(By::kKernel)};
  if (what == "small") return {SmallReport()};
  if (what == "long") return {LongReport()};
  if (what == "hostile") return {HostileReport()};
  if (what == "empty") return {Report{}};
  if (what == "none") return {};
  if (what.starts_with("deep:")) return {DeepReport(std::strtoul(what.substr(5).data(), nullptr, 10))};
  if (what.starts_with("large:")) return {LargeReport(std::strtoul(what.substr(6).data(), nullptr, 10))};
  return {SampleReports()[1]};
}

// ResNet-18 on a V100 against an A100, against itself, or a measured run against a shorter one.
void WriteDiff(std::string_view what, std::ostream& out) {
  using namespace rfinject::cli;
  using namespace rfinject::cli::testing;
  const bool noisy = what == "noisy";
  const Profile before =
      noisy ? SampleMeasured(SampleA100()) : SampleResNet18(what == "same" ? SampleA100() : SampleV100());
  const Profile after = noisy ? SampleMeasured(SampleA100(), 30) : SampleResNet18(SampleA100());
  out << Written(DiffDocument(MakeDiff(before, after, MachineFor, {})), "html");
}

void WriteRows(const std::vector<Report>& reports, std::ostream& out) {
  out << "[";
  const char* separator = "";
  for (const Report& report : reports) {
    for (const Row& row : rfinject::cli::PictureRows(report)) {
      out << separator << "{\"layer\":" << JsonText(row.layer)
          << ",\"phase\":" << JsonText(rfinject::cli::PhaseName(row.phase)) << ",\"model\":" << JsonText(row.model)
          << ",\"time_ns\":" << Number(row.sums.time_ns()) << ",\"flop\":" << Number(row.sums.total_flop())
          << ",\"dram_bytes\":" << Number(row.sums.dram_bytes()) << ",\"launches\":" << row.sums.launches
          << ",\"time_share\":" << Number(row.time_share)
          << ",\"oi_flop_per_byte\":" << Number(row.derived.oi_flop_per_byte)
          << ",\"performance_flop_per_s\":" << Number(row.derived.performance_flop_per_s)
          << ",\"attainable_flop_per_s\":" << Number(row.derived.attainable_flop_per_s)
          << ",\"attainable_share\":" << Number(row.derived.attainable_share)
          << ",\"bandwidth_bytes_per_s\":" << Number(row.derived.bandwidth_bytes_per_s)
          << ",\"steps\":" << report.steps.count << "}";
      separator = ",\n";
    }
  }
  out << "]\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: emit_sample_page html|svg|rows "
                 "small|resnet|kernels|both|measured|alarms|large:N|deep:N|hostile|long|empty|none\n"
                 "       emit_sample_page diff faster|same|noisy\n";
    return 2;
  }
  const std::string_view format = argv[1];
  if (format == "diff") {
    WriteDiff(argv[2], std::cout);
    return std::cout.good() ? 0 : 1;
  }
  const std::vector<Report> reports = Make(argv[2]);
  if (format == "html") {
    std::cout << rfinject::cli::testing::Written(rfinject::cli::PageDocument(reports, {}, {}), "html");
  } else if (format == "svg") {
    std::cout << rfinject::cli::testing::Written(rfinject::cli::ReportDocument(reports), "svg");
  } else {
    WriteRows(reports, std::cout);
  }
  return std::cout.good() ? 0 : 1;
}
