// File: amount.h
//
// A quantity of a run that may not be known, for the conditions and formulas of rules: what follows from an unknown
// one is not known either, and says which facts it lacks. `false && x` is false whatever x is.
#ifndef RFINJECT_CLI_REPORT_ADVICE_AMOUNT_H_
#define RFINJECT_CLI_REPORT_ADVICE_AMOUNT_H_

#include <algorithm>
#include <bitset>
#include <functional>
#include <optional>

#include "cli/report/advice/facts.h"

namespace rfinject::cli {

struct Amount {
  std::optional<double> value;  // true is 1, false is 0
  std::bitset<kFactCount> lacks = {};

  Amount(double known) : value(known) {}  // NOLINT(google-explicit-constructor): rules have numbers in them
  Amount(const FactValues& facts, Fact fact) : value(facts[fact]) {
    if (!value) lacks.set(static_cast<size_t>(fact));
  }

  template <typename Function>
  static Amount Of(const Amount& a, const Amount& b, Function function) {
    if (a.value && b.value) return function(*a.value, *b.value);
    Amount unknown = a;
    unknown.value.reset();
    unknown.lacks |= b.lacks;
    return unknown;
  }

  // NOLINTBEGIN(google-runtime-operator): they have the meaning that they have for numbers.
  friend Amount operator+(const Amount& a, const Amount& b) { return Of(a, b, std::plus{}); }
  friend Amount operator-(const Amount& a, const Amount& b) { return Of(a, b, std::minus{}); }
  friend Amount operator*(const Amount& a, const Amount& b) { return Of(a, b, std::multiplies{}); }
  // A share of nothing is nothing.
  friend Amount operator/(const Amount& a, const Amount& b) {
    return Of(a, b, [](double x, double y) { return y == 0 ? 0 : x / y; });
  }
  friend Amount operator<(const Amount& a, const Amount& b) { return Of(a, b, std::less{}); }
  friend Amount operator>(const Amount& a, const Amount& b) { return b < a; }
  friend Amount operator&&(const Amount& a, const Amount& b) {
    if (a.value == 0.0 || b.value == 0.0) return 0;
    return Of(a, b, [](double, double) { return 1; });
  }
  friend Amount operator!(const Amount& a) {
    return Of(a, 0, [](double x, double) { return x == 0; });
  }
  // NOLINTEND(google-runtime-operator)
};

inline Amount Least(const Amount& a, const Amount& b) {
  return Amount::Of(a, b, [](double x, double y) { return std::min(x, y); });
}

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_ADVICE_AMOUNT_H_
