#include "cli/emit/html/page_columns.h"

#include <algorithm>
#include <climits>
#include <cstddef>
#include <string>
#include <variant>

#include "cli/report/column.h"

namespace rfinject::cli {

std::vector<ColumnInfo> PageColumns(std::span<const RowSet> runs, bool several_models) {
  std::vector<ColumnInfo> columns;
  for (const ReportColumn& column : ReportColumns()) {
    if (column.info.data || column.info.page > 0) columns.push_back(column.info);
  }
  const auto place = [](const ColumnInfo& column) { return column.page > 0 ? column.page : INT_MAX; };
  std::stable_sort(columns.begin(), columns.end(),
                   [&](const ColumnInfo& a, const ColumnInfo& b) { return place(a) < place(b); });
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

PageUnit PageUnitOf(const ColumnInfo& column) {
  if (column.kind == Kind::kShare) return {"%", 100};
  if (column.unit == "ns") return {"s", 1e-9};
  return {column.unit, 1};
}

}  // namespace rfinject::cli
