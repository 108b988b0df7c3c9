#include "cli/view/report_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "cli/testing/sample_report.h"
#include "cli/view/table_lines.h"
#include "cli/view/views.h"

namespace rfinject::cli {
namespace {

TEST(FindColumnOrHead, TakesTheHeadOfATableInAnyCase) {
  EXPECT_EQ(FindColumnOrHead("flop/b"), FindColumn("oi_flop_per_byte"));
  EXPECT_EQ(FindColumnOrHead("To Win"), FindColumn("to_win_per_step_ns"));
  EXPECT_EQ(FindColumnOrHead("time_ns"), FindColumn("time_ns"));
  EXPECT_EQ(FindColumnOrHead("nothing"), nullptr);
  EXPECT_EQ(FindColumnOrHead(""), nullptr);
}

TEST(LinesOf, TheLineOfWhatIsLeftOutAndTheShownRowsAddUpToTheTotal) {
  const Report report = testing::SampleReports()[1];
  const Section section = RowSection(report, report.by, report.rows, {});
  const Table& table = *section.table;
  const TableLines few = LinesOf(table, 5, "");
  ASSERT_EQ(few.lines.size(), 7u);
  EXPECT_FALSE(few.lines[4].sums);
  EXPECT_TRUE(few.lines[5].sums);
  EXPECT_EQ(few.lines[5].cells[0], "(" + std::to_string(report.rows.size() - 5) + " more)");
  EXPECT_EQ(few.lines[6].cells[0], "total");
  std::vector<size_t> all(report.rows.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  const RowSet rest = table.rest(all);
  const double time_ns = NumberIn(rest.Find("time_ns")->value(0));
  EXPECT_NEAR(time_ns / NumberIn(table.total.Find("time_ns")->value(0)), 1, 1e-12);
}

TEST(ReportDocument, TrainingComesFirstAndItsValidationIsALine) {
  Report training = testing::SampleReports()[1];
  training.run.training = true;
  Report validation = training;
  validation.run.training = false;
  validation.steps.validation = true;
  validation.steps.count = 6;
  const Document document = ReportDocument({validation, training});
  EXPECT_EQ(
      std::count_if(document.sections.begin(), document.sections.end(), [](const Section& s) { return s.first; }), 1);
  ASSERT_EQ(document.sections.front().lead.size(), 1u);
  EXPECT_EQ(document.sections.front().lead.front().text.find("Validation: 6 batches"), 0u);
  // What programs read has both, in the order of the trace.
  EXPECT_EQ(document.lines.front().Find("steps")->value(0), Cell{uint64_t{6}});

  const Document alone = ReportDocument({validation, training}, {.validation = true});
  EXPECT_NE(alone.sections.front().heading.find("a batch of validation"), std::string::npos);
  EXPECT_FALSE(ReportDocument({training}, {.validation = true}).nothing.empty());
  EXPECT_TRUE(ReportDocument({validation}).nothing.empty());
}

TEST(ReportDocument, ATraceWithoutItsEndSaysSoInItsFirstLine) {
  Report report = testing::SampleReports()[1];
  report.process.count = 1;
  report.process.unfinished = 1;
  EXPECT_NE(ReportDocument({report}).sections.front().heading.find(", of a trace without its end: "),
            std::string::npos);
  report.process.count = 8;
  EXPECT_NE(ReportDocument({report}).sections.front().heading.find(", 1 of 8 traces without their end: "),
            std::string::npos);
}

TEST(AllViews, WhatTrainsComesFirstForPeople) {
  Profile profile;
  for (const bool training : {false, true}) {
    cli::Run run;
    run.key.training = training;
    run.key.gpu = training ? "two, trains" : "one, validates";
    profile.runs.emplace(run.key, run);
  }
  ASSERT_FALSE(profile.runs.begin()->first.training);
  for (const View& view : AllViews()) {
    if (view.name != "memory" && view.name != "wait" && view.name != "stack") continue;
    const Document document = view.make({.profiles = {&profile}});
    EXPECT_EQ(document.sections.front().heading.find("two, trains"), 0u) << document.sections.front().heading;
  }
}

TEST(SumOf, AddsWhatIsAdditiveAndNothingElse) {
  RowSet rows;
  rows.size = 3;
  rows.columns.push_back({{.name = "bytes", .additive = true}, [](size_t row) { return Cell{uint64_t{row + 1}}; }});
  rows.columns.push_back({{.name = "share"}, [](size_t row) { return Cell{uint64_t{row}}; }});
  const size_t which[] = {0, 2};
  const RowSet sum = SumOf(rows, which);
  ASSERT_EQ(sum.size, 1u);
  EXPECT_EQ(NumberIn(sum.Find("bytes")->value(0)), 4);
  EXPECT_FALSE(sum.Find("share")->value);
}

TEST(Views, NamesAreUnique) {
  for (const View& view : AllViews()) EXPECT_EQ(FindView(view.name), &view) << view.name;
  EXPECT_EQ(FindView("nothing"), nullptr);
}

}  // namespace
}  // namespace rfinject::cli
