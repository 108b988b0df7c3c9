// The rows that the pictures of reports show, as the table that a page links with them.
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <variant>

#include "cli/picture/names.h"
#include "cli/report/rows/column.h"
#include "cli/report/rows/picture_data.h"
#include "cli/view/report_view.h"

namespace rfinject::cli {
namespace {

// What a reader looks for first, from left to right. All else follows: sums and what follows from them in the order
// of CSV, then what is known of the layer.
constexpr std::string_view kFirst[] = {"layer",
                                       "line",
                                       "function",
                                       "phase",
                                       "op",
                                       "time_share",
                                       "time_per_step_ns",
                                       "oi_flop_per_byte",
                                       "attainable_share",
                                       "bound",
                                       "slack_per_step_ns",
                                       "performance_flop_per_s",
                                       "attainable_flop_per_s",
                                       "bandwidth_bytes_per_s",
                                       "kernel",
                                       "kernels",
                                       "launches_per_step"};

std::vector<ColumnInfo> PageColumns(std::span<const RowSet> runs, bool several_models) {
  std::vector<ColumnInfo> columns;
  const auto is_first = [](std::string_view name) {
    return std::find(std::begin(kFirst), std::end(kFirst), name) != std::end(kFirst);
  };
  for (const std::string_view name : kFirst) columns.push_back(FindColumn(name)->info);
  for (const bool identity : {false, true}) {
    for (const ReportColumn& column : ReportColumns()) {
      const std::string_view name = column.info.name;
      if (column.info.data && IsIdentity(name) == identity && !is_first(name)) columns.push_back(column.info);
    }
  }
  const auto move_to = [&](std::string_view name, size_t to) {
    const auto at = std::find_if(columns.begin(), columns.end(), [&](const auto& c) { return c.name == name; });
    const auto place = columns.begin() + static_cast<ptrdiff_t>(to);
    if (at != columns.end() && at > place) std::rotate(place, at, at + 1);
  };
  const auto has_texts = [&](std::string_view name) {
    return std::any_of(runs.begin(), runs.end(), [&](const RowSet& run) {
      const Column& column = *run.Find(name);
      for (size_t i = 0; i < run.size; ++i) {
        const Cell cell = column.value(i);
        if (const auto* text = std::get_if<std::string>(&cell); text != nullptr && !text->empty()) return true;
      }
      return false;
    });
  };
  for (const std::string_view name : {"layer", "kernel", "op", "line", "phase", "model"}) {
    if (!has_texts(name)) continue;
    move_to(name, 0);
    break;
  }
  if (several_models) move_to("model", 1);
  if (runs.size() > 1) columns.insert(columns.begin() + 1, {.name = "gpu", .title = "GPU", .kind = Kind::kText});
  return columns;
}

// The total of a report, which the rows hold.
RowSet TotalOf(const Report& report) {
  RowSet set{.size = 1, .columns = {}};
  Append(
      ReportColumns(),
      [&report, total = std::make_shared<const Row>(TotalRow(report))](size_t) {
        return ReportRow{report, *total};
      },
      &set);
  return set;
}

}  // namespace

LinkedTable LinkedRows(std::span<const Report> reports) {
  LinkedTable table;
  std::set<std::string_view> models;
  bool several_models = false, groups = false;
  for (const Report& report : reports) {
    models.insert(report.run.models.begin(), report.run.models.end());
    several_models |= report.run.models.size() > 1;
    const std::span<const Row> rows = PictureRows(report);
    const auto first = static_cast<int64_t>(table.group_of.size());
    for (const Row& row : rows) {
      groups |= row.member_of >= 0;
      table.group_of.push_back(row.member_of >= 0 ? first + row.member_of : -1);
    }
    const std::string& gpu = report.device.name.empty() ? report.run.gpu : report.device.name;
    table.names.push_back(gpu);
    table.runs.push_back(RowsOf(report, rows));
    table.totals.push_back(TotalOf(report));
    for (RowSet* const set : {&table.runs.back(), &table.totals.back()}) {
      set->columns.push_back(
          {{.name = "gpu", .title = "GPU", .kind = Kind::kText}, [gpu](size_t) { return Cell{gpu}; }});
    }
  }
  if (!groups) table.group_of.clear();
  table.several_models = models.size() > 1;
  table.columns = PageColumns(table.runs, several_models);
  if (reports.size() == 1) {
    table.source = SourceTitle(reports.front());
    table.measured = reports.front().run.source == SourceKind::kMeasured && !reports.front().device.simulated();
  }
  return table;
}

}  // namespace rfinject::cli
