#include "cli/view/table_lines.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cli/text/cell_text.h"
#include "cli/text/units.h"

namespace rfinject::cli {
namespace {

// For each row whether it is left out.
std::vector<bool> LeftOut(const Table& table, size_t most) {
  const size_t size = table.rows.size;
  std::vector<bool> left_out(size, false);
  if (most == 0 || size <= most) return left_out;
  std::vector<size_t> order(size);
  std::iota(order.begin(), order.end(), size_t{0});
  if (table.weight) {
    std::vector<double> weights(size);
    for (size_t i = 0; i < size; ++i) weights[i] = table.weight(i);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return weights[a] > weights[b]; });
  }
  for (size_t i = most; i < size; ++i) left_out[order[i]] = true;
  return left_out;
}

std::string CellText(const Table& table, const Column& column, const TableLook& look, size_t row) {
  std::string text = TableText(column.info, look, column.value ? column.value(row) : Cell{});
  if (table.shared && text != "-" && table.shared(column.info, row)) text.insert(0, "~");
  return text;
}

// A line whose names are one label.
TableLine SumLine(const TableLines& lines, std::string label, const RowSet& sums) {
  TableLine line{.cells = {std::move(label)}, .sums = true};
  for (size_t i = 1; i < lines.looks.size(); ++i) {
    const TableLook& look = lines.looks[i];
    const Column* const column = i < lines.names || look.row_only ? nullptr : sums.Find(look.column);
    line.cells.push_back(column == nullptr || !column->value ? "" : TableText(column->info, look, column->value(0)));
  }
  return line;
}

}  // namespace

TableLines LinesOf(const Table& table, size_t most_rows, std::string_view more) {
  TableLines out;
  std::vector<const Column*> columns;
  for (size_t i = 0; i < table.looks.size(); ++i) {
    const Column* const column = table.rows.Find(table.looks[i].column);
    if (column == nullptr) continue;
    columns.push_back(column);
    out.looks.push_back(table.looks[i]);
    out.kinds.push_back(column->info.kind);
  }
  out.names = table.names;
  const std::vector<bool> left_out = LeftOut(table, most_rows);
  std::vector<size_t> rest;
  for (size_t row = 0; row < table.rows.size; ++row) {
    if (left_out[row]) {
      rest.push_back(row);
      continue;
    }
    TableLine& line = out.lines.emplace_back();
    for (size_t i = 0; i < columns.size(); ++i) {
      line.cells.push_back(CellText(table, *columns[i], out.looks[i], row));
    }
    if (table.below) line.below = table.below(row);
  }
  if (!rest.empty()) {
    out.lines.push_back(SumLine(out, "(" + Grouped(rest.size()) + " more" + std::string(more) + ")",
                                table.rest ? table.rest(rest) : SumOf(table.rows, rest)));
  }
  if (table.total.size > 0) out.lines.push_back(SumLine(out, table.total_label, table.total));
  return out;
}

}  // namespace rfinject::cli
