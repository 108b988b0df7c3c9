#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "cli/report/compare/diff.h"

namespace rfinject::cli {
namespace {

struct GateName {
  std::string_view name;
  Compared quantity;
};
constexpr auto kGateNames = std::to_array<GateName>({{"step_time", Compared::kTime},
                                                     {"step_flop", Compared::kFlop},
                                                     {"step_bytes", Compared::kBytes},
                                                     {"oi", Compared::kOi}});

}  // namespace

bool ParseGate(std::string_view text, Gate* gate) {
  *gate = Gate{.text = std::string(text)};
  const size_t sign = text.find_first_of("<>");
  if (sign == std::string_view::npos || text.size() < sign + 3 || text.back() != '%') return false;
  const auto name = std::find_if(kGateNames.begin(), kGateNames.end(),
                                 [&](const GateName& one) { return one.name == text.substr(0, sign); });
  if (name == kGateNames.end()) return false;
  gate->quantity = name->quantity;
  gate->above = text[sign] == '>';
  std::string_view number = text.substr(sign + 1, text.size() - sign - 2);
  if (number.starts_with('+')) number.remove_prefix(1);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), gate->limit);
  gate->limit /= 100;
  return error == std::errc() && end == number.data() + number.size() && std::isfinite(gate->limit);
}

std::string GateNames() {
  std::string text;
  for (size_t i = 0; i < kGateNames.size(); ++i) {
    if (i > 0) text += i + 1 == kGateNames.size() ? " and " : ", ";
    text += kGateNames[i].name;
  }
  return text;
}

void Judge(std::span<const RunDiff> pairs, Gate* gate) {
  for (const RunDiff& pair : pairs) {
    const Change& change = pair.total[gate->quantity];
    if (change.ratio <= 0 || change.verdict == Verdict::kUnknown) {
      if (gate->outcome == Gate::Outcome::kHolds) gate->outcome = Gate::Outcome::kUnknown;
      continue;
    }
    const double relative = change.ratio - 1;
    const bool beyond = gate->above ? relative > gate->limit : relative < gate->limit;
    const bool fails = beyond && change.verdict == Verdict::kReal;
    if (gate->outcome != Gate::Outcome::kFails || fails) {
      gate->change = relative;
      gate->visible = change.visible / change.before;
    }
    if (fails) gate->outcome = Gate::Outcome::kFails;
  }
}

}  // namespace rfinject::cli
