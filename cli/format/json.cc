// JSON: the data of a document. Members of the outer objects have lines of their own, those of rows share one: a
// report is read by people and by line-based tools too.
#include <ostream>
#include <string>
#include <type_traits>
#include <variant>

#include "cli/format/format.h"
#include "cli/text/cell_text.h"
#include "cli/text/markup.h"

namespace rfinject::cli {
namespace {

class Writer {
 public:
  explicit Writer(std::ostream& out) : out_(out) {}

  void Write(const Data& data, size_t depth, bool one_line) {
    std::visit(
        [&](const auto& value) {
          using Value = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<Value, Cell>) {
            WriteCell(value);
          } else if constexpr (std::is_same_v<Value, RowSet>) {
            WriteRows(value, depth, one_line);
          } else if constexpr (std::is_same_v<Value, Data::Members>) {
            WriteObject(value, depth, one_line || value.one_line);
          } else {
            List('[', ']', value.list.size(), depth, one_line,
                 [&](size_t i) { Write(value.list[i], depth + 1, one_line); });
          }
        },
        data.value());
  }

 private:
  // `item(i)` writes the i-th of `size` items between the brackets.
  template <typename Item>
  void List(char open, char close, size_t size, size_t depth, bool one_line, const Item& item) {
    out_ << open;
    for (size_t i = 0; i < size; ++i) {
      if (i > 0) out_ << (one_line ? ", " : ",");
      if (!one_line) NewLine(depth + 1);
      item(i);
    }
    if (!one_line && size > 0) NewLine(depth);
    out_ << close;
  }

  void WriteObject(const Data::Members& members, size_t depth, bool one_line) {
    List('{', '}', members.list.size(), depth, one_line, [&](size_t i) {
      const auto& [name, value] = members.list[i];
      out_ << JsonText(name) << ": ";
      Write(value, depth + 1, one_line);
    });
  }

  void WriteRows(const RowSet& rows, size_t depth, bool one_line) {
    List('[', ']', rows.size, depth, one_line, [&](size_t row) {
      List('{', '}', rows.columns.size(), depth + 1, /*one_line=*/true, [&](size_t i) {
        const Column& column = rows.columns[i];
        out_ << JsonText(column.info.name) << ": ";
        WriteCell(column.value ? column.value(row) : Cell{});
      });
    });
  }

  void WriteCell(const Cell& cell) {
    const std::string text = ExactText(cell);
    const bool is_text = std::holds_alternative<std::string>(cell);
    out_ << (is_text ? JsonText(text) : text.empty() ? "null" : text);
  }

  void NewLine(size_t depth) {
    out_ << '\n';
    for (size_t i = 0; i < depth; ++i) out_ << "  ";
  }

  std::ostream& out_;
};

absl::Status WriteJson(const Document& document, const WriteOptions&, std::ostream& out) {
  Writer(out).Write(document.data, 0, /*one_line=*/false);
  out << '\n';
  return absl::OkStatus();
}

}  // namespace

namespace formats {
Format json() { return {.name = "json", .write = WriteJson}; }
}  // namespace formats

}  // namespace rfinject::cli
