// File: expression.h
//
// The conditions and formulas of the rules of advice: arithmetic and comparisons over quantities of a run that have
// names. Nothing is assigned, called or repeated, so an expression takes the time that its text takes to read.
//
//   absl::StatusOr<Expression> gain = Expression::Parse("step_ns - 2 * launch_ns", IndexOfName);
//   std::vector<size_t> missing;
//   std::optional<double> ns = gain->Evaluate(values, &missing);
//
//   or  and  not  < <= > >= == !=  + -  * /  min(a, b)  max(a, b)  ( )      from the loosest to the tightest
//
// True is 1, false is 0. A division by 0 gives 0: a share of nothing is nothing.
#ifndef RFINJECT_CLI_REPORT_ADVICE_EXPRESSION_H_
#define RFINJECT_CLI_REPORT_ADVICE_EXPRESSION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace rfinject::cli {

class Expression {
 public:
  // The place of a name among the values; nothing where there is no such name.
  using IndexOf = std::function<std::optional<size_t>(std::string_view name)>;

  // The error says what was expected and before which text.
  static absl::StatusOr<Expression> Parse(std::string_view text, const IndexOf& index_of);

  // Returns nothing where the result depends on values that are not known; their places are then added to `*missing`.
  // `false and x` is false and `true or x` is true whatever x is.
  std::optional<double> Evaluate(std::span<const std::optional<double>> values, std::vector<size_t>* missing) const;

 private:
  friend class ExpressionParser;
  enum class Kind : uint8_t { kNumber, kName, kOr, kAnd, kUnary, kBinary };
  using Function = double (*)(double a, double b);  // kUnary: of `a` alone
  struct Node {
    Kind kind{};
    double number = 0;             // kNumber
    size_t index = 0;              // kName
    size_t first = 0, second = 0;  // operands, which stand before
    Function function = nullptr;   // kUnary, kBinary
  };
  std::optional<double> EvaluateNode(size_t at, std::span<const std::optional<double>> values,
                                     std::vector<size_t>* missing) const;

  std::vector<Node> nodes_;  // the last is the whole
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_ADVICE_EXPRESSION_H_
