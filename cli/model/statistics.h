// File: statistics.h
//
// The statistics that comparisons need: rank correlation, and the difference of two estimates. Pure functions; the
// distributions are Boost.Math's.
//
// Sources: Spearman, "The proof and measurement of association between two things", 1904 (ties by mean ranks, as in
// Kendall, "Rank Correlation Methods"); Welch, "The generalization of 'Student's' problem when several different
// population variances are involved", Biometrika 34, 1947 (degrees of freedom by Satterthwaite).
#ifndef RFINJECT_CLI_MODEL_STATISTICS_H_
#define RFINJECT_CLI_MODEL_STATISTICS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace rfinject::cli {

// 1 for the smallest; equal values share the mean of the ranks that they take up.
std::vector<double> Ranks(std::span<const double> values);

// Spearman's rank correlation of two columns of the same length, from -1 to 1. Pairs with a value that is not
// finite are left out. nullopt with fewer than three pairs or where one column is constant: there is no order to
// compare.
std::optional<double> SpearmanCorrelation(std::span<const double> a, std::span<const double> b);

// Student's t distribution; `degrees` need not be whole. Two samples are the least that say anything, so below one
// degree the tail is 1 and the quantiles are infinite.
//
// The probability that |t| is at least `t` (0 or more).
double StudentTail(double t, double degrees);
// The t that StudentTail() has the probability `tail` for, between 0 and 1; 0 is taken to be the least double above
// it.
double StudentQuantile(double tail, double degrees);
// The same for 5 %: half the width of a 95 % interval in standard errors.
double Student95(double degrees);

// The regularized incomplete beta function I_x(a, b) of a, b > 0 and x from 0 to 1: the probability that a beta
// variable is at most x; 0 where x is no number. And the x that has such a probability.
double IncompleteBeta(double a, double b, double x);
double BetaQuantile(double a, double b, double probability);

// The first two derivatives of the logarithm of the gamma function, of x > 0.
double Digamma(double x);
double Trigamma(double x);

// How uncertain a sum of means is. Add() adds an independent part.
struct Uncertainty {
  double variance = 0;
  double satterthwaite = 0;  // sum over parts of variance^2 / (n - 1)
  bool known = true;         // false: some part has one sample only

  void Add(const Uncertainty& other);
  // Adds a part that may err together with the others: the standard deviations are added, which is an upper bound
  // (Cauchy and Schwarz).
  void AddDependent(const Uncertainty& other);
  // Returns the uncertainty of `scale` times the value.
  Uncertainty Times(double scale) const;
};

// Half the width of the 95 % confidence interval of a value with this uncertainty; 0 when it is exact, infinite when
// it is unknown. For the difference of two independent values, Add() one's uncertainty to the other's: that is
// Welch's interval.
double HalfWidth95(const Uncertainty& uncertainty);
// The degrees of freedom; infinite where nothing limits them.
double DegreesOf(const Uncertainty& uncertainty);

// How the many tests of a comparison are kept from finding something where nothing is.
enum class Correction : uint8_t {
  kFalseDiscovery,  // of all that is called real, 5 % are not (Benjamini and Hochberg, J. R. Stat. Soc. B 57, 1995)
  kFamily,          // one family of tests in 20 calls anything real that is not (Holm, Scand. J. Stat. 6, 1979)
  kNone,            // one test in 20 does
};
// "false discovery rate", "family-wise error", "none".
std::string_view CorrectionName(Correction correction);

// Returns the largest p-value among `p` that counts as real at a level of 5 %; where none does, the value that the
// smallest one would have had to be below.
double Threshold(Correction correction, std::vector<double> p);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_MODEL_STATISTICS_H_
