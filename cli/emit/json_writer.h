// File: json_writer.h
//
// Writes JSON member by member, and row sets as arrays.
#ifndef RFINJECT_CLI_EMIT_JSON_WRITER_H_
#define RFINJECT_CLI_EMIT_JSON_WRITER_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cli/emit/cell_text.h"
#include "cli/emit/markup.h"
#include "cli/report/row_set.h"

namespace rfinject::cli {

// Objects and arrays with their commas and line breaks. Members of the outer objects have lines of their own, those
// of rows share one: a report is read by people and by line-based tools too.
class JsonWriter {
 public:
  explicit JsonWriter(std::ostream& out) : out_(out) {}

  void BeginObject(bool one_line = false) { Begin('{', one_line); }
  void EndObject() { End('}'); }
  void BeginArray(bool one_line = false) { Begin('[', one_line); }
  void EndArray() { End(']'); }

  void Key(std::string_view name) {
    Separate();
    out_ << JsonText(name) << ": ";
    after_key_ = true;
  }
  void String(std::string_view text) { Value(JsonText(text)); }
  void Number(double value) {
    const std::string text = NumberText(value);
    Value(text.empty() ? "null" : text);
  }
  void Count(uint64_t value) { Value(std::to_string(value)); }
  void Bool(bool value) { Value(value ? "true" : "false"); }
  void Null() { Value("null"); }
  void CellValue(const Cell& cell) {
    if (const auto* text = std::get_if<std::string>(&cell)) {
      String(*text);
    } else if (const auto* count = std::get_if<uint64_t>(&cell)) {
      Count(*count);
    } else if (const auto* number = std::get_if<double>(&cell)) {
      Number(*number);
    } else if (const auto* yes = std::get_if<bool>(&cell)) {
      Bool(*yes);
    } else {
      Null();
    }
  }

  void Member(std::string_view name, std::string_view text) {
    Key(name);
    String(text);
  }
  void Optional(std::string_view name, std::string_view text) {
    Key(name);
    text.empty() ? Null() : String(text);
  }
  void Member(std::string_view name, double value) {
    Key(name);
    Number(value);
  }
  void Member(std::string_view name, uint64_t value) {
    Key(name);
    Count(value);
  }

  // The columns of one row as members of the object that is open.
  void Members(const RowSet& rows, size_t row) {
    for (const Column& column : rows.columns) {
      Key(column.info.name);
      column.value ? CellValue(column.value(row)) : Null();
    }
  }
  // A row set as an array of objects, a line each.
  void Rows(std::string_view name, const RowSet& rows) {
    Key(name);
    BeginArray();
    for (size_t row = 0; row < rows.size; ++row) {
      BeginObject(/*one_line=*/true);
      Members(rows, row);
      EndObject();
    }
    EndArray();
  }

 private:
  struct Level {
    bool one_line;
    bool empty = true;
  };

  void Begin(char open, bool one_line) {
    Separate();
    out_ << open;
    levels_.push_back({one_line || (!levels_.empty() && levels_.back().one_line)});
  }
  void End(char close) {
    const Level level = levels_.back();
    levels_.pop_back();
    if (!level.one_line && !level.empty) NewLine();
    out_ << close;
    if (levels_.empty()) out_ << '\n';
  }
  void Value(std::string_view text) {
    Separate();
    out_ << text;
  }
  void Separate() {
    if (after_key_) {
      after_key_ = false;
      return;
    }
    if (levels_.empty()) return;
    Level& level = levels_.back();
    if (!level.empty) out_ << (level.one_line ? ", " : ",");
    level.empty = false;
    if (!level.one_line) NewLine();
  }
  void NewLine() {
    out_ << '\n';
    for (size_t i = 0; i < levels_.size(); ++i) out_ << "  ";
  }

  std::ostream& out_;
  std::vector<Level> levels_;
  bool after_key_ = false;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_EMIT_JSON_WRITER_H_
