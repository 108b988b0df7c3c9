#include "cli/text/cell_text.h"

#include <charconv>
#include <cmath>

#include "cli/text/code_points.h"
#include "cli/text/units.h"

namespace rfinject::cli {

std::string NumberText(double value) {
  if (!std::isfinite(value)) return {};
  char text[64];
  constexpr double kExactIntegers = 9007199254740992;  // 2^53
  const std::to_chars_result result = value == std::floor(value) && std::abs(value) <= kExactIntegers
                                          ? std::to_chars(text, text + sizeof text, static_cast<int64_t>(value))
                                          : std::to_chars(text, text + sizeof text, value);
  return {text, result.ptr};
}

std::string ExactText(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  if (const auto* count = std::get_if<uint64_t>(&cell)) return std::to_string(*count);
  if (const auto* number = std::get_if<double>(&cell)) return NumberText(*number);
  const auto* yes = std::get_if<bool>(&cell);
  return yes == nullptr ? "" : *yes ? "true" : "false";
}

std::string TableText(const ColumnInfo& column, const TableLook& look, const Cell& cell) {
  if (std::holds_alternative<std::monostate>(cell)) return look.row_only ? "" : "-";
  if (const auto* text = std::get_if<std::string>(&cell)) {
    return look.width > 0 ? Shortened(PrintableText(*text), look.width, false) : *text;
  }
  if (const auto* yes = std::get_if<bool>(&cell)) return *yes ? "yes" : "no";
  const double value = NumberIn(cell);
  if (!std::isfinite(value) || (column.of_counters && value == 0)) return "-";
  switch (column.kind) {
    case Kind::kShare:
      return Percent(value);
    case Kind::kCount:
      return Count(value);
    case Kind::kUnit:
      return column.unit == "ns" ? Duration(value) : WithPrefix(value, std::string(look.unit).c_str());
    case Kind::kText:
    case Kind::kPlain:
      break;
  }
  return Plain(value);
}

}  // namespace rfinject::cli
