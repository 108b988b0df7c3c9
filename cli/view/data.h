// File: data.h
//
// What machines read of a document: values, objects, lists and row sets, in the order in which they are written.
//
//   return Data::Object().Add("name", TextCell(name)).Add("roofs", RoofsOf(report));
#ifndef RFINJECT_CLI_VIEW_DATA_H_
#define RFINJECT_CLI_VIEW_DATA_H_

#include <concepts>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cli/text/row_set.h"

namespace rfinject::cli {

class Data {
 public:
  struct Members {
    std::vector<std::pair<std::string, Data>> list;
    bool one_line = false;  // people and line-based tools read it too: rows share a line
  };
  struct Items {
    std::vector<Data> list;
  };
  // A row set is a list of objects, a line each.
  using Value = std::variant<Cell, RowSet, Members, Items>;

  // Values are given as they are.
  Data(Cell cell) : value_(std::move(cell)) {}    // NOLINT(google-explicit-constructor)
  Data(RowSet rows) : value_(std::move(rows)) {}  // NOLINT(google-explicit-constructor)
  template <std::convertible_to<std::string_view> Text>
  // NOLINTNEXTLINE(google-explicit-constructor)
  Data(const Text& text) : value_(Cell{std::string(std::string_view(text))}) {}

  static Data Object(bool one_line = false) { return Data(Value(Members{{}, one_line})); }
  static Data List() { return Data(Value(Items{})); }
  // A list of what `data_of` makes of each item.
  template <typename Source, typename DataOf = std::identity>
  static Data ListOf(const Source& items, const DataOf& data_of = {}) {
    Data list = List();
    for (const auto& item : items) list.Append(data_of(item));
    return list;
  }
  // One row as an object on one line.
  static Data RowOf(const RowSet& rows, size_t row) { return std::move(Object(/*one_line=*/true).AddRow(rows, row)); }

  // Adds a member to an object. Returns the object.
  Data& Add(std::string_view name, Data value) & {
    std::get<Members>(value_).list.emplace_back(name, std::move(value));
    return *this;
  }
  Data&& Add(std::string_view name, Data value) && { return std::move(Add(name, std::move(value))); }
  // Adds the columns of one row as members of an object.
  Data& AddRow(const RowSet& rows, size_t row) {
    for (const Column& column : rows.columns) Add(column.info.name, column.value ? column.value(row) : Cell{});
    return *this;
  }
  // Adds an item to a list.
  void Append(Data item) { std::get<Items>(value_).list.push_back(std::move(item)); }

  const Value& value() const { return value_; }

 private:
  explicit Data(Value value) : value_(std::move(value)) {}
  Value value_;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_VIEW_DATA_H_
