// File: csv.h
//
// Reads this folder's CSV files while the program is compiled: a bad row is a compile error. Fields have no quotes
// and no commas; lines that begin with '#' are comments.
#ifndef RFINJECT_GPUS_CSV_H_
#define RFINJECT_GPUS_CSV_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rfinject::csv {

// Called only where a row is wrong. Not constexpr, so that reaching it while compiling is an error that names it.
inline void MalformedCsv() {}

constexpr std::string_view TakeLine(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

// Takes the field before the next comma. The last field of a line is what is left of it.
constexpr std::string_view TakeField(std::string_view& line) {
  const size_t end = line.find(',');
  if (end == std::string_view::npos) MalformedCsv();
  const std::string_view field = line.substr(0, end);
  line.remove_prefix(end + 1);
  return field;
}

// A decimal number times 10^exponent. Exact where the product is an integer below 2^53; an empty field is 0.
constexpr double Decimal(std::string_view text, int exponent = 0) {
  uint64_t mantissa = 0;
  bool fraction = false;
  for (char c : text) {
    if (c == '.') {
      if (fraction) MalformedCsv();
      fraction = true;
      continue;
    }
    if (c < '0' || c > '9' || mantissa > UINT64_MAX / 100) MalformedCsv();
    mantissa = mantissa * 10 + static_cast<uint64_t>(c - '0');
    if (fraction) --exponent;
  }
  if (exponent < 0) MalformedCsv();  // more digits after the point than the unit has
  double value = static_cast<double>(mantissa);
  for (int i = 0; i < exponent; ++i) value *= 10;
  return value;
}

constexpr int Integer(std::string_view text) { return static_cast<int>(Decimal(text)); }

// "yes" or empty.
constexpr bool Flag(std::string_view text) {
  if (!text.empty() && text != "yes") MalformedCsv();
  return !text.empty();
}

// Calls `row(line)` for each row of `text`, whose first line that is no comment must be `header`: otherwise the
// columns are not the ones that the caller reads.
template <typename Row>
constexpr void ForRows(std::string_view text, std::string_view header, const Row& row) {
  bool seen = false;
  while (!text.empty()) {
    const std::string_view line = TakeLine(text);
    if (line.empty() || line[0] == '#') continue;
    if (seen) row(line);
    if (!seen && line != header) MalformedCsv();
    seen = true;
  }
}

constexpr size_t CountRows(std::string_view text, std::string_view header) {
  size_t rows = 0;
  ForRows(text, header, [&rows](std::string_view) { ++rows; });
  return rows;
}

}  // namespace rfinject::csv

#endif  // RFINJECT_GPUS_CSV_H_
