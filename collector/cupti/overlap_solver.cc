#include "collector/cupti/overlap_solver.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "collector/cupti/non_negative_least_squares.h"

namespace rfinject::cupti {
namespace {

// How many times as uncertain a group may be as it would be without the others in its samples. Beyond, its number
// would be made of small differences.
constexpr double kMostInflation = 1000;

uint64_t PairOf(uint32_t a, uint32_t b) { return static_cast<uint64_t>(std::min(a, b)) << 32 | std::max(a, b); }

}  // namespace

uint32_t OverlapSolver::IndexOf(uint32_t group) {
  const auto [it, is_new] = index_.try_emplace(group, static_cast<uint32_t>(groups_.size()));
  if (is_new) groups_.push_back({group, 0, std::vector<double>(metrics_), 0, std::vector<double>(metrics_)});
  return it->second;
}

void OverlapSolver::Add(const Joined& joined, const std::vector<TimedKernel>& kernels) {
  struct Share {
    uint32_t index;
    double share;
  };
  std::vector<Share> shares;
  for (size_t s = 0; s < joined.shared.size(); ++s) {
    const Joined::Shared& shared = joined.shared[s];
    // So that dropping a sample leaves nothing of it behind.
    if (products_.size() + shared.count * (shared.count + 1) / 2 > most_pairs_) {
      ++dropped_;
      continue;
    }
    ++samples_;
    shares.clear();
    for (uint32_t p = 0; p < shared.count; ++p) {
      const Joined::Part& part = joined.parts[shared.first + p];
      const TimedKernel& kernel = kernels[part.kernel];
      const uint32_t index = IndexOf(kernel.group);
      groups_[index].longest_ns =
          std::max(groups_[index].longest_ns, static_cast<double>(kernel.end_ns - kernel.start_ns));
      auto share = shares.begin();
      while (share != shares.end() && share->index != index) ++share;
      share == shares.end() ? shares.push_back({index, part.share}) : void(share->share += part.share);
    }
    const double* const rest = &joined.rest[s * metrics_];
    for (size_t a = 0; a < shares.size(); ++a) {
      for (size_t b = a; b < shares.size(); ++b) {
        products_[PairOf(shares[a].index, shares[b].index)] += shares[a].share * shares[b].share;
      }
      for (size_t m = 0; m < metrics_; ++m) groups_[shares[a].index].rest[m] += shares[a].share * rest[m];
    }
    Group& first = groups_[shares.front().index];
    ++first.samples;
    for (size_t m = 0; m < metrics_; ++m) first.squares[m] += rest[m] * rest[m];
  }
}

// The groups that samples tie together, directly or through others.
std::vector<std::vector<uint32_t>> OverlapSolver::Together() const {
  std::vector<uint32_t> leader(groups_.size());
  std::iota(leader.begin(), leader.end(), 0);
  const auto find = [&](uint32_t i) {
    while (leader[i] != i) i = leader[i] = leader[leader[i]];
    return i;
  };
  for (const auto& [pair, product] : products_) {
    leader[find(static_cast<uint32_t>(pair >> 32))] = find(static_cast<uint32_t>(pair));
  }
  std::vector<std::vector<uint32_t>> together(groups_.size());
  for (uint32_t i = 0; i < groups_.size(); ++i) together[find(i)].push_back(i);
  std::erase_if(together, [](const auto& members) { return members.empty(); });
  return together;
}

std::vector<OverlapSolver::Solution> OverlapSolver::Solve(size_t limited_metrics, double most_per_ns) const {
  std::vector<Solution> solutions(groups_.size());
  for (size_t i = 0; i < groups_.size(); ++i) solutions[i].group = groups_[i].group;
  for (const std::vector<uint32_t>& members : Together()) {
    if (members.size() <= kMostTogether) SolveTogether(members, &solutions);
  }
  for (size_t i = 0; i < groups_.size(); ++i) {
    double sum = 0;
    for (size_t m = 0; m < std::min(limited_metrics, solutions[i].values.size()); ++m) sum += solutions[i].values[m];
    if (sum > most_per_ns * groups_[i].longest_ns) solutions[i] = {.group = groups_[i].group};
  }
  return solutions;
}

void OverlapSolver::SolveTogether(const std::vector<uint32_t>& members, std::vector<Solution>* solutions) const {
  const size_t n = members.size();
  SymmetricMatrix normal(n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      const auto product = products_.find(PairOf(members[i], members[j]));
      if (product != products_.end()) normal.at(i, j) = product->second;
    }
  }
  double freedom = -static_cast<double>(n);
  for (const uint32_t member : members) freedom += static_cast<double>(groups_[member].samples);
  if (freedom < 1) return;
  const std::vector<double> inverse = InverseDiagonal(normal);
  for (size_t i = 0; i < n; ++i) {
    (*solutions)[members[i]].told_apart = inverse[i] * normal.at(i, i) <= kMostInflation;
  }
  for (size_t m = 0; m < metrics_; ++m) {
    std::vector<double> right(n);
    double scatter = 0;
    for (size_t i = 0; i < n; ++i) {
      right[i] = groups_[members[i]].rest[m];
      scatter += groups_[members[i]].squares[m];
    }
    const std::vector<double> values = SolveNonNegative(normal, right);
    // |Ax - b|² by its normal equations.
    for (size_t i = 0; i < n; ++i) {
      double row = -2 * right[i];
      for (size_t j = 0; j < n; ++j) row += normal.at(i, j) * values[j];
      scatter += values[i] * row;
    }
    const double variance = std::max(0.0, scatter) / freedom;
    for (size_t i = 0; i < n; ++i) {
      Solution& solution = (*solutions)[members[i]];
      if (!solution.told_apart) continue;
      solution.values.push_back(values[i]);
      solution.errors.push_back(std::sqrt(variance * inverse[i]));
    }
  }
}

}  // namespace rfinject::cupti
