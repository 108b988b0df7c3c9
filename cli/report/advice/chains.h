// File: chains.h
//
// ElementwiseChains finds element-wise operators that a layer runs one after the other, and what they would take as
// the one kernel that torch.compile makes of them. A trace does not say which operator reads which one's result, so
// those of a layer without children and without products are taken for one chain, which reads its operand, in the
// backward also the gradient, and writes its result. What torch.compile fuses across layers is not seen.
#ifndef RFINJECT_CLI_REPORT_ADVICE_CHAINS_H_
#define RFINJECT_CLI_REPORT_ADVICE_CHAINS_H_

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "cli/profile/profile.h"
#include "cli/report/advice/what_if.h"

namespace rfinject::cli {

class ElementwiseChains {
 public:
  // Adds the launches of one key of an estimate, which took `ns` together. `op` is its operator's bare name.
  void Add(const LaunchKey& key, std::string_view op, double launches, double ns);

  struct Times {
    double launches = 0, ns = 0;  // of operators in chains
    double fused_ns = 0;          // of the kernels that would take their place
  };
  // Of all chains of the run.
  Times Find(const Run& run, const WhatIf& what_if) const;

 private:
  struct Chain {
    // Launches by operator. The layer was called as often as the most seldom of them was launched.
    std::map<std::string, double, std::less<>> launches;
    double ns = 0;
    double bytes = 0;  // of the largest operand
    bool reduces = false;
    bool parted = false;  // by a product
  };
  static bool IsOne(const LayerKey& layer, const Chain& chain, const Run& run);

  std::map<std::pair<LayerKey, Phase>, Chain> chains_;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_ADVICE_CHAINS_H_
