// File: overlap_solver.h
//
// Tells kernels apart that no sample has alone: those that run at the same time as others, and those that are shorter
// than a sample. In each sample that they share another part of each lies, so over many samples, and over several
// windows, what each group moves in a launch is found by least squares in which nothing is negative.
#ifndef RFINJECT_COLLECTOR_CUPTI_OVERLAP_SOLVER_H_
#define RFINJECT_COLLECTOR_CUPTI_OVERLAP_SOLVER_H_

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "collector/cupti/sample_join.h"

namespace rfinject::cupti {

class OverlapSolver {
 public:
  struct Solution {
    uint32_t group = 0;
    // Whether the samples tell it from the others; where they do not, the group has no values.
    bool told_apart = false;
    std::vector<double> values;  // of a launch, one metric after the other
    std::vector<double> errors;  // their standard errors
  };

  // What is kept grows with the pairs of groups that shared a sample. Pairs beyond `most_pairs` are dropped with
  // their sample, and `dropped` counts those samples.
  explicit OverlapSolver(size_t metrics, size_t most_pairs = 65536) : metrics_(metrics), most_pairs_(most_pairs) {}

  // Adds the shared samples of a window that fits. `kernels` are those that it was joined with.
  void Add(const Joined& joined, const std::vector<TimedKernel>& kernels);

  // One solution for each group that was in a shared sample, in the order in which they came. Takes time that grows
  // with the cube of how many groups hang together by samples that they share; more than kMostTogether are not told
  // apart, nor is what would move more than `most_per_ns` of the first `limited_metrics` together in each ns that it
  // lasts: it was made of small differences.
  std::vector<Solution> Solve(size_t limited_metrics = 0, double most_per_ns = 0) const;
  static constexpr size_t kMostTogether = 256;

  uint64_t samples() const { return samples_; }
  uint64_t dropped() const { return dropped_; }

 private:
  struct Group {
    uint32_t group = 0;
    double longest_ns = 0;     // of its kernels
    std::vector<double> rest;  // the sum over samples of its share times what the sample holds, for each metric
    // Of the samples in which it is the first.
    uint64_t samples = 0;
    std::vector<double> squares;  // the sum of squares of what they hold, for each metric
  };

  uint32_t IndexOf(uint32_t group);
  std::vector<std::vector<uint32_t>> Together() const;
  void SolveTogether(const std::vector<uint32_t>& members, std::vector<Solution>* solutions) const;

  size_t metrics_, most_pairs_;
  uint64_t samples_ = 0, dropped_ = 0;
  std::vector<Group> groups_;
  std::unordered_map<uint32_t, uint32_t> index_;   // of a group in `groups_`
  std::unordered_map<uint64_t, double> products_;  // sums of products of two groups' shares; the lesser index first
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_OVERLAP_SOLVER_H_
