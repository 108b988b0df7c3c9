#include "cli/emit/csv_writer.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "cli/emit/cell_text.h"

namespace rfinject::cli {
namespace {

void WriteText(std::string_view text, std::ostream& out) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    out << text;
    return;
  }
  out << '"';
  for (const char c : text) {
    if (c == '"') out << '"';
    out << c;
  }
  out << '"';
}

void WriteCell(const Cell& cell, std::ostream& out) {
  if (const auto* text = std::get_if<std::string>(&cell)) {
    WriteText(*text, out);
  } else if (const auto* count = std::get_if<uint64_t>(&cell)) {
    out << *count;
  } else if (const auto* number = std::get_if<double>(&cell)) {
    out << NumberText(*number);
  } else if (const auto* yes = std::get_if<bool>(&cell)) {
    out << (*yes ? "true" : "false");
  }
}

}  // namespace

void WriteCsv(std::span<const RowSet> sets, std::ostream& out) {
  std::vector<std::string_view> head;
  for (const RowSet& set : sets) {
    for (const Column& column : set.columns) {
      if (std::find(head.begin(), head.end(), column.info.name) == head.end()) head.push_back(column.info.name);
    }
  }
  for (size_t c = 0; c < head.size(); ++c) {
    if (c > 0) out << ',';
    WriteText(head[c], out);
  }
  out << '\n';
  for (const RowSet& set : sets) {
    std::vector<const Column*> columns;
    for (const std::string_view name : head) columns.push_back(set.Find(name));
    for (size_t row = 0; row < set.size; ++row) {
      for (size_t c = 0; c < columns.size(); ++c) {
        if (c > 0) out << ',';
        if (columns[c] != nullptr && columns[c]->value) WriteCell(columns[c]->value(row), out);
      }
      out << '\n';
    }
  }
}

}  // namespace rfinject::cli
