#include "cli/emit/csv_writer.h"

#include <string>

namespace rfinject::cli {

void CsvWriter::Text(std::string_view text) {
  Separate();
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    out_ << text;
    return;
  }
  out_ << '"';
  for (const char c : text) {
    if (c == '"') out_ << '"';
    out_ << c;
  }
  out_ << '"';
}

void CsvWriter::Value(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) {
    Text(*text);
  } else if (const auto* count = std::get_if<uint64_t>(&cell)) {
    Text(std::to_string(*count));
  } else if (const auto* number = std::get_if<double>(&cell)) {
    Text(NumberText(*number));
  } else {
    Separate();
  }
}

}  // namespace rfinject::cli
