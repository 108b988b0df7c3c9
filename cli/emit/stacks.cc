#include "cli/emit/stacks.h"

#include <algorithm>
#include <utility>

#include "cli/emit/code_points.h"
#include "cli/emit/csv_writer.h"
#include "cli/emit/json_writer.h"
#include "cli/report/report.h"
#include "cli/report/units.h"

namespace rfinject::cli {

void EmitStackTable(std::span<const StackTable> tables, size_t max_rows, std::ostream& out) {
  const char* separator = "";
  for (const StackTable& table : tables) {
    out << separator << PrintableText(table.title) << ": in no layer, by native stack, a step\n";
    separator = "\n";
    if (table.rows.empty()) out << "  everything is in a layer\n";
    const size_t count = max_rows == 0 ? table.rows.size() : std::min(table.rows.size(), max_rows);
    for (size_t i = 0; i < count; ++i) {
      const StackRow& row = table.rows[i];
      const double steps = static_cast<double>(std::max<uint64_t>(table.steps, 1));
      out << "\n"
          << Duration(row.time_ns / steps) << "  " << PhaseName(row.phase) << "  " << Grouped(row.launches)
          << " launches  " << (row.stack ? PrintableText(row.caller) : "(no stack)") << "\n  ";
      constexpr size_t kKernels = 3;
      for (size_t k = 0; k < std::min(row.kernels.size(), kKernels); ++k)
        out << (k ? ", " : "") << PrintableText(row.kernels[k]);
      if (row.kernels.size() > kKernels) out << ", and " << row.kernels.size() - kKernels << " more";
      out << "\n";
      if (!row.stack) continue;
      for (const NativeFrameInfo& frame : *row.stack) {
        out << "    " << PrintableText(FrameText(frame)) << "\n";
      }
    }
    if (count < table.rows.size()) out << "\n(" << table.rows.size() - count << " more: --rows 0)\n";
  }
}

void EmitStackJson(std::span<const StackTable> tables, std::ostream& out) {
  JsonWriter json(out);
  json.BeginObject();
  json.Member("schema", "rfinject.stacks/1");
  json.Key("runs");
  json.BeginArray();
  for (const StackTable& table : tables) {
    json.BeginObject();
    json.Member("device", table.title);
    json.Member("steps", table.steps);
    json.Rows("stacks", StacksOf(table.rows));
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
}

void EmitStackCsv(std::span<const StackTable> tables, std::ostream& out, CsvTexts texts) {
  std::vector<RowSet> sets;
  for (size_t i = 0; i < tables.size(); ++i) {
    RowSet set;
    AppendConstant("run", uint64_t{i + 1}, &set);
    AppendConstant("device", tables[i].title, &set);
    AppendConstant("steps", tables[i].steps, &set);
    RowSet rows = StacksOf(tables[i].rows);
    set.size = rows.size;
    for (Column& column : rows.columns) set.columns.push_back(std::move(column));
    sets.push_back(std::move(set));
  }
  WriteCsv(sets, texts, out);
}

}  // namespace rfinject::cli
