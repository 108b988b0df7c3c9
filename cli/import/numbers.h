// File: numbers.h
//
// Reads numbers and units as other tools print them for people: in the reader's locale, scaled to a handy unit.
//   "1,215,000,000.00" "27.595.520" "1 234,5"     "Mbyte" "usecond" "Gbyte/second"
#ifndef RFINJECT_CLI_IMPORT_NUMBERS_H_
#define RFINJECT_CLI_IMPORT_NUMBERS_H_

#include <optional>
#include <string_view>

namespace rfinject::cli {

// What stands for the decimal point.
enum class DecimalMark : unsigned char { kUnknown, kPoint, kComma };

// Returns what `text` proves about the file's locale. "1.234" proves nothing: it may be 1.234 or 1234.
DecimalMark EvidenceOf(std::string_view text);

// The value of `text`, digit groups allowed; where the text is ambiguous `mark` decides, and kUnknown means kPoint.
// nullopt for what is not one number ("n/a", "", "1.2.3,4,5").
std::optional<double> ParseNumber(std::string_view text, DecimalMark mark);

// What one `unit` is worth in the base unit: bytes, seconds, hertz or a plain count; "Gbyte/second" is 1e9 (bytes per
// second), "cycle/nsecond" 1e9. nullopt for a unit that is not known, so that nothing is added up in the wrong unit.
// An empty unit is a plain count.
enum class Dimension : unsigned char { kCount, kBytes, kSeconds, kPerSecond, kBytesPerSecond, kPercent };
struct UnitScale {
  double factor = 1;
  Dimension dimension = Dimension::kCount;
};
std::optional<UnitScale> ParseUnit(std::string_view unit);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_NUMBERS_H_
