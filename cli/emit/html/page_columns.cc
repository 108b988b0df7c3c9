#include "cli/emit/html/page_columns.h"

#include <algorithm>
#include <climits>

#include "cli/report/column.h"

namespace rfinject::cli {

std::vector<ColumnInfo> PageColumns(bool several_models) {
  std::vector<ColumnInfo> columns;
  for (const ReportColumn& column : ReportColumns()) {
    if (column.info.data || column.info.page > 0) columns.push_back(column.info);
  }
  const auto place = [](const ColumnInfo& column) { return column.page > 0 ? column.page : INT_MAX; };
  std::stable_sort(columns.begin(), columns.end(),
                   [&](const ColumnInfo& a, const ColumnInfo& b) { return place(a) < place(b); });
  if (several_models) {  // without it the layers' names are not unique
    const auto model = std::find_if(columns.begin(), columns.end(), [](const auto& c) { return c.name == "model"; });
    std::rotate(columns.begin() + 1, model, model + 1);
  }
  return columns;
}

PageUnit PageUnitOf(const ColumnInfo& column) {
  if (column.kind == Kind::kShare) return {"%", 100};
  if (column.unit == "ns") return {"s", 1e-9};
  return {column.unit, 1};
}

}  // namespace rfinject::cli
