// File: csv_writer.h
//
// Writes CSV cell by cell (RFC 4180 quoting, line feeds), for the outputs of this folder.
#ifndef RFINJECT_CLI_EMIT_CSV_WRITER_H_
#define RFINJECT_CLI_EMIT_CSV_WRITER_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <variant>

#include "cli/emit/columns.h"

namespace rfinject::cli {

class CsvWriter {
 public:
  explicit CsvWriter(std::ostream& out) : out_(out) {}

  void Text(std::string_view text);
  void Value(const Cell& cell);
  void EndLine() {
    out_ << '\n';
    first_ = true;
  }

 private:
  void Separate() {
    if (!first_) out_ << ',';
    first_ = false;
  }
  std::ostream& out_;
  bool first_ = true;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_EMIT_CSV_WRITER_H_
