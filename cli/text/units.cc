#include "cli/text/units.h"

#include <cmath>
#include <cstdio>
#include <iterator>

namespace rfinject::cli {
namespace {

std::string Decimals(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

// Three significant digits of a number in [1, 1000); 999.7 becomes "1000", which the caller must not let happen.
std::string Three(double value) {
  const double magnitude = std::abs(value);
  if (magnitude < 9.995) return Decimals(value, 2);
  if (magnitude < 99.95) return Decimals(value, 1);
  return Decimals(value, 0);
}

}  // namespace

std::string WithPrefix(double value, const char* unit) {
  if (!std::isfinite(value)) return "-";
  if (value == 0) return std::string("0 ") + unit;
  static constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  size_t prefix = 0;
  while (std::abs(value) >= 999.5 && prefix + 1 < std::size(kPrefixes)) {
    value /= 1000;
    ++prefix;
  }
  const bool whole = prefix == 0 && value == std::floor(value);
  return (whole                                ? Decimals(value, 0)
          : prefix == 0 && std::abs(value) < 1 ? Plain(value)
                                               : Three(value)) +
         " " + kPrefixes[prefix] + unit;
}

std::string Duration(double ns) {
  if (!std::isfinite(ns)) return "-";
  if (ns == 0) return "0 ns";
  if (std::abs(ns) < 1) return ns > 0 ? "<1 ns" : "0 ns";  // clocks tick in nanoseconds
  static constexpr const char* kUnits[] = {"ns", "us", "ms"};
  size_t unit = 0;
  while (std::abs(ns) >= 999.5 && unit + 1 < std::size(kUnits)) {
    ns /= 1000;
    ++unit;
  }
  if (unit == 2 && std::abs(ns) >= 999.5) return Plain(ns / 1000) + " s";
  return (unit == 0 && ns == std::floor(ns) ? Decimals(ns, 0) : Three(ns)) + " " + kUnits[unit];
}

std::string Plain(double value) {
  if (!std::isfinite(value)) return "-";
  if (value == 0) return "0";
  const double magnitude = std::abs(value);
  if (magnitude >= 1e6 || magnitude < 1e-4) {
    char text[64];
    std::snprintf(text, sizeof text, "%.2e", value);
    return text;
  }
  const int exponent = static_cast<int>(std::floor(std::log10(magnitude)));
  const int decimals = exponent >= 2 ? 0 : 2 - exponent;
  return Decimals(value, decimals);
}

std::string Percent(double share) {
  if (!std::isfinite(share)) return "-";
  const double percent = share * 100;
  if (percent == 0) return "0 %";
  if (percent > 0 && percent < 0.05) return "<0.1 %";
  // 99.96 % must not read as all of it.
  if (percent < 100 && percent >= 99.95) return ">99.9 %";
  return (percent < 9.95 || (percent > 99 && percent < 100) ? Decimals(percent, 1) : Decimals(percent, 0)) + " %";
}

std::string Grouped(uint64_t value) {
  const std::string digits = std::to_string(value);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string Counted(uint64_t count, std::string_view one, std::string_view many) {
  return Grouped(count) + " " + std::string(count == 1 ? one : many);
}

std::string Count(double value) {
  constexpr double kFirstTooLarge = 18446744073709551616.0;  // 2^64
  const bool whole = value >= 0 && value < kFirstTooLarge && value == std::floor(value);
  return whole ? Grouped(static_cast<uint64_t>(value)) : Plain(value);
}

}  // namespace rfinject::cli
