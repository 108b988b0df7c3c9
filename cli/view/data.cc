#include "cli/view/data.h"

namespace rfinject::cli {

Data::Data(Value value) : value_(std::move(value)) {}
Data::Data(Cell cell) : value_(std::move(cell)) {}
Data::Data(RowSet rows) : value_(std::move(rows)) {}
Data::Data(std::string_view text) : value_(Cell{std::string(text)}) {}

Data::Data(const std::string& text) : Data(std::string_view(text)) {}
Data::Data(const char* text) : Data(std::string_view(text)) {}
Data::Data(const Data& other) = default;
Data::Data(Data&& other) noexcept = default;
Data& Data::operator=(const Data& other) = default;
Data& Data::operator=(Data&& other) noexcept = default;
Data::~Data() = default;

Data Data::Object(bool one_line) { return Data(Value(Members{{}, one_line})); }
Data Data::List() { return Data(Value(Items{})); }

Data Data::Texts(const std::vector<std::string>& texts) {
  Data list = List();
  for (const std::string& text : texts) list.Append(text);
  return list;
}

Data Data::RowOf(const RowSet& rows, size_t row) { return std::move(Object(/*one_line=*/true).AddRow(rows, row)); }

Data& Data::Add(std::string_view name, Data value) {
  std::get<Members>(value_).list.push_back({std::string(name), std::move(value)});
  return *this;
}

Data& Data::AddRow(const RowSet& rows, size_t row) {
  for (const Column& column : rows.columns) Add(column.info.name, column.value ? column.value(row) : Cell{});
  return *this;
}

Data& Data::Append(Data item) {
  std::get<Items>(value_).list.push_back(std::move(item));
  return *this;
}

}  // namespace rfinject::cli
