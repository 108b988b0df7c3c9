// CSV (RFC 4180 quoting, line feeds): one table of all lines of a document. Its head has the columns of all row sets,
// each where it first occurs; a line is empty in the columns that its set lacks.
#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "cli/format/format.h"
#include "cli/text/cell_text.h"

namespace rfinject::cli {
namespace {

void WriteText(std::string_view text, CsvTexts texts, std::ostream& out) {
  const std::string_view mark = texts == CsvTexts::kForSpreadsheets && LooksLikeFormula(text) ? "'" : "";
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    out << mark << text;
    return;
  }
  out << '"' << mark;
  for (const char c : text) {
    if (c == '"') out << '"';
    out << c;
  }
  out << '"';
}

absl::Status WriteCsv(const Document& document, const WriteOptions& options, std::ostream& out) {
  std::vector<std::string_view> head;
  for (const RowSet& set : document.lines) {
    for (const Column& column : set.columns) {
      if (std::find(head.begin(), head.end(), column.info.name) == head.end()) head.push_back(column.info.name);
    }
  }
  for (size_t c = 0; c < head.size(); ++c) {
    if (c > 0) out << ',';
    WriteText(head[c], options.csv_texts, out);
  }
  out << '\n';
  for (const RowSet& set : document.lines) {
    std::vector<const Column*> columns;
    for (const std::string_view name : head) columns.push_back(set.Find(name));
    for (size_t row = 0; row < set.size; ++row) {
      for (size_t c = 0; c < columns.size(); ++c) {
        if (c > 0) out << ',';
        if (columns[c] == nullptr || !columns[c]->value) continue;
        const Cell cell = columns[c]->value(row);
        const bool is_text = std::holds_alternative<std::string>(cell);
        WriteText(ExactText(cell), is_text ? options.csv_texts : CsvTexts::kExact, out);
      }
      out << '\n';
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool LooksLikeFormula(std::string_view text) {
  // What some programs skip at the beginning of a cell before they look for a formula.
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return false;
  if (text[0] == '\t' || text[0] == '\r' || text[0] == '\n') return true;
  text.remove_prefix(begin);
  // The same characters in full width are formulas where an East Asian input method is usual.
  constexpr std::string_view kBeginnings[] = {"=", "+", "-", "@", "＝", "＋", "－", "＠"};
  return std::any_of(std::begin(kBeginnings), std::end(kBeginnings),
                     [&](std::string_view beginning) { return text.starts_with(beginning); });
}

namespace formats {
Format csv() { return {.name = "csv", .write = WriteCsv}; }
}  // namespace formats

}  // namespace rfinject::cli
