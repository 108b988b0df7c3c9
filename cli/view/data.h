// File: data.h
//
// What machines read of a document: values, objects, lists and row sets, in the order in which they are written.
//
//   Data device = Data::Object();
//   device.Add("name", TextCell(name)).Add("roofs", RoofsOf(report));
#ifndef RFINJECT_CLI_VIEW_DATA_H_
#define RFINJECT_CLI_VIEW_DATA_H_

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cli/text/row_set.h"

namespace rfinject::cli {

class Data {
 public:
  struct Member;
  struct Members {
    std::vector<Member> list;
    bool one_line = false;  // people and line-based tools read it too: rows share a line
  };
  struct Items {
    std::vector<Data> list;
  };
  // A row set is a list of objects, a line each.
  using Value = std::variant<Cell, RowSet, Members, Items>;

  // Values are given as they are.
  Data(Cell cell);                // NOLINT(google-explicit-constructor)
  Data(RowSet rows);              // NOLINT(google-explicit-constructor)
  Data(std::string_view text);    // NOLINT(google-explicit-constructor)
  Data(const std::string& text);  // NOLINT(google-explicit-constructor)
  Data(const char* text);         // NOLINT(google-explicit-constructor)
  // Not in the header, where Member is not complete yet.
  Data(const Data& other);
  Data(Data&& other) noexcept;
  Data& operator=(const Data& other);
  Data& operator=(Data&& other) noexcept;
  ~Data();

  static Data Object(bool one_line = false);
  static Data List();
  // A list of texts.
  static Data Texts(const std::vector<std::string>& texts);
  // One row as an object on one line.
  static Data RowOf(const RowSet& rows, size_t row);

  // Adds a member to an object. Returns the object.
  Data& Add(std::string_view name, Data value);
  // Adds the columns of one row as members of an object.
  Data& AddRow(const RowSet& rows, size_t row);
  // Adds an item to a list.
  Data& Append(Data item);

  const Value& value() const { return value_; }

 private:
  explicit Data(Value value);
  Value value_;
};

struct Data::Member {
  std::string name;
  Data value;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_VIEW_DATA_H_
