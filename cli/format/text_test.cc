// The table, the JSON and the CSV of the sample reports. What they say is tested black-box too; here is what must
// hold for every width and every name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <sstream>

#include "cli/format/testing/written.h"
#include "cli/report/rows/column.h"
#include "cli/testing/sample_report.h"
#include "cli/text/cell_text.h"
#include "cli/view/report_view.h"
#include "cli/view/run_views.h"

namespace rfinject::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr By kAll[] = {By::kModel, By::kPhase, By::kLayer, By::kOp, By::kKernel, By::kSource, By::kClass};

using testing::Written;

std::string Table(std::span<const Report> reports, const WriteOptions& options = {}) {
  return Written(ReportDocument({reports.begin(), reports.end()}), "table", options);
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

size_t CodePoints(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

TEST(EmitStacks, CsvAndJsonHaveTheSumsAndTheTableAStepsPart) {
  StackRow row;
  row.stack = std::make_shared<const NativeStackInfo>(
      NativeStackInfo{{.module = "a.out", .build_id = {}, .function = "Net::project(int)", .offset = 1},
                      {.module = "a.out", .build_id = {}, .function = "main", .offset = 2}});
  row.phase = Phase::kOther;
  row.caller = "Net::project";
  row.launches = 8;
  row.time_ns = 4000;
  row.kernels = {"gemm", "relu"};
  const Document document = StackDocument({{.title = "A100", .steps = 4, .rows = {row}}});
  EXPECT_THAT(Written(document, "table"), HasSubstr("  Net::project other             8 1.00 us\n"
                                                    "    runs gemm, relu\n"
                                                    "      Net::project(int)\n"));
  EXPECT_EQ(Written(document, "csv"),
            "run,device,steps,phase,caller,launches,time_ns,kernels,stack\n"
            "1,A100,4,other,Net::project,8,4000,gemm; relu,main;Net::project(int)\n");
  const std::string json = Written(document, "json");
  EXPECT_THAT(json, HasSubstr(R"x("stack": "main;Net::project(int)")x"));
  EXPECT_THAT(json, HasSubstr(R"("schema": "rfinject.stacks/1")"));
  EXPECT_THAT(Written(document, "html"), HasSubstr("Net::project"));
  EXPECT_EQ(Written(document, "svg"), "refused: has no picture");
}

TEST(Memory, TableJsonAndCsv) {
  MemoryTable table{
      .title = "A100",
      .known = true,
      .allocated_bytes = 3'000'000'000,
      .reserved_bytes = 4'294'967'296,
      .step = 1,
      .parameter_bytes = 46'800'000,
      .memory_bytes = 4'294'967'296,
      .refused = {
          .model = "Net", .layer = "a.conv", .class_name = "Conv2d", .phase = Phase::kForward, .bytes = 822'083'584}};
  table.phases = {{.phase = Phase::kForward, .bytes = 2'000'000'000, .share = 2 / 3.0},
                  {.phase = Phase::kOptimizer, .bytes = 1'000'000'000, .share = 1 / 3.0}};
  table.rows = {{.model = "Net",
                 .layer = "a.conv",
                 .class_name = "Conv2d",
                 .phase = Phase::kForward,
                 .bytes = 2'000'000'000,
                 .share = 2 / 3.0},
                {.phase = Phase::kOptimizer, .bytes = 1'000'000'000, .share = 1 / 3.0}};
  const MemoryTable unknown{.title = "V100", .in_use_bytes = 5'000'000'000};
  const Document document = MemoryDocument({table, unknown});
  const std::string text = Written(document, "table"), json = Written(document, "json");
  EXPECT_THAT(text, HasSubstr("At the peak 3.00 GB (2.79 GiB) were allocated, in step 1; PyTorch's allocator\n"
                              "  held 4.29 GB (4.00 GiB) for it"));
  EXPECT_THAT(text, HasSubstr("It does not fit: 822 MB (0.77 GiB) more were asked for in forward of a.conv\n"
                              "  (Conv2d), and the program was told that the memory is full; the device has\n"
                              "  4.29 GB (4.00 GiB).\n"));
  EXPECT_THAT(text, HasSubstr("  optimizer    the optimizer's state  1.00 GB   33 %\n"));
  EXPECT_THAT(text, HasSubstr("  a.conv     Conv2d forward       2.00 GB   67 %\n"));
  EXPECT_THAT(text, HasSubstr("What lay in the memory is not known. All of it, by layer, is known where the"));
  EXPECT_THAT(text, HasSubstr("used at most 5.00 GB\n  (4.66 GiB) of the device"));
  for (const std::string& line : Lines(text)) EXPECT_LE(CodePoints(line), 80u) << line;
  EXPECT_EQ(Written(document, "csv"),
            "run,device,allocated_bytes,reserved_bytes,model,layer,class,phase,bytes,share\n"
            "1,A100,3000000000,4294967296,Net,a.conv,Conv2d,forward,2000000000,0.6666666666666666\n"
            "1,A100,3000000000,4294967296,,,,optimizer,1000000000,0.3333333333333333\n");
  EXPECT_THAT(json, HasSubstr(R"("reserved_bytes": 4294967296)"));
  EXPECT_THAT(json, HasSubstr(R"("allocated_bytes": null)"));
  EXPECT_THAT(json, HasSubstr(R"("refused": null)"));
  EXPECT_THAT(json, HasSubstr(R"("layer": "a.conv",)"));
}

TEST(Table, LinesOfTheProgram) {
  Report report = testing::SampleMeasuredReport(By::kSource);
  Row row;
  row.line = "model.py:41";
  row.function = "Attention.forward";
  row.sums[Quantity::kTime] = 1e9;
  report.rows.push_back(row);
  const std::string text = Table(std::span(&report, 1), {.width = 160});
  EXPECT_THAT(text, HasSubstr("By line of the program"));
  EXPECT_THAT(text, HasSubstr("model.py:41"));
  EXPECT_THAT(text, HasSubstr("Attention.forward"));
  EXPECT_THAT(text, HasSubstr("(forward, no line)"));
}

TEST(Table, FitsEveryWidth) {
  for (const By by : kAll) {
    std::vector<Report> reports = testing::SampleReports(by);
    reports.push_back(testing::SampleMeasuredReport(by));
    for (const int width : {60, 80, 100, 132, 200, 400}) {
      for (const std::string& line : Lines(Table(reports, {.width = width}))) {
        EXPECT_LE(CodePoints(line), static_cast<size_t>(width)) << line;
        EXPECT_TRUE(line.empty() || line.back() != ' ') << line;
      }
    }
  }
}

TEST(Table, SaysHowMuchMemoryWasInUseWhereItIsKnown) {
  Report report = testing::SampleMeasuredReport(By::kLayer);
  report.memory.peak_bytes = 12'300'000'000;
  EXPECT_THAT(Table(std::span(&report, 1), {.width = 400}), HasSubstr("at most 12.3 GB of device memory in use"));
  report.memory.peak_bytes = 0;
  EXPECT_THAT(Table(std::span(&report, 1), {.width = 400}), Not(HasSubstr("device memory")));
}

TEST(Table, WhatIsInNoLayerNamesItsCaller) {
  Report report = testing::SampleMeasuredReport(By::kLayer);
  Row row;
  row.phase = Phase::kCommunication;
  row.sums[Quantity::kTime] = 1e9;
  report.rows.push_back(row);
  EXPECT_THAT(Table(std::span(&report, 1), {.width = 400}), HasSubstr("(communication, no layer) "));
  report.rows.back().caller = "Net::project";
  EXPECT_THAT(Table(std::span(&report, 1), {.width = 400}), HasSubstr("(communication, no layer: Net::project) "));
  report.rows.back().other_callers = 2;
  EXPECT_THAT(Table(std::span(&report, 1), {.width = 400}),
              HasSubstr("(communication, no layer: Net::project and 2 more) "));
}

TEST(Table, WiderTerminalsSeeMore) {
  const std::vector<Report> reports = testing::SampleReports();
  const std::string narrow = Table(reports, {.width = 80});
  EXPECT_THAT(narrow, Not(HasSubstr("launches ")));
  EXPECT_THAT(narrow, HasSubstr("columns hidden (to win, FLOP, DRAM/s, bytes, launches"));
  const std::string all = Table(reports, {.width = 80, .wide = true});
  EXPECT_THAT(all, HasSubstr(" launches "));
  EXPECT_THAT(all, Not(HasSubstr("hidden")));
  const std::string wide = Table(reports, {.width = 160});
  for (const char* title : {"class", "launches", "bytes", "DRAM/s", "to win"}) EXPECT_THAT(wide, HasSubstr(title));
}

TEST(Table, MarksEveryEstimatedLine) {
  const std::vector<Report> reports = testing::SampleReports();
  size_t marked = 0;
  for (const std::string& line : Lines(Table(std::span(reports).first(1), {.most_rows = 0}))) {
    if (line.rfind("~ ", 0) == 0) ++marked;
  }
  EXPECT_EQ(marked, reports[0].rows.size() + reports[0].phases.size() + 2);  // and the two totals
  const Report measured = testing::SampleMeasuredReport();
  EXPECT_THAT(Table({&measured, 1}), Not(HasSubstr("~")));
}

TEST(Table, KeepsTheRowsWithMostTimeInTheirOrder) {
  const Report report = testing::SampleReports()[1];
  const std::string text = Table({&report, 1}, {.most_rows = 5});
  EXPECT_THAT(text, HasSubstr("(58 more: --rows 0)"));
  // bn1 takes more time than conv1, which the program runs before it.
  const size_t conv1 = text.find("~ conv1 "), bn1 = text.find("~ bn1 "),
               optimizer = text.find("~ (optimizer, no layer)");
  ASSERT_NE(conv1, std::string::npos) << text;
  EXPECT_LT(conv1, bn1) << text;
  EXPECT_LT(bn1, optimizer) << text;
}

TEST(Table, SaysAlarmsDiagnosticsAndLosses) {
  const Report report = testing::SampleMeasuredReport();
  const std::string text = Table({&report, 1}, {.width = 200});
  EXPECT_THAT(text, HasSubstr("R002 1.71 TB/s to and from DRAM"));
  EXPECT_THAT(text, HasSubstr("likely: bytes of one run over times of another"));
  EXPECT_THAT(text, HasSubstr("warning: some counters were held"));
  EXPECT_THAT(text, HasSubstr("mend it: stop dcgm"));
  EXPECT_THAT(text, HasSubstr("12 lost: launches: ring full"));
}

TEST(Table, ColorOnlyWhenAskedFor) {
  const std::vector<Report> reports = testing::SampleReports();
  EXPECT_THAT(Table(reports), Not(HasSubstr("\033")));
  EXPECT_THAT(Table(reports, {.color = true}), HasSubstr("\033[1m"));
}

TEST(Table, NamesCannotSteerTheTerminal) {
  Report report = testing::SampleMeasuredReport();
  report.rows[0].layer =
      "a\033[2J\xC2\x9B"
      "b\xFF\r\n";
  report.alarms.push_back({"R012", "bad \033]0;title\007 has a value of 1e+19", {}, {}});
  report.kept.diagnostic[0].text = "\033c";
  const std::string text = Table({&report, 1}, {.width = 200, .most_rows = 0});
  EXPECT_THAT(text, HasSubstr("a?[2J?b???"));
  EXPECT_THAT(text, Not(HasSubstr("\033")));
  EXPECT_THAT(text, Not(HasSubstr("\r")));
}

TEST(Table, ARunWithoutRoofsHasNoColumnsOfThem) {
  Report report = testing::SampleMeasuredReport();
  report.machine = {};
  EXPECT_THAT(Table({&report, 1}, {.width = 200}), Not(HasSubstr("of roof")));
}

TEST(Columns, NamesAreUniqueAndHoldTheUnit) {
  std::vector<std::string_view> names;
  for (const ReportColumn& column : ReportColumns()) names.push_back(column.info.name);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  for (const std::string_view name : names) {
    if (name.find("time") != name.npos && name.find("share") == name.npos && name.find("relative") == name.npos &&
        !name.ends_with("_interval")) {
      EXPECT_TRUE(name.ends_with("_ns")) << name;
    }
  }
}

TEST(Columns, NumbersComeBackExactly) {
  EXPECT_EQ(NumberText(3628146688.0), "3628146688");
  EXPECT_EQ(NumberText(156e12), "156000000000000");
  EXPECT_EQ(NumberText(-0.5), "-0.5");
  EXPECT_EQ(NumberText(1.0 / 0.0), "");
  for (const double value : {0.1, 1e-300, 1.7976931348623157e308, 12345.678901234567, 9007199254740993.0}) {
    EXPECT_EQ(std::stod(NumberText(value)), value);
  }
}

TEST(Csv, OnlyWhatASpreadsheetCouldTakeForAFormulaIsOne) {
  for (const char* text : {"=1", "+1", "-1", "@x", "\t1", "\r1", "\n1", " =1", "＝1", "－1"}) {
    EXPECT_TRUE(LooksLikeFormula(text)) << text;
  }
  for (const char* text : {"", " ", "a=1", "1-2", "'=1", "aten::add", "(no layer)", "—"}) {
    EXPECT_FALSE(LooksLikeFormula(text)) << text;
  }
}

TEST(Csv, EveryLineHasEveryColumn) {
  for (const By by : kAll) {
    std::vector<Report> reports = testing::SampleReports(by);
    reports[0].rows[0].op = "quoted \"x\", and\nmore";
    const std::string text = Written(ReportDocument(reports), "csv");
    // A small reader of RFC 4180.
    std::vector<size_t> fields = {1};
    bool quoted = false;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '"') quoted = !quoted;
      if (quoted) continue;
      if (text[i] == ',') ++fields.back();
      if (text[i] == '\n' && i + 1 < text.size()) fields.push_back(1);
    }
    EXPECT_FALSE(quoted);
    EXPECT_EQ(std::count(fields.begin(), fields.end(), fields[0]), static_cast<std::ptrdiff_t>(fields.size()));
    EXPECT_THAT(text, HasSubstr("\"quoted \"\"x\"\", and\nmore\""));
  }
}

}  // namespace
}  // namespace rfinject::cli
