#include "cli/view/page.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "cli/format/html/page_data.h"
#include "cli/format/testing/synthetic_report.h"
#include "cli/format/testing/written.h"
#include "cli/report/rows/column.h"
#include "cli/report/rows/picture_data.h"
#include "cli/testing/sample_report.h"
#include "cli/testing/sanitized.h"
#include "cli/text/markup.h"
#include "cli/words/words.h"

namespace rfinject::cli {
namespace {

using testing::HostileReport;
using testing::SampleMeasuredReport;
using testing::SampleReports;
using testing::SmallReport;

std::string Html(const std::vector<Report>& reports) {
  return testing::Written(PageDocument(reports, {}, {}), "html");
}

size_t Count(const std::string& text, const std::string& word) {
  size_t n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

// Without the page in the message of a failure.
bool Says(const std::string& html, const std::string& text) {
  return html.find(text) != std::string::npos || html.find(Escaped(text).text()) != std::string::npos;
}

// What `<script type=application/json ENCODING>` of the table holds.
nlohmann::json Data(const std::string& html) {
  const std::string start = "<script type=application/json";
  const size_t tag = html.find(start), from = html.find('>', tag) + 1;
  std::string text = html.substr(from, html.find("</script>", from) - from);
  if (html.compare(tag + start.size(), 22, " data-encoding=deflate") == 0) {
    std::string packed;
    EXPECT_TRUE(absl::Base64Unescape(text, &packed));
    uLongf size = 64 * packed.size();  // more than any of our tables grows by
    text.resize(size);
    EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(text.data()), &size, reinterpret_cast<const Bytef*>(packed.data()),
                         packed.size()),
              Z_OK);
    text.resize(size);
  }
  return nlohmann::json::parse(text);
}

const nlohmann::json* FindColumn(const nlohmann::json& data, const std::string& key) {
  for (const auto& column : data.at("columns")) {
    if (column.at("name") == key) return &column;
  }
  return nullptr;
}

TEST(EmitHtml, HoldsEveryNumberOfEveryRow) {
  const std::vector<Report> reports = {*GroupedForPage(SampleMeasuredReport())};
  const auto data = Data(Html({SampleMeasuredReport()}));
  const std::span<const Row> rows = PictureRows(reports[0]);
  const auto expect = [&](const std::string& key, auto value_of) {
    const nlohmann::json* column = FindColumn(data, key);
    ASSERT_NE(column, nullptr) << key;
    const nlohmann::json& values = column->at("values");
    ASSERT_EQ(values.size(), rows.size()) << key;
    for (size_t i = 0; i < rows.size(); ++i) {
      const nlohmann::json& value = values[i];
      // What is not defined (a ratio over nothing) is null, not zero.
      EXPECT_EQ(value.is_null() ? 0 : value.get<double>(), value_of(rows[i])) << key << " of row " << i;
    }
  };
  expect("time_ns", [](const Row& r) { return r.sums.time_ns(); });
  expect("time_share", [](const Row& r) { return r.time_share; });
  const double steps = static_cast<double>(reports[0].steps.count);
  expect("time_per_step_ns", [&](const Row& r) { return r.sums.time_ns() / steps; });
  expect("slack_per_step_ns", [&](const Row& r) { return r.derived.slack_ns / steps; });
  expect("launches_per_step", [&](const Row& r) { return static_cast<double>(r.sums.launches) / steps; });
  expect("launches", [](const Row& r) { return static_cast<double>(r.sums.launches); });
  expect("flop", [](const Row& r) { return r.sums.total_flop(); });
  expect("flop_tf32_tc", [](const Row& r) { return r.sums[FlopIn(Precision::kTf32Tensor)]; });
  expect("model_flop", [](const Row& r) { return r.sums.model_flop(); });
  expect("dram_bytes", [](const Row& r) { return r.sums.dram_bytes(); });
  expect("oi_flop_per_byte", [](const Row& r) { return r.derived.oi_flop_per_byte; });
  expect("performance_flop_per_s", [](const Row& r) { return r.derived.performance_flop_per_s; });
  expect("attainable_flop_per_s", [](const Row& r) { return r.derived.attainable_flop_per_s; });
  expect("attainable_share", [](const Row& r) { return r.derived.attainable_share; });
  expect("bandwidth_bytes_per_s", [](const Row& r) { return r.derived.bandwidth_bytes_per_s; });
  expect("least_compute_time_ns", [](const Row& r) { return r.sums.least_compute_ns(); });
  expect("least_memory_time_ns", [](const Row& r) { return r.sums.least_memory_ns(); });
  expect("time_ci95_relative", [](const Row& r) { return r.time.relative; });
  EXPECT_EQ(FindColumn(data, "time_ns")->at("totals").at(0), reports[0].total.sums.time_ns());
}

TEST(EmitHtml, HasTheColumnsOfTheCsvUnderTheirNames) {
  Report report = SampleMeasuredReport(By::kKernel);
  for (Row& row : report.rows) {  // so that no column is empty
    row.class_name = row.group = row.signature = row.op = row.line = row.function = "x";
    row.input_shape = row.output_shape = "f32[8]";
    row.parameters = row.parameter_bytes = row.layers = 1;
    row.time = row.bytes = {.trust = Trust::kByStep, .relative = 0.1, .lacks = 0.1, .spread = 0.1, .p95 = 1};
    row.bytes.shared = true;
    row.kernels = {{.name = "x", .launches = 1}};
    for (const QuantityInfo& quantity : AllQuantities()) row.sums[quantity.id] = 1;
    row.sums[Quantity::kTime] = 2;  // more than the least
    row.derived = Derive(row.sums);
  }
  const auto data = Data(Html({report}));
  for (const ReportColumn& column : ReportColumns()) {
    if (!column.info.data) continue;
    EXPECT_NE(FindColumn(data, std::string(column.info.name)), nullptr) << column.info.name;
  }
}

TEST(TableData, HoldsAnyRowSet) {
  const std::vector<std::string> names = {"item()", "</script>", "item()"};
  RowSet rows = {.size = 3, .columns = {}};
  rows.columns.push_back({TextColumn("what", {}, "What"), [&](size_t row) { return TextCell(names[row]); }});
  rows.columns.push_back({UnitColumn("time_ns", "ns", "How long.").Additive(),
                          [](size_t row) { return row == 1 ? Cell{} : Cell{0.1 * static_cast<double>(row)}; }});
  rows.columns.push_back({PlainColumn("blocks"), [](size_t row) { return Cell{row == 0}; }});
  rows.columns.push_back({PlainColumn("nothing"), nullptr});
  std::vector<ColumnInfo> columns;
  for (const Column& column : rows.columns) columns.push_back(column.info);
  const PageTable table = {.id = "waits", .heading = "Waits", .columns = columns, .runs = {&rows, 1}, .totals = {}};
  const std::string html = TableElement(TableData(table)).text();
  EXPECT_EQ(Count(html, "</script>"), 1u);
  const auto data = Data(html);
  EXPECT_EQ(data.at("id"), "waits");
  EXPECT_EQ(data.at("rows"), 3);
  ASSERT_EQ(data.at("columns").size(), 3u);
  EXPECT_EQ(data.at("columns").at(0).at("words"), nlohmann::json({"item()", "</script>"}));
  EXPECT_EQ(data.at("columns").at(0).at("values"), nlohmann::json({0, 1, 0}));
  EXPECT_EQ(data.at("columns").at(1).at("values"), nlohmann::json({0.0, nullptr, 0.2}));
  EXPECT_EQ(data.at("columns").at(1).at("unit"), "s");
  EXPECT_EQ(data.at("columns").at(1).at("help"), "How long.");
  EXPECT_EQ(data.at("columns").at(2).at("values"), nlohmann::json({true, false, false}));
}

TEST(TableData, KeepsItsFirstColumnWithoutRows) {
  const ColumnInfo what = {.name = "what", .kind = Kind::kText};
  const auto data = Data(TableElement(TableData({.id = "none", .columns = {&what, 1}})).text());
  EXPECT_EQ(data.at("columns").size(), 1u);
  EXPECT_EQ(data.at("columns").at(0).at("values").size(), 0u);
}

TEST(EmitHtml, LeavesOutColumnsOfNothing) {
  const auto data = Data(Html({SmallReport()}));
  EXPECT_EQ(FindColumn(data, "l2_bytes"), nullptr);
  EXPECT_EQ(FindColumn(data, "kernel"), nullptr);
  EXPECT_EQ(FindColumn(data, "flop_fp8_tc"), nullptr);
  EXPECT_NE(FindColumn(data, "layer"), nullptr);
}

TEST(EmitHtml, DrawsEveryMarkThatItKnowsThePlaceOf) {
  std::vector<Report> reports = SampleReports();
  const std::string html = Html(reports);
  for (Report& report : reports) report = *GroupedForPage(report);
  const auto data = Data(html);
  // Those of the layers of a group are drawn when it is opened.
  const nlohmann::json& group_of = data.at("groups").at("of");
  size_t marks = 0;
  for (const auto& picture : data.at("pictures")) {
    for (const auto& row : picture.at("marks").at("rows")) marks += group_of.at(row.get<size_t>()) < 0 ? 1 : 0;
  }
  EXPECT_EQ(data.at("pictures").size(), 8u);  // two views of two runs, each for a desk and for a phone
  EXPECT_EQ(Count(html, "<path class=\"m "), marks);
  // Rows of the second report follow those of the first.
  EXPECT_EQ(data.at("run_of").size(), PictureRows(reports[0]).size() + PictureRows(reports[1]).size());
  EXPECT_EQ(data.at("run_of").back(), 1);
}

TEST(EmitHtml, HasARowForTheEqualLayersOfRepeatedBlocks) {
  const Report report = testing::DeepReport(6);
  const auto data = Data(Html({report}));
  const size_t layers = report.layer_phases.size();
  const nlohmann::json member_of = data.at("groups").at("of");
  ASSERT_GT(member_of.size(), layers);
  const nlohmann::json *share = FindColumn(data, "time_share"), *count = FindColumn(data, "layers");
  std::map<int64_t, std::pair<double, uint64_t>> groups;  // the members' share and number
  double all = 0;
  for (size_t i = 0; i < member_of.size(); ++i) {
    const int64_t group = member_of.at(i);
    const double time = share->at("values").at(i);
    if (group < 0) {
      all += time;
    } else {
      groups[group].first += time;
      ++groups[group].second;
    }
  }
  EXPECT_NEAR(all, 1, 1e-9);
  EXPECT_EQ(groups.size(), member_of.size() - layers);
  for (const auto& [group, members] : groups) {
    EXPECT_NEAR(share->at("values").at(static_cast<size_t>(group)), members.first, 1e-9);
    EXPECT_EQ(count->at("values").at(static_cast<size_t>(group)), members.second);
  }
  EXPECT_FALSE(Data(Html({SmallReport()})).contains("groups"));
}

TEST(EmitHtml, FiftyThousandRowsTakeTenMegabytes) {
  const Report report = testing::LargeReport(50'000 / OneIn(10));
  const std::string html = Html({report});
  EXPECT_LT(html.size(), 10'000'000u);
  EXPECT_LT(Count(html, "<path class=\"m "), 3000u);  // the others are drawn when they are first shown
}

TEST(EmitHtml, NumbersOfManyRowsAreTheReportsToSevenDigits) {
  const Report report = testing::LargeReport(5'000);
  const auto data = Data(Html({report}));
  EXPECT_EQ(data.at("run_of").size(), 5'000u);
  EXPECT_EQ(data.at("pictures").at(0).at("marks").at("y").size(), 5'000u);
  const std::span<const Row> rows = PictureRows(report);
  const nlohmann::json *time = FindColumn(data, "time_ns"), *layer = FindColumn(data, "layer");
  for (size_t i = 0; i < rows.size(); i += 97) {
    EXPECT_NEAR(time->at("values").at(i).get<double>() / rows[i].sums.time_ns(), 1, 1e-6) << i;
    EXPECT_EQ(layer->at("words").at(layer->at("values").at(i).get<size_t>()), rows[i].layer) << i;
  }
}

TEST(EmitHtml, EveryHeadOfATableHasAScope) {
  const std::string html = Html(SampleReports());
  EXPECT_GT(Count(html, "<th"), 20u);
  EXPECT_EQ(Count(html, "<th scope="), Count(html, "<th") - Count(html, "<thead"));
}

TEST(EmitHtml, AlarmsOfSeveralRunsSayWhose) {
  const std::string html = Html({SampleMeasuredReport(), SampleMeasuredReport()});
  EXPECT_EQ(Count(html, "<h2>Alarms and notes: "), 2u);
  EXPECT_EQ(Count(Html({SampleMeasuredReport()}), "<h2>Alarms and notes</h2>"), 1u);
}

TEST(EmitHtml, TrainingComesBeforeItsValidation) {
  Report training = SampleReports()[1];
  Report validation = training;
  validation.steps.validation = true;
  const std::string html = Html({validation, training});
  const size_t first = html.find("Where a step goes: "), second = html.find("Where a step goes: ", first + 1);
  ASSERT_NE(second, std::string::npos);
  EXPECT_EQ(html.substr(first, html.find('<', first) - first).find(", validation"), std::string::npos);
  EXPECT_NE(html.substr(second, html.find('<', second) - second).find(", validation"), std::string::npos);
}

TEST(EmitHtml, SaysHeadlineAlarmsDiagnosticsAndDrops) {
  const Report report = SampleMeasuredReport();
  const std::string html = Html({report});
  for (const std::string& line : HeadlineText(report)) EXPECT_TRUE(Says(html, line)) << line;
  EXPECT_TRUE(Says(html, "<b>R002 </b>")) << "<b>R002 </b>";
  EXPECT_TRUE(Says(html, std::string(report.alarms[0].causes))) << report.alarms[0].causes;
  EXPECT_TRUE(Says(html, report.kept.diagnostic[0].text)) << report.kept.diagnostic[0].text;
  EXPECT_TRUE(Says(html, TierText(report.process.tier))) << TierText(report.process.tier);
  EXPECT_TRUE(Says(html, report.kept.drop[0].what)) << report.kept.drop[0].what;
  EXPECT_TRUE(Says(html, "MEASURED by hardware counters")) << "MEASURED by hardware counters";
}

TEST(EmitHtml, CannotBeBrokenByNames) {
  const Report report = HostileReport();
  const std::string html = Html({report});
  EXPECT_EQ(Count(html, "<script"), 2u);  // the data and the page's own
  EXPECT_EQ(Count(html, "</script>"), 2u);
  EXPECT_EQ(Count(html, "<style"), 1u);
  EXPECT_EQ(Count(html, "</style"), 1u);
  EXPECT_EQ(Count(html, "<img"), 0u);
  EXPECT_EQ(Count(html, "<b>bold"), 0u);
  EXPECT_EQ(Count(html, "onload=alert(4)>"), 0u);
  EXPECT_EQ(Count(html, "\xe2\x80\xae"), 0u);  // RIGHT-TO-LEFT OVERRIDE
  for (const char c : html) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 || c == '\n') << static_cast<int>(c);
  // The data keep the names as they are.
  const auto data = Data(html);
  const nlohmann::json* layers = FindColumn(data, "layer");
  ASSERT_NE(layers, nullptr);
  const auto word = [&](size_t row) {
    return layers->at("words").at(layers->at("values").at(row).get<size_t>()).get<std::string>();
  };
  EXPECT_EQ(word(0), report.rows[0].layer);
  EXPECT_EQ(word(4), report.rows[4].layer);
}

TEST(EmitHtml, AsksTheNetworkForNothing) {
  const std::string html = Html(SampleReports());
  EXPECT_TRUE(Says(html, "default-src 'none'")) << "default-src 'none'";
  EXPECT_EQ(Count(html, "src="), 0u);
  EXPECT_EQ(Count(html, "url("), 0u);
  EXPECT_EQ(Count(html, "@import"), 0u);
  // Namespaces are the only addresses in attributes.
  EXPECT_EQ(Count(html, "=\"http"), Count(html, "=\"http://www.w3.org/2000/svg\""));
}

TEST(EmitHtml, TakesNoReportAndAnEmptyOne) {
  EXPECT_TRUE(Html({}).ends_with("</html>\n"));
  EXPECT_TRUE(Html({Report{}}).ends_with("</html>\n"));
}

TEST(EmitHtml, IsTheSameForTheSameReport) { EXPECT_EQ(Html(SampleReports()), Html(SampleReports())); }

}  // namespace
}  // namespace rfinject::cli
