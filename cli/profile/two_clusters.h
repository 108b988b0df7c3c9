// File: two_clusters.h
//
// TwoClusters tells whether values are of two kinds, such as the durations of short and of long steps.
#ifndef RFINJECT_CLI_PROFILE_TWO_CLUSTERS_H_
#define RFINJECT_CLI_PROFILE_TWO_CLUSTERS_H_

#include <cstddef>
#include <optional>
#include <span>

namespace rfinject::cli {

struct TwoClusters {
  double cut = 0;  // values above it are of the upper kind
  size_t upper = 0;
  size_t fewer = 0;  // values of the rarer kind
  double apart = 0;  // the kinds' means
};

// Divides values where the means of what is below and above are equally far away (Lloyd's iteration in one
// dimension). Returns nothing where these means are not at least four deviations apart, or where one of the kinds has
// fewer than `least` values.
std::optional<TwoClusters> FindTwoClusters(std::span<const double> values, size_t least = 2);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PROFILE_TWO_CLUSTERS_H_
