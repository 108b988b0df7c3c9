// File: csv_line.h
//
// Splits one line of CSV by RFC 4180, but for line breaks inside fields, which ncu never writes.
#ifndef RFINJECT_CLI_IMPORT_NCU_CSV_LINE_H_
#define RFINJECT_CLI_IMPORT_NCU_CSV_LINE_H_

#include <string>
#include <string_view>
#include <vector>

namespace rfinject::cli {

// A line's fields; the views are of the line and of the object itself, and hold until the next Split.
class CsvLine {
 public:
  // Returns false when the quotes do not balance or something follows a closing quote: then the line is a program's
  // output.
  bool Split(std::string_view line);

  const std::vector<std::string_view>& fields() const { return fields_; }
  // How many there are without the empty ones at the end.
  size_t filled() const {
    size_t filled = fields_.size();
    while (filled > 0 && fields_[filled - 1].empty()) --filled;
    return filled;
  }
  size_t size() const { return fields_.size(); }
  std::string_view operator[](size_t i) const { return fields_[i]; }

 private:
  std::vector<std::string_view> fields_;
  std::string unescaped_;  // text of fields with doubled quotes
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_NCU_CSV_LINE_H_
