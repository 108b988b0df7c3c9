#include "cli/import/torch/event.h"

#include <algorithm>

#include "cli/import/torch/words.h"

namespace rfinject::cli {

bool ParseMicroseconds(std::string_view text, int64_t* ns) {
  const bool negative = ConsumePrefix(&text, "-");
  const size_t exponent = text.find_first_of("eE");
  if (exponent != std::string_view::npos) {
    double value = 0;
    constexpr double kMost = 9e15;
    if (!ParseNumber(text, &value) || !(value < kMost)) return false;
    *ns = static_cast<int64_t>(value * 1e3) * (negative ? -1 : 1);
    return true;
  }
  const size_t point = text.find('.');
  int64_t whole = 0, part = 0;
  if (!ParseNumber(text.substr(0, point), &whole)) return false;
  if (point != std::string_view::npos) {
    int64_t unit = 100;
    for (const char digit : text.substr(point + 1)) {
      if (digit < '0' || digit > '9') return false;
      part += unit * (digit - '0');
      unit /= 10;
    }
  }
  int64_t sum = 0;
  if (__builtin_mul_overflow(whole, int64_t{1000}, &sum) || __builtin_add_overflow(sum, part, &sum)) return false;
  *ns = negative ? -sum : sum;
  return true;
}

uint64_t Unsigned(std::string_view text) {
  uint64_t value = 0;
  if (ParseNumber(text, &value)) return value;
  double real = 0;
  constexpr double kMost = 1.8e19;
  return ParseNumber(text, &real) && real > 0 && real < kMost ? static_cast<uint64_t>(real) : 0;
}

uint32_t Unsigned32(std::string_view text) {
  return static_cast<uint32_t>(std::min<uint64_t>(Unsigned(text), UINT32_MAX));
}

Field EventField(std::string_view key) {
  static constexpr std::pair<std::string_view, Field> kFields[] = {
      {"ph", Field::kPhase},   {"cat", Field::kCategory}, {"name", Field::kName},    {"pid", Field::kProcess},
      {"tid", Field::kThread}, {"ts", Field::kTime},      {"dur", Field::kDuration}, {"args", Field::kArguments}};
  for (const auto& [name, field] : kFields) {
    if (key == name) return field;
  }
  return Field::kOther;
}

Field ArgumentField(std::string_view key) {
  static constexpr std::pair<std::string_view, Field> kFields[] = {{"External id", Field::kExternalId},
                                                                   {"external id", Field::kExternalId},
                                                                   {"correlation", Field::kCorrelation},
                                                                   {"Sequence number", Field::kSequence},
                                                                   {"Input Dims", Field::kDims},
                                                                   {"Input dims", Field::kDims},
                                                                   {"Input type", Field::kTypes},
                                                                   {"Input Strides", Field::kStrides},
                                                                   {"Concrete Inputs", Field::kValues},
                                                                   {"device", Field::kDevice},
                                                                   {"stream", Field::kStream},
                                                                   {"grid", Field::kGrid},
                                                                   {"block", Field::kBlock},
                                                                   {"shared memory", Field::kShared},
                                                                   {"Total Allocated", Field::kAllocated},
                                                                   {"Device Type", Field::kDeviceType}};
  for (const auto& [name, field] : kFields) {
    if (key == name) return field;
  }
  return Field::kOther;
}

}  // namespace rfinject::cli
