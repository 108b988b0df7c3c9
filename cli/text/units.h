// File: units.h
//
// Numbers as people read them. Three significant digits, a decimal prefix, and the unit: "1.23 TFLOP/s", "45.6 GB",
// "789 us". Bytes are decimal (1 GB = 1e9 byte), as in datasheets.
#ifndef RFINJECT_CLI_TEXT_UNITS_H_
#define RFINJECT_CLI_TEXT_UNITS_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace rfinject::cli {

// Three significant digits with a prefix from "" to "E", then `unit`; "0" without a prefix, "-" for what is not
// finite.
std::string WithPrefix(double value, const char* unit);
// A duration given in ns: "12.3 ms".
std::string Duration(double ns);
// Three significant digits, no prefix, never in exponents below 1e6: "0.0123", "17.4", "139", "1240".
std::string Plain(double value);
// A share of 1 as "98 %", "9.8 %", "0.4 %"; "<0.1 %" for what is not zero but would read as zero.
std::string Percent(double share);
// 1234567 as "1,234,567".
std::string Grouped(uint64_t value);
// How many of something there are: "1 step", "1,200 steps".
std::string Counted(uint64_t count, std::string_view one, std::string_view many);
// A count that is a mean or a sum of doubles: Grouped where it is a whole number that uint64_t holds, else Plain.
std::string Count(double value);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TEXT_UNITS_H_
