#include "cli/view/document.h"

namespace rfinject::cli {

RowSet WithConstants(std::vector<std::pair<std::string_view, Cell>> columns, RowSet rows) {
  RowSet set;
  set.size = rows.size;
  for (auto& [name, value] : columns) AppendConstant(name, std::move(value), &set);
  for (Column& column : rows.columns) set.columns.push_back(std::move(column));
  return set;
}

RowSet SumOf(const RowSet& rows, std::span<const size_t> which) {
  RowSet sums;
  sums.size = 1;
  for (const Column& column : rows.columns) {
    Column& sum = sums.columns.emplace_back(Column{column.info, {}});
    if (!column.info.additive || !column.value) continue;
    double value = 0;
    for (const size_t row : which) value += NumberIn(column.value(row));
    sum.value = [value](size_t) { return Cell{value}; };
  }
  return sums;
}

}  // namespace rfinject::cli
