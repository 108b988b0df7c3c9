// File: shared_variance.h
//
// How much each of many samples scatters, where all of them are alike: what the others show stands beside a sample's
// own few values. It is pure.
//
// Source: Smyth, "Linear models and empirical Bayes methods for assessing differential expression in microarray
// experiments", Statistical Applications in Genetics and Molecular Biology 3, 2004, sections 4 and 6; samples that
// are unlike the others keep their own variance (Phipson et al., Annals of Applied Statistics 10, 2016).
#ifndef RFINJECT_CLI_MODEL_SHARED_VARIANCE_H_
#define RFINJECT_CLI_MODEL_SHARED_VARIANCE_H_

#include <span>
#include <vector>

namespace rfinject::cli {

struct SharedVariance {
  double variance = 0;
  double degrees = 0;  // of freedom: the sample's own, and what the others are worth
};

// `variances[i]` is the relative variance of a sample of size `sizes[i]`, both above 0; each has `degrees` of
// freedom. It is taken to be inversely proportional to the size, as of a sum of parts that err independently, times
// what the sample has of its own.
std::vector<SharedVariance> ShareVariances(std::span<const double> sizes, std::span<const double> variances,
                                           double degrees);

// The mean of the logarithm of a sample's variance over the true one, for normal values.
double MeanLogOfVariance(double degrees);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_MODEL_SHARED_VARIANCE_H_
