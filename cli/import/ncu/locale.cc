#include "cli/import/ncu/locale.h"

#include "absl/strings/str_cat.h"
#include "cli/import/ncu/csv_line.h"
#include "cli/import/ncu/header.h"

namespace rfinject::cli {
namespace {

// How far a file is read to find the mark. A file that shows no mark in so many bytes has hardly a number with one.
constexpr uint64_t kEnoughBytes = 64u << 20;

DecimalMark EvidenceOfValue(std::string_view text) {
  return ParseNumber(text, DecimalMark::kUnknown) ? EvidenceOf(text) : DecimalMark::kUnknown;
}

DecimalMark EvidenceOfLine(const CsvLine& line, const NcuColumns& columns) {
  if (!columns.wide()) return EvidenceOfValue(line[columns.value]);
  for (size_t i = columns.kernel + 1; i < line.size(); ++i) {
    if (i == columns.cc || i == columns.block || i == columns.grid) continue;
    if (const DecimalMark mark = EvidenceOfValue(line[i]); mark != DecimalMark::kUnknown) return mark;
  }
  return DecimalMark::kUnknown;
}

}  // namespace

absl::StatusOr<DecimalMark> DetectDecimalMark(LineReader& reader) {
  NcuColumns columns;
  CsvLine fields;
  std::string_view line;
  DecimalMark mark = DecimalMark::kUnknown;
  while (mark == DecimalMark::kUnknown && reader.offset() < kEnoughBytes && reader.Next(&line)) {
    if (reader.line_number() == 1 && (line.starts_with("\xFF\xFE") || line.starts_with("\xFE\xFF"))) {
      return absl::InvalidArgumentError(
          absl::StrCat(reader.name(), ": is UTF-16; convert it first: iconv -f UTF-16 -t UTF-8 ", reader.name()));
    }
    if (!fields.Split(line)) continue;
    if (columns.count == 0) {
      columns = ReadNcuHeader(fields.fields());
    } else if (columns.Fits(fields.size(), fields.filled())) {
      mark = EvidenceOfLine(fields, columns);
    }
  }
  reader.Rewind();
  if (!reader.status().ok()) return reader.status();
  return mark;
}

}  // namespace rfinject::cli
