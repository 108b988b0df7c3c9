#include "cli/report/advice/expression.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"

namespace rfinject::cli {
namespace {

// No rule is nested deeper; the limit bounds the recursion.
constexpr int kMostDepth = 40;

template <typename Operation>
double Apply(double a, double b) {
  return Operation()(a, b);
}
double Not(double a, double /*b*/) { return a == 0; }
double Negative(double a, double /*b*/) { return -a; }
double Divide(double a, double b) { return b == 0 ? 0 : a / b; }
double Least(double a, double b) { return std::min(a, b); }
double Most(double a, double b) { return std::max(a, b); }

}  // namespace

// A parser by recursive descent.
class ExpressionParser {
 public:
  ExpressionParser(std::string_view text, const Expression::IndexOf& index_of) : rest_(text), index_of_(index_of) {}

  absl::StatusOr<Expression> Parse() {
    absl::StatusOr<size_t> whole = Chain();
    if (!whole.ok()) return whole.status();
    Skip();
    if (!rest_.empty()) return Expected("an operator");
    return std::move(result_);
  }

 private:
  using Kind = Expression::Kind;
  struct Operator {
    std::string_view text;
    Expression::Function function = nullptr;
    Kind kind = Kind::kBinary;
  };

  void Skip() {
    while (!rest_.empty() && absl::ascii_isspace(static_cast<unsigned char>(rest_.front()))) rest_.remove_prefix(1);
  }
  absl::Status Expected(std::string_view what) const {
    constexpr size_t kShown = 20;
    return absl::InvalidArgumentError(
        absl::StrFormat("%s is expected %s", std::string(what),
                        rest_.empty() ? "at the end" : "before '" + std::string(rest_.substr(0, kShown)) + "'"));
  }
  static bool IsWord(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }
  // Takes `text` if it stands next; a word only where it ends there.
  bool Take(std::string_view text) {
    Skip();
    if (!rest_.starts_with(text)) return false;
    if (IsWord(text.back()) && rest_.size() > text.size() && IsWord(rest_[text.size()])) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  size_t Add(Expression::Node node) {
    result_.nodes_.push_back(node);
    return result_.nodes_.size() - 1;
  }

  // Operands with any of the operators of this level between, from left to right; levels bind ever tighter.
  absl::StatusOr<size_t> Chain(size_t level = 0) {
    static constexpr Operator kOr[] = {{"or", nullptr, Kind::kOr}};
    static constexpr Operator kAnd[] = {{"and", nullptr, Kind::kAnd}};
    static constexpr Operator kComparisons[] = {
        {"<=", Apply<std::less_equal<>>}, {"<", Apply<std::less<>>},      {">=", Apply<std::greater_equal<>>},
        {">", Apply<std::greater<>>},     {"==", Apply<std::equal_to<>>}, {"!=", Apply<std::not_equal_to<>>}};
    static constexpr Operator kSums[] = {{"+", Apply<std::plus<>>}, {"-", Apply<std::minus<>>}};
    static constexpr Operator kProducts[] = {{"*", Apply<std::multiplies<>>}, {"/", Divide}};
    static constexpr std::array<std::span<const Operator>, 5> kLevels = {kOr, kAnd, kComparisons, kSums, kProducts};
    if (level == kLevels.size()) return Operand();
    absl::StatusOr<size_t> left = Chain(level + 1);
    while (left.ok()) {
      const auto next = std::ranges::find_if(kLevels[level], [this](const Operator& one) { return Take(one.text); });
      if (next == kLevels[level].end()) break;
      absl::StatusOr<size_t> right = Chain(level + 1);
      if (!right.ok()) return right;
      left = Add({.kind = next->kind, .first = *left, .second = *right, .function = next->function});
    }
    return left;
  }

  absl::StatusOr<size_t> Operand() {
    if (++depth_ > kMostDepth) return absl::InvalidArgumentError("it is nested too deeply");
    absl::StatusOr<size_t> operand = Unary();
    --depth_;
    return operand;
  }
  absl::StatusOr<size_t> Unary() {
    for (const Operator& one : {Operator{"not", Not}, Operator{"-", Negative}}) {
      if (!Take(one.text)) continue;
      absl::StatusOr<size_t> operand = Operand();
      if (!operand.ok()) return operand;
      return Add({.kind = Kind::kUnary, .first = *operand, .function = one.function});
    }
    for (const Operator& one : {Operator{"min", Least}, Operator{"max", Most}}) {
      if (!Take(one.text)) continue;
      if (!Take("(")) return Expected("(");
      absl::StatusOr<size_t> first = Chain();
      if (!first.ok()) return first;
      if (!Take(",")) return Expected(",");
      absl::StatusOr<size_t> second = Chain();
      if (!second.ok()) return second;
      if (!Take(")")) return Expected(")");
      return Add({.kind = Kind::kBinary, .first = *first, .second = *second, .function = one.function});
    }
    if (Take("(")) {
      absl::StatusOr<size_t> inner = Chain();
      if (inner.ok() && !Take(")")) return Expected(")");
      return inner;
    }
    Skip();
    size_t length = 0;
    while (length < rest_.size() && (IsWord(rest_[length]) || rest_[length] == '.')) ++length;
    const std::string_view word = rest_.substr(0, length);
    if (word.empty()) return Expected("a number or a name");
    if (absl::ascii_isdigit(static_cast<unsigned char>(word.front())) || word.front() == '.') {
      double number = 0;
      if (!absl::SimpleAtod(std::string(word), &number)) return Expected("a number");
      rest_.remove_prefix(length);
      return Add({.kind = Kind::kNumber, .number = number});
    }
    const std::optional<size_t> index = index_of_(word);
    if (!index) return absl::InvalidArgumentError("there is no quantity '" + std::string(word) + "'");
    rest_.remove_prefix(length);
    return Add({.kind = Kind::kName, .index = *index});
  }

  std::string_view rest_;
  const Expression::IndexOf& index_of_;
  Expression result_;
  int depth_ = 0;
};

absl::StatusOr<Expression> Expression::Parse(std::string_view text, const IndexOf& index_of) {
  return ExpressionParser(text, index_of).Parse();
}

std::optional<double> Expression::EvaluateNode(size_t at, std::span<const std::optional<double>> values,
                                               std::vector<size_t>* missing) const {
  const Node& node = nodes_[at];
  if (node.kind == Kind::kNumber) return node.number;
  if (node.kind == Kind::kName) {
    if (!values[node.index]) missing->push_back(node.index);
    return values[node.index];
  }
  const size_t missing_before = missing->size();
  const std::optional<double> a = EvaluateNode(node.first, values, missing);
  if (node.kind == Kind::kUnary) return a ? std::optional(node.function(*a, 0)) : std::nullopt;
  const std::optional<double> b = EvaluateNode(node.second, values, missing);
  if (node.kind != Kind::kBinary) {
    const bool decides = node.kind == Kind::kOr;  // the value of either side that is the value of both
    if ((a && (*a != 0) == decides) || (b && (*b != 0) == decides)) {
      missing->resize(missing_before);
      return decides ? 1 : 0;
    }
    return a && b ? std::optional<double>(decides ? 0 : 1) : std::nullopt;
  }
  return a && b ? std::optional(node.function(*a, *b)) : std::nullopt;
}

std::optional<double> Expression::Evaluate(std::span<const std::optional<double>> values,
                                           std::vector<size_t>* missing) const {
  return nodes_.empty() ? std::nullopt : EvaluateNode(nodes_.size() - 1, values, missing);
}

}  // namespace rfinject::cli
