// File: row_set.h
//
// Every output is made of row sets. A row set has columns; a column is declared once, with its name, what its values
// are and the function that gives a row's value. The rows of reports (column.h), of sweeps (sweep.h), of diffs
// (diff.h) and the list of GPUs are row sets; a format is written once for all of them. Which columns people see, and
// in which order, is a list of the view that shows them (TableLook in grid.h).
#ifndef RFINJECT_CLI_TEXT_ROW_SET_H_
#define RFINJECT_CLI_TEXT_ROW_SET_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace rfinject::cli {

// Nothing, a text, a count, a number that may be fractional, or a yes or no. A number that is not finite is nothing.
using Cell = std::variant<std::monostate, std::string, uint64_t, double, bool>;

// What the values of a column are, which decides how people read them.
enum class Kind : uint8_t {
  kText,
  kCount,  // of things, never abbreviated
  kUnit,   // an amount of `unit`, with a prefix
  kShare,  // of 1, read as a percentage
  kPlain,  // three digits; or yes and no
};

struct ColumnInfo {
  std::string_view name;        // in CSV and JSON, with its unit: an interface that only grows
  std::string_view help = {};   // what the value is, in a sentence without its subject: `rfinject explain`
  std::string_view title = {};  // on the page; empty: the name
  Kind kind = Kind::kPlain;
  std::string_view unit = {};  // "ns", "B", "FLOP", "FLOP/s", "B/s", "FLOP/B"
  bool additive = false;       // the sum over rows means something
  bool data = true;            // in CSV and JSON; false: on the page and in tables only
  // The value comes from FLOP and bytes, which may be a share of a layer's (Knowledge::shared); 0 means not
  // counted.
  bool of_counters = false;
  bool of_roofs = false;  // no table shows it where no roofs are known

  // The same column with one of these said of it.
  constexpr ColumnInfo Additive() const { return With(&ColumnInfo::additive, true); }
  constexpr ColumnInfo ShownOnly() const { return With(&ColumnInfo::data, false); }
  constexpr ColumnInfo OfCounters() const { return With(&ColumnInfo::of_counters, true); }
  constexpr ColumnInfo OfRoofs() const { return With(&ColumnInfo::of_roofs, true); }

 private:
  constexpr ColumnInfo With(bool ColumnInfo::*fact, bool value) const {
    ColumnInfo column = *this;
    column.*fact = value;
    return column;
  }
};

// Columns by their kinds, for the tables of columns.
constexpr ColumnInfo TextColumn(std::string_view name, std::string_view help = {}, std::string_view title = {}) {
  return {.name = name, .help = help, .title = title, .kind = Kind::kText};
}
constexpr ColumnInfo CountColumn(std::string_view name, std::string_view help = {}, std::string_view title = {}) {
  return {.name = name, .help = help, .title = title, .kind = Kind::kCount};
}
constexpr ColumnInfo UnitColumn(std::string_view name, std::string_view unit, std::string_view help = {},
                                std::string_view title = {}) {
  return {.name = name, .help = help, .title = title, .kind = Kind::kUnit, .unit = unit};
}
constexpr ColumnInfo ShareColumn(std::string_view name, std::string_view help = {}, std::string_view title = {}) {
  return {.name = name, .help = help, .title = title, .kind = Kind::kShare};
}
constexpr ColumnInfo PlainColumn(std::string_view name, std::string_view help = {}, std::string_view title = {},
                                 std::string_view unit = {}) {
  return {.name = name, .help = help, .title = title, .kind = Kind::kPlain, .unit = unit};
}

// A column over rows of one type.
template <typename Subject>
struct ColumnOf {
  ColumnInfo info;
  Cell (*value)(const Subject& subject);
};

struct Column {
  ColumnInfo info;
  std::function<Cell(size_t row)> value;  // null: nothing in every row
};

// A view: what it was made from must outlive it.
struct RowSet {
  size_t size = 0;
  std::vector<Column> columns = {};

  // Adds a column for people: what a row is called, or a value that is a text already.
  void AddText(std::string_view name, std::function<std::string(size_t row)> text) {
    columns.push_back(
        {{.name = name, .kind = Kind::kText}, [text = std::move(text)](size_t row) { return Cell{text(row)}; }});
  }
  // The column of this name; nullptr when there is none.
  const Column* Find(std::string_view name) const {
    for (const Column& column : columns) {
      if (column.info.name == name) return &column;
    }
    return nullptr;
  }
};

// Adds `columns` over rows that `subject_of(row)` gives.
template <typename Subject, typename SubjectOf>
void Append(std::span<const ColumnOf<Subject>> columns, const SubjectOf& subject_of, RowSet* rows) {
  for (const ColumnOf<Subject>& column : columns) {
    rows->columns.push_back(
        {column.info, [value = column.value, subject_of](size_t row) { return value(subject_of(row)); }});
  }
}

// A view of `rows` with all of `columns`.
template <typename Subject, size_t kColumns>
RowSet RowSetOf(const std::array<ColumnOf<Subject>, kColumns>& columns,
                std::type_identity_t<std::span<const Subject>> rows) {
  RowSet set{.size = rows.size(), .columns = {}};
  Append(
      std::span<const ColumnOf<Subject>>(columns), [rows](size_t i) -> const Subject& { return rows[i]; }, &set);
  return set;
}

// Adds a column that has the same value in every row.
inline void AppendConstant(std::string_view name, Cell value, RowSet* rows) {
  rows->columns.push_back({{.name = name}, [value = std::move(value)](size_t) { return value; }});
}

// An unknown text is nothing.
inline Cell TextCell(std::string_view text) { return text.empty() ? Cell{} : Cell{std::string(text)}; }
// An amount; 0 means that it is not known.
inline Cell KnownCell(double value) { return value > 0 ? Cell{value} : Cell{}; }
inline Cell KnownCell(const std::optional<double>& value) { return value ? Cell{*value} : Cell{}; }
inline Cell KnownCount(uint64_t value) { return value > 0 ? Cell{value} : Cell{}; }
// The number in a cell; 0 for nothing and for texts.
inline double NumberIn(const Cell& cell) {
  if (const auto* number = std::get_if<double>(&cell)) return *number;
  const auto* count = std::get_if<uint64_t>(&cell);
  return count != nullptr ? static_cast<double>(*count) : 0;
}

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TEXT_ROW_SET_H_
