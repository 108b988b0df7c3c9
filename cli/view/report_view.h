// File: report_view.h
//
// The rows of runs by model, phase, layer, operator, kernel, line of the program or class of layers, with what is
// known of each run: the views of `rfinject report` that are made of Reports.
#ifndef RFINJECT_CLI_VIEW_REPORT_VIEW_H_
#define RFINJECT_CLI_VIEW_REPORT_VIEW_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "cli/report/rows/column.h"
#include "cli/view/document.h"

namespace rfinject::cli {

// What the columns of a table are about.
enum class TableColumns : uint8_t {
  kRoofline,  // time, FLOP, intensity, share of attainable
  kTheory,    // executed and model FLOP, DRAM and compulsory bytes, their ratios and what explains them
};

struct ReportLook {
  TableColumns columns = TableColumns::kRoofline;
  const ReportColumn* sort = nullptr;  // the rows are sorted by this column, and tables show the first
  bool validation = false;             // of validations alone
};

// One document of all reports. Its JSON is of schema rfinject.report/1; that of several is rfinject.reports/1, which
// holds them. In CSV the first column says what a line is. For people, a validation of what also trains is a line of
// the training's part, unless `look` asks for it.
Document ReportDocument(std::vector<Report> reports, const ReportLook& look = {});

// The FLOP of each run by the precision that they ran in. Schema rfinject.precisions/1.
Document PrecisionDocument(std::vector<Report> reports);
// Its columns, without rows.
RowSet PrecisionColumns();

// The rows of a report, as people see them, in a table whose heading is "By layer, a step". `report` must outlive it.
Section RowSection(const Report& report, By by, const std::vector<Row>& rows, const ReportLook& look);

// What a row is called where one name must do: its layer, "backward aten::mm", a kernel's short name.
std::string RowLabel(const Report& report, const Row& row);

// The pictures of reports: all rooflines, then all time views, two side by side where there are several reports, all
// on the same axes. `reports` must outlive them.
std::vector<std::vector<Figure>> ReportFigures(std::span<const Report> reports);

// The rows that these pictures show, as a table; none of no report. `reports` must outlive it.
std::optional<LinkedTable> LinkedRows(std::span<const Report> reports);

// The column of reports that has `name` in CSV and JSON, or as its head in a table, in any case; nullptr where there
// is none.
const ReportColumn* FindColumnOrHead(std::string_view name);

// A check for each kind of alarm, which fails where the report has one.
std::vector<Check> ChecksOf(const Report& report);

// What the JSON of a report holds.
Data ReportData(const Report& report);

// What is wrong with a run, and what its trace says of itself: alarms, diagnostics, losses.
std::vector<Sentence> ProblemsOf(const Report& report);
// What the numbers of a run rest on.
std::vector<Sentence> FactsOf(const Report& report);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_VIEW_REPORT_VIEW_H_
