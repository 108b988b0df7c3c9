// File: statistics.h
//
// The statistics that comparisons need: rank correlation, and the difference of two estimates. Pure functions.
//
// Sources: Spearman, "The proof and measurement of association between two things", 1904 (ties by mean ranks, as in
// Kendall, "Rank Correlation Methods"); Welch, "The generalization of 'Student's' problem when several different
// population variances are involved", Biometrika 34, 1947 (degrees of freedom by Satterthwaite).
#ifndef RFINJECT_CLI_MODEL_STATISTICS_H_
#define RFINJECT_CLI_MODEL_STATISTICS_H_

#include <optional>
#include <span>
#include <vector>

namespace rfinject::cli {

// 1 for the smallest; equal values share the mean of the ranks that they take up.
std::vector<double> Ranks(std::span<const double> values);

// Spearman's rank correlation of two columns of the same length, from -1 to 1. Pairs of which one value is not finite
// are left out. nullopt with fewer than three pairs or where one column is constant: there is no order to compare.
std::optional<double> SpearmanCorrelation(std::span<const double> a, std::span<const double> b);

// Two-sided 95 % quantile of Student's t distribution; `degrees` need not be whole. Infinite below 1: two samples are
// the least that say anything. Beyond 30 an expansion around the normal quantile (Abramowitz and Stegun 26.7.5).
double Student95(double degrees);

// How uncertain a sum of means is. Independent parts are added with Add().
struct Uncertainty {
  double variance = 0;
  double satterthwaite = 0;  // sum over parts of variance^2 / (n - 1)
  bool known = true;         // false: some part has one sample only

  void Add(const Uncertainty& other);
  // Of a part that may err together with the others: the standard deviations are added, which is the most that it
  // can be (Cauchy and Schwarz).
  void AddDependent(const Uncertainty& other);
  // Of `scale` times the value.
  Uncertainty Times(double scale) const;
};

// Half the width of the 95 % confidence interval of a value with this uncertainty; 0 when it is exact, infinite when
// it is unknown. For the difference of two independent values, Add() one's uncertainty to the other's: that is
// Welch's interval.
double HalfWidth95(const Uncertainty& uncertainty);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_MODEL_STATISTICS_H_
