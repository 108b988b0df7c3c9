#include "cli/import/numbers.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace rfinject::cli {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Length in bytes of a digit group mark that is neither point nor comma: space, apostrophe, U+00A0, U+202F, U+2019,
// which the French, Swiss and Polish locales use; 0 when `text` does not begin with one.
size_t GroupMarkLength(std::string_view text) {
  if (text.empty()) return 0;
  if (text[0] == ' ' || text[0] == '\'') return 1;
  if (text.starts_with("\xC2\xA0")) return 2;
  if (text.starts_with("\xE2\x80\xAF") || text.starts_with("\xE2\x80\x99")) return 3;
  return 0;
}

// Marks of a number, their places counted in digits.
struct Shape {
  int points = 0;
  int commas = 0;
  size_t last_point = 0;
  size_t last_comma = 0;
  size_t digits = 0;  // before an exponent
  bool leading_zero = false;
};

Shape ShapeOf(std::string_view text) {
  Shape shape;
  for (char c : text) {
    if (c == 'e' || c == 'E') break;
    if (IsDigit(c)) {
      if (shape.digits == 0) shape.leading_zero = c == '0';
      ++shape.digits;
    } else if (c == '.') {
      ++shape.points;
      shape.last_point = shape.digits;
    } else if (c == ',') {
      ++shape.commas;
      shape.last_comma = shape.digits;
    }
  }
  return shape;
}

constexpr std::array<double, 19> kPowersOfTen = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8, 1e9,
                                                 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18};

}  // namespace

DecimalMark EvidenceOf(std::string_view text) {
  const Shape shape = ShapeOf(text);
  if (shape.points > 0 && shape.commas > 0) {
    if (shape.points > 1) return DecimalMark::kComma;
    if (shape.commas > 1) return DecimalMark::kPoint;
    return shape.last_point >= shape.last_comma ? DecimalMark::kPoint : DecimalMark::kComma;
  }
  if (shape.points > 1) return DecimalMark::kComma;
  if (shape.commas > 1) return DecimalMark::kPoint;
  if (shape.points + shape.commas == 0) return DecimalMark::kUnknown;
  const bool point = shape.points == 1;
  const size_t before = point ? shape.last_point : shape.last_comma;
  const size_t after = shape.digits - before;
  // A digit group has three digits, one to three before it, and a grouped number does not begin with a zero.
  const bool may_be_group = after == 3 && before >= 1 && before <= 3 && !shape.leading_zero;
  if (may_be_group) return DecimalMark::kUnknown;
  return point ? DecimalMark::kPoint : DecimalMark::kComma;
}

namespace {

// Reads a number as nearly every value of a file is: digits, in groups as the file has them, then perhaps a fraction.
// Returns nullopt for anything else, and for a number that proves another mark than `mark`: the general parser then
// decides. Both give the same result, to the last bit.
std::optional<double> ParsePlainNumber(std::string_view text, DecimalMark mark) {
  const char decimal = mark == DecimalMark::kComma ? ',' : '.';
  const char group = mark == DecimalMark::kComma ? '.' : ',';
  constexpr size_t kLongest = 17;  // digits that fit, whatever they are
  constexpr size_t kNowhere = static_cast<size_t>(-1);
  if (text.size() > kLongest) return std::nullopt;
  uint64_t mantissa = 0;
  size_t groups = 0, last_group = 0, decimal_at = kNowhere;
  size_t marks = 0;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (;; ++marks, ++at) {
    for (; at != end && IsDigit(*at); ++at) mantissa = mantissa * 10 + static_cast<uint64_t>(*at - '0');
    if (at == end) break;
    const size_t before = static_cast<size_t>(at - text.data()) - marks;  // digits
    if (*at == group && decimal_at == kNowhere && before > 0) {
      ++groups;
      last_group = before;
    } else if (*at == decimal && decimal_at == kNowhere) {
      decimal_at = before;
    } else {
      return std::nullopt;
    }
  }
  const size_t digits = text.size() - marks;
  if (digits == 0) return std::nullopt;
  if (groups > 0 && decimal_at == last_group) return std::nullopt;  // "1,.5"
  // There is only one mark, and not where a mark between groups must be, so it is the decimal mark of another locale.
  if (groups == 1 && decimal_at == kNowhere && (digits - last_group != 3 || last_group > 3 || text[0] == '0')) {
    return std::nullopt;
  }
  const auto value = static_cast<double>(mantissa);
  return decimal_at == kNowhere ? value : value / kPowersOfTen[digits - decimal_at];
}

}  // namespace

std::optional<double> ParseNumber(std::string_view text, DecimalMark mark) {
  if (const auto plain = ParsePlainNumber(text, mark)) return plain;
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  const DecimalMark evidence = EvidenceOf(text);
  if (evidence != DecimalMark::kUnknown) mark = evidence;
  const char decimal = mark == DecimalMark::kComma ? ',' : '.';
  const char group = mark == DecimalMark::kComma ? '.' : ',';

  uint64_t mantissa = 0;
  int dropped = 0;   // digits before the mark that did not fit
  int fraction = 0;  // digits of the mantissa that stand after the mark
  int digits = 0;
  bool after_mark = false;
  size_t i = 0;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (IsDigit(c)) {
      ++digits;
      if (mantissa < 100'000'000'000'000'000u) {
        mantissa = mantissa * 10 + static_cast<uint64_t>(c - '0');
        fraction += after_mark ? 1 : 0;
      } else {
        dropped += after_mark ? 0 : 1;
      }
    } else if (c == decimal && !after_mark) {
      after_mark = true;
    } else if (c == group && !after_mark && digits > 0) {
      continue;
    } else if (const size_t length = GroupMarkLength(text.substr(i)); length > 0 && !after_mark && digits > 0) {
      i += length - 1;
    } else {
      break;
    }
  }
  if (digits == 0) return std::nullopt;
  int exponent = 0;
  if (i < text.size()) {
    if (text[i] != 'e' && text[i] != 'E') return std::nullopt;
    bool negative_exponent = false;
    ++i;
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) negative_exponent = text[i++] == '-';
    if (i == text.size()) return std::nullopt;
    for (; i < text.size(); ++i) {
      if (!IsDigit(text[i]) || exponent > 999) return std::nullopt;
      exponent = exponent * 10 + (text[i] - '0');
    }
    if (negative_exponent) exponent = -exponent;
  }
  exponent += dropped - fraction;
  double value = static_cast<double>(mantissa);
  if (exponent < 0 && exponent > -19) {
    value /= kPowersOfTen[static_cast<size_t>(-exponent)];
  } else if (exponent > 0 && exponent < 19) {
    value *= kPowersOfTen[static_cast<size_t>(exponent)];
  } else if (exponent != 0) {
    value *= std::pow(10.0, exponent);
  }
  if (!std::isfinite(value)) return std::nullopt;
  return negative ? -value : value;
}

namespace {

struct Base {
  std::string_view name;
  double factor;
  Dimension dimension;
};
constexpr Base kSeconds[] = {
    {"nsecond", 1e-9, Dimension::kSeconds}, {"usecond", 1e-6, Dimension::kSeconds},
    {"msecond", 1e-3, Dimension::kSeconds}, {"second", 1, Dimension::kSeconds},
    {"nsec", 1e-9, Dimension::kSeconds},    {"usec", 1e-6, Dimension::kSeconds},
    {"msec", 1e-3, Dimension::kSeconds},    {"sec", 1, Dimension::kSeconds},
    {"ns", 1e-9, Dimension::kSeconds},      {"us", 1e-6, Dimension::kSeconds},
    {"ms", 1e-3, Dimension::kSeconds},      {"s", 1, Dimension::kSeconds},
};
// Those that ncu puts an SI prefix before.
constexpr Base kScalable[] = {
    {"byte", 1, Dimension::kBytes},        {"bytes", 1, Dimension::kBytes},
    {"B", 1, Dimension::kBytes},           {"hz", 1, Dimension::kPerSecond},
    {"Hz", 1, Dimension::kPerSecond},      {"cycle", 1, Dimension::kCount},
    {"cycles", 1, Dimension::kCount},      {"inst", 1, Dimension::kCount},
    {"instruction", 1, Dimension::kCount}, {"instructions", 1, Dimension::kCount},
    {"thread_inst", 1, Dimension::kCount}, {"math_op", 1, Dimension::kCount},
    {"op", 1, Dimension::kCount},          {"sector", 1, Dimension::kCount},
    {"request", 1, Dimension::kCount},     {"warp", 1, Dimension::kCount},
    {"block", 1, Dimension::kCount},       {"thread", 1, Dimension::kCount},
};
struct Prefix {
  std::string_view text;
  double factor;
};
constexpr Prefix kPrefixes[] = {
    {"", 1},
    {"K", 1e3},
    {"k", 1e3},
    {"M", 1e6},
    {"G", 1e9},
    {"T", 1e12},
    {"P", 1e15},
    {"Ki", 1024},
    {"Mi", 1048576.0},
    {"Gi", 1073741824.0},
    {"Ti", 1099511627776.0},
};

std::optional<UnitScale> ParseSimpleUnit(std::string_view unit) {
  for (const Base& base : kSeconds) {
    if (unit == base.name) return UnitScale{base.factor, base.dimension};
  }
  for (const Base& base : kScalable) {
    if (!unit.ends_with(base.name)) continue;
    const std::string_view text = unit.substr(0, unit.size() - base.name.size());
    for (const Prefix& prefix : kPrefixes) {
      if (text == prefix.text) return UnitScale{prefix.factor * base.factor, base.dimension};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<UnitScale> ParseUnit(std::string_view unit) {
  if (unit.empty()) return UnitScale{};
  if (unit == "%") return UnitScale{1, Dimension::kPercent};
  const size_t slash = unit.find('/');
  if (slash == std::string_view::npos) return ParseSimpleUnit(unit);
  const auto over = ParseSimpleUnit(unit.substr(0, slash));
  const auto under = ParseSimpleUnit(unit.substr(slash + 1));
  if (!over || !under || under->dimension != Dimension::kSeconds) return std::nullopt;
  if (over->dimension != Dimension::kBytes && over->dimension != Dimension::kCount) return std::nullopt;
  return UnitScale{over->factor / under->factor,
                   over->dimension == Dimension::kBytes ? Dimension::kBytesPerSecond : Dimension::kPerSecond};
}

}  // namespace rfinject::cli
